"""Typing mistakes are found, and names of one series are not taken for mistakes."""

from collections.abc import Callable

import pytest

from kubestow.api.pod import Pod, Toleration
from kubestow.explain.cluster import StillCluster
from kubestow.explain.pod import explain_pod
from kubestow.testing import make_node, make_pod

MakeCluster = Callable[..., StillCluster]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            make_pod(node_selector={"disc": "fast"}),
            "disc is no label of any node; disk is: b has disk=fast",
            id="key",
        ),
        pytest.param(
            make_pod(node_selector={"disk": "fats"}),
            "no node has disk=fats; b has disk=fast",
            id="value",
        ),
        pytest.param(
            make_pod(
                tolerations=[Toleration(key="taem", value="data", effect="NoSchedule")], cpu="9"
            ),
            "the toleration of taem=data accepts no taint of any node; there is "
            "team=data:NoSchedule",
            id="toleration",
        ),
        pytest.param(
            make_pod(requests={"example.com/gpus": "1"}),
            "no node has the resource example.com/gpus; there is example.com/gpu",
            id="resource",
        ),
    ],
)
def test_mistakes_are_said(make_cluster: MakeCluster, pod: Pod, expected: str) -> None:
    cluster = make_cluster(
        make_node("a", cpu="4", labels={"disk": "slow"}),
        make_node("b", cpu="4", labels={"disk": "fast"}),
        make_node(
            "c", cpu="16", taints=["team=data:NoSchedule"], allocatable={"example.com/gpu": "4"}
        ),
        pod,
    )
    explanation = explain_pod(cluster, pod)
    assert [mistake.text for mistake in explanation.mistakes] == [expected]


def test_no_mistake_is_seen_where_nothing_is_close(make_cluster: MakeCluster) -> None:
    pod = make_pod(node_selector={"tier": "gold"})
    explanation = explain_pod(make_cluster(make_node("a", labels={"disk": "x"}), pod), pod)
    assert explanation.mistakes == ()
