"""How a user's plugins merge into the default ones (spec 04 §2.4, 09 §3.4)."""

import pytest

from kubestow.config.defaults import default_plugins
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.config.profile import (
    PluginRef,
    Plugins,
    PluginSet,
    enabled_names,
    merge_plugin_set,
    merge_plugins,
)

DEFAULT_PLUGINS = default_plugins(DEFAULT_GATES)


def refs(text: str) -> tuple[PluginRef, ...]:
    """Plugins written as `Name` or `Name:weight`."""
    pairs = (entry.partition(":") for entry in text.split())
    return tuple(PluginRef(name, int(weight or 0)) for name, _, weight in pairs)


def plugin_set(enabled: str = "", disabled: str = "") -> PluginSet:
    return PluginSet(enabled=refs(enabled), disabled=refs(disabled))


@pytest.mark.parametrize(
    ("default", "custom", "merged"),
    [
        pytest.param(plugin_set("A:3 B"), plugin_set(), plugin_set("A:3 B"), id="empty"),
        pytest.param(
            plugin_set("A:3 B:2 C"),
            plugin_set("B"),
            plugin_set("A:3 B C"),
            id="2.10-3-in-place-without-its-weight",
        ),
        pytest.param(
            plugin_set("A B C"),
            plugin_set("X:5 C:7 Y"),
            plugin_set("A B C:7 X:5 Y"),
            id="what-replaces-nothing-comes-last",
        ),
        pytest.param(
            plugin_set("A B C"), plugin_set("", "B"), plugin_set("A C", "B"), id="one-disabled"
        ),
        pytest.param(
            plugin_set("A B C", "Z"),
            plugin_set("X A", "*"),
            plugin_set("X A", "* Z"),
            id="2.10-4-all-disabled",
        ),
        pytest.param(
            plugin_set("A B:1 C"),
            plugin_set("B:4", "B"),
            plugin_set("A C B:4", "B"),
            id="09-3.4-5-disabled-and-enabled-goes-last",
        ),
        pytest.param(
            plugin_set("A B"),
            plugin_set("B:1 B:2"),
            plugin_set("A B:1 B:2"),
            id="a-duplicate-name-stays",
        ),
        pytest.param(
            plugin_set("A"), plugin_set("X X"), plugin_set("A X X"), id="an-unknown-one-as-well"
        ),
    ],
)
def test_merging_one_point(default: PluginSet, custom: PluginSet, merged: PluginSet) -> None:
    assert merge_plugin_set(default, custom) == merged


def test_points_merge_on_their_own() -> None:
    custom = Plugins(filter=plugin_set("A", "B"), score=plugin_set("C:2"))
    merged = merge_plugins(DEFAULT_PLUGINS, custom)
    assert merged.multi_point == DEFAULT_PLUGINS.multi_point
    assert merged.filter == plugin_set("A", "B")
    assert merged.score == plugin_set("C:2")
    assert merged.bind == PluginSet()


def test_the_default_plugins_are_in_the_order_of_the_specification() -> None:
    assert DEFAULT_PLUGINS.multi_point.enabled == refs(
        "SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration:3 NodeAffinity:2 "
        "NodePorts NodeResourcesFit:1 VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone "
        "PodTopologySpread:2 InterPodAffinity:2 DynamicResources:2 DefaultPreemption "
        "NodeResourcesBalancedAllocation:1 ImageLocality:1 DefaultBinder NodeDeclaredFeatures"
    )


def test_enabled_names_are_listed_once_in_order_of_first_mention() -> None:
    plugins = Plugins(
        multi_point=plugin_set("B A"), filter=plugin_set("C A"), score=plugin_set("D", "E")
    )
    assert enabled_names(plugins) == ["B", "A", "C", "D"]


def test_merging_again_changes_nothing() -> None:
    custom = plugin_set("X B:4 B:5 A:2", "C")
    once = merge_plugin_set(plugin_set("A:1 B:1 C D"), custom)
    again = merge_plugin_set(plugin_set("A:1 B:1 C D"), once)
    assert again.enabled == once.enabled
