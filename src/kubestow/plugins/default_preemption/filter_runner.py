"""Runs filters on many simulated nodes, as few times as `filters` allows.

A filter answers for each node by itself, so one that reads neither pods nor numbers gives the same
answer at every step of a trial: it is called for all nodes, before the first.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, IntpArray
from kubestow.framework.answers import array_answer
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import decode_status
from kubestow.framework.faults import pass_on_exit
from kubestow.framework.plugin import FilterPlugin, StatusCodes
from kubestow.framework.profile import plugin_name
from kubestow.framework.reuse import Reads
from kubestow.framework.runner import FilterError, code_of_one
from kubestow.index.nodes import Nodes, SimulatedNode
from kubestow.plugins.default_preemption.dry_run import TrialInputs
from kubestow.plugins.default_preemption.filters import TrialFilter
from kubestow.plugins.default_preemption.reduced_nodes import ReducedNodes


class TrialNode(NamedTuple):
    """One simulated node, and the plugins' state for it."""

    node: SimulatedNode
    state: CycleState


# The node at a position of the view, with the same pods on it.
TrialNodeAt = Callable[[int], TrialNode]


class FilterFault(Exception):
    """A filter failed as a whole, not for one node."""


class FilterRunner:
    """Runs the filters of one attempt."""

    def __init__(self, inputs: TrialInputs, statuses: StatusCodes) -> None:
        self._state = inputs.state
        self._pod = inputs.pod
        self._statuses = statuses

    def first_failures(
        self, filters: Sequence[TrialFilter], view: ReducedNodes, node_at: TrialNodeAt
    ) -> IntArray:
        """int64[node]: the status of the first filter that fails, as a number; 0 if none does."""
        failures = np.zeros(len(view), np.int64)
        passing = everything = np.arange(len(view))
        for each in filters:
            if each.reads is Reads.PODS:
                numbers = self._run_by_node(each, passing, node_at)
            else:
                is_narrowed = each.step.per_node and passing is not everything
                nodes = view.subset(passing) if is_narrowed else view
                codes = self._run_on_all(each, nodes)
                if codes is None:
                    continue
                codes = codes if is_narrowed else codes[passing]
                numbers = status_numbers(each.plugin, self._state, codes, self._statuses)
            failures[passing] = numbers
            passing = passing[numbers == 0]
            if len(passing) == 0:
                break
        return failures

    def fails_on(self, filters: Iterable[TrialFilter], trial_node: TrialNode) -> bool:
        """Whether some filter rejects a node."""
        return any(self._code_of_one(each, trial_node) for each in filters)

    def _run_on_all(self, each: TrialFilter, view: ReducedNodes) -> IntArray | None:
        nodes = view.unchanged if each.reads is Reads.NODE else view
        return codes_of(each.plugin, self._state, self._pod, nodes)

    def _run_by_node(
        self, each: TrialFilter, positions: IntpArray, node_at: TrialNodeAt
    ) -> IntArray:
        """The statuses of the nodes at these positions as numbers, one node after the other."""
        numbers = np.zeros(len(positions), np.int64)
        listed: list[int] = positions.tolist()
        for index, position in enumerate(listed):
            trial_node = node_at(position)
            code = self._code_of_one(each, trial_node)
            if code:
                status = decode_status(each.plugin, trial_node.state, code)
                numbers[index] = self._statuses.code_of(status)
        return numbers

    def _code_of_one(self, each: TrialFilter, trial_node: TrialNode) -> int:
        self._state.timer.pause()
        try:
            return code_of_one(each.step, trial_node.state, self._pod, trial_node.node)
        except FilterError as error:
            raise FilterFault from error


def codes_of(
    plugin: FilterPlugin, state: CycleState, pod: PodInfo, nodes: Nodes
) -> IntArray | None:
    """The filter's codes, one per node; FilterFault if it fails."""
    name = plugin_name(plugin)
    try:
        codes = plugin.filter(state, pod, nodes)
        return codes if codes is None else array_answer(codes, name, "codes", len(nodes))
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        pass_on_exit(error)
        raise FilterFault from error


def status_numbers(
    plugin: FilterPlugin, state: CycleState, codes: IntArray, statuses: StatusCodes
) -> IntArray:
    """The numbers of the statuses that these codes of the filter mean."""
    numbers = np.zeros(len(codes), np.int64)
    left = np.flatnonzero(codes)
    while len(left):
        code = int(codes[left[0]])
        is_same = codes[left] == code
        numbers[left[is_same]] = statuses.code_of(decode_status(plugin, state, code))
        left = left[~is_same]
    return numbers
