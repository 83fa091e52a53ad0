"""The records that are kept, one per shape, and when one is made.

The result of using one equals that of asking every plugin, always: `tests/engine/equivalence` and
`kubestow bench --check` compare the two.
"""

import logging
from collections import OrderedDict
from typing import Final

from kubestow.api.pod_info import PodInfo
from kubestow.api.pod_shape import PodShape
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.equivalence.evaluation import ReusingEvaluation
from kubestow.engine.equivalence.plan import ReusePlan
from kubestow.engine.equivalence.preparation import ask_pre_score
from kubestow.engine.equivalence.record import Record
from kubestow.engine.evaluation import Evaluation, PlainEvaluation
from kubestow.errors import BudgetSpentError, SetAsideError
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.faults import fault_error
from kubestow.framework.metrics import NO_METER, PRE_FILTER
from kubestow.framework.plugin import Restriction
from kubestow.framework.profile import Profile
from kubestow.framework.runner import pre_filter_of
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import nodes_of

log = logging.getLogger(__name__)

# In place of an extension point, for faults in the functions that a plugin declares.
REUSE: Final = "reuse"

# How many numbers all records together may hold: two arrays of 3 numbers for every shape and node.
# A record without its arrays takes the memory of `_NUMBERS_PER_RECORD`.
_NUMBERS_MAX: Final = 16_000_000
_NUMBERS_PER_NODE: Final = 6
_NUMBERS_PER_RECORD: Final = 2_000
_SHAPES_MIN: Final = 4
# What shapes larger than `_SIZE_FREE_BYTES` may have together. A pod of a megabyte takes many times
# that in compiled form, and every pod may have another shape.
_LARGE_BYTES_MAX: Final = 4 * 1024 * 1024
_SIZE_FREE_BYTES: Final = 64 * 1024

# Up to this many nodes, making a record costs little more than asking every plugin once.
_NODES_FEW: Final = 8192
# How many records may be made for first pods of a shape before any shape comes again.
_CREDIT_MAX: Final = 128
# How many more, for each shape that does come again.
_CREDIT_FOR_RETURN: Final = 2


class Records:
    """The records by profile and shape; the least recently used is dropped first.

    A record pays from the second pod of a shape on. While shapes do come again it is made for the
    first pod; where every pod has a shape of its own, the credit for that runs out.
    """

    def __init__(self, snapshot: Snapshot, timer: AttemptTimer | None = None) -> None:
        self._snapshot = snapshot
        self._timer = timer
        self._plans: dict[str, ReusePlan] = {}
        self._records: OrderedDict[tuple[str, PodShape], Record | None] = OrderedDict()
        self._large_bytes = 0
        self._credit = _CREDIT_MAX

    def evaluation(self, profile: Profile, pod: PodInfo) -> Evaluation:
        """The cheapest way to evaluate this pod now."""
        try:
            record = self._record(profile, pod)
            if record is not None:
                return ReusingEvaluation(record, pod)
        except (BudgetSpentError, SetAsideError):
            raise  # Asking every plugin would only take longer.
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            # It occurs again when every plugin is asked, which reports it; unless it is in a
            # function of a declaration, which is called nowhere else.
            fault_error(error, "", REUSE)
            log.debug("Asking every plugin about pod %s", pod.key, exc_info=True)
        return PlainEvaluation(profile, pod, self._snapshot)

    def _record(self, profile: Profile, pod: PodInfo) -> Record | None:
        key = (profile.name, pod.shape)
        record = self._records.get(key)
        if record is not None and record.profile is profile and record.is_valid(pod):
            self._records.move_to_end(key)
            if not record.is_used:
                record.is_used = True
                self._earn_credit()
            return record
        is_known = key in self._records
        self._keep(key, None)  # Stays if the record cannot be made.
        if is_known:
            self._earn_credit()
        elif not self._spend_credit():
            return None
        record = build_record(self._plan(profile), pod, self._snapshot, self._timer)
        self._keep(key, record)
        return record

    def _earn_credit(self) -> None:
        self._credit = min(self._credit + _CREDIT_FOR_RETURN, _CREDIT_MAX)

    def _spend_credit(self) -> bool:
        if len(self._snapshot) > _NODES_FEW or not self._credit:
            return False
        self._credit -= 1
        return True

    def _plan(self, profile: Profile) -> ReusePlan:
        plan = self._plans.get(profile.name)
        if plan is None or plan.profile is not profile:
            plan = self._plans[profile.name] = ReusePlan(profile)
        return plan

    def _keep(self, key: tuple[str, PodShape], record: Record | None) -> None:
        if key not in self._records:
            self._large_bytes += _large_bytes(key)
        self._records[key] = record
        self._records.move_to_end(key)
        numbers = _NUMBERS_PER_RECORD + _NUMBERS_PER_NODE * len(self._snapshot)
        while len(self._records) > max(_NUMBERS_MAX // numbers, _SHAPES_MIN):
            self._drop_oldest()
        while self._large_bytes > _LARGE_BYTES_MAX:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        key, _ = self._records.popitem(last=False)
        self._large_bytes -= _large_bytes(key)


def _large_bytes(key: tuple[str, PodShape]) -> int:
    _, shape = key
    return max(shape.size_bytes - _SIZE_FREE_BYTES, 0)


def build_record(
    plan: ReusePlan, pod: PodInfo, snapshot: Snapshot, timer: AttemptTimer | None = None
) -> Record | None:
    """Prepare the reused plugins for this shape; None if one of them rejects it."""
    reused = plan.reused(pod)
    profile, state = plan.profile, CycleState()
    state.measure(NO_METER, timer)
    nodes = nodes_of(snapshot)
    restriction: tuple[str, Restriction] | None = None
    for name, plugin in profile.pre_filter_steps:
        if name not in reused:
            continue
        answer = pre_filter_of(name, plugin, state, pod, nodes)
        state.sampler.plugin_ended(name, PRE_FILTER, answer)
        if isinstance(answer, Restriction) and restriction is None:
            restriction = (name, answer)
        elif isinstance(answer, Status) and answer.code == Code.SKIP:
            state.skip_filter.add(name)
        elif answer is not None:
            return None
    for name, plugin in profile.pre_score_steps:
        if name in reused and not ask_pre_score(name, plugin, state, pod, nodes):
            return None
    return Record(plan, reused, pod, snapshot, state, restriction)
