"""Building all profiles of a configuration (spec 04 §2.5, 09 §3.4)."""

from collections.abc import Sequence
from typing import ClassVar

import pytest

from kubestow.config.plugin_args import PluginArgs
from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.engine.profiles import build_profiles
from kubestow.errors import ConfigError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.profile import Profile
from kubestow.plugins.registry import REGISTRY as BUILT_IN
from kubestow.testing import make_handle


class Sort:
    name: ClassVar[str] = "Sort"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self.args, self.handle = args, handle

    def less(self, first: object, second: object) -> bool:
        return False


class OtherSort(Sort):
    name: ClassVar[str] = "OtherSort"


class Binder:
    name: ClassVar[str] = "Binder"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self.args, self.handle = args, handle

    async def bind(self, state: CycleState, pod: object, node_name: str) -> None:
        return None


class Fussy(Binder):
    name: ClassVar[str] = "Fussy"

    def __init__(self, args: object, handle: Handle) -> None:
        raise ConfigError("cannot be pleased")


REGISTRY = {cls.name: cls for cls in (Sort, OtherSort, Binder, Fussy)}


def config(
    name: str, plugins: str = "Sort Binder", args: Sequence[tuple[str, object]] = ()
) -> ProfileConfig:
    enabled = tuple(PluginRef(plugin) for plugin in plugins.split())
    return ProfileConfig(
        scheduler_name=name,
        plugins=Plugins(multi_point=PluginSet(enabled=enabled, disabled=(PluginRef("*"),))),
        plugin_config=tuple(PluginConfig(name=plugin, args=raw) for plugin, raw in args),
    )


def build(*configs: ProfileConfig) -> dict[str, Profile]:
    return build_profiles(configs, REGISTRY, lambda _: make_handle())  # type: ignore[arg-type]


def test_profiles_are_kept_in_order_by_name() -> None:
    profiles = build(config("b"), config("a"))
    assert list(profiles) == ["b", "a"]
    assert [profile.name for profile in profiles.values()] == ["b", "a"]
    assert profiles["a"].plugins["Sort"] is not profiles["b"].plugins["Sort"]


def test_an_out_of_tree_plugin_gets_its_arguments_as_written() -> None:
    profiles = build(config("a", args=[("Binder", {"retries": 3})]))
    plugin = profiles["a"].plugins["Binder"]
    assert isinstance(plugin, Binder)
    assert plugin.args == {"retries": 3}
    assert plugin.handle.profile is profiles["a"]


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        pytest.param([], "at least one profile is required", id="none"),
        pytest.param([config("")], "scheduler name is needed", id="nameless"),
        pytest.param(
            [config("a"), config("a")], 'duplicate profile with scheduler name "a"', id="twice"
        ),
        pytest.param(
            [config("a"), config("b", "OtherSort Binder")],
            'different queue sort plugins for profile "b": "OtherSort", first: "Sort"',
            id="two-orders",
        ),
        pytest.param(
            [config("a"), config("b", args=[("Sort", {"x": 1})])],
            'different queue sort plugin args for profile "b"',
            id="two-arguments",
        ),
        pytest.param(
            [config("a", "Sort Fussy")],
            'initializing plugin "Fussy": cannot be pleased',
            id="factory",
        ),
        pytest.param(
            [config("a", args=[("Sort", {}), ("Sort", {})])],
            "repeated config for plugin Sort",
            id="configured-twice",
        ),
        pytest.param(
            [config("a", "Sort Binder Unknown")],
            'PreFilterPlugin "Unknown" does not exist',
            id="unknown",
        ),
        pytest.param(
            [config("a"), config("a", "Sort Fussy")],
            'initializing plugin "Fussy": cannot be pleased',
            id="a-profile-is-built-before-its-name-is-checked",
        ),
    ],
)
def test_invalid_sets_of_profiles(configs: list[ProfileConfig], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(*configs)
    assert str(caught.value).endswith(message)


def test_equal_arguments_of_the_order_are_fine() -> None:
    args: list[tuple[str, dict[str, object]]] = [("Sort", {"x": 1})]
    assert list(build(config("a", args=args), config("b", args=args))) == ["a", "b"]


class ForAnother(PluginArgs, frozen=True):
    """Arguments that no built-in plugin takes."""


TAKING_ARGUMENTS = [name for name, cls in BUILT_IN.items() if cls.args_type is not None]


@pytest.mark.parametrize("name", TAKING_ARGUMENTS)
@pytest.mark.parametrize("args", ["text", None, ForAnother()], ids=["text", "none", "another's"])
def test_a_built_in_plugin_only_ever_gets_arguments_of_its_type(name: str, args: object) -> None:
    plugins = "PrioritySort DefaultBinder " + name
    with pytest.raises(ConfigError, match=f"decoding args for plugin {name}: "):
        build_profiles([config("a", plugins, [(name, args)])], BUILT_IN, lambda _: make_handle())
