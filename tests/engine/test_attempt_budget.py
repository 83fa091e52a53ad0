"""An attempt that passes its budget fails with the plugin's name; other pods are not affected."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.node_plugin import NodeFilter, NodeScore
from kubestow.framework.plugin import Plugin
from kubestow.framework.reuse import Reads, Reuse
from kubestow.framework.status import Code, Status
from kubestow.queue.nominator import Nominator
from kubestow.testing import ManualClock, make_node, make_pod, make_profile, make_snapshot

CLOCK = ManualClock()
SECONDS_PER_NODE = 1.0
NODE_COUNT = 50


def work(pod: Any) -> None:
    # Part of the shape, and no plugin here reads it otherwise.
    if pod.spec.node_selector:
        CLOCK.advance_s(SECONDS_PER_NODE)


class FilterByNode(NodeFilter):
    name = "FilterByNode"

    def filter_node(self, pod: Any, node: Any) -> bool:
        work(pod)
        return True


class ScoreByNode(NodeScore):
    name = "ScoreByNode"

    def score_node(self, pod: Any, node: Any) -> int:
        work(pod)
        return 1


class PreFilter:
    name = "PreFilter"

    def pre_filter(self, state: Any, pod: Any, nodes: Any) -> None:
        for _ in range(20):
            work(pod.pod)


class Reused:
    """Asked when the record of a shape is made."""

    name = "Reused"
    reuse = Reuse(filter=Reads.NODE)

    def filter(self, state: Any, pod: Any, nodes: Any) -> Any:
        for _ in range(20):
            work(pod.pod)
        return np.zeros(len(nodes), np.int64)

    def filter_status(self, state: Any, code: int) -> Status:
        return Status.unschedulable("no")


class Quick(NodeScore):
    """With a score, all nodes are filtered."""

    name = "Quick"

    def score_node(self, pod: Any, node: Any) -> int:
        return 1


class Rig:
    def __init__(self, plugin: Plugin) -> None:
        snapshot = make_snapshot([make_node(f"n{i}") for i in range(NODE_COUNT)])
        timer = AttemptTimer(
            CLOCK.monotonic_s, budget_s=10, count_slow=lambda _plugin, _point: None
        )
        nominator = Nominator(find=lambda _: None, pod_lister=lambda _, __: None)
        self.decider = Decider(snapshot, nominator, timer=timer)
        self.profile = make_profile(plugin, Quick())

    def decide(self, **selector: str) -> Decision:
        return self.decider.decide(self.profile, PodInfo(make_pod(node_selector=selector)))


@pytest.mark.parametrize(
    ("plugin", "point", "taken_s"),
    [
        pytest.param(FilterByNode, "Filter", 11, id="between-nodes"),
        pytest.param(ScoreByNode, "Score", 11, id="between-scores"),
        pytest.param(PreFilter, "PreFilter", 20, id="after-a-call"),
        pytest.param(Reused, "Filter", 20, id="while-a-record-is-made"),
    ],
)
def test_a_slow_plugin_fails_its_own_pod(
    plugin: Callable[[], Plugin], point: str, taken_s: int
) -> None:
    rig = Rig(plugin())
    for _ in range(2):  # With and without a record of the shape.
        started_s = CLOCK.monotonic_s()
        decision = rig.decide(slow="yes")
        assert CLOCK.monotonic_s() - started_s == taken_s
        assert decision.status is not None
        assert decision.status.code == Code.ERROR
        assert f'{point} of plugin "{plugin.__name__}", {taken_s}.0s' in decision.status.message
        assert rig.decide().node_name
