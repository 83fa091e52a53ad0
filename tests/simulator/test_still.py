"""A cluster of documents stands still once its controllers have worked; no pod is placed yet."""

from pathlib import Path

from kubestow.api.files import Document, load_documents
from kubestow.config.scheduler import SchedulerConfig
from kubestow.explain.cluster import StillCluster
from kubestow.simulator.still import still_cluster
from kubestow.testing import ManualClock

EXAMPLES = Path(__file__).parents[2] / "examples"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}


def cluster_of(*documents: dict[str, object]) -> StillCluster:
    sourced = [Document(document, "test") for document in documents]
    return still_cluster(sourced, SchedulerConfig(), ManualClock())


def pod(name: str, **spec: object) -> dict[str, object]:
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def test_workloads_become_pods_and_none_is_placed() -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "a"}}, "template": template},
    }
    cluster = cluster_of(NODE, deployment)
    assert len(cluster.objects.pods) == 3
    assert all(not each.spec.node_name for each in cluster.objects.pods)
    assert all(each.metadata.uid for each in cluster.objects.pods)


def test_claims_of_pods_exist() -> None:
    ephemeral = {
        "name": "scratch",
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                }
            }
        },
    }
    cluster = cluster_of(NODE, pod("p", volumes=[ephemeral]))
    assert cluster.objects.persistent_volume_claims.get("default", "p-scratch") is not None


def test_pods_that_have_ended_are_set_apart() -> None:
    ended = {**pod("done", nodeName="n"), "status": {"phase": "Succeeded"}}
    cluster = cluster_of(NODE, ended)
    assert len(cluster.objects.pods) == 0
    assert set(cluster.ended) == {"default/done"}


def test_the_examples_load() -> None:
    documents = load_documents([EXAMPLES / "cluster.yaml", EXAMPLES / "workload.yaml"])
    cluster = still_cluster(documents, SchedulerConfig(), ManualClock())
    assert len(cluster.refresh()) == 4


def test_owners_and_deadlines_of_jobs_are_noted() -> None:
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "night",
        "uid": "u1",
        "controller": True,
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "night-1", "uid": "u2", "ownerReferences": [owner]},
        "spec": {"activeDeadlineSeconds": 3600, "template": {"spec": {"containers": []}}},
        "status": {"startTime": "2026-01-01T00:00:00Z"},
    }
    endless = {**job, "metadata": {"name": "endless", "uid": "u3"}, "status": {}}
    cluster = cluster_of(NODE, job, endless)
    key = "default", "night-1"
    assert list(cluster.job_ends) == [key]
    assert cluster.job_ends[key].isoformat() == "2026-01-01T01:00:00+00:00"
    assert cluster.job_owners[key].name == "night"
