"""Which plugins run where, in which order and with which weight (spec 04 §2.5, §2.6, §2.10)."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kubestow.config.defaults import default_plugins
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.config.profile import (
    PluginRef,
    Plugins,
    PluginSet,
    ProfileConfig,
    enabled_names,
    merge_plugins,
)
from kubestow.errors import ConfigError
from kubestow.framework.plugin import Plugin
from kubestow.framework.profile import Profile, check_extension_points, plugin_name
from kubestow.testing.profiles import make_plugin

DEFAULT_PLUGINS = default_plugins(DEFAULT_GATES)
# Spec 04 §2.6. Letters mean points; only what a plugin implements counts here.
DEFAULT_LISTS = {
    "pre_enqueue": "SchedulingGates DynamicResources DefaultPreemption",
    "queue_sort": "PrioritySort",
    "pre_filter": "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits "
    "VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources "
    "NodeDeclaredFeatures",
    "filter": "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
    "VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread "
    "InterPodAffinity DynamicResources NodeDeclaredFeatures",
    "post_filter": "DynamicResources DefaultPreemption",
    "pre_score": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread "
    "InterPodAffinity NodeResourcesBalancedAllocation",
    "score": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread "
    "InterPodAffinity DynamicResources NodeResourcesBalancedAllocation ImageLocality",
    "reserve": "VolumeBinding DynamicResources",
    "pre_bind": "VolumeBinding DynamicResources",
    "permit": "",
    "bind": "DefaultBinder",
    "post_bind": "",
}
DEFAULT_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


def nothing(*_: object) -> None:
    return None


METHODS: dict[str, dict[str, Callable[..., Any]]] = {
    "queue_sort": {"less": nothing},
    "filter": {"filter": nothing, "filter_status": nothing},
    "reserve": {"reserve": nothing, "unreserve": nothing},
    "pre_bind": {"pre_bind": nothing, "pre_bind_pre_flight": nothing},
}


def fake(name: str, *points: str) -> Plugin:
    methods: dict[str, Callable[..., Any]] = {}
    for point in points:
        methods |= METHODS.get(point, {point: nothing})
    return make_plugin(name, **methods)


DEFAULT_FAKES = {
    name: fake(name, *(point for point, names in DEFAULT_LISTS.items() if name in names.split()))
    for name in enabled_names(DEFAULT_PLUGINS)
}


def refs(text: str) -> tuple[PluginRef, ...]:
    """Plugins written as `Name` or `Name:weight`."""
    pairs = (entry.partition(":") for entry in text.split())
    return tuple(PluginRef(name, int(weight or 0)) for name, _, weight in pairs)


def plugin_set(enabled: str = "", disabled: str = "") -> PluginSet:
    return PluginSet(enabled=refs(enabled), disabled=refs(disabled))


def default_profile(custom: Plugins | None = None, *more: Plugin) -> Profile:
    """The default plugins, as the user changed them."""
    merged = merge_plugins(DEFAULT_PLUGINS, custom or Plugins())
    plugins = DEFAULT_FAKES | {plugin.name: plugin for plugin in more}
    known = {name: plugins[name] for name in enabled_names(merged) if name in plugins}
    return Profile(ProfileConfig(scheduler_name="P", plugins=merged), known)


def profile_of(plugins: Plugins, *instances: Plugin) -> Profile:
    """Only these plugins, with an order of the queue and a binder besides."""
    basics = [fake("Sort", "queue_sort"), fake("Binder", "bind")]
    multi_point = PluginSet(enabled=(*plugins.multi_point.enabled, *refs("Sort Binder")))
    config = Plugins(
        **{
            field: getattr(plugins, field)
            for field in Plugins.__struct_fields__
            if field != "multi_point"
        },
        multi_point=multi_point,
    )
    return Profile(
        ProfileConfig(scheduler_name="P", plugins=config),
        {plugin.name: plugin for plugin in (*instances, *basics)},
    )


def names(plugins: Iterable[object]) -> list[str]:
    return [plugin_name(plugin) for plugin in plugins]


def scores(profile: Profile) -> dict[str, int]:
    """Score plugins in order with their weights."""
    assert list(profile.weights) == names(profile.score)
    return profile.weights


def moved_to_front(name: str) -> list[str]:
    return [name, *(other for other in DEFAULT_WEIGHTS if other != name)]


# --- the default profile ---


@pytest.mark.parametrize("point", DEFAULT_LISTS)
def test_the_default_plugins_of_each_point(point: str) -> None:
    profile = default_profile()
    plugins = [profile.queue_sort] if point == "queue_sort" else getattr(profile, point)
    assert names(plugins) == DEFAULT_LISTS[point].split()


def test_default_weights() -> None:
    assert scores(default_profile()) == DEFAULT_WEIGHTS


# --- a user's changes (04 §2.10, 09 §3.4) ---


def test_2_10_2_enabled_at_a_point_comes_first_there() -> None:
    profile = default_profile(Plugins(score=plugin_set("NodeResourcesFit:5")))
    assert list(scores(profile)) == moved_to_front("NodeResourcesFit")
    assert scores(profile) == DEFAULT_WEIGHTS | {"NodeResourcesFit": 5}
    assert names(profile.filter) == DEFAULT_LISTS["filter"].split()


def test_2_10_3_a_weight_left_out_is_one() -> None:
    profile = default_profile(Plugins(multi_point=plugin_set("TaintToleration")))
    assert list(scores(profile)) == list(DEFAULT_WEIGHTS)
    assert scores(profile) == DEFAULT_WEIGHTS | {"TaintToleration": 1}


def test_2_10_4_only_what_is_named() -> None:
    custom = Plugins(multi_point=plugin_set("PrioritySort NodeName DefaultBinder", "*"))
    profile = default_profile(custom)
    assert list(profile.plugins) == ["PrioritySort", "NodeName", "DefaultBinder"]
    assert names(profile.filter) == ["NodeName"]
    assert names(profile.bind) == ["DefaultBinder"]
    assert profile.score == []


@pytest.mark.parametrize(
    ("multi_point", "score", "order"),
    [
        pytest.param("N T S1", "S1 T", ["S1", "T", "N"], id="2.10-5a"),
        pytest.param("T S1", "X S1 T", ["S1", "T", "X"], id="2.10-5b"),
    ],
)
def test_2_10_5_overrides_then_multi_point_then_the_rest(
    multi_point: str, score: str, order: list[str]
) -> None:
    plugins = [fake(name, "score") for name in ("N", "T", "S1", "X")]
    config = Plugins(multi_point=plugin_set(multi_point), score=plugin_set(score))
    assert names(profile_of(config, *plugins).score) == order


def test_2_10_6_no_pre_score_at_all() -> None:
    profile = default_profile(Plugins(pre_score=plugin_set("", "*")))
    assert profile.pre_score == []
    assert scores(profile) == DEFAULT_WEIGHTS


def test_2_10_8_twice_in_multi_point_fails_at_the_first_point_it_implements() -> None:
    plugin = fake("T", "filter", "pre_filter", "score")
    with pytest.raises(ConfigError) as caught:
        profile_of(Plugins(multi_point=plugin_set("T T")), plugin)
    assert str(caught.value) == 'plugin "T" already registered as "PreFilterPlugin"'


def test_09_3_4_2_another_one_moves_to_the_front() -> None:
    profile = default_profile(Plugins(score=plugin_set("ImageLocality:5")))
    assert list(scores(profile)) == moved_to_front("ImageLocality")
    assert scores(profile)["ImageLocality"] == 5


def test_09_3_4_3_a_point_that_is_replaced_as_a_whole() -> None:
    profile = default_profile(Plugins(filter=plugin_set("NodeName", "*")))
    assert names(profile.filter) == ["NodeName"]
    assert names(profile.pre_filter) == DEFAULT_LISTS["pre_filter"].split()


def test_09_3_4_5_disabled_and_enabled_again_comes_last() -> None:
    custom = Plugins(multi_point=plugin_set("NodeResourcesFit:4", "NodeResourcesFit"))
    profile = default_profile(custom)
    for plugins in (profile.pre_filter, profile.filter, profile.pre_score, profile.score):
        assert names(plugins)[-1] == "NodeResourcesFit"
    assert scores(profile)["NodeResourcesFit"] == 4


def test_09_3_4_6_single_points_disabled() -> None:
    custom = Plugins(
        multi_point=plugin_set(
            "SchedulingGates DefaultBinder PrioritySort DefaultPreemption VolumeBinding "
            "NodeResourcesFit NodePorts InterPodAffinity TaintToleration DynamicResources",
            "*",
        ),
        pre_filter=plugin_set("", "VolumeBinding InterPodAffinity"),
        filter=plugin_set("", "VolumeBinding InterPodAffinity TaintToleration"),
        score=plugin_set("", "VolumeBinding NodeResourcesFit"),
    )
    profile = default_profile(custom)
    expected = ["NodeResourcesFit", "NodePorts", "DynamicResources"]
    assert names(profile.filter) == names(profile.pre_filter) == expected
    assert names(profile.pre_score) == [
        "VolumeBinding",
        "NodeResourcesFit",
        "InterPodAffinity",
        "TaintToleration",
    ]
    assert scores(profile) == {"InterPodAffinity": 1, "TaintToleration": 1, "DynamicResources": 1}
    assert names(profile.post_filter) == ["DefaultPreemption", "DynamicResources"]
    assert names(profile.pre_enqueue) == [
        "SchedulingGates",
        "DefaultPreemption",
        "DynamicResources",
    ]


def test_09_3_4_7_a_binder_from_outside_comes_after_the_default() -> None:
    profile = default_profile(Plugins(bind=plugin_set("MyBinder")), fake("MyBinder", "bind"))
    assert names(profile.bind) == ["DefaultBinder", "MyBinder"]


# --- what cannot be ---


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        pytest.param(
            Plugins(multi_point=plugin_set("", "DefaultBinder")),
            'at least one bind plugin is needed for profile with scheduler name "P"',
            id="09-3.4-4-no-binder",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("", "PrioritySort")),
            'only one queue sort plugin required for profile with scheduler name "P", but got 0',
            id="no-order",
        ),
        pytest.param(
            Plugins(filter=plugin_set("Foo")), 'FilterPlugin "Foo" does not exist', id="unknown"
        ),
        pytest.param(
            Plugins(filter=plugin_set("mine.Foo")),
            'FilterPlugin "mine.Foo" does not exist; a class of your own is named module:Class',
            id="unknown-with-a-dot",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Foo")),
            'PreFilterPlugin "Foo" does not exist',
            id="unknown-in-multi-point",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Foo"), pre_filter=plugin_set("", "*")),
            'FilterPlugin "Foo" does not exist',
            id="unknown-in-multi-point-at-the-first-point-that-looks",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Foo"), score=plugin_set("Bar")),
            'ScorePlugin "Bar" does not exist',
            id="single-points-are-checked-before-multi-point",
        ),
        pytest.param(
            Plugins(score=plugin_set("NodeName")),
            'plugin "NodeName" does not extend ScorePlugin plugin',
            id="wrong-point",
        ),
        pytest.param(
            Plugins(filter=plugin_set("NodeName NodeName")),
            'plugin "NodeName" already registered as "FilterPlugin"',
            id="twice-at-a-point",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set(f"TaintToleration:{2**62}")),
            "score plugins: total score of Score plugins could overflow",
            id="too-heavy",
        ),
        pytest.param(
            Plugins(
                multi_point=plugin_set(f"TaintToleration:{2**62}"),
                score=plugin_set("", "TaintToleration"),
            ),
            "score plugins: total score of Score plugins could overflow",
            id="too-heavy-though-disabled",
        ),
    ],
)
def test_a_profile_that_cannot_be(plugins: Plugins, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        default_profile(plugins)
    assert str(caught.value) == message


def test_two_orders_of_the_queue_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match="but got 2"):
        default_profile(Plugins(queue_sort=plugin_set("Other")), fake("Other", "queue_sort"))


def test_weights_up_to_the_limit_are_fine() -> None:
    largest = (2**63 - 1) // 100
    plugins = [fake("A", "score"), fake("B", "score")]
    config = Plugins(multi_point=plugin_set(f"A:{largest - 1} B:1"))
    assert profile_of(config, *plugins).weights == {"A": largest - 1, "B": 1}
    with pytest.raises(ConfigError, match="could overflow"):
        profile_of(Plugins(multi_point=plugin_set(f"A:{largest} B:1")), *plugins)


def test_the_first_mention_of_a_weight_counts() -> None:
    config = Plugins(multi_point=plugin_set("A:3"), score=plugin_set("A:7"))
    assert profile_of(config, fake("A", "score")).weights == {"A": 7}


def test_half_a_point_is_none() -> None:
    # Reserve needs both methods: what was reserved must be given back.
    profile = profile_of(
        Plugins(multi_point=plugin_set("A")), make_plugin("A", reserve=nothing, score=nothing)
    )
    assert profile.reserve == []
    assert names(profile.score) == ["A"]


# --- plugins with methods that would never be called ---


@pytest.mark.parametrize(
    ("methods", "method", "needed"),
    [
        (["filter"], "filter", "filter_status"),
        (["filter_status"], "filter_status", "filter"),
        (["reserve"], "reserve", "unreserve"),
        (["unreserve", "score"], "unreserve", "reserve"),
        (["pre_bind"], "pre_bind", "pre_bind_pre_flight"),
        (["pre_filter", "add_pod"], "add_pod", "remove_pod"),
        (["add_pod", "remove_pod"], "add_pod", "pre_filter"),
        (["normalize"], "normalize", "score"),
    ],
)
def test_a_method_without_its_partner_is_refused(
    methods: list[str], method: str, needed: str
) -> None:
    plugin = make_plugin("P", **dict.fromkeys(methods, nothing))
    with pytest.raises(ConfigError) as caught:
        check_extension_points(plugin)
    assert str(caught.value) == (
        f'the class has "{method}" but no "{needed}", so "{method}" would never be called'
    )


@pytest.mark.parametrize("methods", [[], ["events"], ["filters"]])
def test_a_plugin_without_an_extension_point_is_refused(methods: list[str]) -> None:
    plugin = make_plugin("P", **dict.fromkeys(methods, nothing))
    with pytest.raises(ConfigError, match="no method of an extension point"):
        check_extension_points(plugin)


@pytest.mark.parametrize("plugin", DEFAULT_FAKES.values(), ids=plugin_name)
def test_a_complete_plugin_is_accepted(plugin: Plugin) -> None:
    check_extension_points(plugin)
