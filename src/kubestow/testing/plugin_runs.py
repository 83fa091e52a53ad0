"""Runs one plugin alone, as the framework would, and returns its results."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import ClusterEvent, Hint
from kubestow.framework.plugin import (
    EventPlugin,
    FilterPlugin,
    NormalizePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, nodes_of


def run_pre_filter(plugin: PreFilterPlugin, pod: Pod, snapshot: Snapshot) -> PreFilterResult:
    """The result of PreFilter for a pod."""
    return plugin.pre_filter(CycleState(), PodInfo(pod), nodes_of(snapshot))


def run_filter(
    plugin: FilterPlugin, pod: Pod, nodes: Snapshot | Nodes, *, state: CycleState | None = None
) -> Mapping[str, Status]:
    """The nodes that do not pass, by name; PreFilter runs first.

    If PreFilter skips, all pass; if it rejects the pod, every node has its status.
    """
    state = CycleState() if state is None else state
    nodes = nodes_of(nodes) if isinstance(nodes, Snapshot) else nodes
    pod_info = PodInfo(pod)
    if isinstance(plugin, PreFilterPlugin):
        answer = plugin.pre_filter(state, pod_info, nodes_of(nodes.snapshot))
        if isinstance(answer, Status) and not answer.is_success:
            is_skipped = answer.code is Code.SKIP
            return {} if is_skipped else dict.fromkeys(nodes.names, answer)
    codes = plugin.filter(state, pod_info, nodes)
    if codes is None:
        return {}
    return {
        name: plugin.filter_status(state, code)
        for name, code in zip(nodes.names, codes.tolist(), strict=True)
        if code
    }


def run_score(
    plugin: ScorePlugin, pod: Pod, nodes: Snapshot | Nodes, *, normalize: bool = True
) -> Sequence[int] | None:
    """The score of each node, None if PreScore skips. Raises the error of PreScore."""
    state = CycleState()
    nodes = nodes_of(nodes) if isinstance(nodes, Snapshot) else nodes
    pod_info = PodInfo(pod)
    if isinstance(plugin, PreScorePlugin):
        status = plugin.pre_score(state, pod_info, nodes)
        if status is not None and status.code is Code.SKIP:
            return None
        error = None if status is None else status.as_error()
        if error is not None:
            raise error
    raw = plugin.score(state, pod_info, nodes)
    scores = np.full(len(nodes), raw, np.int64)
    if normalize and isinstance(plugin, NormalizePlugin):
        scores = plugin.normalize(state, pod_info, scores)
    return scores.tolist()


# Any: the object of an event has a type per resource.
def run_hint(plugin: EventPlugin, event: ClusterEvent, pod: Pod, old: Any, new: Any) -> Hint | None:
    """The plugin's hint for an event; None if it did not register for it."""
    for registration in plugin.events():
        if registration.event.matches(event):
            return Hint.QUEUE if registration.hint is None else registration.hint(pod, old, new)
    return None
