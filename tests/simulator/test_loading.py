"""What has a UID is there as it was; controllers act on the rest, and on all of it afterwards."""

from typing import Any

import pytest

from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.errors import InputError
from kubestow.explain.cluster import StillCluster
from kubestow.simulator.simulation import SimulationResult, place
from kubestow.simulator.still import still_cluster
from kubestow.testing import ManualClock

CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def node(name: str = "n", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "status": {"capacity": CAPACITY, "allocatable": CAPACITY},
    }


def pod(name: str, *, cpu: str = "1", status: Any = None, uid: str = "", **spec: Any) -> Any:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    metadata: dict[str, Any] = {"name": name, **({"uid": uid} if uid else {})}
    deleted = spec.pop("deleted", None)
    if deleted:
        metadata |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **spec},
        "status": status or {"phase": "Running" if spec.get("nodeName") else "Pending"},
    }


def claim(uid: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", **({"uid": uid} if uid else {})},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }


CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast", "uid": "sc"},
    "provisioner": "disks.example.com",
    "volumeBindingMode": "Immediate",
}
VOLUMES = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]


def still(*documents: dict[str, Any]) -> StillCluster:
    return still_cluster(documents, SchedulerConfig(), ManualClock())


def simulated(*documents: dict[str, Any]) -> tuple[SimulationResult, list[tuple[str, str]]]:
    """The result, and the pod and node of every decision."""
    decisions: list[tuple[str, str]] = []

    def note(decision: Decision) -> None:
        decisions.append((decision.pod.pod.metadata.name, decision.node_name))

    return place(documents, SchedulerConfig(), on_decision=note), decisions


def test_a_claim_of_a_dump_is_bound_after_the_first_decision() -> None:
    dump = (node(), CLASS, claim("pvc"), pod("p", uid="p", volumes=VOLUMES))
    found = still(*dump).objects.persistent_volume_claims.get("default", "data")
    assert found is not None
    assert not found.spec.volume_name
    result, decisions = simulated(*dump)
    assert decisions == [("p", ""), ("p", "n")]
    assert len(result.scheduled) == 1


def test_a_new_claim_is_bound_before() -> None:
    given = (node(uid="n"), CLASS, claim(), pod("p", volumes=VOLUMES))
    found = still(*given).objects.persistent_volume_claims.get("default", "data")
    assert found is not None
    assert found.spec.volume_name
    assert simulated(*given)[1] == [("p", "n")]


def test_terminating_pods_of_a_dump_terminate_and_then_end() -> None:
    ending = pod("old", cpu="4", uid="old", nodeName="n", deleted="2026-01-01T00:00:00Z")
    waiting = pod("new", cpu="4", uid="new")
    found = still(node(uid="n"), ending, waiting).objects.pods.get("default", "old")
    assert found is not None
    assert found.metadata.deletion_timestamp is not None
    result, decisions = simulated(node(uid="n"), ending, waiting)
    assert decisions[0] == ("new", "")
    assert decisions[-1] == ("new", "n")
    # It was not evicted for the other.
    assert result.evicted == []
    assert result.running_count == 0


def test_a_pod_of_a_dump_gets_no_tolerations() -> None:
    found = still(node(uid="n"), pod("p", uid="p")).objects.pods.get("default", "p")
    assert found is not None
    assert found.spec.tolerations == ()
    assert found.metadata.uid == "p"


def test_fields_that_a_dump_lacks_have_their_defaults() -> None:
    limited = pod("p", uid="p")
    limited["spec"]["containers"] = [
        {"name": "c", "image": "i", "resources": {"limits": {"cpu": "3"}}}
    ]
    result, _ = simulated(node(uid="n"), limited)
    assert len(result.scheduled) == 1
    assert result.nodes[0].cpu_milli_requested == 3000


def test_nodes_are_in_the_order_of_the_files() -> None:
    names = ["z", "a", "m"]
    cluster = still(*(node(name, uid=name) for name in names))
    assert list(cluster.refresh().names) == names
    result, _ = simulated(*(node(name) for name in names))
    assert [each.name for each in result.nodes] == names


@pytest.mark.parametrize("uid", ["", "d"])
def test_pods_of_a_workload_that_stands_are_made_after_the_first_decision(uid: str) -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod("x")["spec"]}
    template["spec"]["priority"] = 1000
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", **({"uid": uid} if uid else {})},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template},
    }
    result, decisions = simulated(node(uid="n"), owner, pod("p", uid="p"))
    order = [name for name, _ in decisions]
    # By its priority a pod of the workload would be first.
    assert order == (["p", "web-0", "web-1"] if uid else ["web-0", "web-1", "p"])
    assert [each.outcome for each in result.pods] == ["Scheduled"] * 3


def test_pods_that_cannot_be_made_are_counted() -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod("x")["spec"]}
    template["spec"]["priorityClassName"] = "gold"
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "uid": "rs"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template},
    }
    result, _ = simulated(node(uid="n"), owner, pod("p", uid="p"))
    assert len(result.scheduled) == 1
    assert result.refused_pods == 2
    (refusal,) = result.refusals
    assert (refusal.owner, refusal.pods) == ("ReplicaSet/web", 2)
    assert refusal.message.endswith("no PriorityClass with name gold was found")


def test_a_pod_on_a_node_that_does_not_exist_does_not_run() -> None:
    lost, runs = pod("lost", uid="l", nodeName="n9"), pod("runs", uid="r", nodeName="n")
    result, _ = simulated(node(uid="n"), lost, runs)
    assert result.running_count == 1
    assert result.on_missing_nodes == ["default/lost (n9)"]


def test_a_saved_object_with_a_name_of_a_shell_is_not_loaded() -> None:
    with pytest.raises(InputError, match=r"metadata\.name: Invalid value"):
        place([node("$(reboot)", uid="n")], SchedulerConfig())
