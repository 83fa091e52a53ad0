"""Suggestions that are carried out on the cluster of a demo."""

from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import ApiError, InputError
from kubestow.simulator.live.forms import form_of
from kubestow.simulator.live.remedies import SuggestionForm, apply_suggestion
from kubestow.testing import ManualClock

POD: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {
        "nodeSelector": {"disk": "nvme"},
        "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "4"}}}],
    },
}
NODE: JsonObject = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "8", "pods": "1"}},
}


@pytest.fixture
def store() -> MemoryCluster:
    store = MemoryCluster(ManualClock())
    store.load([POD, NODE])
    return store


def apply(store: MemoryCluster, *patches: JsonObject) -> JsonObject:
    body = {"namespace": "default", "name": "a", "patches": [*patches]}
    return apply_suggestion(store, form_of(SuggestionForm, body))


def patch(kind: str, name: str, *operations: JsonObject, **more: Any) -> JsonObject:
    namespace = "" if kind == "Node" else "default"
    named = {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name}
    return {**named, "patch": [*operations], **more}


def test_an_object_is_changed_in_place_where_the_server_allows_it(store: MemoryCluster) -> None:
    before = store.get(NODES, "", "n").document
    label = {"op": "add", "path": "/metadata/labels", "value": {"disk": "nvme"}}
    assert apply(store, patch("Node", "n", label))["message"] == "made 1 change"
    after = store.get(NODES, "", "n").document
    assert value_at(after, "metadata", "labels") == {"disk": "nvme"}
    assert value_at(after, "metadata", "uid") == value_at(before, "metadata", "uid")


def test_the_status_of_a_node_is_changed(store: MemoryCluster) -> None:
    more = {"op": "replace", "path": "/status/allocatable/pods", "value": "5"}
    apply(store, patch("Node", "n", more))
    assert value_at(store.get(NODES, "", "n").document, "status", "allocatable", "pods") == "5"


def test_what_cannot_be_changed_is_made_again(store: MemoryCluster) -> None:
    uid = value_at(store.get(PODS, "default", "a").document, "metadata", "uid")
    drop = {"op": "remove", "path": "/spec/nodeSelector/disk"}
    apply(store, patch("Pod", "a", drop))
    made = store.get(PODS, "default", "a").document
    assert not value_at(made, "spec", "nodeSelector")
    assert value_at(made, "metadata", "uid") != uid


def test_objects_are_made_and_deleted(store: MemoryCluster) -> None:
    new = {"metadata": {"name": "m"}, "status": {"allocatable": {"cpu": "16"}}}
    made = patch("Node", "m", {"op": "add", "path": "", "value": new})
    apply(store, made, patch("Pod", "a", {"op": "remove", "path": ""}))
    assert store.find(NODES, "", "m") is not None
    assert store.find(PODS, "default", "a") is None


def test_the_pod_of_a_stateful_set_is_replaced(store: MemoryCluster) -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": POD["spec"]}
    selector = {"matchLabels": {"app": "a"}}
    stateful = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}}
    store.load([{**stateful, "spec": {"selector": selector, "template": template}}])
    drop = {"op": "remove", "path": "/spec/template/spec/nodeSelector"}
    apply(store, patch("StatefulSet", "s", drop, apiVersion="apps/v1"))
    # Its controller makes another one of the new template.
    assert store.find(PODS, "default", "a") is None


def test_a_wrong_change_deletes_nothing(store: MemoryCluster) -> None:
    wrong = {"op": "add", "path": "/spec/containers", "value": []}
    with pytest.raises(ApiError):
        apply(store, patch("Pod", "a", wrong))
    assert store.find(PODS, "default", "a") is not None


def test_an_error_says_what_was_done_before(store: MemoryCluster) -> None:
    label = {"op": "add", "path": "/metadata/labels", "value": {"disk": "nvme"}}
    with pytest.raises(ApiError, match=r'"missing" not found; 1 change before it made'):
        apply(store, patch("Node", "n", label), patch("Node", "missing", label))
    with pytest.raises(InputError, match='there is no kind "Nod"'):
        apply(store, patch("Nod", "n", label))
