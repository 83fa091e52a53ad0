"""Defaults of a configuration (spec 09 §3.2 to §3.5)."""

import json
from typing import Any

import msgspec
import pytest

from kubestow.config.decoding import decode_config
from kubestow.config.defaults import (
    complete_config,
    complete_profile,
    default_plugins,
    leave_to_extenders,
)
from kubestow.config.extenders import ExtenderConfig, ManagedResource
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubestow.config.profile import (
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    ProfileConfig,
)
from kubestow.config.scalars import seconds
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import ConfigError


def decode(**fields: Any) -> SchedulerConfig:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **fields,
    }
    return decode_config(json.dumps(document).encode())


def args_of(profile: ProfileConfig, plugin: str) -> object:
    return next(entry.args for entry in profile.plugin_config if entry.name == plugin)


def complete_args(plugin: str, gates: FeatureGates = DEFAULT_GATES, **args: Any) -> object:
    entry = PluginConfig(name=plugin, args=args)
    return args_of(complete_profile(ProfileConfig(plugin_config=(entry,)), gates), plugin)


# --- top level, leader election, client connection ---


def test_defaults_of_the_top_level() -> None:
    config = decode()
    assert config.parallelism == 16
    assert config.percentage_of_nodes_to_score == 0
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (1, 10)
    assert config.enable_profiling
    assert config.enable_contention_profiling
    assert not config.delay_cache_until_active
    assert config.extenders == ()


def test_defaults_of_leader_election() -> None:
    election = decode().leader_election
    assert election.leader_elect
    assert election.lease_duration == seconds(15)
    assert election.renew_deadline == seconds(10)
    assert election.retry_period == seconds(2)
    assert election.resource_lock == "leases"
    assert (election.resource_namespace, election.resource_name) == (
        "kube-system",
        "kube-scheduler",
    )


def test_defaults_of_the_client_connection() -> None:
    connection = decode().client_connection
    assert connection.kubeconfig == ""
    assert connection.accept_content_types == ""
    assert connection.content_type == "application/vnd.kubernetes.protobuf"
    assert (connection.qps, connection.burst) == (50, 100)


def test_zeros_that_mean_the_default() -> None:
    config = decode(
        leaderElection={
            "leaseDuration": "0s",
            "renewDeadline": "0",
            "retryPeriod": "0s",
            "resourceLock": "",
            "resourceName": "",
            "resourceNamespace": "",
        },
        clientConnection={"qps": 0, "burst": 0, "contentType": ""},  # §3.6 example 7
    )
    assert config == decode()


def test_zeros_that_do_not() -> None:
    config = decode(parallelism=0, podInitialBackoffSeconds=0, podMaxBackoffSeconds=0)
    assert config.parallelism == 0
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (0, 0)


@pytest.mark.parametrize(
    ("given", "profiling", "contention"),
    [
        pytest.param({}, True, True, id="nothing"),
        pytest.param({"enableProfiling": False}, False, False, id="follows"),
        pytest.param(
            {"enableProfiling": False, "enableContentionProfiling": True}, False, True, id="given"
        ),
        pytest.param({"enableContentionProfiling": False}, True, False, id="off"),
    ],
)
def test_contention_profiling_follows_profiling(
    given: dict[str, bool], profiling: bool, contention: bool
) -> None:
    config = decode(**given)
    assert config.enable_profiling is profiling
    assert config.enable_contention_profiling is contention


# --- profiles ---


@pytest.mark.parametrize("profiles", [None, [], [{}]])
def test_without_profiles_there_is_the_default_one(profiles: object) -> None:
    config = decode(profiles=profiles)
    assert [profile.scheduler_name for profile in config.profiles] == ["default-scheduler"]


def test_only_a_single_profile_may_be_nameless() -> None:
    names = [profile.scheduler_name for profile in decode(profiles=[{}, {}]).profiles]
    assert names == ["", ""]


def test_an_empty_name_is_not_filled_in() -> None:
    assert decode(profiles=[{"schedulerName": ""}]).profiles[0].scheduler_name == ""


