"""Explanations in a large cluster take a fraction of a second; their JSON is written in parts."""

import pytest

from kubestow.api.pod import Pod
from kubestow.clock import process_cpu_s
from kubestow.explain.cluster import StillCluster
from kubestow.explain.pod import explain_pod
from kubestow.explain.suggestions import find_suggestions
from kubestow.service.output import stream_json
from kubestow.testing import make_node, make_pod

NODES = 5_000
PODS = 50_000
CPU_S_MAX = 2.0
LARGE = make_pod("large", cpu="7")
SMALL = make_pod("small", cpu="1")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> StillCluster:
    nodes = [make_node(f"n{number:04}", cpu="16", zone=f"z{number % 3}") for number in range(NODES)]
    pods = [
        make_pod(
            f"p{number}", cpu="1", node=f"n{number % NODES:04}", labels={"a": str(number % 99)}
        )
        for number in range(PODS)
    ]
    made: StillCluster = request.getfixturevalue("make_cluster")(*nodes, *pods, LARGE, SMALL)
    made.refresh()
    return made


@pytest.mark.slow
@pytest.mark.parametrize("pod", [LARGE, SMALL], ids=["fits-nowhere", "fits"])
def test_a_pod_is_explained_in_time(cluster: StillCluster, pod: Pod) -> None:
    started_s = process_cpu_s()
    explanation = explain_pod(cluster, pod)
    suggestions = () if explanation.node else find_suggestions(cluster, pod)
    parts: list[str] = []
    stream_json(explanation, parts.append)
    assert process_cpu_s() - started_s < CPU_S_MAX
    assert len(explanation.nodes) == NODES
    assert bool(suggestions) == (pod is LARGE)
    # No part is longer than what is said of one node.
    assert max(map(len, parts)) < 100_000
    assert len(parts) > NODES
