"""Asks filters about many nodes in thought, as few times as possible.

    filters that do not look at pods               asked once: pods do not change their answer
    filters that ask for numbers                   asked at every step, for all nodes at once
    filters that ask for more, or keep a state     asked at every step, node by node
    that follows pods coming and going

A filter may say that it does not look at pods (`filters`). What the others ask for is seen when
they are first asked, with every less important pod gone. A filter answers for each node by itself,
so one that saw neither pods nor numbers then would say the same at every later step.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import decode_status
from kubestow.framework.plugin import FilterPlugin, StatusCodes
from kubestow.index.nodes import Nodes, SimulatedNode
from kubestow.plugins.default_preemption.dry_run import IntpArray, Question
from kubestow.plugins.default_preemption.thinned import NeedsMore, ThinnedNodes


class Spot(NamedTuple):
    """One node in thought, and what the plugins' state would be."""

    node: SimulatedNode
    state: CycleState


# The node at a position of the view, with the same pods on it.
SpotAt = Callable[[int], Spot]


class FilterFault(Exception):
    """A filter failed, and not for one node alone."""


class TooMany(Exception):
    """A filter wants to be asked node by node, and there are more nodes than are likely needed."""


class Asker:
    """Asks the filters of one attempt. Its views must all be made from the first."""

    def __init__(self, question: Question, statuses: StatusCodes) -> None:
        self._state = question.state
        self._pod = question.pod
        self._statuses = statuses
        self._filters = question.filters
        self._by_numbers: list[FilterPlugin] = []
        self._by_node: list[FilterPlugin] = []

    def first_failures(self, view: ThinnedNodes, spot_at: SpotAt, *, by_node_max: int) -> IntArray:
        """int64[node]: the status of the first filter that fails, as a number; 0 if none does.

        TooMany if more nodes would have to be asked about one by one.
        """
        failures = np.zeros(len(view), np.int64)
        passing = everything = np.arange(len(view))
        for asked in self._filters:
            plugin = asked.plugin
            is_narrowed = asked.evaluates_each_node and passing is not everything
            nodes = view.subset(passing) if is_narrowed else view
            try:
                if asked.follows_pods:
                    raise NeedsMore
                if asked.ignores_pods:
                    codes = ask(plugin, self._state, self._pod, nodes.as_they_are)
                else:
                    codes = self._ask_by_numbers(plugin, nodes)
                if codes is None:
                    continue
                codes = codes if is_narrowed else codes[passing]
                numbers = status_numbers(plugin, self._state, codes, self._statuses)
            except NeedsMore:
                if len(passing) > by_node_max:
                    raise TooMany from None
                _note(plugin, self._by_node)
                numbers = self._ask_each(plugin, passing, spot_at)
            failures[passing] = numbers
            passing = passing[numbers == 0]
            if len(passing) == 0:
                break
        return failures

    def fails(self, view: ThinnedNodes, spot_at: SpotAt, mask: BoolArray) -> BoolArray:
        """bool[node]: where some filter fails by now, of those nodes in the mask.

        All filters must have been asked about these nodes before, and have passed them.
        """
        fails = np.zeros(len(mask), np.bool_)
        for plugin in self._by_numbers:
            codes = self._ask_view(plugin, view)
            if codes is not None:
                fails |= codes != 0
        fails &= mask
        for plugin in self._by_node:
            fitting = np.flatnonzero(mask & ~fails)
            fails[fitting] = self._ask_each(plugin, fitting, spot_at) != 0
        return fails

    def _ask_by_numbers(self, plugin: FilterPlugin, view: ThinnedNodes) -> IntArray | None:
        """Like `_ask_view`, and take note of whether numbers were asked for."""
        view.asked.for_numbers = False
        codes = self._ask_view(plugin, view)
        if view.asked.for_numbers:
            _note(plugin, self._by_numbers)
        return codes

    def _ask_view(self, plugin: FilterPlugin, view: ThinnedNodes) -> IntArray | None:
        """The filter's codes for the whole view; NeedsMore if it cannot go by numbers."""
        asked = view.asked
        asked.for_more = False
        try:
            codes = ask(plugin, self._state, self._pod, view)
        except FilterFault as fault:
            if asked.for_more:
                raise NeedsMore from fault
            raise
        if asked.for_more:  # The plugin took the refusal for an answer.
            raise NeedsMore
        return codes

    def _ask_each(self, plugin: FilterPlugin, positions: IntpArray, spot_at: SpotAt) -> IntArray:
        """The statuses of the nodes at these positions as numbers, found one by one."""
        numbers = np.zeros(len(positions), np.int64)
        listed: list[int] = positions.tolist()
        for index, position in enumerate(listed):
            node, state = spot_at(position)
            codes = ask(plugin, state, self._pod, node)
            if codes is not None and codes[0]:
                status = decode_status(plugin, state, int(codes[0]))
                numbers[index] = self._statuses.code_of(status)
        return numbers


def ask(plugin: FilterPlugin, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
    """The filter's codes, one per node; FilterFault if it has none."""
    try:
        codes = plugin.filter(state, pod, nodes)
    except Exception as error:  # A fault in one plugin must not stop the scheduler.
        raise FilterFault from error
    if codes is not None and codes.shape != (len(nodes),):
        raise FilterFault
    return codes


def status_numbers(
    plugin: FilterPlugin, state: CycleState, codes: IntArray, statuses: StatusCodes
) -> IntArray:
    """The numbers of the statuses these codes of the filter stand for."""
    numbers = np.zeros(len(codes), np.int64)
    left = np.flatnonzero(codes)
    while len(left):
        code = int(codes[left[0]])
        is_same = codes[left] == code
        numbers[left[is_same]] = statuses.code_of(decode_status(plugin, state, code))
        left = left[~is_same]
    return numbers


def _note(plugin: FilterPlugin, plugins: list[FilterPlugin]) -> None:
    if plugin not in plugins:
        plugins.append(plugin)
