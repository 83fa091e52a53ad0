"""The victims on one node, where all filters read numbers only (spec 08 A6).

The same trial as in `one_node`, for a node that changed since its result was kept. Only sums of
requests are followed: no copy of the node is made, and filters are called in their form for one
node (`engine.equivalence.row_forms`).
"""

from collections.abc import Sequence

from kubestow.api.importance import by_importance
from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import wrap_int64
from kubestow.cache.node_info import NodeInfo
from kubestow.framework.diagnosis import decode_status
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.profile import RowFunction
from kubestow.framework.reuse import Reads
from kubestow.plugins.default_preemption.candidates import Candidate
from kubestow.plugins.default_preemption.dry_run import NO_VICTIMS, TrialInputs
from kubestow.plugins.default_preemption.filters import TrialFilter


class ByNumbers:
    """Tries nodes for pods of one shape and priority.

    All filters must read numbers and have a form for one node (`of`).
    """

    def __init__(
        self,
        tests: Sequence[tuple[TrialFilter, RowFunction]],
        inputs: TrialInputs,
        statuses: StatusCodes,
    ) -> None:
        self._tests = tests
        self._state = inputs.state
        self._priority = inputs.pod.priority
        self._budgets = inputs.budgets
        self._statuses = statuses
        # The numbers of statuses by filter and its code.
        self._numbers: dict[tuple[str, int], int] = {}
        self._no_victims = statuses.code_of(NO_VICTIMS)

    @classmethod
    def of(cls, inputs: TrialInputs, statuses: StatusCodes) -> "ByNumbers | None":
        """For the filters of these inputs; None if one reads more, or has no such form."""
        tests = [
            (each, each.step.row_form(inputs.state))
            for each in inputs.filters
            if each.reads is Reads.NUMBERS and each.step.row_form is not None
        ]
        return cls(tests, inputs, statuses) if len(tests) == len(inputs.filters) else None

    def try_node(self, row: int, info: NodeInfo, now_ns: int) -> Candidate | int:
        """The victims; the number of a status if evicting cannot help.

        No victims mean that the pod fits without any eviction.
        """
        lower = [pod for pod in info.pods if pod.priority < self._priority]
        if not lower:
            return self._no_victims
        node = _CountedNode(info)
        for pod in lower:
            node.count(pod, -1)
        for trial_filter, code_of in self._tests:
            code = code_of(node)
            if code:
                return self._number_of(trial_filter, code)
        lower, violating_count = by_importance(lower, now_ns), 0
        if self._budgets is not None:
            split = self._budgets.split(lower)
            lower, violating_count = [*split.violating, *split.non_violating], len(split.violating)
        kept = [self._fits_with(node, pod) for pod in lower]
        victims = [pod for pod, is_kept in zip(lower, kept, strict=True) if not is_kept]
        if 0 < violating_count < len(lower):
            victims = by_importance(victims, now_ns)
        return Candidate(row, victims, kept[:violating_count].count(False))

    def _fits_with(self, node: "_CountedNode", pod: PodInfo) -> bool:
        """Put the pod back if the preemptor still fits."""
        node.count(pod, 1)
        for _, code_of in self._tests:
            if code_of(node):
                node.count(pod, -1)
                return False
        return True

    def _number_of(self, trial_filter: TrialFilter, code: int) -> int:
        key = trial_filter.name, code
        number = self._numbers.get(key)
        if number is None:
            status = decode_status(trial_filter.plugin, self._state, code)
            number = self._numbers[key] = self._statuses.code_of(status)
        return number


class _CountedNode(NodeInfo):
    """How many pods are on a node and what they request, nothing else.

    A filter that reads more than it declares fails here with AttributeError.
    """

    __slots__ = ()

    def __init__(self, info: NodeInfo) -> None:
        self.name = info.name
        self.allocatable = info.allocatable
        self.requested = info.requested.clone()
        self.pods = info.pods.copy()

    def count(self, pod: PodInfo, sign: int) -> None:
        """Put the pod back, or take it away."""
        if sign > 0:
            self.pods.append(pod)
        else:
            self.pods.pop()  # Only their number matters.
        request, requested = pod.accounted.requested, self.requested
        # Sums wrap, as those of `NodeInfo` do.
        requested.milli_cpu = wrap_int64(requested.milli_cpu + sign * request.milli_cpu)
        requested.memory = wrap_int64(requested.memory + sign * request.memory)
        if request.ephemeral_storage:
            requested.ephemeral_storage = wrap_int64(
                requested.ephemeral_storage + sign * request.ephemeral_storage
            )
        if request.scalar:
            for name, amount in request.scalar.items():
                requested.scalar[name] = wrap_int64(requested.scalar.get(name, 0) + sign * amount)
