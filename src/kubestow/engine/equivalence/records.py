"""What is kept, and when it is made.

The result of using it equals that of asking every plugin, always: `tests/engine/equivalence` and
`kubestow bench --check` compare the two.

Asking every plugin costs the nodes that are looked at; making a frame or a record costs all nodes,
and using a record the nodes that changed since. Which is cheapest depends on how often pods like
this one come. So each is made once the asking it would have saved has cost as much (rent until the
rent paid equals the price, then buy), which is at most twice what it would cost to know the future.
"""

import logging
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.pod_shape import PodShape
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.equivalence.evaluation import Kept, ReusingEvaluation
from kubestow.engine.equivalence.frame_record import FrameRecord
from kubestow.engine.equivalence.plan import ReusePlan
from kubestow.engine.equivalence.preparation import build_frame, build_record
from kubestow.engine.equivalence.record import Record
from kubestow.engine.evaluation import Evaluation, PlainEvaluation
from kubestow.errors import BudgetSpentError, SetAsideError
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.faults import fault_error
from kubestow.framework.profile import Profile

T = TypeVar("T")

log = logging.getLogger(__name__)

# In place of an extension point, for faults in the functions that a plugin declares.
REUSE: Final = "reuse"

# Bytes that all frames, and all records, may take: so many per node, and so many for the objects.
_BYTES_MAX: Final = 128 << 20
FRAME_NODE_BYTES: Final = 5
RECORD_NODE_BYTES: Final = 4
_OBJECT_BYTES: Final = 16 << 10
_KEPT_MIN: Final = 4
# What was not used for so many attempts is dropped: the memory follows the pods that come now.
UNUSED_ATTEMPTS_MAX: Final = 20_000
# Nothing is kept for larger specs: compiled they take many times that, and any pod may have one.
_LARGE_BYTES: Final = 64 << 10

# What an attempt pays without a frame or a record however few nodes it looks at, in rows that one
# is computed for at the same cost; and what it pays for each node without a frame.
_FRAME_OVERHEAD_ROWS: Final = 12_000
_RECORD_OVERHEAD_ROWS: Final = 4_000
_FRAME_ROWS_PER_NODE: Final = 4


