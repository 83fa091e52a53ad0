"""What is kept, and when it is made.

The result of using it equals that of asking every plugin, always: `tests/engine/equivalence` and
`kubestow bench --check` compare the two.

Frames are few: pods of many applications share one, so it is made at once. Records are many. Asking
every plugin costs the nodes that are looked at; making a record costs all nodes, and using it those
that changed since. Which is cheapest depends on how often pods like this one come. So it is made
once the asking it would have saved has cost as much (rent until the rent paid equals the price,
then buy), which is at most twice what it would cost to know the future.
"""

import logging
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, TypeVar

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.pod_shape import PodOutline, PodShape
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.equivalence.asked import Skipped
from kubestow.engine.equivalence.evaluation import Kept, ReusingEvaluation
from kubestow.engine.equivalence.frame_record import FrameRecord
from kubestow.engine.equivalence.plan import ReusePlan
from kubestow.engine.equivalence.preparation import build_frame, build_record
from kubestow.engine.equivalence.record import ROWS_FEW, Record
from kubestow.engine.evaluation import Evaluation, PlainEvaluation
from kubestow.errors import BudgetSpentError, SetAsideError
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.faults import fault_error
from kubestow.framework.profile import Profile

T = TypeVar("T", "Account", FrameRecord)

log = logging.getLogger(__name__)

# In place of an extension point, for faults in the functions that a plugin declares.
REUSE: Final = "reuse"

# Bytes that all frames, and all records, may take; then what one takes, per node and for objects.
_BYTES_MAX: Final = 128 << 20
FRAME_NODE_BYTES: Final = 5
RECORD_NODE_BYTES: Final = 4
_OBJECT_BYTES: Final = 16 << 10
_KEPT_MIN: Final = 4
# What was not used for this many attempts is dropped: the memory follows the pods that come now.
UNUSED_ATTEMPTS_MAX: Final = 20_000
# For this many outlines it is kept where their frame is, and this many uses of frames and records.
PLACES_MAX: Final = 256
# Nothing is kept for larger specs: compiled they take many times that, and any pod may have one.
_LARGE_BYTES: Final = 64 << 10


# What attempts cost, measured in units of what one more node costs where many are asked about. Only
# the ratios matter, and only for speed. Plugins that do not read numbers alone may take long for
# each node: next to that the rest is nothing.


def asking(nodes: int, *, fits: bool, by_numbers: bool) -> int:
    """Asking the plugins of a record about this many nodes; if none fits, reasons are made, too."""
    return nodes + ((4_000 if fits else 12_000) if by_numbers else 1_000)


def building(nodes: int, *, by_numbers: bool) -> int:
    """Making a record of this many nodes."""
    return 7_500 + nodes * 3 // 5 if by_numbers else nodes


def following(changes: int, *, by_numbers: bool) -> int:
    """Bringing a record up to date after this many changes."""
    if not by_numbers:
        return changes
    return 340 * changes if changes <= ROWS_FEW else 4_200 + changes


