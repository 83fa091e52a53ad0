"""Workloads become pods, unless their pods are in the input."""

from typing import Any

import pytest

from kubestow.errors import InputError
from kubestow.simulator.workloads import expand_workloads

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "web"}]},
}


def workload(kind: str, api_version: str = "apps/v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": TEMPLATE, **spec},
    }


def pods(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [document for document in documents if document["kind"] == "Pod"]


@pytest.mark.parametrize(
    ("document", "names"),
    [
        pytest.param(workload("ReplicaSet", replicas=2), ["web-0", "web-1"], id="replica-set"),
        pytest.param(workload("StatefulSet", replicas=1), ["web-0"], id="stateful-set"),
        pytest.param(workload("ReplicaSet"), ["web-0"], id="one-by-default"),
        pytest.param(workload("ReplicaSet", replicas=0), [], id="none"),
        pytest.param(
            workload("Job", "batch/v1", parallelism=3, completions=2), ["web-0", "web-1"], id="job"
        ),
    ],
)
def test_a_workload_becomes_its_pods(document: dict[str, Any], names: list[str]) -> None:
    made = pods(expand_workloads([document]))
    assert [pod["metadata"]["name"] for pod in made] == names
    assert all(pod["metadata"]["namespace"] == "shop" for pod in made)
    assert all(pod["metadata"]["ownerReferences"][0]["kind"] == document["kind"] for pod in made)


def test_a_deployment_makes_a_replica_set_that_selects_its_pods() -> None:
    deployment = workload("Deployment", replicas=2, selector={"matchLabels": {"app": "web"}})
    documents = expand_workloads([deployment])
    replica_set = next(document for document in documents if document["kind"] == "ReplicaSet")
    selected = replica_set["spec"]["selector"]["matchLabels"]
    for pod in pods(documents):
        assert selected.items() <= pod["metadata"]["labels"].items()
        assert pod["metadata"]["ownerReferences"][0]["name"] == replica_set["metadata"]["name"]
    assert "pod-template-hash" in selected


def test_a_daemon_set_puts_one_pod_on_every_node() -> None:
    nodes = [{"kind": "Node", "metadata": {"name": name}} for name in ("a", "b")]
    made = pods(expand_workloads([*nodes, workload("DaemonSet")]))
    assert [pod["metadata"]["name"] for pod in made] == ["web-a", "web-b"]
    affinity = made[1]["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchFields"][0]["values"] == ["b"]


def test_a_workload_with_pods_of_its_own_gets_no_others() -> None:
    document = workload("ReplicaSet", replicas=3)
    pod = {
        "kind": "Pod",
        "metadata": {
            "name": "web-x",
            "namespace": "shop",
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web"}],
        },
    }
    assert pods(expand_workloads([document, pod])) == [pod]


def test_a_workload_without_template_is_named() -> None:
    document = workload("ReplicaSet")
    del document["spec"]["template"]
    with pytest.raises(InputError, match="shop/web"):
        expand_workloads([document])
