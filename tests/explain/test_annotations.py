"""The annotations of kube-scheduler-simulator, and their limit."""

import json
from collections.abc import Callable

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.explain.annotations import ANNOTATIONS_BYTES_MAX, PREFIX, result_annotations
from kubestow.explain.cluster import StillCluster
from kubestow.explain.one_node import asked_filters
from kubestow.explain.pod import explain_pod
from kubestow.testing import make_node, make_pod

MakeCluster = Callable[..., StillCluster]


def annotated(cluster: StillCluster, name: str = "p") -> dict[str, str]:
    pod = cluster.objects.pods.get("default", name)
    assert pod is not None
    profile = cluster.profile_of(pod)
    assert profile is not None
    filters = asked_filters(profile, cluster.refresh(), PodInfo(pod))
    return result_annotations(explain_pod(cluster, pod), filters)


def test_a_placed_pod_has_filters_and_scores_of_its_nodes(make_cluster: MakeCluster) -> None:
    nodes = [make_node("a"), make_node("b"), make_node("c", taints=["x:NoSchedule"])]
    found = annotated(make_cluster(*nodes, make_pod(cpu="1")))
    filters = json.loads(found[f"{PREFIX}filter-result"])
    assert filters["a"]["NodeResourcesFit"] == "passed"
    assert filters["c"] == {
        "NodeUnschedulable": "passed",
        "NodeName": "passed",
        "TaintToleration": "node(s) had untolerated taint(s)",
    }
    raw = json.loads(found[f"{PREFIX}score-result"])
    final = json.loads(found[f"{PREFIX}finalscore-result"])
    assert raw["a"]["TaintToleration"] == "0"
    assert final["a"]["TaintToleration"] == "300"
    assert found[f"{PREFIX}selected-node"] == "a"


def test_victims_name_their_node(make_cluster: MakeCluster) -> None:
    low = make_pod("low", cpu="2", node="a", priority=1)
    cluster = make_cluster(make_node("a", cpu="2"), low, make_pod(cpu="2", priority=2))
    found = annotated(cluster)
    assert json.loads(found[f"{PREFIX}postfilter-result"]) == {
        "a": {"DefaultPreemption": "preemption victim"}
    }
    assert f"{PREFIX}selected-node" not in found


@pytest.mark.parametrize("taints", [[], ["x:NoSchedule"]], ids=["feasible", "rejected"])
def test_annotations_stay_below_the_limit(make_cluster: MakeCluster, taints: list[str]) -> None:
    names = [f"a-node-with-a-rather-long-name-{number:04}" for number in range(3000)]
    nodes = [make_node(name, taints=taints) for name in names]
    found = annotated(make_cluster(*nodes, make_pod(cpu="1")))
    length = sum(len(key) + len(value) for key, value in found.items())
    assert 0.5 * ANNOTATIONS_BYTES_MAX < length <= ANNOTATIONS_BYTES_MAX
