"""The verbs of the embedded API server, one claim at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.selectors import Selection, parse_selection
from kubestow.cluster.resources import (
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    ApiResource,
)
from kubestow.errors import ApiError, ConflictError, GoneError, InvalidError, NotFoundError
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]


def names(cluster: MemoryCluster, selection: Selection | None = None) -> list[str]:
    page = cluster.list(PODS) if selection is None else cluster.list(PODS, selection)
    return [stored.name for stored in page.items]


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


# --- Get and list -----------------------------------------------------------------------------


def test_get_names_what_it_did_not_find(cluster: MemoryCluster):
    with pytest.raises(NotFoundError, match=r'^pods "web-1" not found$') as caught:
        cluster.get(PODS, "default", "web-1")
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")


def test_list_is_in_the_order_of_namespace_and_name(cluster: MemoryCluster, pod_document: Build):
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y")):
        cluster.create(PODS, pod_document(name, metadata={"namespace": namespace}))
    page = cluster.list(PODS)
    assert [stored.key for stored in page.items] == [("a", "y"), ("a", "z"), ("b", "x")]
    assert (page.version, page.continue_token, page.remaining_count) == (3, "", 0)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        pytest.param({}, ["a", "b", "c", "d"], id="everything"),
        pytest.param({"namespace": "other"}, ["d"], id="namespace"),
        pytest.param({"field_selector": "spec.nodeName=n1"}, ["b"], id="assigned"),
        pytest.param({"field_selector": "spec.nodeName="}, ["a", "c", "d"], id="unassigned"),
        pytest.param(
            {"field_selector": "status.phase!=Succeeded,status.phase!=Failed"},
            ["a", "b", "d"],
            id="not-ended",
        ),
        pytest.param({"label_selector": "app in (web,api),!old"}, ["a"], id="labels"),
        pytest.param(
            {"label_selector": "app", "field_selector": "metadata.name!=a"}, ["b"], id="both"
        ),
    ],
)
def test_list_selects(
    cluster: MemoryCluster, pod_document: Build, parameters: Any, expected: list[str]
):
    cluster.create(PODS, pod_document("a", metadata={"labels": {"app": "web"}}))
    old = {"labels": {"app": "api", "old": "yes"}}
    cluster.create(PODS, pod_document("b", metadata=old, nodeName="n1"))
    cluster.create(PODS, pod_document("c", status={"phase": "Succeeded"}))
    cluster.create(PODS, pod_document("d", metadata={"namespace": "other"}))
    assert names(cluster, parse_selection(PODS, **parameters)) == expected


def test_pages_show_one_state_despite_writes_between_them(
    cluster: MemoryCluster, pod_document: Build
):
    for index in range(5):
        cluster.create(PODS, pod_document(f"p{index}"))
    first = cluster.list(PODS, limit=2)
    assert (first.version, first.remaining_count) == (5, 3)
    cluster.delete(PODS, "default", "p2")
    cluster.create(PODS, pod_document("p9"))
    cluster.patch(PODS, "default", "p3", {"metadata": {"labels": {"new": "label"}}})
    second = cluster.list(PODS, limit=2, continue_token=first.continue_token)
    third = cluster.list(PODS, limit=2, continue_token=second.continue_token)
    items = [*first.items, *second.items, *third.items]
    assert [stored.name for stored in items] == ["p0", "p1", "p2", "p3", "p4"]
    assert "labels" not in items[3].metadata
    assert {first.version, second.version, third.version} == {5}
    assert not third.continue_token


def test_a_page_of_a_dropped_state_is_refused(clock: ManualClock, pod_document: Build):
    cluster = MemoryCluster(clock, history_max=2)
    for index in range(3):
        cluster.create(PODS, pod_document(f"p{index}"))
    token = cluster.list(PODS, limit=1).continue_token
    for index in range(3):
        cluster.create(PODS, pod_document(f"q{index}"))
    with pytest.raises(GoneError, match="continue parameter is too old") as caught:
        cluster.list(PODS, limit=1, continue_token=token)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_an_invalid_token_is_a_bad_request(cluster: MemoryCluster):
    with pytest.raises(ApiError, match="continue key is not valid") as caught:
        cluster.list(PODS, continue_token="bm9uc2Vuc2U=")
    assert caught.value.code == 400


def test_an_exact_version_shows_the_earlier_state(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document("a"))
    cluster.create(PODS, pod_document("b"))
    cluster.delete(PODS, "default", "a")
    page = cluster.list(PODS, version=2, is_exact=True)
    assert [stored.name for stored in page.items] == ["a", "b"]
    assert page.version == 2
    assert [stored.name for stored in cluster.list(PODS, version=2).items] == ["b"]


def test_a_version_from_the_future_is_refused(cluster: MemoryCluster):
    with pytest.raises(ApiError, match="Too large resource version: 5, current: 0") as caught:
        cluster.list(PODS, version=5)
    assert (caught.value.code, caught.value.reason) == (504, "Timeout")


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


# --- Watch ------------------------------------------------------------------------------------


def test_a_watch_without_a_version_begins_with_existing_objects(
    cluster: MemoryCluster, pod_document: Build
):
    cluster.create(PODS, pod_document("b"))
    cluster.create(PODS, pod_document("a"))
    watch = cluster.watch(PODS)
    cluster.bind("default", "a", "n1")
    cluster.delete(PODS, "default", "b")
    events = [
        (event.type, event.stored.name, event.resource_version) for event in watch.events_nowait()
    ]
    assert events == [
        ("ADDED", "a", "2"),
        ("ADDED", "b", "1"),
        ("MODIFIED", "a", "3"),
        ("DELETED", "b", "4"),
    ]


def test_a_watch_from_a_version_replays_what_followed(
    cluster: MemoryCluster, pod_document: Build, node_document: Build
):
    cluster.create(PODS, pod_document("a"))
    version = cluster.version
    cluster.create(NODES, node_document())
    cluster.create(PODS, pod_document("b"))
    watch = cluster.watch(PODS, from_version=version)
    cluster.create(PODS, pod_document("c"))
    assert [event.stored.name for event in watch.events_nowait()] == ["b", "c"]
    assert watch.events_nowait() == []


def test_a_watch_from_a_dropped_version_is_gone(clock: ManualClock, pod_document: Build):
    cluster = MemoryCluster(clock, history_max=2)
    for index in range(4):
        cluster.create(PODS, pod_document(f"p{index}"))
    with pytest.raises(GoneError, match=r"^too old resource version: 1 \(2\)$"):
        cluster.watch(PODS, from_version=1)
    watch = cluster.watch(PODS, from_version=2)
    assert [event.stored.name for event in watch.events_nowait()] == ["p2", "p3"]


def test_a_watch_from_the_future_is_refused(cluster: MemoryCluster):
    with pytest.raises(ApiError, match="Too large resource version"):
        cluster.watch(PODS, from_version=3)


def test_a_pod_that_ends_leaves_a_watch_of_pods_that_have_not(
    cluster: MemoryCluster, pod_document: Build
):
    selection = parse_selection(PODS, field_selector="status.phase!=Succeeded,status.phase!=Failed")
    watch = cluster.watch(PODS, selection)
    cluster.create(PODS, pod_document())
    running = {"status": {"phase": "Running"}}
    cluster.patch(PODS, "default", "web-1", running, subresource="status")
    cluster.patch(PODS, "default", "web-1", {"status": {"phase": "Failed"}}, subresource="status")
    cluster.patch(PODS, "default", "web-1", {"status": {"reason": "x"}}, subresource="status")
    cluster.patch(PODS, "default", "web-1", running, subresource="status")
    events = watch.events_nowait()
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
    # The last state the watcher could see, at the version of the change that hid it.
    assert events[2].document["status"]["phase"] == "Running"
    assert events[2].resource_version == "3"
    assert events[2].object == convert(Pod, events[2].document)


def test_all_watchers_share_one_typed_object(cluster: MemoryCluster, pod_document: Build):
    first, second = cluster.watch(PODS), cluster.watch(PODS)
    cluster.create(PODS, pod_document())
    cluster.bind("default", "web-1", "n1")
    cluster.delete(PODS, "default", "web-1", grace_period_s=0)
    for one, other in zip(first.events_nowait(), second.events_nowait(), strict=True):
        assert one.object is other.object


def test_bookmarks_are_sent_only_on_request(
    cluster: MemoryCluster, pod_document: Build, node_document: Build
):
    requested = cluster.watch(PODS, bookmarks=True)
    does_not = cluster.watch(PODS)
    cluster.create(NODES, node_document())
    cluster.send_bookmarks()
    assert [(e.type, e.resource_version) for e in requested.events_nowait()] == [("BOOKMARK", "1")]
    assert does_not.events_nowait() == []


def test_initial_events_end_with_a_marked_bookmark(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document("a"))
    watch = cluster.watch(PODS, from_version=1, initial_events=True)
    added, end = watch.events_nowait()
    assert (added.type, added.stored.name) == ("ADDED", "a")
    assert end.type == "BOOKMARK"
    assert end.document["metadata"] == {
        "resourceVersion": "1",
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


def test_a_closed_watch_gets_no_more_events(cluster: MemoryCluster, pod_document: Build):
    watch = cluster.watch(PODS)
    cluster.create(PODS, pod_document("a"))
    watch.close()
    watch.close()
    cluster.create(PODS, pod_document("b"))
    assert [event.stored.name for event in watch.events_nowait()] == ["a"]
    assert cluster.statistics().watch_count == 0


def test_statistics_count_objects_and_watches(
    cluster: MemoryCluster, pod_document: Build, node_document: Build
):
    cluster.create(NODES, node_document())
    cluster.create(PODS, pod_document("a"))
    cluster.create(PODS, pod_document("b"))
    watch = cluster.watch(PODS)
    statistics = cluster.statistics()
    assert statistics.object_counts == {"nodes": 1, "pods": 2}
    assert (statistics.version, statistics.watch_count) == (3, 1)
    watch.close()


@pytest.mark.parametrize("resource", [EVENTS, NAMESPACES], ids=lambda r: r.plural)
def test_messages_name_resources_with_their_group(cluster: MemoryCluster, resource: ApiResource):
    with pytest.raises(NotFoundError) as caught:
        cluster.get(resource, "default", "x")
    assert str(caught.value) == f'{resource.qualified_name} "x" not found'


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


def test_a_watch_can_depend_on_another_resource(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document("before"))
    watch = cluster.watch(PODS, only_while=NODES)
    cluster.create(PODS, pod_document("without"))
    cluster.create(NODES, {"metadata": {"name": "n1"}})
    cluster.create(PODS, pod_document("with"))
    cluster.delete(NODES, "", "n1")
    cluster.create(PODS, pod_document("after"))
    assert [event.stored.name for event in watch.events_nowait()] == ["with"]
    watch.close()
