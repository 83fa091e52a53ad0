"""Loaded pods with the current template of their owner are not replaced."""

from typing import Any

import pytest

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.resources import default_resources
from kubestow.simulator.controllers import daemon_set, stateful_set
from kubestow.simulator.loaded_revisions import with_own_revisions

TEMPLATE: JsonObject = {"spec": {"containers": [{"name": "main", "image": "nginx"}]}}
REVISION = "controller-revision-hash"


def pod(kind: str, **labels: str) -> Document:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "controller": True}
    metadata = {"name": "p", "labels": labels, "ownerReferences": [owner]}
    return Document({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}, "")


def owner(kind: str, **fields: Any) -> Document:
    metadata = {"name": "o", "uid": "u", **fields.pop("metadata", {})}
    raw = {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, **fields}
    return Document({**raw, "spec": {"template": TEMPLATE}}, "")


def label_after(*documents: Document) -> str:
    (loaded,) = [one.raw for one in with_own_revisions(documents) if one.raw["kind"] == "Pod"]
    return loaded["metadata"]["labels"][REVISION]


GENERATION = {"annotations": {"deprecated.daemonset.template.generation": "4"}}


@pytest.mark.parametrize(("generation", "is_current"), [("4", True), ("3", False)])
def test_daemons_by_the_generation_of_the_template(generation: str, is_current: bool):
    daemons = owner("DaemonSet", metadata=GENERATION)
    daemon = pod("DaemonSet", **{REVISION: "theirs", "pod-template-generation": generation})
    resource = default_resources().named("daemonsets.apps")
    ours = daemon_set._revision_of(StoredObject(resource, daemons.raw, 1))
    assert label_after(daemon, daemons) == (ours if is_current else "theirs")


@pytest.mark.parametrize(("revision", "is_current"), [("o-new", True), ("o-old", False)])
def test_pods_of_stateful_sets_by_the_revision_in_the_status(revision: str, is_current: bool):
    stateful = owner("StatefulSet", status={"updateRevision": "o-new"})
    resource = default_resources().named("statefulsets.apps")
    ours = stateful_set._revision_of(StoredObject(resource, stateful.raw, 1))
    expected = ours if is_current else revision
    assert label_after(pod("StatefulSet", **{REVISION: revision}), stateful) == expected


def test_owners_that_say_nothing_about_it_change_nothing():
    daemon = pod("DaemonSet", **{REVISION: "theirs"})
    assert label_after(daemon, owner("DaemonSet")) == "theirs"
    assert label_after(daemon) == "theirs"