def test_the_percentage_of_a_profile_defaults_to_that_of_the_whole() -> None:
    first, second = decode(
        profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 0}]
    ).profiles
    assert first.percentage_of_nodes_to_score is None
    assert second.percentage_of_nodes_to_score == 0


def test_gates_decide_on_some_default_plugins() -> None:
    def added(*names: str) -> list[PluginRef]:
        gates = FeatureGates(dict.fromkeys(names, True))
        return list(default_plugins(gates).multi_point.enabled[20:])

    default = default_plugins(DEFAULT_GATES)
    assert len(default.multi_point.enabled) == 20
    assert added("GenericWorkload") == []
    assert added("GenericWorkload", "TopologyAwareWorkloadScheduling", "GangScheduling") == [
        PluginRef("GangScheduling"),
        PluginRef("TopologyPlacementGenerator"),
        PluginRef("PodGroupPodsCount", 1),
    ]
    without = default_plugins(FeatureGates({"NodeDeclaredFeatures": False}))
    assert without.multi_point.enabled == default.multi_point.enabled[:-1]


def test_arguments_are_appended_by_name_after_the_users() -> None:
    profile = ProfileConfig(
        plugin_config=(
            PluginConfig(name="VolumeBinding"),
            PluginConfig(name="Mine", args={"x": 1}),
            PluginConfig(name="InterPodAffinity"),
        )
    )
    assert [entry.name for entry in complete_profile(profile).plugin_config] == [
        "VolumeBinding",
        "Mine",
        "InterPodAffinity",
        "DefaultPreemption",
        "DynamicResources",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
    ]


def test_plugins_that_run_nowhere_get_no_arguments() -> None:
    point = PluginSet(enabled=(PluginRef("NodeName"),), disabled=(PluginRef("*"),))
    profile = ProfileConfig(
        plugins=Plugins(multi_point=point, placement_score=PluginSet(enabled=point.enabled))
    )
    assert complete_profile(profile).plugin_config == ()


def test_completing_twice_changes_nothing() -> None:
    config = decode(
        profiles=[
            {
                "plugins": {
                    "multiPoint": {
                        "enabled": [{"name": "NodeResourcesFit", "weight": 4}, {"name": "X"}],
                        "disabled": [{"name": "NodeResourcesFit"}],
                    }
                },
                "pluginConfig": [{"name": "X", "args": {"a": None}}],
            }
        ]
    )
    assert complete_config(config) == config


# --- arguments ---


@pytest.mark.parametrize(
    ("plugin", "args"),
    [
        (
            "DefaultPreemption",
            DefaultPreemptionArgs(
                min_candidate_nodes_percentage=10, min_candidate_nodes_absolute=100
            ),
        ),
        (
            "InterPodAffinity",
            InterPodAffinityArgs(
                hard_pod_affinity_weight=1, ignore_preferred_terms_of_existing_pods=False
            ),
        ),
        ("NodeAffinity", NodeAffinityArgs(added_affinity=None)),
        (
            "NodeResourcesBalancedAllocation",
            NodeResourcesBalancedAllocationArgs(
                resources=(
                    ResourceSpec(name="cpu", weight=1),
                    ResourceSpec(name="memory", weight=1),
                )
            ),
        ),
        (
            "NodeResourcesFit",
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(
                    type="LeastAllocated",
                    resources=(
                        ResourceSpec(name="cpu", weight=1),
                        ResourceSpec(name="memory", weight=1),
                    ),
                )
            ),
        ),
        ("PodTopologySpread", PodTopologySpreadArgs(defaulting_type="System")),
        ("VolumeBinding", VolumeBindingArgs(bind_timeout_seconds=600, shape=None)),
        (
            "DynamicResources",
            DynamicResourcesArgs(filter_timeout="10s", binding_timeout="10m0s"),
        ),
    ],
)
def test_default_arguments(plugin: str, args: PluginArgs) -> None:
    assert args_of(complete_profile(ProfileConfig()), plugin) == args
    assert complete_args(plugin) == args


