"""Whether a plugin's state follows the pods that a trial adds to a node or removes from it.

Preemption and nominated pods are tried on a copy of the state. The verdict on a node without one of
its pods must be that of a cluster in which the pod does not exist.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.errors import PluginError
from kubestow.framework.answers import status_answer
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.faults import fault_error
from kubestow.framework.metrics import PRE_FILTER
from kubestow.framework.runner import pre_filter_of
from kubestow.framework.status import Status
from kubestow.index.nodes import SimulatedNode, nodes_of
from kubestow.testing.plugin_check.answers import Asked
from kubestow.testing.plugin_check.generated import Generator
from kubestow.testing.plugin_check.loading import Loaded, Side

_NODE_COUNT = 4
_PLACED_COUNT = 8
_WAITING_COUNT = 4


def trial_faults(loaded: Loaded, generator: Generator) -> Iterator[str]:
    nodes = [generator.node(number) for number in range(_NODE_COUNT)]
    placed = [
        PodInfo(generator.pod(number)).assigned_to(nodes[number % _NODE_COUNT].metadata.name)
        for number in range(_PLACED_COUNT)
    ]
    waiting = [PodInfo(generator.pod(100 + number)) for number in range(_WAITING_COUNT)]
    side = _side(loaded, nodes, placed)
    for removed in placed:
        without = _side(loaded, nodes, [one for one in placed if one is not removed])
        for pod in waiting:
            try:
                _try_without(side, without, pod, removed)
            except BaseException as error:  # A fault of the plugin, as in the scheduler.
                fault = fault_error(error, loaded.name, PRE_FILTER)
                yield f"pod {pod.name}, {removed.name} removed: {fault}"


def _side(loaded: Loaded, nodes: Sequence[Node], placed: Sequence[PodInfo]) -> Side:
    cache, side = Cache(), Side(loaded, reuses_answers=False)
    for node in nodes:
        cache.add_node(node)
    for pod in placed:
        cache.add_pod(pod)
    side.show(cache, nodes, [pod.pod for pod in placed])
    return side


def _try_without(side: Side, without: Side, pod: PodInfo, removed: PodInfo) -> None:
    plugin: Any = side.plugin
    row = side.snapshot.row_of(removed.pod.spec.node_name)
    assert row is not None
    state = CycleState()
    answer = pre_filter_of(plugin.name, plugin, state, pod, nodes_of(side.snapshot))
    # A plugin that leaves a pod out, or rejects it, is not asked in trials.
    if isinstance(answer, Status) and not answer.is_success:
        return
    asked, there = Asked(side, pod), Asked(without, pod)
    state, node = state.clone(), SimulatedNode(side.snapshot, row)
    before = asked.filtered(state, node)
    node.remove_pod(removed)
    status_answer(plugin.remove_pod(state, pod, removed, row), plugin.name, "remove_pod")
    found = asked.filtered(state, node)
    expected = there.verdicts(nodes_of(without.snapshot, np.array([row])))
    if expected is not None and found != expected:
        raise PluginError(f"{found[0]} in the trial, {expected[0]} in a cluster without the pod")
    node.add_pod(removed)
    status_answer(plugin.add_pod(state, pod, removed, row), plugin.name, "add_pod")
    again = asked.filtered(state, node)
    if again != before:
        raise PluginError(f"{again[0]} after the pod was added again, {before[0]} before")
