"""Pods that Kueue holds back: a gate is removed and node selectors are added in one update."""

import pytest
from tests.engine.groups.play import Play, own_mode

from kubestow.api.meta import JsonObject
from kubestow.testing import make_node, make_pod, make_pod_group

GATE = "kueue.x-k8s.io/admission"
ADMISSION = {"spec": {"schedulingGates": None, "nodeSelector": {"flavor": "b"}}}


@pytest.mark.parametrize(
    ("config", "is_retried"),
    [pytest.param({}, True, id="upstream"), pytest.param(own_mode(), False, id="own")],
)
def test_members_are_tried_when_the_last_one_is_admitted(
    config: JsonObject, is_retried: bool
) -> None:
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="4", labels={"flavor": "b"})]
    pods = [make_pod(f"p{i}", cpu="1", group="g", gates=[GATE]) for i in range(2)]
    with Play(*nodes, make_pod_group("g", min_count=2), *pods, config=config) as play:
        gate = ["SchedulingGates"]
        assert play.state["gated"] == {"default/p0": gate, "default/p1": gate}
        play.patch("pods", "p0", ADMISSION)
        assert play.state["active"] == ["default/p0"]
        play.round()
        # One alone is no gang; upstream tries it again by itself.
        assert play.nodes_of("p0") == [""]
        play.advance(5)
        assert bool(play.world.queue.statistics().active) == is_retried
        play.patch("pods", "p1", ADMISSION)
        play.round()
        assert play.nodes_of("p0", "p1") == ["b", "b"]
