"""What scripts import: small, typed, and loaded at its first use."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import kubestow
from kubestow import FrozenDecision, InputError, LoadedCluster, load_cluster, simulate
from kubestow.library import __all__ as offered
from kubestow.plugin import PluginError, PodInfo, Status

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def test_importing_the_package_imports_no_part_of_it() -> None:
    code = "import sys, kubestow; print([m for m in sys.modules if m.startswith('kubestow.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_stub_lists_what_is_offered() -> None:
    stub = ast.parse((ROOT / "src/kubestow/__init__.pyi").read_text())
    named = {
        alias.name
        for node in ast.walk(stub)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert named == set(offered)
    assert set(dir(kubestow)) == named | {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kubestow.nothing  # type: ignore[attr-defined]


def test_a_waiting_pod_is_explained() -> None:
    cluster = load_cluster(EXAMPLES / "cluster.yaml", EXAMPLES / "workload.yaml")
    assert "default/reports-0" in cluster.waiting_pods
    assert set(cluster.waiting_pods) <= set(cluster.pods)
    explanation = cluster.explain("reports-0", node="node-a-1")
    assert explanation.outcome == "Unschedulable"
    assert explanation.suggestions
    assert {node.name for node in explanation.nodes} == set(cluster.nodes)
    assert cluster.explain("default/reports-0", suggestions=False).suggestions == ()


def test_a_decision_is_arrays() -> None:
    cluster = load_cluster(EXAMPLES)
    decision = cluster.decide("web-6d3d19e4-0")
    assert isinstance(decision, FrozenDecision)
    assert decision.total is not None
    assert decision.total.dtype == np.int64
    weighted = sum(part.weighted for part in decision.scores)
    assert weighted.tolist() == decision.total.tolist()
    assert decision.to_document()["node"] == decision.node


def test_a_placed_pod_is_tried_again() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    node["status"] = {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "1"}}
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    spec = {"nodeName": "n", "containers": containers}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    cluster = load_cluster(node, pod)
    assert cluster.decide("p").node == "n"
    assert cluster.explain("p").outcome == "Bound"
    assert cluster.waiting_pods == []


def test_a_pod_that_is_put_on_a_node_counts_for_the_next() -> None:
    cluster = load_cluster(EXAMPLES)
    pod, other = "default/cache-0", "default/web-6d3d19e4-0"
    before = cluster.columns.requested(0).sum()
    for key in (pod, other):
        cluster.assign(key, cluster.decide(key).node)
    assert cluster.columns.requested(0).sum() > before
    assert {pod, other}.isdisjoint(cluster.waiting_pods)
    assert cluster.columns.names == cluster.nodes


@pytest.mark.parametrize(
    ("pod", "node", "text"),
    [
        ("nothing", "node-a-1", 'there is no pod "nothing"'),
        ("cache-0", "nothing", 'there is no node "nothing"'),
        ("cache-1", "node-a-1", 'the pod "cache-1" is on node "node-b-1"'),
    ],
)
def test_what_cannot_be_placed_is_an_input_error(pod: str, node: str, text: str) -> None:
    cluster = load_cluster(EXAMPLES)
    cluster.assign("cache-1", "node-b-1")
    with pytest.raises(InputError, match=text):
        cluster.assign(pod, node)


@pytest.mark.parametrize("call", ["explain", "decide"])
def test_a_pod_that_is_not_there_is_an_input_error(call: str) -> None:
    with pytest.raises(InputError, match='there is no pod "nothing"'):
        getattr(load_cluster(EXAMPLES), call)("nothing")


class Places:
    """Has a number of places on each node: Reserve takes one, and refuses where none is left."""

    name: ClassVar[str] = "Places"
    args_type: ClassVar[None] = None

    def __init__(self, args: Any, handle: Any) -> None:
        self.taken: list[tuple[str, str]] = []
        self.undone: list[str] = []

    def reserve(self, state: Any, pod: PodInfo, node_name: str) -> Status | None:
        if len(self.taken) == 2:
            return Status.unschedulable("no place is left")
        if "broken" in pod.name:
            raise RuntimeError("a fault")
        self.taken.append((pod.key, node_name))
        return None

    def unreserve(self, state: Any, pod: PodInfo, node_name: str) -> None:
        self.undone.append(pod.name)


@pytest.fixture
def placing(tmp_path: Path) -> LoadedCluster:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: '{__name__}:Places'}}]}}}}}}]\n"
    )
    sys.modules.setdefault(__name__, sys.modules[Places.__module__])
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    node["status"] = {"allocatable": {"cpu": "3", "memory": "1Gi", "pods": "9"}}
    return load_cluster(node, pod_manifest("first"), config=config)


def pod_manifest(name: str, cpu: str = "1") -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"limits": {"cpu": cpu}}}]
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers},
    }


def test_pods_are_placed_one_after_the_other(placing: LoadedCluster) -> None:
    assert placing.place("first") == "n"
    assert placing.waiting_pods == []
    assert placing.place(pod_manifest("large", cpu="2500m")) == ""
    assert placing.pods == ["default/first"]
    assert placing.place(pod_manifest("second")) == "n"
    assert placing.pods == ["default/first", "default/second"]
    plugin = placing.plugin("Places")
    assert isinstance(plugin, Places)
    assert plugin.taken == [("default/first", "n"), ("default/second", "n")]


def test_a_pod_that_is_not_reserved_takes_nothing(placing: LoadedCluster) -> None:
    placing.place("first")
    placing.place(pod_manifest("second", cpu="1m"))
    assert placing.place(pod_manifest("third", cpu="1900m")) == ""
    plugin = placing.plugin("Places")
    assert isinstance(plugin, Places)
    assert plugin.undone == ["third"]
    plugin.taken.clear()
    assert placing.place(pod_manifest("fourth", cpu="1900m")) == "n"


def test_what_cannot_be_placed_is_an_error(placing: LoadedCluster) -> None:
    with pytest.raises(PluginError, match="a fault"):
        placing.place(pod_manifest("broken"))
    placing.place("first")
    with pytest.raises(InputError, match='pod "first" is on "n" already'):
        placing.place("first")
    with pytest.raises(InputError, match='there is a pod "default/first" already'):
        placing.place(pod_manifest("first"))
    with pytest.raises(InputError, match='has a plugin "Nothing"'):
        placing.plugin("Nothing")
    foreign = pod_manifest("foreign")
    foreign["spec"]["schedulerName"] = "other"
    with pytest.raises(InputError, match='no profile has the schedulerName "other"'):
        placing.place(foreign)


def test_simulate_reports_every_attempt() -> None:
    decisions: list[FrozenDecision] = []
    result = simulate(EXAMPLES, on_decision=decisions.append)
    assert len(result.scheduled) == 6
    assert {decision.pod.key for decision in decisions if decision.node} == {
        f"{pod.namespace}/{pod.name}" for pod in result.scheduled
    }
