"""Decisions of another scheduler, found in the changes of its pods."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from tests.simulator.replay.other_scheduler import Delays, a_busy_time

from kubestow.api.decode import encode_json
from kubestow.api.meta import ApiObject, Condition
from kubestow.api.pod import Pod, assign
from kubestow.clock import NANOSECONDS
from kubestow.config.decoding import decode_config
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.config.scheduler import SchedulerConfig
from kubestow.plugins.registry import REGISTRY
from kubestow.recording.format import Put, Record
from kubestow.simulator.replay import agreement_report
from kubestow.simulator.replay.agreement import AgreementReplay
from kubestow.simulator.replay.agreement_report import AgreementReport, RulesVerdict
from kubestow.testing import ManualClock, make_node, make_pod

ALL_NODES = msgspec.structs.replace(SchedulerConfig(), percentage_of_nodes_to_score=100)


def replayed(records: Iterable[Record], config: SchedulerConfig = ALL_NODES) -> AgreementReport:
    return AgreementReplay(config, DEFAULT_GATES, REGISTRY, ManualClock(), explained=3).run(records)


def compared(*objects: ApiObject) -> AgreementReport:
    """Nodes are there for long when pods come."""
    return replayed(
        Put(
            number * 1000 + isinstance(each, Pod) * 20 * NANOSECONDS,
            type(each).__name__,
            encode_json(versioned(each, number)),
        )
        for number, each in enumerate(objects, start=1)
    )


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
    assert report.verdicts == {"agrees": 2, "other rules": 3}
    assert report.decisions == 5
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
    monkeypatch.setattr(agreement_report, "CASES_MAX", 1)
    report = compared(SMALL, LARGE, A, B, rejected(A, "no"), rejected(B, "no"))
    assert report.counts == {"placed here": 2}
    assert len(report.cases) == 1


# --- another scheduler, whose bindings are written later than they are decided ---


def with_plugins(text: str) -> SchedulerConfig:
    document = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"percentageOfNodesToScore: 100\nprofiles:\n- {text}\n"
    )
    return decode_config(document.encode(), DEFAULT_GATES)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rate", [15, 60, 400])
def test_timing_explains_a_scheduler_with_the_same_rules(seed: int, rate: int) -> None:
    other = a_busy_time(ALL_NODES, seed=seed, rate=rate, pods=50, nodes=20)
    report = replayed(other.records)
    assert report.decisions >= 50
    assert set(report.verdicts) <= {RulesVerdict.AGREES, RulesVerdict.TIMING}, report.cases[:3]
    assert all(case.because for case in report.cases)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("delays", [Delays(), Delays(binding=0.5, seeing=0.5, recording=0.5)])
def test_timing_explains_it_when_all_is_late(seed: int, delays: Delays) -> None:
    other = a_busy_time(ALL_NODES, seed=seed, pods=200, nodes=40, delays=delays)
    report = replayed(other.records)
    assert RulesVerdict.OTHER not in report.verdicts, report.cases[:3]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_sampling_explains_a_scheduler_that_scores_a_part_of_the_nodes(seed: int) -> None:
    other = a_busy_time(SchedulerConfig(), seed=seed, pods=80, nodes=220)
    report = replayed(other.records, SchedulerConfig())
    assert report.verdicts[RulesVerdict.SAMPLING] > 0
    assert RulesVerdict.OTHER not in report.verdicts, report.cases[:3]
    # Told that all nodes are scored, it is another rule.
    assert replayed(other.records).verdicts[RulesVerdict.OTHER] > 0


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        # The one that counts less than the other scheduler has it, or is not there at all.
        (
            "NodeResourcesFit",
            "plugins: {multiPoint: {enabled: [{name: NodeResourcesBalancedAllocation, "
            "weight: 3}]}}",
        ),
        ("PodTopologySpread", "plugins: {multiPoint: {disabled: [{name: PodTopologySpread}]}}"),
        ("NodeAffinity", "plugins: {multiPoint: {disabled: [{name: NodeAffinity}]}}"),
        (
            "NodeResourcesFit",
            "pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, "
            "resources: [{name: cpu, weight: 1}]}}}]",
        ),
    ],
    ids=["weight", "filter-off", "score-off", "packing"],
)
@pytest.mark.slow
@pytest.mark.parametrize("rate", [15, 60])
def test_other_rules_are_found_and_named(plugin: str, text: str, rate: int) -> None:
    other = a_busy_time(with_plugins(text), seed=1, rate=rate, pods=100, nodes=25)
    report = replayed(other.records)
    assert report.verdicts[RulesVerdict.OTHER] >= 5
    assert report.plugins[0].plugin == plugin
    assert report.plugins[0].points > 0 or report.plugins[0].rejected > 0
    assert report.cases[0].verdict is RulesVerdict.OTHER
    assert report.cases[0].why is not None


@pytest.mark.slow
@pytest.mark.parametrize("rate", [15, 60])
def test_one_wrong_decision_in_fifty_is_found_and_no_other(rate: int) -> None:
    wrong: set[str] = set()
    found: set[str] = set()
    for seed in range(3):
        other = a_busy_time(ALL_NODES, seed=seed, rate=rate, pods=150, nodes=30, wrong_every=50)
        report = replayed(other.records)
        cases = (case for case in report.cases if case.verdict is RulesVerdict.OTHER)
        wrong |= {f"{seed}/{pod}" for pod in other.wrong}
        found |= {f"{seed}/{case.pod}" for case in cases}
    assert len(wrong) >= 6
    assert found <= wrong
    # One that is followed at once by a better pod on the better node is not told apart.
    assert len(found) >= len(wrong) * 2 / 3


@pytest.mark.slow
def test_more_than_samples_leave_out_is_other_rules() -> None:
    """Each node is the best of some sample, but the best of all would be in half of them."""
    packing = "{type: MostAllocated, resources: [{name: cpu, weight: 1}]}"
    config = with_plugins(
        f"pluginConfig: [{{name: NodeResourcesFit, args: {{scoringStrategy: {packing}}}}}]"
    )
    other = a_busy_time(config, seed=1, pods=60, nodes=220)
    report = replayed(other.records, SchedulerConfig())
    assert RulesVerdict.SAMPLING not in report.verdicts
    assert report.verdicts[RulesVerdict.OTHER] > 40
    assert report.plugins[0].plugin == "NodeResourcesFit"


def test_a_pod_that_is_bound_later_was_known() -> None:
    """B came after A and is bound first: it avoids the node that A takes."""
    report = compared(SMALL, LARGE, D, A, assign(A, "large"), assign(D, "large"))
    assert report.verdicts == {"agrees": 2}
    big = make_pod("big", uid="big", cpu="7")
    assert compared(SMALL, LARGE, big, A, assign(A, "small"), assign(big, "large")).verdicts == {
        "agrees": 2
    }
    # In the other order nothing explains it.
    assert compared(SMALL, LARGE, A, big, assign(A, "small"), assign(big, "large")).verdicts == {
        "agrees": 1,
        "other rules": 1,
    }


def test_a_node_that_is_announced_was_decided() -> None:
    """Volumes are bound between the decision and the binding."""
    status = msgspec.structs.replace(A.status, nominated_node_name="large")
    announced = msgspec.structs.replace(A, status=status)
    report = compared(SMALL, LARGE, A, announced, B, assign(B, "large"), assign(A, "large"))
    assert report.verdicts == {"agrees": 2}
    assert compared(SMALL, LARGE, A, announced, assign(A, "small")).decisions == 2
