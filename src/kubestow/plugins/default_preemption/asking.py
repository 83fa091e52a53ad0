"""Asks filters about many nodes in thought, as few times as possible.

    filters that ask only what Node objects say    asked once: pods do not change their answer
    filters that ask for numbers                   asked at every step, for all nodes at once
    filters that ask for more                      asked at every step, node by node

What a filter asks for is seen when it is first asked, with every less important pod gone. It
answers for each node by itself, so one that saw neither pods nor numbers then would say the same at
every later step.
"""

from collections.abc import Callable

import numpy as np

from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.nodes import SimulatedNode
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.plugin import FilterPlugin
from kubestow.plugins.default_preemption.dry_run import IntpArray, Question
from kubestow.plugins.default_preemption.thinned import NeedsMore, ThinnedNodes

# The node at a position of the view, with the same pods on it.
NodeAt = Callable[[int], SimulatedNode]


class FilterFault(Exception):
    """A filter failed, and not for one node alone."""


class Asker:
    """Asks the filters of one attempt. Its views must all be made from the first."""

    def __init__(self, question: Question) -> None:
        self._state = question.state
        self._pod = question.pod
        self._steps = [
            step
            for step in question.profile.filter_steps
            if step.name not in question.state.skip_filter
        ]
        self._by_numbers: list[FilterPlugin] = []
        self._by_node: list[FilterPlugin] = []

    def first_failures(self, view: ThinnedNodes, node_at: NodeAt) -> IntArray:
        """int64[2, node]: which filter fails first, or PASSED, and its code. Asks all filters."""
        failures = np.zeros((2, len(view)), np.int64)
        failures[0] = PASSED
        passing = np.arange(len(view))
        for index, _, plugin, evaluates_each_node in self._steps:
            if len(passing) == 0:
                break
            is_narrowed = evaluates_each_node and len(passing) < len(view)
            view.asked.for_numbers = False
            try:
                codes = self._ask(plugin, view.subset(passing) if is_narrowed else view)
                if view.asked.for_numbers:
                    _note(plugin, self._by_numbers)
            except NeedsMore:
                codes, is_narrowed = self._ask_each(plugin, passing, node_at), True
                _note(plugin, self._by_node)
            if codes is None or not codes.any():
                continue
            failing = passing[(codes if is_narrowed else codes[passing]) != 0]
            failures[0, failing] = index
            failures[1, passing] += codes if is_narrowed else codes[passing]
            passing = np.flatnonzero(failures[0] == PASSED)
        return failures

    def fails(self, view: ThinnedNodes, node_at: NodeAt, mask: BoolArray) -> BoolArray:
        """bool[node]: where some filter fails by now, of those nodes in the mask.

        All filters must have been asked about these nodes before, and have passed them.
        """
        fails = np.zeros(len(mask), np.bool_)
        for plugin in self._by_numbers:
            codes = self._ask(plugin, view)
            if codes is not None:
                fails |= codes != 0
        fails &= mask
        for plugin in self._by_node:
            fitting = np.flatnonzero(mask & ~fails)
            fails[fitting] = self._ask_each(plugin, fitting, node_at) != 0
        return fails

    def _ask(self, plugin: FilterPlugin, view: ThinnedNodes) -> IntArray | None:
        """The filter's answer for the whole view; NeedsMore if it cannot go by numbers."""
        asked = view.asked
        asked.for_more = False
        try:
            codes = plugin.filter(self._state, self._pod, view)
        except Exception as error:  # A fault in one plugin must not stop the scheduler.
            if asked.for_more:
                raise NeedsMore from error
            raise FilterFault from error
        if asked.for_more:  # The plugin took the refusal for an answer.
            raise NeedsMore
        if codes is not None and codes.shape != (len(view),):
            raise FilterFault
        return codes

    def _ask_each(self, plugin: FilterPlugin, positions: IntpArray, node_at: NodeAt) -> IntArray:
        """The filter's answers for the nodes at these positions, one by one."""
        codes = np.zeros(len(positions), np.int64)
        listed: list[int] = positions.tolist()
        for index, position in enumerate(listed):
            try:
                answer = plugin.filter(self._state, self._pod, node_at(position))
            except Exception as error:  # As above.
                raise FilterFault from error
            if answer is not None:
                codes[index] = answer[0]
        return codes


def _note(plugin: FilterPlugin, plugins: list[FilterPlugin]) -> None:
    if plugin not in plugins:
        plugins.append(plugin)