def test_weights_of_zero_mean_one() -> None:
    resources = [{"name": "cpu", "weight": 3}, {"name": "gpu"}, {"name": "x", "weight": 0}]
    expected = (("cpu", 3), ("gpu", 1), ("x", 1))
    balanced = complete_args("NodeResourcesBalancedAllocation", resources=resources)
    assert isinstance(balanced, NodeResourcesBalancedAllocationArgs)
    assert tuple((spec.name, spec.weight) for spec in balanced.resources) == expected
    strategy = {"type": "MostAllocated", "resources": resources}
    fit = complete_args("NodeResourcesFit", scoringStrategy=strategy)
    assert isinstance(fit, NodeResourcesFitArgs)
    assert tuple((spec.name, spec.weight) for spec in fit.scoring_strategy.resources) == expected


def test_a_strategy_without_a_type_stays_without() -> None:
    fit = complete_args("NodeResourcesFit", scoringStrategy={"resources": []})
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.scoring_strategy.type == ""
    assert [spec.name for spec in fit.scoring_strategy.resources] == ["cpu", "memory"]


def test_the_shape_of_volume_binding_needs_its_gate() -> None:
    gates = FeatureGates({"StorageCapacityScoring": True})
    assert complete_args("VolumeBinding", gates) == VolumeBindingArgs(
        shape=(
            UtilizationShapePoint(utilization=0, score=10),
            UtilizationShapePoint(utilization=100, score=0),
        )
    )


def test_timeouts_of_devices_need_their_gates() -> None:
    off = FeatureGates({"DRASchedulerFilterTimeout": False, "DRADeviceBindingConditions": False})
    assert complete_args("DynamicResources", off) == DynamicResourcesArgs(
        filter_timeout="", binding_timeout=""
    )
    # A given value stays, for validation to refuse.
    assert complete_args("DynamicResources", off, filterTimeout="10s") == DynamicResourcesArgs(
        filter_timeout="10s", binding_timeout=""
    )


def test_arguments_of_profiles_made_in_python_decode_strictly_too() -> None:
    with pytest.raises(ConfigError) as raised:
        complete_args("NodeAffinity", color="blue")
    assert str(raised.value) == (
        'decoding args for plugin NodeAffinity: strict decoding error: unknown field "color"'
    )


# --- resources that extenders count (§3.5.5, 04 §13.1) ---


def extender(*names: str, ignored: bool = True) -> ExtenderConfig:
    return ExtenderConfig(
        managed_resources=tuple(
            ManagedResource(name=name, ignored_by_scheduler=ignored) for name in names
        )
    )


def test_resources_of_extenders_replace_the_users_list() -> None:
    entry = PluginConfig(name="NodeResourcesFit", args={"ignoredResources": ["example.com/mine"]})
    profile = complete_profile(ProfileConfig(plugin_config=(entry,)))
    extenders = (extender("example.com/a"), extender("example.com/b", "example.com/c"))
    args = args_of(leave_to_extenders(profile, extenders), "NodeResourcesFit")
    assert isinstance(args, NodeResourcesFitArgs)
    assert args.ignored_resources == ("example.com/a", "example.com/b", "example.com/c")


def test_resources_the_scheduler_counts_itself_replace_nothing() -> None:
    profile = complete_profile(ProfileConfig())
    assert leave_to_extenders(profile, (extender("example.com/a", ignored=False),)) == profile


def test_resources_left_to_extenders_need_node_resources_fit_args() -> None:
    disabled = PluginSet(disabled=(PluginRef("NodeResourcesFit"),))
    profile = complete_profile(ProfileConfig(plugins=Plugins(multi_point=disabled)))
    with pytest.raises(ConfigError) as raised:
        leave_to_extenders(profile, (extender("example.com/a"),))
    assert str(raised.value) == (
        "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
    )


def test_typed_arguments_are_completed_as_well() -> None:
    args = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(type="MostAllocated"))
    bare = msgspec.structs.replace(
        args, scoring_strategy=ScoringStrategy(type="MostAllocated", resources=())
    )
    entry = PluginConfig(name="NodeResourcesFit", args=bare)
    profile = complete_profile(ProfileConfig(plugin_config=(entry,)))
    assert args_of(profile, "NodeResourcesFit") == args
