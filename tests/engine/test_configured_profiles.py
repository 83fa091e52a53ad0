"""From a configuration file to the plugins that run: the worked examples (spec 09 §3.4, §3.5)."""

import json
from typing import Any

import pytest

from kubestow.config.decoding import decode_config
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.plugin_args import PluginArgs
from kubestow.engine.profiles import build_profiles
from kubestow.errors import ConfigError
from kubestow.framework.profile import Profile, plugin_name
from kubestow.plugins.registry import REGISTRY
from kubestow.testing import make_handle


class MyBinder:
    name = "MyBinder"
    args_type = None

    def __init__(self, args: object, handle: object) -> None:
        self.args = args

    async def bind(self, state: object, pod: object, node_name: str) -> None:
        return None


class Breaking(MyBinder):
    name = "Breaking"

    def __init__(self, args: object, handle: object) -> None:
        raise LookupError("nothing there")


class OwnArgs(PluginArgs, frozen=True, kw_only=True):
    limit: int = 3


class Typed(MyBinder):
    name = "Typed"
    args_type = OwnArgs


REGISTRY_AND_MORE: dict[str, Any] = REGISTRY | {
    plugin.name: plugin for plugin in (MyBinder, Breaking, Typed)
}


def build(*profiles: dict[str, Any], gates: FeatureGates = DEFAULT_GATES) -> dict[str, Profile]:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": profiles,
    }
    config = decode_config(json.dumps(document).encode(), gates)
    return build_profiles(
        config.profiles, REGISTRY_AND_MORE, lambda _: make_handle(), gates, config.extenders
    )


def build_one(**plugins: Any) -> Profile:
    return build({"plugins": plugins})["default-scheduler"]


def refs(text: str) -> list[dict[str, Any]]:
    """Plugins written as `Name` or `Name:weight`."""
    pairs = [entry.partition(":") for entry in text.split()]
    return [{"name": name, "weight": int(weight or 0)} for name, _, weight in pairs]


def names(profile: Profile, point: str) -> list[str]:
    return [plugin_name(plugin) for plugin in getattr(profile, point)]


def scores(profile: Profile) -> str:
    return " ".join(f"{name}:{profile.weights[name]}" for name in names(profile, "score"))


DEFAULT_SCORES = (
    "TaintToleration:3 NodeAffinity:2 NodeResourcesFit:1 VolumeBinding:1 PodTopologySpread:2 "
    "InterPodAffinity:2 DynamicResources:2 NodeResourcesBalancedAllocation:1 ImageLocality:1"
)
POINTS = [
    *("pre_enqueue", "pre_filter", "filter", "post_filter", "pre_score", "score"),
    *("reserve", "permit", "pre_bind", "bind", "post_bind"),
]


def test_the_default_scores() -> None:
    assert scores(build_one()) == DEFAULT_SCORES


def test_example_1_an_absent_weight_counts_as_one() -> None:
    profile = build_one(multiPoint={"enabled": refs("TaintToleration")})
    assert scores(profile) == DEFAULT_SCORES.replace("TaintToleration:3", "TaintToleration:1")
    assert all(names(profile, point) == names(build_one(), point) for point in POINTS)


def test_example_2_what_a_point_enables_comes_first() -> None:
    profile = build_one(score={"enabled": refs("ImageLocality:5")})
    assert scores(profile) == "ImageLocality:5 " + DEFAULT_SCORES.removesuffix(" ImageLocality:1")


def test_example_3_a_star_clears_one_point() -> None:
    profile = build_one(filter={"disabled": refs("*"), "enabled": refs("NodeName")})
    assert names(profile, "filter") == ["NodeName"]
    others = [point for point in POINTS if point != "filter"]
    assert all(names(profile, point) == names(build_one(), point) for point in others)


PREFIX = "initializing profiles: creating profile for scheduler name default-scheduler: "


