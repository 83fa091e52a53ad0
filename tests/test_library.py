"""What scripts import: small, typed, and loaded at its first use."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kubestow
from kubestow import FrozenDecision, InputError, load_cluster, simulate
from kubestow.library import __all__ as offered

ROOT = Path(__file__).parents[1]
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


def test_simulate_reports_every_attempt() -> None:
    decisions: list[FrozenDecision] = []
    result = simulate(EXAMPLES, on_decision=decisions.append)
    assert len(result.scheduled) == 6
    assert {decision.pod.key for decision in decisions if decision.node} == {
        f"{pod.namespace}/{pod.name}" for pod in result.scheduled
    }
