"""A whole cluster from files, and into a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubestow.api.files import Document, load_documents
from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import Clock
from kubestow.cluster.resources import EVENTS, LEASES, NAMESPACES, PODS
from kubestow.errors import InputError
from kubestow.simulator.cluster_file import load_cluster_files, save_cluster
from kubestow.testing.clock import ManualClock


def make_store(clock: Clock) -> MemoryCluster:
    store = MemoryCluster(clock, namespace_lifecycle=True)
    store.create(NAMESPACES, {"metadata": {"name": "default"}})
    return store


def document(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Document:
    metadata = {"name": name, **fields.pop("metadata", {})}
    raw: JsonObject = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
    return Document(raw, f"file.yaml#{name}")


def pod(name: str, **metadata: Any) -> Document:
    spec = {"containers": [{"name": "main", "image": "nginx"}]}
    return document("Pod", name, spec=spec, metadata=metadata)


def test_what_a_shortened_object_of_a_server_lacks_is_filled_in(clock: ManualClock) -> None:
    store = make_store(clock)
    load_cluster_files(store, [pod("p", uid="u")])
    stored = store.get(PODS, "default", "p")
    assert stored.uid == "u"
    assert stored.document["spec"]["schedulerName"] == "default-scheduler"


def test_objects_of_a_cluster_keep_their_identity(clock: ManualClock):
    store = make_store(clock)
    age = {"uid": "u-1", "creationTimestamp": "2020-01-01T00:00:00Z", "generation": 7}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u-1"}
    owned = pod("p", uid="u-2", ownerReferences=[owner])
    replica_set = document("ReplicaSet", "r", "apps/v1", metadata=age, spec={"replicas": 1})
    report = load_cluster_files(store, [owned, replica_set])
    assert (report.object_count, report.orphan_count) == (2, 0)
    stored = store.get(PODS, "default", "p")
    assert stored.uid == "u-2"
    assert stored.metadata["ownerReferences"] == [owner]
    found = store.get(store.resources.named("replicasets.apps"), "default", "r")
    assert {key: found.metadata[key] for key in age} == age


def test_objects_written_by_hand_get_their_defaults(clock: ManualClock):
    store = make_store(clock)
    load_cluster_files(store, [pod("p")])
    assert store.get(PODS, "default", "p").document["spec"]["schedulerName"] == "default-scheduler"


def test_references_to_owners_that_are_not_there_are_left_out(clock: ManualClock):
    store = make_store(clock)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "gone"}
    report = load_cluster_files(store, [pod("p", uid="u-2", ownerReferences=[owner])])
    assert report.orphan_count == 1
    assert not store.get(PODS, "default", "p").metadata["ownerReferences"]


def test_missing_namespaces_are_made_and_given_ones_kept(clock: ManualClock):
    store = make_store(clock)
    given = document("Namespace", "shop", metadata={"uid": "u-1", "labels": {"team": "a"}})
    load_cluster_files(store, [pod("p", namespace="shop"), pod("q", namespace="other"), given])
    assert store.get(NAMESPACES, "", "shop").uid == "u-1"
    assert store.get(NAMESPACES, "", "other")
    assert store.get(PODS, "other", "q")


def test_unknown_kinds_are_counted_and_history_is_left_out(clock: ManualClock):
    store = make_store(clock)
    widgets = [document("Widget", name, "acme.example/v1") for name in ("a", "b")]
    history = [document("Event", "e"), document("Lease", "l", "coordination.k8s.io/v1")]
    report = load_cluster_files(store, [*widgets, *history])
    assert report.ignored == {"Widget": 2}
    assert report.object_count == 0
    assert not list(store.objects_of(EVENTS))
    assert not list(store.objects_of(LEASES))


def test_an_object_that_cannot_be_loaded_is_named(clock: ManualClock):
    store = make_store(clock)
    with pytest.raises(InputError, match=r"file\.yaml#p: cannot be loaded: .*already exists"):
        load_cluster_files(store, [pod("p"), pod("p")])


def test_a_saved_cluster_loads_again(tmp_path: Path, clock: ManualClock):
    path = tmp_path / "saved.json"
    store = make_store(clock)
    load_cluster_files(store, [pod("p"), pod("q")])
    store.bind("default", "p", "n1")
    store.delete(PODS, "default", "p")
    store.create(EVENTS, {"metadata": {"name": "e"}})
    report = save_cluster(store, path)
    assert (report.object_count, report.secret_count) == (3, 0)
    again = MemoryCluster(clock, namespace_lifecycle=True, seed=1)
    load_cluster_files(again, load_documents([path]))
    assert not list(again.objects_of(EVENTS))
    for name in ("p", "q"):
        before, after = store.get(PODS, "default", name), again.get(PODS, "default", name)
        assert _without_version(before.document) == _without_version(after.document)


def _without_version(document: JsonObject) -> JsonObject:
    metadata = {key: value for key, value in document["metadata"].items()}
    del metadata["resourceVersion"]
    return {**document, "metadata": metadata}


def test_the_data_of_secrets_is_not_saved(tmp_path: Path, clock: ManualClock):
    store = make_store(clock)
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":"cHc="}', "a": "b"}
    secret = document("Secret", "s", metadata={"annotations": applied}, data={"password": "cHc="})
    load_cluster_files(store, [secret, document("Secret", "empty")])
    path = tmp_path / "saved.json"
    assert save_cluster(store, path).secret_count == 1
    assert "cHc=" not in path.read_text()
    saved = {one["metadata"]["name"]: one for one in json.loads(path.read_text())["items"]}
    assert saved["s"]["metadata"]["annotations"] == {"a": "b"}


def test_what_is_applied_last_and_what_drivers_read_is_not_saved(
    tmp_path: Path, clock: ManualClock
) -> None:
    store, path = make_store(clock), tmp_path / "saved.json"
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"password": "hunter2"}'}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    opaque = {"driver": "d", "parameters": {"password": "hunter2"}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default", "annotations": {"a": "b", **applied}},
        "spec": {"devices": {"requests": [request], "config": [{"opaque": opaque}]}},
    }
    store.load([claim])
    save_cluster(store, path)
    assert "hunter2" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    (saved,) = (
        one for one in json.loads(path.read_text())["items"] if one["kind"] == "ResourceClaim"
    )
    assert saved["metadata"]["annotations"] == {"a": "b"}
    assert saved["spec"]["devices"]["config"] == [{"opaque": {"driver": "d", "parameters": {}}}]