def kept_max(nodes: int, node_bytes: int) -> int:
    """How many frames or records are kept in a cluster of this size."""
    return max(_BYTES_MAX // (_OBJECT_BYTES + node_bytes * nodes), _KEPT_MIN)


class Account(Generic[T]):
    """The cost so far of asking plugins without a frame or record, which would have saved it.

    rows      how many nodes the last attempt looked at
    end       where the log of changes ended at the last attempt
    used_at   the number of the last attempt
    """

    __slots__ = ("_paid", "end", "kept", "rows", "used_at")

    def __init__(self) -> None:
        self.kept: T | None = None
        self.rows = 0
        self.end = 0
        self.used_at = 0
        self._paid = 0

    def pays(self, saved_rows: int, price_rows: int) -> bool:
        """Enter what the last attempt paid; whether it is time to buy."""
        if self.rows:
            self._paid = max(self._paid + saved_rows, 0)
        return self._paid >= price_rows

    def take(self, kept: T | None) -> T | None:
        self.kept = kept
        self._paid = 0
        return kept


class _Place:
    """Where what is kept for pods of one shape is found.

    frame            the frame that `record_account` is for
    record_account   None while there is no frame
    kept             what the last pod of the shape used
    """

    __slots__ = ("frame", "frame_account", "kept", "plan", "record_account", "shape")

    def __init__(
        self, plan: ReusePlan, shape: PodShape, frame_account: Account[FrameRecord]
    ) -> None:
        self.plan = plan
        self.shape = shape
        self.frame_account = frame_account
        self.frame: FrameRecord | None = None
        self.record_account: Account[Record] | None = None
        self.kept: Kept | None = None


class Records:
    """The frames and records by profile; the least recently used is dropped first."""

    def __init__(self, snapshot: Snapshot, timer: AttemptTimer | None = None) -> None:
        self._snapshot = snapshot
        self._timer = timer
        self._attempt = 0
        self._plans: dict[str, ReusePlan] = {}
        self._frames: OrderedDict[Hashable, Account[FrameRecord]] = OrderedDict()
        self._records: OrderedDict[Hashable, Account[Record]] = OrderedDict()
        # The place of the last pod: mostly the next one has the same shape.
        self._last: _Place | None = None

    def evaluation(self, profile: Profile, pod: PodInfo) -> Evaluation:
        """The cheapest way to evaluate this pod now."""
        self._attempt += 1
        try:
            place = self._last
            if (
                place is None
                or place.shape is not pod.shape
                or place.plan.profile is not profile
                or place.plan.reads_all
            ):
                place = self._last = self._place(profile, pod)
            if place is not None:
                frame = self._frame(place, pod)
                if frame is not None:
                    record = self._record(place, frame, pod)
                    return ReusingEvaluation(self._kept(place, frame, record, pod), pod)
        except (BudgetSpentError, SetAsideError):
            raise  # Asking every plugin would only take longer.
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            # It occurs again when every plugin is asked, which reports it; unless it is in a
            # function of a declaration, which is called nowhere else.
            fault_error(error, "", REUSE)
            self._last = None  # It may be that of another pod.
            log.debug("Asking every plugin about pod %s", pod.key, exc_info=True)
        return PlainEvaluation(profile, pod, self._snapshot)

    def looked_at(self, rows: int) -> None:
        """The last attempt looked at this many nodes."""
        place = self._last
        if place is not None:
            place.frame_account.rows = rows
            if place.record_account is not None:
                place.record_account.rows = rows

    def _place(self, profile: Profile, pod: PodInfo) -> _Place | None:
        """Where to find what is kept for the pod; None if nothing is to be kept."""
        shape = pod.shape
        if len(shape.text) > _LARGE_BYTES:
            return None
        plan = self._plan(profile)
        return _Place(plan, shape, self._frame_account(plan, pod))

    def _frame_account(self, plan: ReusePlan, pod: PodInfo) -> Account[FrameRecord]:
        key = plan.profile.name, plan.frame_of(pod)
        return self._account(self._frames, key, FRAME_NODE_BYTES)

    def _frame(self, place: _Place, pod: PodInfo) -> FrameRecord | None:
        account, plan = place.frame_account, place.plan
        account.used_at = self._attempt
        frame = account.kept
        if frame is not None and frame.plan is plan and frame.is_valid(pod):
            return frame
        account.kept = place.record_account = None
        # The place may be of before a plugin excepted the pod, or stopped to.
        account = place.frame_account = self._frame_account(plan, pod)
        account.used_at = self._attempt
        saved = _FRAME_ROWS_PER_NODE * account.rows + _FRAME_OVERHEAD_ROWS
        # This attempt would pay, too; how many nodes it looks at is not known yet.
        spent = 0 if _names_nodes(pod.pod) else _FRAME_OVERHEAD_ROWS
        if not account.pays(saved, len(self._snapshot) - spent):
            return None
        return account.take(build_frame(plan, pod, self._snapshot, self._timer))

    def _record(self, place: _Place, frame: FrameRecord, pod: PodInfo) -> Record | None:
        account = place.record_account
        if account is None or place.frame is not frame:
            account = self._account(self._records, frame.record_key(pod), RECORD_NODE_BYTES)
            place.frame, place.record_account = frame, account
        account.used_at = self._attempt
        end = self._snapshot.log.pod_end
        changed = end - account.end
        account.end = end
        record = account.kept
        if record is not None and record.is_for(frame):
            if changed <= account.rows + _RECORD_OVERHEAD_ROWS:
                return record
            # So many nodes changed that asking about those of one attempt costs less.
            account.kept = None
        saved = account.rows + _RECORD_OVERHEAD_ROWS - changed
        # A pod with a nominated node asks about no other one, if it fits there.
        is_nominated = bool(pod.pod.status.nominated_node_name)
        if not account.pays(saved, len(self._snapshot)) or is_nominated:
            return None
        return account.take(build_record(frame, pod, self._timer))

    def _kept(self, place: _Place, frame: FrameRecord, record: Record | None, pod: PodInfo) -> Kept:
        skipped = place.plan.skipped(pod)
        kept = place.kept
        if kept is None or not kept.is_of(frame, record, skipped):
            kept = place.kept = Kept(frame, record, skipped)
        return kept

    def _plan(self, profile: Profile) -> ReusePlan:
        plan = self._plans.get(profile.name)
        if plan is None or plan.profile is not profile:
            plan = self._plans[profile.name] = ReusePlan(profile)
        return plan

    def _account(
        self, accounts: "OrderedDict[Hashable, Account[T]]", key: Hashable, node_bytes: int
    ) -> Account[T]:
        account = accounts.get(key)
        if account is not None:
            accounts.move_to_end(key)
            return account
        account = accounts[key] = Account()
        account.used_at = self._attempt
        limit = kept_max(len(self._snapshot), node_bytes)
        unused_since = self._attempt - UNUSED_ATTEMPTS_MAX
        while len(accounts) > limit or next(iter(accounts.values())).used_at < unused_since:
            accounts.popitem(last=False)
        return account


def _names_nodes(pod: Pod) -> bool:
    """Whether the pod names the nodes it may go to, as every pod of a DaemonSet names another one:
    plugins are asked about these alone."""
    affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
    required = None if affinity is None else affinity.required
    return required is not None and any(term.match_fields for term in required.node_selector_terms)
