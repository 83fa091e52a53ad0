"""A Policy as plugins of v1.20 and v1.17: the examples of spec 09 §13.4."""

import json

import pytest

from kubestow.api.meta import JsonObject
from kubestow.cache.snapshot import Snapshot
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.profile import ProfileConfig
from kubestow.editions import edition_named
from kubestow.editions.shared.policy import decode_policy
from kubestow.editions.v1_20.plugins.registry import REGISTRY_120
from kubestow.editions.v1_20.policy_plugins import profile_of_policy
from kubestow.editions.v1_20.profiles import default_profile
from kubestow.engine.profiles import build_profiles
from kubestow.errors import ConfigError
from kubestow.testing.handles import make_handle


def gates_of(version: str) -> FeatureGates:
    return FeatureGates({}, edition_named(version))


def profile(policy: JsonObject, version: str = "v1.20") -> ProfileConfig:
    return profile_of_policy(
        decode_policy(json.dumps({"kind": "Policy", "apiVersion": "v1", **policy}).encode()),
        default_profile(gates_of(version)),
        edition=edition_named(version),
        hard_pod_affinity_weight=1,
    )


def filters(made: ProfileConfig) -> list[str]:
    return [ref.name for ref in made.plugins.filter.enabled]


def scores(made: ProfileConfig) -> dict[str, int]:
    return {ref.name: ref.weight for ref in made.plugins.score.enabled}


def named(*names: str) -> list[JsonObject]:
    return [{"name": name} for name in names]


def weighted(**weights: int) -> list[JsonObject]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def test_example_1_predicates_run_in_their_own_order() -> None:
    made = profile(
        {
            "predicates": named(
                "PodFitsHostPorts",
                "PodFitsResources",
                "NoDiskConflict",
                "NoVolumeZoneConflict",
                "MatchNodeSelector",
                "HostName",
            ),
            "priorities": weighted(
                LeastRequestedPriority=1,
                BalancedResourceAllocation=1,
                ServiceSpreadingPriority=1,
                EqualPriority=1,
            ),
            "hardPodAffinitySymmetricWeight": 10,
        }
    )
    assert filters(made) == [
        "NodeUnschedulable",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "TaintToleration",
        "VolumeZone",
    ]
    assert scores(made) == {
        "NodeResourcesBalancedAllocation": 1,
        "NodeResourcesLeastAllocated": 1,
        "PodTopologySpread": 1,
    }
    assert not made.plugin_config  # The weight reaches no plugin.


def test_example_3_empty_lists_leave_what_is_mandatory() -> None:
    made = profile({"predicates": [], "priorities": []})
    assert filters(made) == ["NodeUnschedulable", "TaintToleration"]
    assert scores(made) == {}


@pytest.mark.parametrize("version", ["v1.17", "v1.20"])
def test_example_4_missing_lists_are_the_default_ones(version: str) -> None:
    default, made = default_profile(gates_of(version)), profile({}, version)
    assert filters(made) == filters(default)
    assert scores(made) == scores(default)


def test_example_7_of_two_weights_of_one_plugin_the_first_by_name_stays() -> None:
    made = profile({"priorities": weighted(SelectorSpreadPriority=1, EvenPodsSpreadPriority=2)})
    assert scores(made) == {"PodTopologySpread": 2}
    assert all(entry.name != "PodTopologySpread" for entry in made.plugin_config)
    alone = profile({"priorities": weighted(EvenPodsSpreadPriority=2)})
    (args,) = [e.args for e in alone.plugin_config if e.name == "PodTopologySpread"]
    assert args == {"defaultingType": "List"}


def test_v1_17_spreads_by_the_plugin_of_its_time() -> None:
    made = profile({"priorities": weighted(SelectorSpreadPriority=3)}, "v1.17")
    assert scores(made) == {"DefaultPodTopologySpread": 3}


def test_conditions_became_taints() -> None:
    made = profile({"predicates": named("CheckNodeCondition", "CheckNodeMemoryPressure")})
    assert filters(made) == ["NodeUnschedulable", "TaintToleration"]


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ({"predicates": named("NoSuchRule")}, "Predicate type not found for NoSuchRule"),
        ({"priorities": weighted(NoSuchRule=1)}, "Priority type not found for NoSuchRule"),
        (
            {
                "priorities": [
                    {
                        "name": name,
                        "weight": weight,
                        "argument": {"labelPreference": {"label": "a"}},
                    }
                    for name, weight in (("A", 1), ("B", 2))
                ]
            },
            "NodeLabel priority B has weight 2, expected 1",
        ),
    ],
)
def test_rules_that_do_not_exist_are_refused(policy: JsonObject, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        profile(policy)


def apart(name: str, label: str) -> JsonObject:
    return {"name": name, "weight": 2, "argument": {"serviceAntiAffinity": {"label": label}}}


def test_example_5_weights_of_one_plugin_add_up() -> None:
    made = profile({"priorities": [apart("RackSpread", "rack"), apart("RowSpread", "row")]})
    assert scores(made) == {"ServiceAffinity": 4}
    (args,) = [entry.args for entry in made.plugin_config if entry.name == "ServiceAffinity"]
    assert args == {"antiAffinityLabelsPreference": ["rack", "row"]}


def test_entries_with_arguments_configure_one_plugin() -> None:
    ratio = {
        "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
        "resources": [{"name": "cpu", "weight": 2}],
    }
    made = profile(
        {
            "predicates": [
                {"name": "Zoned", "argument": {"serviceAffinity": {"labels": ["zone"]}}},
                {
                    "name": "HasSsd",
                    "argument": {"labelsPresence": {"labels": ["ssd"], "presence": True}},
                },
                {"name": "NotOld", "argument": {"labelsPresence": {"labels": ["old"]}}},
            ],
            "priorities": [
                {
                    "name": "Full",
                    "weight": 3,
                    "argument": {"requestedToCapacityRatioArguments": ratio},
                }
            ],
        }
    )
    assert filters(made) == [
        "NodeUnschedulable",
        "TaintToleration",
        "NodeLabel",
        "ServiceAffinity",
    ]
    assert scores(made) == {"RequestedToCapacityRatio": 3}
    args = {entry.name: entry.args for entry in made.plugin_config}
    assert args["NodeLabel"] == {"presentLabels": ["ssd"], "absentLabels": ["old"]}
    assert args["RequestedToCapacityRatio"] == ratio


def test_the_plugins_of_a_policy_are_built() -> None:
    ratio = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
    made = profile(
        {
            "priorities": [
                apart("RackSpread", "rack"),
                {"name": "New", "weight": 1, "argument": {"labelPreference": {"label": "old"}}},
                {
                    "name": "Full",
                    "weight": 1,
                    "argument": {"requestedToCapacityRatioArguments": ratio},
                },
            ]
        }
    )
    handle = make_handle(Snapshot())
    (built,) = build_profiles([made], REGISTRY_120, lambda _: handle).values()
    assert {"ServiceAffinity", "NodeLabel", "RequestedToCapacityRatio"} <= set(built.plugins)
