"""Workloads become pods, unless their pods are in the input."""

from typing import Any

import pytest

from kubestow.api.files import Document
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


def expand(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sourced = [Document(raw, f"web.yaml#{number}") for number, raw in enumerate(documents, 1)]
    return [document.raw for document in expand_workloads(sourced)]


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
        pytest.param(workload("Job", "batch/v1", suspend=True), [], id="suspended-job"),
        pytest.param(
            {
                **workload("Job", "batch/v1"),
                "status": {"conditions": [{"type": "Complete", "status": "True"}]},
            },
            [],
            id="job-that-has-ended",
        ),
    ],
)
def test_a_workload_becomes_its_pods(document: dict[str, Any], names: list[str]) -> None:
    made = pods(expand([document]))
    assert [pod["metadata"]["name"] for pod in made] == names
    assert all(pod["metadata"]["namespace"] == "shop" for pod in made)
    assert all(pod["metadata"]["ownerReferences"][0]["kind"] == document["kind"] for pod in made)


def test_a_deployment_makes_a_replica_set_that_selects_its_pods() -> None:
    deployment = workload("Deployment", replicas=2, selector={"matchLabels": {"app": "web"}})
    documents = expand([deployment])
    replica_set = next(document for document in documents if document["kind"] == "ReplicaSet")
    selected = replica_set["spec"]["selector"]["matchLabels"]
    for pod in pods(documents):
        assert selected.items() <= pod["metadata"]["labels"].items()
        assert pod["metadata"]["ownerReferences"][0]["name"] == replica_set["metadata"]["name"]
    assert "pod-template-hash" in selected


def node(
    name: str, labels: dict[str, str] | None = None, taint: dict[str, str] | None = None
) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": [taint] if taint else []},
    }


def daemon_set(**spec: Any) -> dict[str, Any]:
    return workload("DaemonSet", template={"spec": {**TEMPLATE["spec"], **spec}})


NODES = [
    node("plain"),
    node("fast", {"disk": "ssd"}),
    node("closed", {"disk": "ssd"}, {"key": "mine", "effect": "NoSchedule"}),
    node("full", taint={"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}),
    node("away", taint={"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}),
]
ON_SSD = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
        ]
    }
}


@pytest.mark.parametrize(
    ("document", "names"),
    [
        pytest.param(daemon_set(), ["plain", "fast", "full"], id="taints"),
        pytest.param(daemon_set(nodeSelector={"disk": "ssd"}), ["fast"], id="node-selector"),
        pytest.param(daemon_set(affinity={"nodeAffinity": ON_SSD}), ["fast"], id="affinity"),
        pytest.param(
            daemon_set(tolerations=[{"key": "mine", "operator": "Exists"}]),
            ["plain", "fast", "closed", "full"],
            id="toleration-of-its-own",
        ),
        pytest.param(
            daemon_set(hostNetwork=True), ["plain", "fast", "full", "away"], id="host-network"
        ),
        pytest.param(daemon_set(nodeName="plain"), ["plain"], id="node-name"),
    ],
)
def test_a_daemon_set_has_pods_on_the_nodes_its_controller_chooses(
    document: dict[str, Any], names: list[str]
) -> None:
    made = pods(expand([*NODES, document]))
    assert [pod["metadata"]["name"] for pod in made] == [f"web-{name}" for name in names]
    for pod, name in zip(made, names, strict=True):
        affinity = pod["spec"]["affinity"]["nodeAffinity"]
        terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert terms == [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
        ]
        tolerated = {toleration["key"] for toleration in pod["spec"]["tolerations"]}
        assert "node.kubernetes.io/unschedulable" in tolerated


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
    assert pods(expand([document, pod])) == [pod]


def owned(kind: str, name: str, owner_kind: str, owner: str, namespace: str) -> dict[str, Any]:
    references = [{"kind": owner_kind, "name": owner}]
    metadata = {"name": name, "namespace": namespace, "ownerReferences": references}
    return {"kind": kind, "metadata": metadata}


@pytest.mark.parametrize(
    ("other", "is_made"),
    [
        pytest.param(owned("Pod", "p", "ReplicaSet", "web-6d4b", "shop"), False, id="pod"),
        pytest.param(owned("Pod", "p", "ReplicaSet", "web-6d4b", "x"), True, id="other-namespace"),
        pytest.param(owned("Pod", "p", "ReplicaSet", "web-api-6d4b", "shop"), True, id="longer"),
    ],
)
def test_a_deployment_with_pods_of_its_own_gets_no_others(
    other: dict[str, Any], is_made: bool
) -> None:
    made = pods(expand([workload("Deployment"), other]))
    assert len(made) == (2 if is_made else 1)


def test_a_deployment_with_a_replica_set_gets_no_other() -> None:
    replica_set = owned("ReplicaSet", "web-6d4b", "Deployment", "web", "shop")
    replica_set["spec"] = {"replicas": 2, "template": TEMPLATE}
    made = pods(expand([workload("Deployment", replicas=2), replica_set]))
    assert [pod["metadata"]["name"] for pod in made] == ["web-6d4b-0", "web-6d4b-1"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(workload("ReplicaSet", template=None), "has no spec.template.spec", id="none"),
        pytest.param(
            workload("Deployment", replicas="3"),
            'spec.replicas is "3": expected a whole number',
            id="replicas",
        ),
        pytest.param(
            workload("StatefulSet", replicas=-1), "spec.replicas is -1, expected 0", id="negative"
        ),
        pytest.param(
            workload("Job", "batch/v1", parallelism="lots"),
            'spec.parallelism is "lots": expected a whole number',
            id="parallelism",
        ),
        pytest.param(
            workload("Deployment", selector="foo"),
            'spec.selector is "foo": expected a map',
            id="selector",
        ),
        pytest.param(
            workload("DaemonSet", template=3), "spec.template is 3: expected a map", id="template"
        ),
        pytest.param(
            {**workload("Job"), "spec": 3}, "spec is 3: expected a map", id="specification"
        ),
        pytest.param(
            daemon_set(tolerations=[{"operator": "Like"}]),
            'spec.tolerations[0].operator is "Like", expected one of',
            id="operator",
        ),
        pytest.param(
            workload("ReplicationController", "v1", template={"spec": {"containers": 3}}),
            "spec.template.spec.containers is 3: expected a list",
            id="template-content",
        ),
    ],
)
def test_a_wrong_workload_is_named_with_its_place(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        expand([node("a"), document])
    assert str(caught.value).startswith("web.yaml#2: ")
    assert 'shop/web"' in str(caught.value)
    assert message in str(caught.value)


def test_null_means_the_default() -> None:
    assert len(pods(expand([workload("ReplicaSet", replicas=None)]))) == 1


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(workload("ReplicaSet", template=None, replicas=0), id="no-pods"),
        pytest.param(workload("ReplicaSet", template=None, replicas=1), id="pods-of-its-own"),
    ],
)
def test_a_template_is_needed_only_for_pods(document: dict[str, Any]) -> None:
    pod = owned("Pod", "p", "ReplicaSet", "web", "shop")
    given = [document] if document["spec"]["replicas"] == 0 else [document, pod]
    assert expand(given) == given
