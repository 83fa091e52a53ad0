"""A workload on a cluster, from the queue to the binding, in virtual time."""

from typing import Any, ClassVar

import pytest

from kubestow.api.files import Document
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import InputError
from kubestow.framework.node_plugin import NodeFilter
from kubestow.simulator.simulation import SimulationResult, place
from kubestow.testing import make_node, make_pod
from kubestow.testing import simulate as run_simulation


def node(name: str, cpu: str = "2") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def simulate(*documents: dict[str, Any] | Document, limit_s: float = 600) -> SimulationResult:
    return place(documents, SchedulerConfig(), limit_s=limit_s)


def test_pods_are_bound_and_counted_on_their_nodes() -> None:
    result = simulate(node("a"), node("b"), pod("p"), pod("q"))
    assert sorted(outcome.node for outcome in result.pods) == ["a", "b"]
    assert [outcome.pods for outcome in result.nodes] == [1, 1]
    assert result.has_settled


def test_pods_keep_the_order_in_which_they_came() -> None:
    result = simulate(node("a", "3"), *(pod(f"p{i}") for i in range(5)))
    assert [outcome.outcome for outcome in result.pods] == ["Scheduled"] * 3 + ["Pending"] * 2


def test_a_pod_that_fits_on_no_node_has_a_message() -> None:
    (outcome,) = simulate(node("a"), pod("p", "5")).pods
    assert outcome.outcome == "Pending"
    assert outcome.reason == "Unschedulable"
    assert outcome.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_gated_pod_is_never_tried() -> None:
    (outcome,) = simulate(node("a"), pod("p", schedulingGates=[{"name": "g"}])).pods
    assert (outcome.outcome, outcome.attempts) == ("Gated", 0)


def test_an_important_pod_takes_the_place_of_another() -> None:
    result = simulate(
        node("a", "1"),
        pod("old", nodeName="a", terminationGracePeriodSeconds=5),
        pod("new", priority=100),
    )
    assert result.evicted == ["default/old"]
    assert result.pods[0].node == "a"
    assert result.pods[0].attempts == 2
    assert result.pods[0].scheduled_after_s is not None
    assert result.pods[0].scheduled_after_s >= 5


def test_a_failure_that_repeats_is_not_waited_for() -> None:
    result = simulate(pod("p"))
    assert result.has_settled
    assert result.pods[0].message == "no nodes available to schedule pods"
    # The first failure is written to the pod's status, a change of the pod; then three more.
    assert result.pods[0].attempts == 4
    assert result.virtual_duration_s < 20


def test_the_limit_ends_a_run_that_has_not_settled() -> None:
    result = simulate(pod("p"), limit_s=1)
    assert not result.has_settled
    assert result.pods[0].attempts < 3


def test_objects_an_api_server_refuses_are_reported() -> None:
    with pytest.raises(InputError, match="cannot be set up"):
        simulate(node("a"), node("a"))


def test_a_pod_of_another_scheduler_does_not_count_as_pending() -> None:
    result = simulate(node("a"), pod("p"), pod("q", schedulerName="volcano"))
    assert result.pending == []
    (foreign,) = result.foreign
    assert foreign.outcome == "OtherScheduler"
    assert foreign.message == 'no profile for scheduler "volcano"'


def test_times_are_whole_milliseconds() -> None:
    (outcome,) = simulate(node("a"), pod("p")).pods
    assert outcome.scheduled_after_s == 0


def test_an_object_that_cannot_be_created_is_named_with_its_place() -> None:
    documents = [Document(node("a"), "all.yaml#1"), Document(pod("p", priority=7), "all.yaml#2")]
    broken = {**pod("q"), "apiVersion": "v7"}
    with pytest.raises(InputError, match=r'set up: web.yaml#3: no matches for kind "Pod"'):
        simulate(*documents, Document(broken, "web.yaml#3"))
    with pytest.raises(InputError, match=r"set up: document 2: no matches"):
        simulate(node("a"), broken)


def test_attempts_that_a_plugin_fails_are_counted() -> None:
    class Broken(NodeFilter):
        name: ClassVar[str] = "Broken"

        def filter_node(self, pod: Pod, node: Node) -> bool:
            raise ValueError("no idea")

    result = run_simulation([make_node("a"), make_pod("p")], Broken)
    assert result.has_failed
    assert result.failed_attempts == 4
    assert result.has_settled
    assert "ValueError: no idea (tests/simulator/test_simulation.py:" in result.pods[0].message
    assert not simulate(node("a"), pod("p")).has_failed
