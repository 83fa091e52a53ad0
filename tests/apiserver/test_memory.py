"""The verbs of the embedded API server, one claim at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import NAMESPACES, NODES, PODS, RESOURCE_CLAIMS, ApiResource
from kubestow.errors import ApiError, ConflictError, InvalidError, NotFoundError
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]


def names(cluster: MemoryCluster) -> list[str]:
    return [stored.name for stored in cluster.list(PODS).items]


# --- Create -----------------------------------------------------------------------------------


def test_create_gives_an_object_its_identity(cluster: MemoryCluster, pod_document: Build):
    stored = cluster.create(PODS, pod_document("web-1"))
    metadata = stored.metadata
    assert metadata["resourceVersion"] == "1"
    assert metadata["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert metadata["generation"] == 1
    assert len(metadata["uid"]) == 36
    assert cluster.get(PODS, "default", "web-1") is stored


def test_create_overrides_fields_of_the_server(cluster: MemoryCluster, pod_document: Build):
    given = {"uid": "mine", "resourceVersion": "77", "generation": 9, "deletionTimestamp": "x"}
    stored = cluster.create(PODS, pod_document(metadata=given))
    assert stored.uid != "mine"
    assert stored.metadata["resourceVersion"] == "1"
    assert stored.metadata["generation"] == 1
    assert "deletionTimestamp" not in stored.metadata


def test_a_recorded_object_keeps_its_identity_and_gets_no_defaults(
    recorded: MemoryCluster, pod_document: Build
):
    given = {"uid": "u1", "creationTimestamp": "2020-01-01T00:00:00Z", "generation": 3}
    stored = recorded.create(PODS, pod_document(metadata=given))
    assert stored.metadata == {**stored.metadata, **given, "resourceVersion": "1"}
    assert stored.document["spec"] == pod_document()["spec"]
    assert "status" not in stored.document


def test_admission_can_be_left_out_for_one_object(cluster: MemoryCluster, pod_document: Build):
    stored = cluster.create(PODS, pod_document(metadata={"uid": "u1"}), admission=False)
    assert stored.uid == "u1"


def test_create_refuses_a_name_that_is_taken(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document("web-1"))
    with pytest.raises(ConflictError, match=r'^pods "web-1" already exists$') as caught:
        cluster.create(PODS, pod_document("web-1"))
    assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")
    assert cluster.version == 1
    cluster.create(PODS, pod_document("web-1", metadata={"namespace": "other"}))


def test_generate_name_gives_distinct_names(cluster: MemoryCluster, pod_document: Build):
    document = pod_document(metadata={"generateName": "web-"})
    del document["metadata"]["name"]
    made = {cluster.create(PODS, document).name for _ in range(200)}
    assert len(made) == 200
    assert all(name.startswith("web-") and len(name) == 9 for name in made)


def test_an_object_without_any_name_is_invalid(cluster: MemoryCluster, pod_document: Build):
    document = pod_document()
    del document["metadata"]["name"]
    with pytest.raises(InvalidError, match="name or generateName is required"):
        cluster.create(PODS, document)


def test_namespaces_are_filled_in_or_left_out_as_the_kind_has_them(
    cluster: MemoryCluster, pod_document: Build, node_document: Build
):
    pod = pod_document()
    del pod["metadata"]["namespace"]
    node = node_document()
    node["metadata"]["namespace"] = "default"
    assert cluster.create(PODS, pod).key == ("default", "web-1")
    assert cluster.create(NODES, node).key == ("", "n1")


def test_the_same_seed_gives_the_same_identities(clock: ManualClock, pod_document: Build):
    def uids(seed: int) -> list[str]:
        cluster = MemoryCluster(clock, seed=seed)
        return [cluster.create(PODS, pod_document(f"p{index}")).uid for index in range(3)]

    assert uids(1) == uids(1)
    assert uids(1) != uids(2)


def test_a_uid_that_an_object_came_with_is_given_to_no_other(
    clock: ManualClock, pod_document: Build
):
    other = MemoryCluster(clock)
    uids = [other.create(PODS, pod_document(f"p{number}")).uid for number in range(3)]

    cluster = MemoryCluster(clock)
    cluster.take_uids(uids[1:2])
    kept = pod_document("kept")
    kept["metadata"]["uid"] = uids[0]
    cluster.create(PODS, kept, admission=False)
    made = {cluster.create(PODS, pod_document(f"new{number}")).uid for number in range(3)}
    assert len(made) == 3
    assert not made & set(uids[:2])


def test_one_version_counts_the_writes_of_all_resources(
    cluster: MemoryCluster, pod_document: Build, node_document: Build
):
    assert cluster.create(NODES, node_document()).version == 1
    assert cluster.create(PODS, pod_document()).version == 2
    assert cluster.version == 2


def test_kinds_without_a_struct_are_stored_too(cluster: MemoryCluster):
    config_maps = cluster.resources.named("configmaps")
    data = {"color": "blue"}
    stored = cluster.create(config_maps, {"metadata": {"name": "web"}, "data": data})
    assert stored.document["data"] == data
    assert stored.document["apiVersion"] == "v1"
    assert stored.typed.metadata.name == "web"


def test_a_resource_registered_later_is_served(cluster: MemoryCluster):
    widgets = ApiResource(
        group="example.com", version="v1", plural="widgets", kind="Widget", namespaced=True
    )
    with pytest.raises(NotFoundError, match="could not find the requested resource"):
        cluster.create(widgets, {"metadata": {"name": "w"}})
    cluster.resources.register(widgets)
    cluster.create(widgets, {"metadata": {"name": "w"}})
    with pytest.raises(NotFoundError, match=r'^widgets.example.com "v" not found$'):
        cluster.get(widgets, "default", "v")


def test_load_creates_classes_before_the_pods_that_name_them(
    cluster: MemoryCluster, pod_document: Build
):
    priority_class = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 7,
    }
    cluster.load([pod_document(priorityClassName="high"), priority_class])
    assert cluster.get(PODS, "default", "web-1").document["spec"]["priority"] == 7


def test_a_document_that_does_not_decode_is_invalid_and_changes_nothing(
    cluster: MemoryCluster, pod_document: Build
):
    with pytest.raises(InvalidError, match=r"spec\.nodeName is 7"):
        cluster.create(PODS, pod_document(nodeName=7))
    assert cluster.version == 0
    assert names(cluster) == []


# --- Update and patch -------------------------------------------------------------------------


def relabelled(document: JsonObject, **labels: str) -> JsonObject:
    return {**document, "metadata": {**document["metadata"], "labels": labels}}


def test_update_of_a_stale_version_is_a_conflict(cluster: MemoryCluster, pod_document: Build):
    old = cluster.create(PODS, pod_document())
    new = cluster.update(PODS, relabelled(old.document, a="1"))
    assert new.metadata["resourceVersion"] == "2"
    assert new.metadata["labels"] == {"a": "1"}
    expected = (
        r'^Operation cannot be fulfilled on pods "web-1": the object has been modified; '
        r"please apply your changes to the latest version and try again$"
    )
    with pytest.raises(ConflictError, match=expected) as caught:
        cluster.update(PODS, relabelled(old.document, a="2"))
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")


def test_update_without_a_version_applies_to_the_current_one(
    cluster: MemoryCluster, pod_document: Build
):
    cluster.create(PODS, pod_document())
    new = cluster.update(PODS, pod_document(metadata={"labels": {"a": "1"}}))
    assert new.version == 2


def test_update_of_a_recreated_object_is_a_conflict(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document())
    with pytest.raises(ConflictError, match="Precondition failed: UID in precondition: other"):
        cluster.update(PODS, pod_document(metadata={"uid": "other"}))


def test_update_that_changes_nothing_makes_no_version(cluster: MemoryCluster, node_document: Build):
    old = cluster.create(NODES, node_document())
    watch = cluster.watch(NODES, from_version=cluster.version)
    # The bare manifest again: what was filled in is still there.
    assert cluster.update(NODES, node_document()) is old
    assert watch.events_nowait() == []


def test_update_does_not_move_a_pod(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document(nodeName="n1"))
    for document in (pod_document(), pod_document(nodeName="n2")):
        with pytest.raises(
            InvalidError, match=r'spec: Forbidden: pod updates may not change .*\n.*nodeName: "n1"'
        ):
            cluster.update(PODS, document)


def test_update_leaves_the_status_and_what_the_server_owns(
    cluster: MemoryCluster, pod_document: Build
):
    old = cluster.create(PODS, pod_document())
    metadata = {"name": "web-1", "namespace": "default", "generation": 70}
    new = cluster.update(
        PODS,
        {"metadata": metadata, "spec": old.document["spec"], "status": {"phase": "Running"}},
    )
    assert new is old


def test_generation_counts_changes_of_the_spec_only(cluster: MemoryCluster, pod_document: Build):
    old = cluster.create(PODS, pod_document())
    labelled = cluster.update(PODS, relabelled(old.document, a="1"))
    assert labelled.metadata["generation"] == 1
    spec = {**old.document["spec"], "activeDeadlineSeconds": 5}
    changed = cluster.update(PODS, {**labelled.document, "spec": spec})
    assert changed.metadata["generation"] == 2
    assert changed.typed.metadata.generation == 2


def test_update_is_validated(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document())
    bad = pod_document(tolerations=[{"key": "a", "operator": "Sometimes"}])
    with pytest.raises(InvalidError, match=r"spec.tolerations\[0\].operator"):
        cluster.update(PODS, bad)


def test_the_status_subresource_touches_only_the_status(
    cluster: MemoryCluster, pod_document: Build
):
    old = cluster.create(PODS, pod_document())
    wanted = {**relabelled(old.document, a="1"), "status": {"phase": "Running"}}
    new = cluster.update(PODS, wanted, subresource="status")
    assert new.document["status"] == {"phase": "Running"}
    assert "labels" not in new.metadata
    assert new.document["spec"] is old.document["spec"]
    assert new.metadata["generation"] == 1


def test_kinds_without_a_status_subresource_write_it_with_the_rest(cluster: MemoryCluster):
    csi_nodes = cluster.resources.named("csinodes.storage.k8s.io")
    cluster.create(csi_nodes, {"metadata": {"name": "n1"}})
    new = cluster.update(csi_nodes, {"metadata": {"name": "n1"}, "status": {"x": 1}})
    assert new.document["status"] == {"x": 1}


def test_patch_merges_into_the_stored_object(cluster: MemoryCluster, pod_document: Build):
    old = cluster.create(PODS, pod_document(metadata={"labels": {"a": "1", "b": "2"}}))
    patch = {"metadata": {"labels": {"a": None, "c": "3"}}}
    new = cluster.patch(PODS, "default", "web-1", patch, "merge")
    assert new.metadata["labels"] == {"b": "2", "c": "3"}
    assert new.document["spec"] is old.document["spec"]


def test_a_patch_cannot_rename(cluster: MemoryCluster, pod_document: Build):
    old = cluster.create(PODS, pod_document())
    patch = {"metadata": {"name": "other", "namespace": "other", "creationTimestamp": None}}
    assert cluster.patch(PODS, "default", "web-1", patch, "merge") is old


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        pytest.param({"resourceVersion": "7"}, "the object has been modified", id="version"),
        pytest.param({"uid": "other"}, "UID in precondition: other", id="uid"),
    ],
)
def test_a_patch_may_name_the_object_it_is_for(
    cluster: MemoryCluster, pod_document: Build, metadata: Any, message: str
):
    cluster.create(PODS, pod_document())
    with pytest.raises(ConflictError, match=message):
        cluster.patch(PODS, "default", "web-1", {"metadata": metadata})


def test_a_status_patch_merges_conditions_by_type(cluster: MemoryCluster, pod_document: Build):
    ready = {"type": "Ready", "status": "True"}
    status = {"phase": "Running", "conditions": [ready]}
    cluster.create(PODS, pod_document(status=status))
    waiting = {"type": "PodScheduled", "status": "False", "message": "no"}
    patch = {"status": {"conditions": [waiting], "nominatedNodeName": "n1"}}
    new = cluster.patch(PODS, "default", "web-1", patch, subresource="status")
    assert new.document["status"]["conditions"] == [ready, waiting]
    assert new.document["status"]["nominatedNodeName"] == "n1"
    patch = {"status": {"conditions": [{"type": "PodScheduled", "message": "yes"}]}}
    new = cluster.patch(PODS, "default", "web-1", patch, subresource="status")
    assert new.document["status"]["conditions"] == [ready, {**waiting, "message": "yes"}]
    assert new.typed == convert(Pod, new.document)


def test_W11_a_reservation_is_taken_back_by_uid(cluster: MemoryCluster):
    claim = {
        "metadata": {"name": "gpu"},
        "status": {"reservedFor": [{"uid": "u1", "name": "a"}, {"uid": "u2", "name": "b"}]},
    }
    stored = cluster.create(RESOURCE_CLAIMS, claim)
    patch = {
        "metadata": {"uid": stored.uid},
        "status": {"reservedFor": [{"$patch": "delete", "uid": "u1"}]},
    }
    new = cluster.patch(RESOURCE_CLAIMS, "default", "gpu", patch, subresource="status")
    assert new.document["status"]["reservedFor"] == [{"uid": "u2", "name": "b"}]


# --- Dry runs and namespaces ------------------------------------------------------------------


def test_a_dry_run_is_answered_and_changes_nothing(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document("web-1"))
    watch = cluster.watch(PODS, from_version=cluster.version)
    with cluster.dry_run():
        created = cluster.create(PODS, pod_document("web-2"))
        cluster.patch(PODS, "default", "web-1", {"metadata": {"labels": {"a": "b"}}})
        cluster.delete(PODS, "default", "web-1")
        with pytest.raises(ConflictError):
            cluster.create(PODS, pod_document("web-1"))
    assert created.document["status"]["phase"] == "Pending"
    assert names(cluster) == ["web-1"]
    assert cluster.version == 1
    assert watch.events_nowait() == []
    cluster.delete(PODS, "default", "web-1")
    assert names(cluster) == []


def test_change_replaces_an_object_by_what_a_function_makes_of_it(
    cluster: MemoryCluster, pod_document: Build
):
    cluster.create(PODS, pod_document("web-1"))

    def relabel(document: JsonObject) -> JsonObject:
        return {**document, "metadata": {**document["metadata"], "labels": {"app": "web"}}}

    assert cluster.change(PODS, "default", "web-1", relabel).metadata["labels"] == {"app": "web"}


@pytest.fixture
def strict(clock: ManualClock) -> MemoryCluster:
    """A cluster with the namespace lifecycle."""
    cluster = MemoryCluster(clock, namespace_lifecycle=True)
    cluster.create(NAMESPACES, {"metadata": {"name": "default"}})
    cluster.create(NAMESPACES, {"metadata": {"name": "shop"}})
    return cluster


def test_nothing_is_created_outside_a_namespace(strict: MemoryCluster, pod_document: Build):
    with pytest.raises(NotFoundError, match=r'^namespaces "nowhere" not found$'):
        strict.create(PODS, pod_document(metadata={"namespace": "nowhere"}))
    strict.create(PODS, pod_document(metadata={"namespace": "shop"}))
    strict.create(NODES, {"metadata": {"name": "n1"}})


def test_a_deleted_namespace_accepts_nothing_new_and_stays_until_finalized(
    strict: MemoryCluster, pod_document: Build
):
    going = strict.delete(NAMESPACES, "", "shop")
    assert going.document["status"]["phase"] == "Terminating"
    with pytest.raises(ApiError, match="because it is being terminated") as caught:
        strict.create(PODS, pod_document("web-1", metadata={"namespace": "shop"}))
    assert caught.value.code == 403
    strict.update(NAMESPACES, {**going.document, "spec": {}})
    assert strict.find(NAMESPACES, "", "shop") is not None
    strict.finalize_namespace("shop")
    assert strict.find(NAMESPACES, "", "shop") is None


def test_a_namespace_is_not_finalized_before_it_is_deleted(strict: MemoryCluster):
    strict.finalize_namespace("shop")
    assert strict.find(NAMESPACES, "", "shop") is not None
    assert strict.finalize_namespace("shop").name == "shop"
    strict.delete(NAMESPACES, "", "shop")
    assert strict.find(NAMESPACES, "", "shop") is None


def test_the_default_namespace_is_never_deleted(strict: MemoryCluster):
    with pytest.raises(ApiError, match="this namespace may not be deleted"):
        strict.delete(NAMESPACES, "", "default")


def test_a_delete_can_add_a_finalizer(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document("web-1"))
    marked = cluster.delete(PODS, "default", "web-1", finalizer="orphan")
    assert marked.metadata["finalizers"] == ["orphan"]
    assert cluster.delete(PODS, "default", "web-1", finalizer="orphan") is marked
    cluster.patch(PODS, "default", "web-1", {"metadata": {"finalizers": None}}, "merge")
    assert names(cluster) == []
