"""The binding subresource: what it writes, and what it refuses."""

from collections.abc import Callable

import pytest

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import PODS
from kubestow.errors import ConflictError, InvalidError, NotFoundError

Build = Callable[..., JsonObject]


def test_binding_places_the_pod_and_sets_the_condition(cluster: MemoryCluster, pod_document: Build):
    waiting = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    ready = {"type": "Ready", "status": "False"}
    status = {"conditions": [waiting, ready], "nominatedNodeName": "n1", "phase": "Pending"}
    old = cluster.create(PODS, pod_document(status=status))
    new = cluster.bind("default", "web-1", "n1", uid=old.uid)
    assert new.document["spec"] == {**old.document["spec"], "nodeName": "n1"}
    assert new.document["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": "2023-11-14T22:13:20Z",
            "observedGeneration": 1,
        },
        ready,
    ]
    assert "nominatedNodeName" not in new.document["status"]
    # Binding is not a change of the spec by the user.
    assert new.metadata["generation"] == 1
    assert new.metadata["resourceVersion"] == "2"
    assert new.typed == convert(Pod, new.document)
    assert old.document["spec"].get("nodeName") is None


def test_binding_appends_a_condition_that_was_not_there(
    cluster: MemoryCluster, pod_document: Build
):
    cluster.create(PODS, pod_document(status={"conditions": [{"type": "Ready"}]}))
    new = cluster.bind("default", "web-1", "n1")
    types = [condition["type"] for condition in new.document["status"]["conditions"]]
    assert types == ["Ready", "PodScheduled"]
    assert new.typed == convert(Pod, new.document)


def test_binding_twice_is_a_conflict(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document())
    cluster.bind("default", "web-1", "n1")
    expected = (
        r'^Operation cannot be fulfilled on pods/binding "web-1": '
        r'pod web-1 is already assigned to node "n1"$'
    )
    with pytest.raises(ConflictError, match=expected):
        cluster.bind("default", "web-1", "n2")


def test_binding_a_recreated_pod_is_a_conflict(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document())
    expected = (
        r'^Operation cannot be fulfilled on pods/binding "web-1": '
        r"Precondition failed: UID in precondition: old, UID in object meta: "
    )
    with pytest.raises(ConflictError, match=expected):
        cluster.bind("default", "web-1", "n1", uid="old")


def test_binding_needs_a_pod_that_is_there_and_free(cluster: MemoryCluster, pod_document: Build):
    with pytest.raises(NotFoundError, match='pods "web-1" not found'):
        cluster.bind("default", "web-1", "n1")
    cluster.create(PODS, pod_document(schedulingGates=[{"name": "x"}]))
    with pytest.raises(ConflictError, match="schedulingGates"):
        cluster.bind("default", "web-1", "n1")
    cluster.create(PODS, pod_document("web-2", metadata={"finalizers": ["x/y"]}))
    cluster.delete(PODS, "default", "web-2")
    with pytest.raises(ConflictError, match="pod web-2 is being deleted"):
        cluster.bind("default", "web-2", "n1")
    with pytest.raises(InvalidError, match=r"target\.name: Required value"):
        cluster.bind("default", "web-1", "")
