"""Feature gates: defaults, overrides, and what is refused."""

import pytest

from kubestow.config.feature_gates import DEFAULT_GATES, GATES, FeatureGates
from kubestow.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "is_on"),
    [
        ("OpportunisticBatching", True),
        ("NominatedNodeNameForExpectation", True),
        ("ClearingNominatedNodeNameAfterBinding", True),
        ("SchedulerAsyncPreemption", True),
        ("SchedulerAsyncAPICalls", False),
        ("SchedulerQueueingHints", True),
        ("SchedulerPopFromBackoffQ", True),
        ("DynamicResourceAllocation", True),
        ("NodeDeclaredFeatures", True),
        ("DRANodeAllocatableResources", False),
        ("GenericWorkload", False),
        ("GangScheduling", False),
        ("TopologyAwareWorkloadScheduling", False),
        ("WorkloadAwarePreemption", False),
    ],
)
def test_defaults_of_the_specification(name: str, is_on: bool) -> None:  # 04 §1
    assert DEFAULT_GATES.enabled(name) is is_on


def test_a_gate_can_be_flipped_without_touching_others() -> None:
    gates = FeatureGates({"GenericWorkload": True})
    assert gates.enabled("GenericWorkload")
    flipped = {name for name in GATES if gates.enabled(name) != DEFAULT_GATES.enabled(name)}
    assert flipped == {"GenericWorkload"}


def test_a_locked_gate_stays_as_it_is() -> None:
    assert FeatureGates({"SchedulerQueueingHints": True}).enabled("SchedulerQueueingHints")
    with pytest.raises(
        ConfigError, match="cannot set feature gate SchedulerQueueingHints to false"
    ):
        FeatureGates({"SchedulerQueueingHints": False})


def test_an_unknown_gate_is_refused() -> None:
    with pytest.raises(ConfigError, match="unrecognized feature gate: Nonsense"):
        FeatureGates({"Nonsense": True})
