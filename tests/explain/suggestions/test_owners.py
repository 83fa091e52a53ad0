"""Suggestions are for the object that a person edits, with commands that a server accepts."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kubestow.api.meta import ObjectMeta, OwnerReference
from kubestow.api.pod import Pod, Toleration
from kubestow.api.storage import PersistentVolumeClaim, StorageClass
from kubestow.api.workload import ReplicaSet
from kubestow.explain.cluster import Origin, StillCluster, key_of
from kubestow.explain.explanation import Suggestion
from kubestow.explain.suggestions import find_suggestions
from kubestow.explain.suggestions.owners import origin_of
from kubestow.testing import make_node, make_pod

MakeCluster = Callable[..., StillCluster]
NOT_READY = Toleration(
    key="node.kubernetes.io/not-ready",
    operator="Exists",
    effect="NoExecute",
    toleration_seconds=300,
)


def owner(kind: str, name: str, api_version: str = "apps/v1") -> OwnerReference:
    return OwnerReference(
        api_version=api_version, kind=kind, name=name, uid=f"{kind}-{name}", controller=True
    )


def replica_set(name: str, of: OwnerReference) -> ReplicaSet:
    metadata = ObjectMeta(name=name, namespace="default", owner_references=(of,))
    return ReplicaSet(api_version="apps/v1", kind="ReplicaSet", metadata=metadata)


def of_kind(cluster: StillCluster, pod: Pod, kind: str) -> Suggestion:
    found = find_suggestions(cluster, pod)
    return next(each for each in found if each.kind == kind)


def tainted(of: OwnerReference | None, **more: object) -> Pod:
    return make_pod("web-1", cpu="1", owner=of, tolerations=[NOT_READY], **more)


def test_a_deployment_is_found_through_its_replica_set(make_cluster: MakeCluster) -> None:
    pod = tainted(owner("ReplicaSet", "web-abc"))
    cluster = make_cluster(
        make_node("a", taints=["x:NoSchedule"]),
        replica_set("web-abc", owner("Deployment", "web")),
        pod,
    )
    found = of_kind(cluster, pod, "AddToleration")
    (patch,) = found.patches
    assert (patch.kind, patch.name, patch.api_version) == ("Deployment", "web", "apps/v1")
    (operation,) = patch.patch
    assert operation["path"] == "/spec/template/spec/tolerations"
    # Without the one that admission added.
    assert [each["key"] for each in operation["value"]] == ["x"]
    (command,) = found.commands
    assert command.startswith("kubectl patch deployment web -n default --type=json -p '[")
    assert found.effect == "Deployment web replaces its 1 pod, a few at a time"


def test_a_deployment_is_found_by_the_hash_without_its_replica_set(
    make_cluster: MakeCluster,
) -> None:
    pod = tainted(owner("ReplicaSet", "web-abc"), labels={"pod-template-hash": "abc"})
    cluster = make_cluster(make_node("a", taints=["x:NoSchedule"]), pod)
    assert of_kind(cluster, pod, "AddToleration").patches[0].kind == "Deployment"


@pytest.mark.parametrize(
    ("kind", "api_version", "path"),
    [
        pytest.param("StatefulSet", "apps/v1", "/spec/template/spec/tolerations", id="stateful"),
        pytest.param("Job", "batch/v1", "/spec/template/spec/tolerations", id="job"),
    ],
)
def test_the_template_of_a_direct_owner_is_changed(
    make_cluster: MakeCluster, kind: str, api_version: str, path: str
) -> None:
    pod = tainted(owner(kind, "web", api_version))
    cluster = make_cluster(make_node("a", taints=["x:NoSchedule"]), pod)
    (patch,) = of_kind(cluster, pod, "AddToleration").patches
    assert (patch.kind, patch.patch[0]["path"]) == (kind, path)


def test_a_cron_job_is_found_through_its_job(make_cluster: MakeCluster) -> None:
    pod = tainted(owner("Job", "night-1", "batch/v1"))
    cluster = make_cluster(make_node("a", taints=["x:NoSchedule"]), pod)
    cluster.job_owners["default", "night-1"] = owner("CronJob", "night", "batch/v1")
    found = of_kind(cluster, pod, "AddToleration")
    (patch,) = found.patches
    assert (patch.kind, patch.name) == ("CronJob", "night")
    assert patch.patch[0]["path"] == "/spec/jobTemplate/spec/template/spec/tolerations"
    # Else the next run would not begin where two at a time are forbidden.
    assert found.commands[1:] == ("kubectl delete job -n default night-1",)
    assert found.effect == (
        "Job night-1 is deleted with its 1 pod; it holds from the next run of CronJob night on"
    )


def test_a_job_of_files_whose_pods_are_made_leads_to_its_cron_job(
    make_cluster: MakeCluster,
) -> None:
    pod = tainted(owner("Job", "night-1", "batch/v1"))
    cluster = make_cluster(make_node("a", taints=["x:NoSchedule"]), pod)
    job = Origin("batch/v1", "Job", "default", "night-1", "/spec/template")
    cluster.origins[key_of(pod)] = job
    assert origin_of(cluster, pod) == job
    cluster.job_owners["default", "night-1"] = owner("CronJob", "night", "batch/v1")
    patch = of_kind(cluster, pod, "AddToleration").patches[0]
    assert (patch.kind, patch.name) == ("CronJob", "night")


def test_an_unknown_kind_is_named_without_a_command(make_cluster: MakeCluster) -> None:
    pod = tainted(owner("Training", "big", "example.com/v1"))
    cluster = make_cluster(make_node("a", taints=["x:NoSchedule"]), pod)
    found = of_kind(cluster, pod, "AddToleration")
    assert (found.patches[0].kind, found.commands) == ("Pod", ())
    assert "Training big" in found.effect


def test_a_pod_gets_tolerations_in_place_and_other_changes_by_being_made_again(
    make_cluster: MakeCluster,
) -> None:
    pod = tainted(None)
    cluster = make_cluster(make_node("a", taints=["x:NoSchedule"]), make_node("b", cpu="500m"), pod)
    (patched,) = of_kind(cluster, pod, "AddToleration").commands
    assert '"path":"/spec/tolerations/-"' in patched
    lowered = of_kind(cluster, pod, "LowerRequest")
    assert lowered.commands[0].endswith("| kubectl replace --force -f -")
    assert lowered.effect == "the pod is deleted and made again"


def test_siblings_are_no_victims_and_replacements_are_followed(make_cluster: MakeCluster) -> None:
    mine, other = owner("StatefulSet", "db"), owner("ReplicaSet", "batch")
    sibling = make_pod("db-0", cpu="3", node="a", owner=mine)
    batch = make_pod("batch-x", cpu="2", node="b", owner=other)
    pod = make_pod("db-1", cpu="3", owner=mine)
    cluster = make_cluster(make_node("a", cpu="4"), make_node("b", cpu="4"), sibling, batch, pod)
    found = of_kind(cluster, pod, "DeletePods")
    assert found.commands == ("kubectl delete pod -n default batch-x",)
    assert found.effect == "batch-x is made again and then waits"


def test_pods_that_are_ending_are_waited_for(make_cluster: MakeCluster) -> None:
    ending = make_pod("old", cpu="2", node="a", deleted=datetime(2026, 1, 1, tzinfo=UTC))
    pod = make_pod(cpu="3")
    cluster = make_cluster(make_node("a", cpu="4"), ending, pod)
    found = of_kind(cluster, pod, "Wait")
    assert found.text == (
        "wait: a frees 2 cpu when the pod default/old is gone, by 2026-01-01 00:00:00 UTC: the pod "
        "then fits on a"
    )
    assert (found.patches, found.commands) == ((), ())


def test_a_job_is_waited_for_by_its_deadline(make_cluster: MakeCluster) -> None:
    def of_job(name: str, cpu: str, job: str) -> Pod:
        return make_pod(name, cpu=cpu, node="a", owner=owner("Job", job, "batch/v1"))

    pods = of_job("one", "1", "early"), of_job("two", "2", "late"), of_job("three", "1", "endless")
    pod = make_pod(cpu="3")
    cluster = make_cluster(make_node("a", cpu="4"), *pods, pod)
    assert all(each.kind != "Wait" for each in find_suggestions(cluster, pod))
    cluster.job_ends["default", "early"] = datetime(2026, 1, 1, tzinfo=UTC)
    cluster.job_ends["default", "late"] = datetime(2026, 1, 2, tzinfo=UTC)
    found = of_kind(cluster, pod, "Wait")
    assert found.text == (
        "wait: a frees 3 cpu when Jobs early, late end, by 2026-01-02 00:00:00 UTC: the pod then "
        "fits on a"
    )
    small = make_pod("small", cpu="1")
    cluster.put(small)
    assert "a frees 1 cpu when Job early ends, by its deadline, 2026-01-01 00:00:00 UTC" in (
        of_kind(cluster, small, "Wait").text
    )


def test_a_misspelt_selector_is_put_right(make_cluster: MakeCluster) -> None:
    pod = make_pod(node_selector={"disc": "fast"})
    cluster = make_cluster(
        make_node("a", labels={"disk": "slow"}), make_node("b", labels={"disk": "fast"}), pod
    )
    found = find_suggestions(cluster, pod)
    assert (found[0].kind, found[0].node) == ("CorrectName", "b")
    assert all(each.kind != "AddLabel" for each in found)


def test_mistakes_that_keep_a_pod_out_together_are_put_right_together(
    make_cluster: MakeCluster,
) -> None:
    node = make_node("a", cpu="8", labels={"disk": "ssd", "zone": "b"})
    pod = make_pod("p", cpu="1", node_selector={"disc": "ssd", "zome": "b"})
    found = find_suggestions(make_cluster(node, pod), pod)[0]
    assert (found.kind, found.node) == ("CorrectName", "a")
    assert found.text.startswith("write disk instead of disc, and zone instead of zome")


def test_a_missing_claim_is_created_or_its_name_put_right(make_cluster: MakeCluster) -> None:
    storage_class = StorageClass(
        api_version="storage.k8s.io/v1",
        kind="StorageClass",
        metadata=ObjectMeta(name="fast"),
        provisioner="disk.example.com",
        volume_binding_mode="WaitForFirstConsumer",
    )
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="database", namespace="default"))
    spec = claim.spec.__class__(access_modes=("ReadWriteOnce",), storage_class_name="fast")
    claim = PersistentVolumeClaim(metadata=claim.metadata, spec=spec)
    pod = make_pod(pvcs=["databsae"])
    cluster = make_cluster(make_node("a"), storage_class, claim, pod)
    right, created = find_suggestions(cluster, pod)[:2]
    assert (right.kind, created.kind) == ("CorrectName", "CreateClaim")
    assert created.commands[0].startswith("kubectl create -f - <<'EOF'\n{")


@pytest.mark.parametrize(
    ("api_version", "name"),
    [
        pytest.param("a.$(touch${IFS}x)/v1", "web", id="a shell in the group"),
        pytest.param("apps/v1", "--all", id="an option as the name"),
        pytest.param("apps/v1", "web;reboot", id="a command in the name"),
        pytest.param("apps/v1", "a\nb", id="a line end in the name"),
    ],
)
def test_an_owner_that_is_no_object_is_part_of_no_command(
    make_cluster: MakeCluster, api_version: str, name: str
) -> None:
    # An API server accepts any text in these fields of an owner reference.
    pod = tainted(owner("StatefulSet", name, api_version))
    cluster = make_cluster(make_node("a", taints=["x:NoSchedule"]), pod)
    commands = [each for found in find_suggestions(cluster, pod) for each in found.commands]
    assert commands  # the taint can be removed
    assert not any(text in each for each in commands for text in ("touch", "--all", "reboot"))
    assert not any(each.startswith("kubectl patch") for each in commands)
