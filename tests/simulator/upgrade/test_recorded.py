"""Decisions of a recording under both editions."""

import json
from collections.abc import Iterator
from typing import Any

from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.upgrading import changes_between
from kubestow.plugins.loading import LoadedPlugins
from kubestow.recording.format import Put, Record, RecordedAttempt, Removed
from kubestow.simulator.upgrade.pair import EditionPair, EditionSide, pair_of
from kubestow.simulator.upgrade.recorded import compare_recording
from kubestow.testing import ManualClock

NOTICED = changes_between(edition_named("v1.36"), edition_named("v1.37"))


CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}


def side(version: str) -> EditionSide:
    gates = FeatureGates({}, edition_named(version))
    registry = dict(rules_of(gates.edition).registry)
    return EditionSide(gates, LoadedPlugins(SchedulerConfig(), registry))


def empty_pair() -> EditionPair:
    return pair_of((), side("v1.36"), side("v1.37"), ManualClock(), is_back=False)


def put(kind: str, raw: dict[str, Any]) -> Put:
    return Put(0, kind, json.dumps(raw).encode())


def node(name: str) -> Put:
    status = {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "20"}}
    return put("Node", {"metadata": {"name": name}, "status": status})


def pod(name: str, cpu: str, *, where: str = "", message: str = "") -> Put:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default", "uid": name}
    spec = {"containers": [container], "schedulerName": "default-scheduler", "nodeName": where}
    condition = {"type": "PodScheduled", "reason": "Unschedulable", "message": message}
    status = {"conditions": [{**condition, "status": "False"}]} if message else {}
    return put("Pod", {"metadata": metadata, "spec": spec, "status": status})


def attempt(name: str, where: str) -> RecordedAttempt:
    return RecordedAttempt(0, f"default/{name}", name, where, "", None, (), 1, 1, 0)


def test_the_recorded_decision_is_carried_out() -> None:
    """Before it is bound, q has no room beside p; when p is gone, it has."""

    def records() -> Iterator[Record]:
        yield from (node("n1"), pod("p", "2"), pod("q", "2"))
        yield attempt("p", "n1")
        yield attempt("q", "")
        yield pod("p", "2", where="n1")
        yield Removed(0, "Pod", "default", "p", b"")
        yield attempt("q", "n1")

    found = compare_recording(empty_pair(), records(), NOTICED, is_foreign=False).pods
    assert (found.compared, found.differing) == (3, 1)
    assert [(cause.change, cause.pods) for cause in found.causes] == [(1, 1), (5, 1)]


def test_decisions_of_another_scheduler_are_seen_in_its_writes() -> None:
    def records() -> Iterator[Record]:
        yield from (node("n1"), pod("p", "1"), pod("q", "9"), pod("r", "1"))
        yield pod("p", "1", where="n1")
        yield pod("q", "9", message="0/1 nodes are available: 1 Insufficient cpu.")

    found = compare_recording(empty_pair(), records(), NOTICED, is_foreign=True).pods
    assert (found.compared, found.differing) == (2, 1)
    assert {cause.change for cause in found.causes} == {1, 5}


def test_pods_that_come_later_are_a_cause_as_well() -> None:
    """Two gated pods hold the room one after the other."""

    def gated(name: str) -> Put:
        spec = {"schedulingGates": [{"name": "hold"}], "priority": 9, "containers": [CONTAINER]}
        metadata = {"name": name, "namespace": "default", "uid": name}
        status = {"nominatedNodeName": "n1"}
        spec["schedulerName"] = "default-scheduler"
        return put("Pod", {"metadata": metadata, "spec": spec, "status": status})

    def records() -> Iterator[Record]:
        yield from (node("n1"), pod("q", "1"), gated("g"))
        yield attempt("q", "")
        yield Removed(0, "Pod", "default", "g", b"")
        yield gated("h")
        yield attempt("q", "")
        yield Removed(0, "Pod", "default", "h", b"")
        yield attempt("q", "n1")

    found = compare_recording(empty_pair(), records(), NOTICED, is_foreign=False).pods
    assert found.compared == 3
    assert [(cause.change, cause.pods) for cause in found.causes] == [(11, 2)]
