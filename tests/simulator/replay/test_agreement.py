"""Decisions of another scheduler, found in the changes of its pods."""

from typing import Any

import msgspec

from kubestow.api.decode import encode_json
from kubestow.api.meta import ApiObject, Condition
from kubestow.api.pod import Pod, assign
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.config.scheduler import SchedulerConfig
from kubestow.plugins.registry import REGISTRY
from kubestow.recording.format import Put
from kubestow.simulator.replay import agreement
from kubestow.simulator.replay.agreement import AgreementReplay, AgreementReport
from kubestow.testing import ManualClock, make_node, make_pod


def compared(*objects: ApiObject) -> AgreementReport:
    records = [
        Put(number * 1000, type(each).__name__, encode_json(versioned(each, number)))
        for number, each in enumerate(objects, start=1)
    ]

    replay = AgreementReplay(SchedulerConfig(), DEFAULT_GATES, REGISTRY, ManualClock())
    return replay.run(records)


def versioned(each: Any, number: int) -> Any:
    metadata = msgspec.structs.replace(each.metadata, resource_version=str(number))
    return msgspec.structs.replace(each, metadata=metadata)


def rejected(pod: Pod, message: str) -> Pod:
    condition = Condition(
        type="PodScheduled", status="False", reason="Unschedulable", message=message
    )
    status = msgspec.structs.replace(pod.status, conditions=(condition,))
    return msgspec.structs.replace(pod, status=status)


SMALL, LARGE = make_node("small", cpu="2"), make_node("large", cpu="8")
A, B, C, D = (make_pod(name, uid=name, cpu="1") for name in "abcd")
HUGE = make_pod("huge", uid="huge", cpu="50")
NO_ROOM = (
    "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: "
    "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)


def test_decisions_of_another_scheduler_are_compared() -> None:
    report = compared(
        *(SMALL, LARGE, A, B, HUGE),
        assign(A, "large"),
        assign(B, "small"),
        rejected(HUGE, NO_ROOM),
        rejected(HUGE, "0/2 nodes are available: it is too late."),
        assign(HUGE, "large"),
    )
    assert report.counts == {"same": 2, "lower score": 1, "other reason": 1, "pending here": 1}
    assert (report.decisions, report.agreeing) == (5, 2)
    assert [(case.pod, case.recorded) for case in report.cases] == [
        ("default/b", "small"),
        ("default/huge", "0/2 nodes are available: it is too late."),
        ("default/huge", "large"),
    ]
    assert report.cases[0].here == "large"
    assert report.cases[0].behind > 0


def test_equal_scores_agree_and_nodes_that_do_not_fit_do_not() -> None:
    twins = make_node("one", cpu="2"), make_node("two", cpu="2")
    full = make_node("full", cpu="500m")
    report = compared(
        *(*twins, full, A, B, C), assign(A, "two"), assign(B, "full"), rejected(C, "no")
    )
    assert report.counts == {"tie": 1, "does not fit": 1, "placed here": 1}


def test_pods_that_have_a_node_when_they_are_first_seen_are_counted() -> None:
    foreign = make_pod("f", uid="f", scheduler_name="another")
    report = compared(SMALL, assign(A, "small"), foreign, assign(foreign, "small"))
    assert report.decisions == 0
    assert report.unseen == 1
    assert report.changes == 4


def test_only_the_first_cases_are_kept(monkeypatch: Any) -> None:
    monkeypatch.setattr(agreement, "CASES_MAX", 1)
    report = compared(SMALL, LARGE, A, B, rejected(A, "no"), rejected(B, "no"))
    assert report.counts == {"placed here": 2}
    assert len(report.cases) == 1
