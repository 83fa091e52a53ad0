"""Feature gates: defaults, overrides, and what is refused."""

import pytest

from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates, parse_gates
from kubestow.editions import CORE
from kubestow.editions.edition import Stage
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


def test_a_gate_can_be_set_without_changing_others() -> None:
    gates = FeatureGates({"GenericWorkload": True})
    assert gates.enabled("GenericWorkload")
    flipped = {name for name in CORE.gates if gates.enabled(name) != DEFAULT_GATES.enabled(name)}
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


def names_of(stage: Stage) -> set[str]:
    return {name for name, gate in CORE.gates.items() if gate.stage is stage} - {
        "AllAlpha",
        "AllBeta",
    }


def test_all_alpha_turns_on_what_is_not_set_by_name() -> None:
    gates = FeatureGates({"AllAlpha": True, "GangScheduling": False})
    on = {name for name in names_of(Stage.ALPHA) if gates.enabled(name)}
    assert on == names_of(Stage.ALPHA) - {"GangScheduling"}
    assert all(gates.enabled(n) == DEFAULT_GATES.enabled(n) for n in names_of(Stage.BETA))


def test_all_beta_turns_off_what_is_not_set_by_name() -> None:
    gates = FeatureGates({"AllBeta": False, "OpportunisticBatching": True})
    on = {name for name in names_of(Stage.BETA) if gates.enabled(name)}
    assert on == {"OpportunisticBatching"}
    assert gates.enabled("SchedulerQueueingHints")


def test_the_defaults_need_no_gate_that_is_off() -> None:
    assert DEFAULT_GATES.dependency_errors() == []


@pytest.mark.parametrize(
    ("overrides", "errors"),
    [
        (
            {"GangScheduling": True},
            [
                "GangScheduling is enabled, but depends on features that are disabled: "
                "[GenericWorkload]"
            ],
        ),
        ({"GangScheduling": True, "GenericWorkload": True}, []),
        (
            {"WorkloadAwarePreemption": True},
            [
                "WorkloadAwarePreemption is enabled, but depends on features that are disabled: "
                "[GangScheduling]"
            ],
        ),
        (
            {"DRAWorkloadResourceClaims": True, "TopologyAwareWorkloadScheduling": True},
            [
                "DRAWorkloadResourceClaims is enabled, but depends on features that are disabled: "
                "[GenericWorkload]",
                "TopologyAwareWorkloadScheduling is enabled, but depends on features that are "
                "disabled: [GenericWorkload]",
            ],
        ),
        (
            {"DRAResourceClaimDeviceStatus": False},
            [
                "DRADeviceBindingConditions is enabled, but depends on features that are "
                "disabled: [DRAResourceClaimDeviceStatus]",
                "DRAResourceClaimGranularStatusAuthorization is enabled, but depends on features "
                "that are disabled: [DRAResourceClaimDeviceStatus]",
            ],
        ),
        (
            {"DRADeviceTaintRules": True, "DRADeviceTaints": False},
            [
                "DRADeviceTaintRules is enabled, but depends on features that are disabled: "
                "[DRADeviceTaints]"
            ],
        ),
    ],
)
def test_what_a_gate_needs(overrides: dict[str, bool], errors: list[str]) -> None:  # 09 §12
    assert FeatureGates(overrides).dependency_errors() == errors


@pytest.mark.parametrize(
    ("texts", "overrides"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param([""], {}, id="empty"),
        pytest.param(["GenericWorkload=true,"], {"GenericWorkload": True}, id="trailing-comma"),
        pytest.param(
            ["GenericWorkload=true, GangScheduling = 1", "NodeDeclaredFeatures=F"],
            {"GenericWorkload": True, "GangScheduling": True, "NodeDeclaredFeatures": False},
            id="several",
        ),
        pytest.param(
            ["GenericWorkload=true", "GenericWorkload=false"],
            {"GenericWorkload": False},
            id="the-last-counts",
        ),
        pytest.param(["kube:GenericWorkload=true"], {"GenericWorkload": True}, id="prefix"),
    ],
)
def test_gates_from_the_command_line(texts: list[str], overrides: dict[str, bool]) -> None:
    assert parse_gates(texts) == FeatureGates(overrides)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["X=true"], "unrecognized feature gate: X"),
        (
            ["DynamicResourceAllocation=false"],
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
        ),
        (["GenericWorkload"], "missing bool value for GenericWorkload"),
        (
            ["GenericWorkload=maybe"],
            'invalid value of GenericWorkload=maybe, err: strconv.ParseBool: parsing "maybe": '
            "invalid syntax",
        ),
        (
            ["GenericWorkload=true", "kube:GangScheduling=true"],
            "set kube feature gates with default empty prefix or kube: prefix consistently, "
            "do not mix use",
        ),
        (["other:X=true"], "component not registered: other"),
    ],
)
def test_gates_the_command_line_cannot_set(texts: list[str], message: str) -> None:  # 09 §2
    with pytest.raises(ConfigError) as raised:
        parse_gates(texts)
    assert str(raised.value) == message


def test_a_gate_is_left_out_and_the_others_stay() -> None:
    gates = FeatureGates({"GenericWorkload": True})
    without = gates.without("SchedulerAsyncPreemption")
    assert gates.enabled("SchedulerAsyncPreemption")
    assert not without.enabled("SchedulerAsyncPreemption")
    assert without.enabled("GenericWorkload")


def test_all_gates_of_the_release_are_known() -> None:
    # As v1.36.4 lists them: 241 with AllAlpha and AllBeta, of which 149 can be changed.
    assert not CORE.gates.keys() & CORE.other_gates.keys()
    known = {**CORE.gates, **CORE.other_gates}
    assert len(known) == 241
    in_help = [gate for gate in known.values() if gate.stage in (Stage.ALPHA, Stage.BETA)]
    assert len(in_help) == 149
    assert not any(gate.locked for gate in in_help)


def test_gates_of_other_components_are_accepted_and_change_nothing() -> None:
    gates = parse_gates(["WorkloadWithJob=true,MemoryQoS=true", "GenericWorkload=true"])
    assert gates.without_effect == ["WorkloadWithJob", "MemoryQoS"]
    assert gates == parse_gates(["GenericWorkload=true"])
    assert gates.overrides["MemoryQoS"] is True


def test_locked_gates_of_other_components_stay_locked() -> None:
    locked = next(name for name, gate in CORE.other_gates.items() if gate.locked and gate.default)
    with pytest.raises(ConfigError, match=f"cannot set feature gate {locked} to false, feature is"):
        parse_gates([f"{locked}=false"])
    assert parse_gates([f"{locked}=true"]).without_effect == [locked]
