"""Objects that make pods: what is filled in, and what is refused."""

from typing import Any

import pytest

from kubestow.apiserver.memory import MemoryCluster
from kubestow.errors import InvalidError


def workload(kind: str, *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"} if labels is None else labels
    policy = {"restartPolicy": "Never"} if kind == "Job" else {}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx"}], **policy},
    }
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": "web"}}}
    api_version = "batch/v1" if kind == "Job" else "apps/v1"
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {**selector, "template": template, **spec},
    }


def created(cluster: MemoryCluster, document: dict[str, Any]) -> dict[str, Any]:
    (stored,) = cluster.load([document])
    return stored.document


def test_a_deployment_rolls_by_a_quarter_by_default(cluster: MemoryCluster):
    spec = created(cluster, workload("Deployment"))["spec"]
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (1, 10)


def test_a_deployment_that_recreates_has_no_rolling_numbers(cluster: MemoryCluster):
    document = created(cluster, workload("Deployment", strategy={"type": "Recreate"}))
    assert document["spec"]["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, (1, 1), id="neither"),
        pytest.param({"completions": 5}, (1, 5), id="completions"),
        pytest.param({"parallelism": 3}, (3, None), id="a-queue-of-work"),
    ],
)
def test_a_job_runs_one_pod_by_default(
    cluster: MemoryCluster, given: dict[str, int], expected: tuple[int, int | None]
):
    spec = created(cluster, workload("Job", **given))["spec"]
    assert (spec["parallelism"], spec.get("completions")) == expected


def test_a_job_selects_its_pods_by_its_own_uid(cluster: MemoryCluster):
    document = created(cluster, workload("Job"))
    uid = document["metadata"]["uid"]
    labels = document["spec"]["template"]["metadata"]["labels"]
    assert document["spec"]["selector"]["matchLabels"] == {
        "batch.kubernetes.io/controller-uid": uid
    }
    assert labels == {
        "app": "web",
        "batch.kubernetes.io/controller-uid": uid,
        "controller-uid": uid,
        "batch.kubernetes.io/job-name": "web",
        "job-name": "web",
    }


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        pytest.param(
            workload("Deployment", labels={"app": "other"}),
            'spec.template.metadata.labels: Invalid value: {"app": "other"}: '
            "`selector` does not match template `labels`",
            id="selector-misses-template",
        ),
        pytest.param(
            workload("ReplicaSet", selector=None), "spec.selector: Required value", id="no-selector"
        ),
        pytest.param(
            workload("Deployment", replicas=-1),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            id="negative-replicas",
        ),
        pytest.param(
            workload("Job", template={"spec": {"containers": [{"name": "a"}]}}),
            'spec.template.spec.restartPolicy: Unsupported value: "Always": '
            'supported values: "OnFailure", "Never"',
            id="job-that-never-ends",
        ),
        pytest.param(
            workload("Job", template={"spec": {"restartPolicy": "Never"}}),
            "spec.template.spec.containers: Required value",
            id="no-containers",
        ),
    ],
)
def test_what_would_make_pods_without_bound_is_refused(
    cluster: MemoryCluster, document: dict[str, Any], problem: str
):
    with pytest.raises(InvalidError) as caught:
        cluster.load([document])
    assert caught.value.causes == (problem,)


def test_a_selector_is_immutable(cluster: MemoryCluster):
    document = created(cluster, workload("Deployment"))
    resource = cluster.resources.named("deployments.apps")
    changed = workload("Deployment", labels={"app": "b"}, selector={"matchLabels": {"app": "b"}})
    with pytest.raises(InvalidError, match="field is immutable"):
        cluster.update(resource, changed)
    assert cluster.update(resource, document).document == document


def test_services_get_distinct_addresses(cluster: MemoryCluster):
    services = cluster.resources.named("services")
    ports = [{"port": 80}]
    for name in ("a", "b"):
        cluster.create(services, {"metadata": {"name": name}, "spec": {"ports": ports}})
    cluster.create(services, {"metadata": {"name": "c"}, "spec": {"clusterIP": "None"}})
    specs = {stored.name: stored.document["spec"] for stored in cluster.objects_of(services)}
    assert specs["a"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert [specs[name]["clusterIP"] for name in "abc"] == ["10.96.0.1", "10.96.0.2", "None"]
    assert specs["a"]["type"] == "ClusterIP"
