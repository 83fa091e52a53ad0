"""Evicted pods are kept with where they were, why, and where their replacement went."""

import msgspec
import pytest

from kubestow.api.meta import Condition, OwnerReference
from kubestow.api.pod import Pod
from kubestow.testing import make_pod
from kubestow.web import evictions
from kubestow.web.evictions import EvictionLog


def owned(name: str, node: str = "", *, is_target: bool = False) -> Pod:
    pod = make_pod(name, node=node)
    owner = OwnerReference(kind="ReplicaSet", name="web", uid="owner", controller=True)
    metadata = msgspec.structs.replace(pod.metadata, owner_references=(owner,), uid=name)
    condition = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    status = msgspec.structs.replace(pod.status, conditions=(condition,) if is_target else ())
    return msgspec.structs.replace(pod, metadata=metadata, status=status)


def test_an_evicted_pod_and_its_replacement_are_a_move() -> None:
    log = EvictionLog()
    log.pod_changed(owned("a", "n1", is_target=True), None, 5)
    log.pod_changed(None, owned("b"), 6)
    (found,) = log.newest_first()
    assert (found.pod, found.node, found.time, found.to_node) == ("default/a", "n1", 5, "")
    log.pod_changed(owned("b"), owned("b", "n2"), 7)
    (found,) = log.newest_first()
    assert (found.replacement, found.to_node) == ("default/b", "n2")
    # The next one of the same controller is no replacement.
    log.pod_changed(owned("c"), owned("c", "n3"), 8)
    assert log.newest_first() == (found,)


def test_pods_that_end_otherwise_are_no_evictions() -> None:
    log = EvictionLog()
    log.pod_changed(owned("a", "n1"), None, 5)
    log.pod_changed(owned("b", is_target=True), None, 5)
    assert log.newest_first() == ()


def test_the_oldest_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evictions, "EVICTIONS_MAX", 2)
    log = EvictionLog()
    for number in range(4):
        log.pod_changed(owned(f"p{number}", "n", is_target=True), None, number)
    assert [each.pod for each in log.newest_first()] == ["default/p3", "default/p2"]
    log.pod_changed(owned("new"), owned("new", "m"), 9)
    assert [each.to_node for each in log.newest_first()] == ["", "m"]
