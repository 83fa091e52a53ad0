"""How objects are deleted: at once, after their grace period, or after their finalizers."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.writes.deletion import after_delete, is_removed_at_once
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import ConflictError
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]


def names(cluster: MemoryCluster) -> list[str]:
    return [stored.name for stored in cluster.list(PODS).items]


def test_an_unassigned_pod_is_deleted_at_once(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document())
    last = cluster.delete(PODS, "default", "web-1")
    assert last.metadata["resourceVersion"] == "2"
    assert cluster.find(PODS, "default", "web-1") is None


@pytest.mark.parametrize(
    ("spec", "status", "grace_period_s"),
    [
        pytest.param({"nodeName": "n1"}, {"phase": "Succeeded"}, None, id="succeeded"),
        pytest.param({"nodeName": "n1"}, {"phase": "Failed"}, 60, id="failed"),
        pytest.param({"nodeName": "n1"}, {"phase": "Running"}, 0, id="no-grace"),
        pytest.param(
            {"nodeName": "n1", "terminationGracePeriodSeconds": 0},
            {"phase": "Running"},
            None,
            id="grace-period-of-zero",
        ),
    ],
)
def test_a_pod_without_a_grace_period_is_deleted_at_once(
    cluster: MemoryCluster, pod_document: Build, spec: Any, status: Any, grace_period_s: int | None
):
    cluster.create(PODS, pod_document(status=status, **spec))
    cluster.delete(PODS, "default", "web-1", grace_period_s=grace_period_s)
    assert names(cluster) == []


@pytest.mark.parametrize(
    ("grace_period_s", "spec", "expected_s", "expected_time"),
    [
        pytest.param(None, {}, 30, "2023-11-14T22:13:50Z", id="the-default"),
        pytest.param(
            None, {"terminationGracePeriodSeconds": 5}, 5, "2023-11-14T22:13:25Z", id="its-own"
        ),
        pytest.param(10, {}, 10, "2023-11-14T22:13:30Z", id="the-request's"),
        pytest.param(-7, {}, 1, "2023-11-14T22:13:21Z", id="negative-is-one"),
    ],
)
def test_a_bound_pod_terminates_before_it_is_removed(
    cluster: MemoryCluster,
    pod_document: Build,
    grace_period_s: int | None,
    spec: Any,
    expected_s: int,
    expected_time: str,
):
    cluster.create(PODS, pod_document(nodeName="n1", **spec))
    marked = cluster.delete(PODS, "default", "web-1", grace_period_s=grace_period_s)
    assert marked.metadata["deletionTimestamp"] == expected_time
    assert marked.metadata["deletionGracePeriodSeconds"] == expected_s
    assert marked.metadata["generation"] == 2
    assert marked.typed == convert(Pod, marked.document)
    cluster.finish_termination("default", "web-1")
    assert names(cluster) == []


def test_deleting_twice_changes_nothing_unless_the_grace_period_is_shorter(
    cluster: MemoryCluster, clock: ManualClock, pod_document: Build
):
    cluster.create(PODS, pod_document(nodeName="n1"))
    marked = cluster.delete(PODS, "default", "web-1")
    clock.advance_s(3)
    assert cluster.delete(PODS, "default", "web-1") is marked
    assert cluster.delete(PODS, "default", "web-1", grace_period_s=40) is marked
    hurried = cluster.delete(PODS, "default", "web-1", grace_period_s=10)
    assert hurried.metadata["deletionTimestamp"] == "2023-11-14T22:13:30Z"
    assert hurried.metadata["deletionGracePeriodSeconds"] == 10


def test_finalizers_keep_an_object_until_the_last_one_is_removed(
    cluster: MemoryCluster, node_document: Build
):
    node = node_document()
    node["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    cluster.create(NODES, node)
    marked = cluster.delete(NODES, "", "n1")
    assert marked.metadata["deletionTimestamp"] == "2023-11-14T22:13:20Z"
    assert cluster.delete(NODES, "", "n1") is marked
    cluster.patch(NODES, "", "n1", {"metadata": {"finalizers": ["example.com/a"]}}, "merge")
    assert cluster.find(NODES, "", "n1") is not None
    watch = cluster.watch(NODES, from_version=cluster.version)
    cluster.patch(NODES, "", "n1", {"metadata": {"finalizers": None}}, "merge")
    assert cluster.find(NODES, "", "n1") is None
    assert [event.type for event in watch.events_nowait()] == ["DELETED"]


def test_a_terminating_pod_with_finalizers_outlives_its_containers(
    cluster: MemoryCluster, pod_document: Build
):
    cluster.create(PODS, pod_document(metadata={"finalizers": ["x/y"]}, nodeName="n1"))
    cluster.delete(PODS, "default", "web-1")
    ended = cluster.finish_termination("default", "web-1")
    assert ended.metadata["deletionGracePeriodSeconds"] == 0
    cluster.patch(PODS, "default", "web-1", {"metadata": {"finalizers": []}}, "merge")
    assert names(cluster) == []


def test_removing_finalizers_does_not_end_a_pod_that_still_has_time(
    cluster: MemoryCluster, pod_document: Build
):
    cluster.create(PODS, pod_document(metadata={"finalizers": ["x/y"]}, nodeName="n1"))
    cluster.delete(PODS, "default", "web-1")
    cluster.patch(PODS, "default", "web-1", {"metadata": {"finalizers": None}}, "merge")
    assert names(cluster) == ["web-1"]


@pytest.mark.parametrize(
    "precondition",
    [pytest.param({"uid": "other"}, id="uid"), pytest.param({"resource_version": "9"}, id="rv")],
)
def test_delete_checks_its_preconditions(
    cluster: MemoryCluster, pod_document: Build, precondition: Any
):
    cluster.create(PODS, pod_document())
    with pytest.raises(ConflictError):
        cluster.delete(PODS, "default", "web-1", **precondition)
    assert names(cluster) == ["web-1"]


@pytest.mark.parametrize(
    ("finalizers", "node", "phase", "grace_s", "own_s"),
    list(product(([], ["x/y"]), ("", "n1"), ("Running", "Failed"), (None, 0, 5, -1), (0, 30))),
)
def test_what_the_typed_pod_says_is_removed_at_once_is(
    finalizers: list[str], node: str, phase: str, grace_s: int | None, own_s: int
):
    document = {
        "metadata": {"name": "a", "finalizers": finalizers},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": own_s},
        "status": {"phase": phase},
    }
    if is_removed_at_once(convert(Pod, document), grace_s):
        assert after_delete(PODS, document, grace_period_s=grace_s, now_ns=0) is None
