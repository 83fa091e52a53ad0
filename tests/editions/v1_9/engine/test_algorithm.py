"""From a Policy to rules (spec 05 §16.1, 09 §13.2)."""

from typing import Any

import pytest

from kubestow.editions.shared.policy import (
    WEIGHT_MAX,
    Policy,
    PriorityPolicy,
    convert_policy,
    provider_policy,
)
from kubestow.editions.v1_9.engine.algorithm import Algorithm, build_algorithm
from kubestow.errors import ConfigError

LABELS = {"labelsPresence": {"labels": ["zone"], "presence": True}}
SERVICE = {"serviceAffinity": {"labels": ["zone"]}}


def predicates(algorithm: Algorithm) -> list[str]:
    return [predicate.name for predicate in algorithm.predicates]


def test_2_an_empty_policy_checks_conditions() -> None:
    algorithm = build_algorithm(convert_policy({"predicates": [], "priorities": []}))
    assert predicates(algorithm) == ["CheckNodeCondition"]
    assert algorithm.priorities == ()


def test_rules_are_sorted_by_name_and_the_last_of_a_name_counts() -> None:
    entries = [{"name": "EqualPriority", "weight": weight} for weight in (1, 5)]
    least = {"name": "BalancedResourceAllocation", "weight": 1}
    algorithm = build_algorithm(convert_policy({"priorities": [*entries, least]}))
    assert [(entry.priority.name, entry.weight) for entry in algorithm.priorities] == [
        ("BalancedResourceAllocation", 1),
        ("EqualPriority", 5),
    ]


@pytest.mark.parametrize("name", ["DefaultProvider", "ClusterAutoscalerProvider"])
def test_providers_can_be_built(name: str) -> None:
    algorithm = build_algorithm(provider_policy(name))
    assert len(algorithm.predicates) == 12
    assert len(algorithm.priorities) == 7


@pytest.mark.parametrize(
    ("document", "text"),
    [
        pytest.param(
            {"predicates": [{"name": "Nowhere"}]},
            "Invalid configuration: Predicate type not found for Nowhere; known are "
            "CheckNodeCondition, CheckNodeDiskPressure, CheckNodeMemoryPressure, "
            "CheckVolumeBinding, GeneralPredicates, HostName, MatchInterPodAffinity, "
            "MatchNodeSelector, MaxAzureDiskVolumeCount, MaxEBSVolumeCount, MaxGCEPDVolumeCount, "
            "NoDiskConflict, NoVolumeZoneConflict, PodFitsHostPorts, PodFitsPorts, "
            "PodFitsResources, PodToleratesNodeTaints",
            id="unknown-predicate",
        ),
        pytest.param(
            {"priorities": [{"name": "Nowhere", "weight": 1}]},
            "Invalid configuration: Priority type not found for Nowhere; known are "
            "BalancedResourceAllocation, EqualPriority, ImageLocalityPriority, "
            "InterPodAffinityPriority, LeastRequestedPriority, MostRequestedPriority, "
            "NodeAffinityPriority, NodePreferAvoidPodsPriority, ResourceLimitsPriority, "
            "SelectorSpreadPriority, ServiceSpreadingPriority, TaintTolerationPriority",
            id="unknown-priority",
        ),
        pytest.param(
            {"predicates": [{"name": "X1", "argument": {**LABELS, **SERVICE}}]},
            "Exactly 1 predicate argument is required, numArgs: 2, Predicate: X1",
            id="two-arguments",
        ),
        pytest.param(
            {"priorities": [{"name": "X1", "weight": 1, "argument": {}}]},
            "Exactly 1 priority argument is required, numArgs: 0, Priority: X1",
            id="no-argument",
        ),
        pytest.param(
            {"predicates": [{"name": "a b", "argument": LABELS}]},
            "Algorithm name a b does not match the name validation regexp "
            '"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$".',
            id="illegal-name",
        ),
        pytest.param(
            {"hardPodAffinitySymmetricWeight": 101},
            "invalid hardPodAffinitySymmetricWeight: 101, must be in the range 1-100",
            id="hard-weight",
        ),
    ],
)
def test_invalid_policies(document: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as failure:
        build_algorithm(convert_policy(document))
    assert str(failure.value) == text


def test_weights_together_must_not_overflow() -> None:
    def weighted(second: int) -> Policy:
        weights = {"EqualPriority": WEIGHT_MAX - 1, "LeastRequestedPriority": second}
        return Policy(
            priorities=tuple(
                PriorityPolicy(name=name, weight=weight) for name, weight in weights.items()
            )
        )

    assert len(build_algorithm(weighted(1)).priorities) == 2
    policy = weighted(2)
    with pytest.raises(ConfigError, match="Total priority of priority functions has overflown"):
        build_algorithm(policy)


def test_custom_rules_may_have_any_name() -> None:
    document = {
        "predicates": [
            {"name": "Zoned", "argument": LABELS},
            {"name": "HostName", "argument": SERVICE},
        ]
    }
    algorithm = build_algorithm(convert_policy(document))
    assert predicates(algorithm) == ["CheckNodeCondition", "HostName", "Zoned"]
