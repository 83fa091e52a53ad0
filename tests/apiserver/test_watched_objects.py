"""What an API server stores is read, listed and watched, one claim at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.selectors import parse_selection
from kubestow.cluster.resources import EVENTS, NAMESPACES, NODES, PODS, ApiResource
from kubestow.errors import ApiError, GoneError, NotFoundError
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]


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
    page = cluster.list(PODS, parse_selection(PODS, **parameters))
    assert [stored.name for stored in page.items] == expected


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
