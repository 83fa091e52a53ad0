"""Who may preempt (spec 08 A4)."""

from datetime import UTC, datetime

import pytest

from kubestow.api.meta import Condition
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.status import Status
from kubestow.plugins.default_preemption.eligibility import (
    DEFAULT_RULES,
    NEVER,
    TERMINATING_VICTIM,
    VictimRules,
    why_ineligible,
)
from kubestow.testing import make_node, make_pod, make_snapshot

DELETED = datetime(2024, 1, 1, tzinfo=UTC)


def condition(
    status: str = "True", reason: str = "PreemptionByScheduler", kind: str = "DisruptionTarget"
) -> Condition:
    return Condition(type=kind, status=status, reason=reason)


def leaving(priority: int = 1, *conditions: Condition) -> Pod:
    return make_pod("v", node="n1", priority=priority, deleted=DELETED, conditions=conditions)


def why(
    pod: Pod, victim: Pod, status: Status, *, absent: Status | None = None, rules: VictimRules
) -> str:
    snapshot = make_snapshot([make_node("n1"), make_node("n2")], [victim])
    diagnosis = Diagnosis(snapshot.names)
    if absent is None:
        diagnosis.set_explicit(0, status)
    else:
        diagnosis.absent = absent
    return why_ineligible(PodInfo(pod), diagnosis, snapshot, rules)


def test_a_victim_whose_deletion_was_requested_is_leaving() -> None:
    """Also if no watch shows it: another victim elsewhere would be evicted in vain."""
    running = make_pod("v", node="n1", priority=1)
    snapshot = make_snapshot([make_node("n1"), make_node("n2")], [running])
    diagnosis = Diagnosis(snapshot.names)
    diagnosis.set_explicit(0, FITS_NOT)
    for requested, nominated, expected in [
        ({running.metadata.uid}, "n1", TERMINATING_VICTIM),
        ({running.metadata.uid}, "n2", ""),
        ({"another"}, "n1", ""),
    ]:
        pod = PodInfo(make_pod(priority=10, nominated_node=nominated))
        found = why_ineligible(pod, diagnosis, snapshot, DEFAULT_RULES, requested.__contains__)
        assert found == expected


FITS_NOT = Status.unschedulable("Insufficient cpu")
CANNOT = Status.unresolvable("node(s) had untolerated taint(s)")


@pytest.mark.parametrize(
    ("pod", "victim", "status", "expected"),
    [
        pytest.param(
            make_pod(priority=10, preemption_policy="Never"), leaving(), FITS_NOT, NEVER, id="never"
        ),
        pytest.param(
            make_pod(priority=10, preemption_policy="PreemptLowerPriority"),
            leaving(1, condition()),
            FITS_NOT,
            "",
            id="not-nominated",
        ),
        pytest.param(
            make_pod(priority=10, nominated_node="n1"),
            leaving(1, condition()),
            FITS_NOT,
            TERMINATING_VICTIM,
            id="A11.8-victim-still-leaving",
        ),
        pytest.param(
            make_pod(priority=10, nominated_node="n1"),
            leaving(1, condition()),
            CANNOT,
            "",
            id="nominated-node-unresolvable",
        ),
        pytest.param(
            make_pod(priority=10, nominated_node="n1"), leaving(1), FITS_NOT, "", id="user-delete"
        ),
        pytest.param(
            make_pod(priority=10, nominated_node="n1"),
            leaving(10, condition()),
            FITS_NOT,
            "",
            id="equal-priority-does-not-block",
        ),
        pytest.param(
            make_pod(priority=10, nominated_node="n1"),
            leaving(1, condition("False"), condition()),
            FITS_NOT,
            "",
            id="first-condition-of-the-type-counts",
        ),
        pytest.param(
            make_pod(priority=10, nominated_node="n1"),
            leaving(1, condition(kind="Ready"), condition()),
            FITS_NOT,
            TERMINATING_VICTIM,
            id="other-types-are-passed-over",
        ),
        pytest.param(
            make_pod(priority=10, nominated_node="n1"),
            leaving(1, condition(reason="EvictionByEvictionAPI")),
            FITS_NOT,
            "",
            id="other-reason",
        ),
        pytest.param(
            make_pod(priority=10, nominated_node="n1"),
            make_pod("v", node="n1", priority=1, conditions=[condition()]),
            FITS_NOT,
            "",
            id="not-leaving",
        ),
        pytest.param(
            make_pod(priority=10, nominated_node="gone"),
            leaving(1, condition()),
            FITS_NOT,
            "",
            id="nominated-node-gone",
        ),
    ],
)
def test_pod_may_preempt_unless(pod: Pod, victim: Pod, status: Status, expected: str) -> None:
    assert why(pod, victim, status, rules=DEFAULT_RULES) == expected


def test_nominated_node_without_verdict_takes_the_absent_status() -> None:
    pod = make_pod(priority=10, nominated_node="n1")
    victim = leaving(1, condition())
    assert why(pod, victim, FITS_NOT, absent=CANNOT, rules=DEFAULT_RULES) == ""
    assert why(pod, victim, FITS_NOT, absent=FITS_NOT, rules=DEFAULT_RULES) == TERMINATING_VICTIM


def test_pods_that_may_not_be_evicted_do_not_block() -> None:
    rules = DEFAULT_RULES._replace(may_evict=lambda node, victim, preemptor: False)
    pod = make_pod(priority=10, nominated_node="n1")
    assert why(pod, leaving(1, condition()), FITS_NOT, rules=rules) == ""