def error_of(*profiles: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as raised:
        build(*profiles)
    return str(raised.value)


def test_example_4_no_bind_plugin() -> None:
    assert error_of({"plugins": {"multiPoint": {"disabled": refs("DefaultBinder")}}}) == (
        f"{PREFIX}at least one bind plugin is needed for profile with scheduler name "
        '"default-scheduler"'
    )


def test_example_5_disabled_and_enabled_moves_to_the_end() -> None:
    profile = build_one(
        multiPoint={"disabled": refs("NodeResourcesFit"), "enabled": refs("NodeResourcesFit:4")}
    )
    for point in ("filter", "pre_filter", "pre_score", "score"):
        assert names(profile, point)[-1] == "NodeResourcesFit"
    assert profile.weights["NodeResourcesFit"] == 4


def test_example_6_everything_at_once() -> None:
    profile = build_one(
        multiPoint={
            "enabled": refs(
                "SchedulingGates DefaultBinder PrioritySort DefaultPreemption VolumeBinding "
                "NodeResourcesFit NodePorts InterPodAffinity TaintToleration DynamicResources"
            ),
            "disabled": refs("*"),
        },
        preFilter={"disabled": refs("VolumeBinding InterPodAffinity")},
        filter={"disabled": refs("VolumeBinding InterPodAffinity TaintToleration")},
        score={"disabled": refs("VolumeBinding NodeResourcesFit")},
    )
    assert names(profile, "filter") == ["NodeResourcesFit", "NodePorts", "DynamicResources"]
    assert names(profile, "pre_filter") == names(profile, "filter")
    assert names(profile, "pre_score") == [
        "VolumeBinding",
        "NodeResourcesFit",
        "InterPodAffinity",
        "TaintToleration",
    ]
    assert scores(profile) == "InterPodAffinity:1 TaintToleration:1 DynamicResources:1"
    assert names(profile, "post_filter") == ["DefaultPreemption", "DynamicResources"]
    assert names(profile, "pre_enqueue") == [
        "SchedulingGates",
        "DefaultPreemption",
        "DynamicResources",
    ]


def test_example_7_an_out_of_tree_binder() -> None:
    assert names(build_one(bind={"enabled": refs("MyBinder")}), "bind") == [
        "DefaultBinder",
        "MyBinder",
    ]
    first = build_one(
        bind={"enabled": refs("MyBinder DefaultBinder"), "disabled": refs("DefaultBinder")}
    )
    assert names(first, "bind") == ["MyBinder", "DefaultBinder"]


def args(plugin: str, **fields: Any) -> dict[str, Any]:
    return {"pluginConfig": [{"name": plugin, "args": fields}]}


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        pytest.param(
            {"plugins": {"score": {"enabled": refs("Foo")}}},
            'ScorePlugin "Foo" does not exist',
            id="unknown-at-a-point",
        ),
        pytest.param(
            {"plugins": {"multiPoint": {"enabled": refs("EBSLimits")}}},
            'PreFilterPlugin "EBSLimits" does not exist',
            id="3.6-removed-under-multi-point",
        ),
        pytest.param(
            {"plugins": {"score": {"enabled": refs("NodeName")}}},
            'plugin "NodeName" does not extend ScorePlugin plugin',
            id="does-not-extend",
        ),
        pytest.param(
            {"plugins": {"filter": {"enabled": refs("NodeName NodeName")}}},
            'plugin "NodeName" already registered as "FilterPlugin"',
            id="listed-twice",
        ),
        pytest.param(
            {"plugins": {"queueSort": {"disabled": refs("*")}}},
            "only one queue sort plugin required for profile with scheduler name "
            '"default-scheduler", but got 0',
            id="no-order",
        ),
        pytest.param(
            args("NodeResourcesFit", scoringStrategy={"type": "X"}),
            'initializing plugin "NodeResourcesFit": scoringStrategy.type: Unsupported value: "X": '
            'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"',
            id="3.5-fit-is-checked-here",
        ),
        pytest.param(
            args("InterPodAffinity", hardPodAffinityWeight=-1),
            'initializing plugin "InterPodAffinity": hardPodAffinityWeight: Invalid value: -1: '
            "not in valid range [0, 100]",
            id="3.5-others-are-checked-again",
        ),
        pytest.param(
            args("DefaultPreemption", minCandidateNodesPercentage=0, minCandidateNodesAbsolute=0),
            'initializing plugin "DefaultPreemption": [minCandidateNodesPercentage: Invalid value: '
            "0: cannot be zero at the same time as minCandidateNodesAbsolute, "
            "minCandidateNodesAbsolute: Invalid value: 0: "
            "cannot be zero at the same time as minCandidateNodesPercentage]",
            id="several-errors",
        ),
        pytest.param(
            {"plugins": {"bind": {"enabled": refs("Breaking")}}},
            'initializing plugin "Breaking": LookupError: nothing there',
            id="a-factory-that-breaks",
        ),
        pytest.param(
            {"plugins": {"bind": {"enabled": refs("Typed")}}, **args("Typed", limit="x")},
            'initializing plugin "Typed": decoding args for plugin Typed: '
            'cannot decode OwnArgs: limit is "x": expected a whole number',
            id="arguments-of-an-out-of-tree-plugin",
        ),
        pytest.param(
            {"plugins": {"bind": {"enabled": refs("Typed")}}, **args("Typed", limits=1)},
            'initializing plugin "Typed": decoding args for plugin Typed: unknown field "limits"',
            id="unknown-arguments-of-an-out-of-tree-plugin",
        ),
    ],
)
def test_a_profile_that_cannot_be_built(profile: dict[str, Any], message: str) -> None:
    assert error_of(profile) == PREFIX + message


def test_a_plugin_that_runs_nowhere_is_not_made() -> None:
    profile = build({"plugins": {"multiPoint": {"disabled": refs("NodeResourcesFit")}}})
    assert "NodeResourcesFit" not in profile["default-scheduler"].plugins


def test_an_out_of_tree_plugin_gets_its_own_type_of_arguments() -> None:
    enabled = {"plugins": {"bind": {"enabled": refs("Typed MyBinder")}}}
    profile = build({**enabled, **args("Typed", limit=5, kind="Anything")})["default-scheduler"]
    typed, untyped = profile.plugins["Typed"], profile.plugins["MyBinder"]
    assert isinstance(typed, Typed)
    assert isinstance(untyped, MyBinder)
    assert typed.args == OwnArgs(limit=5)
    assert untyped.args == {}


def test_errors_of_the_whole_set_have_one_prefix() -> None:
    binder = {"bind": {"enabled": refs("MyBinder")}}
    first = {"schedulerName": "a", "plugins": binder}
    assert error_of(first, {"schedulerName": "a"}) == (
        'initializing profiles: duplicate profile with scheduler name "a"'
    )


def test_resources_left_to_extenders_need_node_resources_fit() -> None:
    resource = {"name": "example.com/a", "ignoredByScheduler": True}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": refs("NodeResourcesFit")}}}],
        "extenders": [{"urlPrefix": "http://e", "managedResources": [resource]}],
    }
    config = decode_config(json.dumps(document).encode())
    with pytest.raises(ConfigError) as raised:
        build_profiles(
            config.profiles, REGISTRY, lambda _: make_handle(), extenders=config.extenders
        )
    assert str(raised.value) == (
        "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
    )
