"""A workload on a cluster, from the queue to the binding, in virtual time."""

from typing import Any

import pytest

from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import InputError
from kubestow.simulator.simulation import Simulation, SimulationResult
from kubestow.simulator.virtual_time import run_in_virtual_time


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


def simulate(*documents: dict[str, Any], limit_s: float = 600) -> SimulationResult:
    async def run() -> SimulationResult:
        return await Simulation(documents, SchedulerConfig()).run(limit_s=limit_s)

    return run_in_virtual_time(run())


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


def test_without_nodes_pods_are_retried_until_the_limit() -> None:
    result = simulate(pod("p"), limit_s=30)
    assert not result.has_settled
    assert result.pods[0].message == "no nodes available to schedule pods"
    assert result.pods[0].attempts > 3


def test_objects_an_api_server_refuses_are_reported() -> None:
    with pytest.raises(InputError, match="cannot be set up"):
        simulate(node("a"), node("a"))