def kept_max(nodes: int, node_bytes: int) -> int:
    """How many frames or records are kept in a cluster of this size."""
    return max(_BYTES_MAX // (_OBJECT_BYTES + node_bytes * nodes), _KEPT_MIN)


class Account:
    """What asking plugins has cost so far beyond what a record would have.

    kept      the record; None if there is none
    lag       how many changes there were since it was used
    rows      how many nodes the last attempt looked at; 0 if there was none
    fits      whether the pod fitted on one
    end       where the log of changes ended at the last attempt
    used_at   the number of the last attempt
    """

    __slots__ = ("_paid", "end", "fits", "kept", "lag", "rows", "used_at")

    def __init__(self) -> None:
        self.kept: Record | None = None
        self.lag = 0
        self.rows = 0
        self.fits = True
        self.end = 0
        self.used_at = 0
        self._paid = 0

    def lost(self, cost: int) -> None:
        """What the last attempt has paid more than it would have with a record; may be negative."""
        if self.rows:
            self._paid = max(self._paid + cost, 0)

    def pays(self, price: int) -> bool:
        """Whether as much as the price has been lost. If so it is paid: counting starts again."""
        if self._paid < price:
            return False
        self._paid = 0
        return True


class _Place:
    """Where what is kept for pods of one outline is found.

    outline    None if pods of one outline may have different places
    versions   what the way to the frame depends on besides the pod
    shape      that of the last pod, and what asking has cost for it
    kept       what the last pod used
    """

    __slots__ = ("account", "frame", "kept", "outline", "plan", "shape", "versions")

    def __init__(self, plan: ReusePlan, frame: FrameRecord, outline: PodOutline | None) -> None:
        self.outline = outline
        self.plan = plan
        self.frame = frame
        self.versions = plan.versions()
        self.shape: PodShape | None = None
        self.account: Account | None = None
        self.kept: Kept | None = None

    def is_valid(self) -> bool:
        """Whether it is still the place of pods of its outline."""
        for version, value in self.versions:
            found = version()
            # Sets that are one object would be compared entry by entry.
            if found is not value and found != value:
                return False
        return self.frame.is_valid()


class Records:
    """The frames and records by profile; the least recently used is dropped first."""

    def __init__(self, snapshot: Snapshot, timer: AttemptTimer | None = None) -> None:
        self._snapshot = snapshot
        self._timer = timer
        self._attempt = 0
        self._plans: dict[str, ReusePlan] = {}
        self._frames: OrderedDict[Hashable, FrameRecord] = OrderedDict()
        self._records: OrderedDict[Hashable, Account] = OrderedDict()
        # That of the last pod that names its nodes: the next one mostly names another.
        self._naming: Hashable = None
        # The places of the outlines that came last, and that of the last pod.
        self._places: OrderedDict[PodOutline, _Place] = OrderedDict()
        self._last: _Place | None = None
        # What is kept of the use of frames and records together.
        self._kept: OrderedDict[tuple[FrameRecord, Record | None], Kept] = OrderedDict()

    def evaluation(self, profile: Profile, pod: PodInfo) -> Evaluation:
        """The cheapest way to evaluate this pod now."""
        self._attempt += 1
        try:
            place, shape = self._last, pod.shape
            outline = shape.outline
            if place is None or place.outline is not outline:
                place = self._places.get(outline)
            if place is None or place.plan.profile is not profile or not place.is_valid():
                place = self._place(profile, pod)
            self._last = place
            if place is not None:
                place.frame.used_at = self._attempt
                record, skipped = self._record(place, pod, shape), place.plan.skipped(pod)
                kept = place.kept
                if kept is None or kept.record is not record or kept.skipped is not skipped:
                    kept = place.kept = self._used(place.frame, record, skipped)
                return ReusingEvaluation(kept.extended(pod) if kept.answering else kept, pod)
        except (BudgetSpentError, SetAsideError):
            raise  # Asking every plugin would only take longer.
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            # It occurs again when every plugin is asked, which reports it; unless it is in a
            # function of a declaration, which is called nowhere else.
            fault_error(error, "", REUSE)
            self._last = None  # It may be that of another pod.
            self._places.pop(pod.shape.outline, None)
            log.debug("Asking every plugin about pod %s", pod.key, exc_info=True)
        return PlainEvaluation(profile, pod, self._snapshot)

    def looked_at(self, nodes: int, fits: bool = True) -> None:
        """The last attempt looked at this many nodes; whether the pod fits on one."""
        account = None if self._last is None else self._last.account
        if account is not None:
            account.rows, account.fits = nodes, fits

    def _place(self, profile: Profile, pod: PodInfo) -> _Place | None:
        """Where to find what is kept for the pod; None if nothing is to be kept."""
        outline = pod.shape.outline
        if len(outline.text) > _LARGE_BYTES:
            return None
        plan = self._plans.get(profile.name)
        if plan is None or plan.profile is not profile:
            plan = self._plans[profile.name] = ReusePlan(profile)
        key = profile.name, plan.frame_of(pod)
        frame = self._frames.get(key)
        if frame is None or frame.plan is not plan or not frame.is_valid():
            if frame is not None:
                self._kept.clear()  # Some of it holds the frame.
            if _names_nodes(pod.pod) and key != self._naming:
                self._naming = key
                return None
            frame = build_frame(plan, pod, self._snapshot, self._timer)
            if frame is None:
                return None
            self._keep(self._frames, key, frame, FRAME_NODE_BYTES)
        self._frames.move_to_end(key)
        place = _Place(plan, frame, None if plan.reads_all else outline)
        if not plan.reads_all:
            self._places[outline] = place
            if len(self._places) > PLACES_MAX:
                self._places.popitem(last=False)
        return place

    def _used(self, frame: FrameRecord, record: Record | None, skipped: Skipped) -> Kept:
        """What is kept of the use of these two: among others the lists of nodes that pass."""
        key = frame, record
        kept = self._kept.get(key)
        if kept is None or kept.skipped is not skipped:
            kept = self._kept[key] = Kept(frame, record, skipped)
            if len(self._kept) > PLACES_MAX:
                self._kept.popitem(last=False)
        return kept

    def _record(self, place: _Place, pod: PodInfo, shape: PodShape) -> Record | None:
        account, frame = place.account, place.frame
        if account is None or place.shape is not shape:
            account = place.account = self._account(frame.record_key(pod))
            place.shape = shape
        account.used_at = self._attempt
        end = self._snapshot.log.count_end
        changed = end - account.end
        account.end = end
        account.lag += changed
        record, by_numbers = account.kept, frame.has_row_forms
        if record is not None and not record.is_for(frame):
            record = account.kept = None
        if record is not None and account.lag <= ROWS_FEW:
            account.lag = 0
            return record
        asked = asking(account.rows, fits=account.fits, by_numbers=by_numbers)
        account.lost(asked - following(changed, by_numbers=by_numbers))
        if record is not None:
            price = following(account.lag, by_numbers=by_numbers)
            if price > asked and not account.pays(price):
                return None
        else:
            # A pod with a nominated node asks about no other one, if it fits there.
            is_nominated = bool(pod.pod.status.nominated_node_name)
            price = building(len(self._snapshot.names), by_numbers=by_numbers)
            if is_nominated or not account.pays(price):
                return None
            record = account.kept = build_record(frame, pod, self._timer)
        account.lag = 0
        return record

    def _account(self, key: Hashable) -> Account:
        account = self._records.get(key)
        if account is None:
            account = Account()
            self._keep(self._records, key, account, RECORD_NODE_BYTES)
        else:
            self._records.move_to_end(key)
        return account

    def _keep(
        self, entries: "OrderedDict[Hashable, T]", key: Hashable, entry: T, node_bytes: int
    ) -> None:
        """Keep what is used now, and drop what was used long ago."""
        entry.used_at = self._attempt
        entries[key] = entry
        limit = kept_max(len(self._snapshot.names), node_bytes)
        unused_since = self._attempt - UNUSED_ATTEMPTS_MAX
        while len(entries) > limit or next(iter(entries.values())).used_at < unused_since:
            entries.popitem(last=False)
            # One of these may be the last to refer to it.
            self._places.clear()
            self._kept.clear()


def _names_nodes(pod: Pod) -> bool:
    """Whether the pod names the nodes it may go to, as every pod of a DaemonSet names another one:
    plugins are asked about these alone."""
    affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
    required = None if affinity is None else affinity.required
    return required is not None and any(term.match_fields for term in required.node_selector_terms)
