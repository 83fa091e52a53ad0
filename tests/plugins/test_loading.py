"""Plugins that are not built in are found, or missed with a clear word."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import ConfigError
from kubestow.plugins.loading import ENTRY_POINT_GROUP, load_plugins
from kubestow.plugins.registry import REGISTRY

MODULE = """
class RackSpread:
    name = "RackSpread"
    args_type = None

    class Inner:
        name = "Inner"
        args_type = None

class Posing(RackSpread):
    name = "NodeAffinity"

class Twin(RackSpread):
    pass

class Nameless:
    args_type = None

class Untyped:
    name = "Untyped"

def factory(args, handle):
    pass
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules `acme.rack`, `acme_broken` and `acme_needy` that can be imported."""
    package = tmp_path / "acme"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "rack.py").write_text(MODULE)
    (tmp_path / "acme_broken.py").write_text("1 / 0\n")
    (tmp_path / "acme_needy.py").write_text("import acme_never_made\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("acme", "acme.rack", "acme_broken", "acme_needy"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def config(*names: str, point: str = "multi_point") -> SchedulerConfig:
    enabled = PluginSet(enabled=tuple(PluginRef(name, 3) for name in names))
    return SchedulerConfig(profiles=(ProfileConfig(plugins=Plugins(**{point: enabled})),))


def offer(name: str, target: str) -> EntryPoint:
    return EntryPoint(name, target, ENTRY_POINT_GROUP)


def test_without_other_plugins_nothing_changes() -> None:
    loaded = load_plugins(config("NodeAffinity"))
    assert loaded.config == config("NodeAffinity")
    assert loaded.registry == REGISTRY


@pytest.mark.parametrize("point", ["multi_point", "score", "placement_score"])
def test_a_class_is_found_by_its_module(point: str) -> None:
    loaded = load_plugins(config("acme.rack:RackSpread", point=point))
    assert loaded.registry["RackSpread"].name == "RackSpread"
    # From here on it goes by its own name.
    assert loaded.config == config("RackSpread", point=point)
    assert set(loaded.registry) == {*REGISTRY, "RackSpread"}
    assert "RackSpread" not in REGISTRY


def test_a_class_inside_a_class() -> None:
    assert "Inner" in load_plugins(config("acme.rack:RackSpread.Inner")).registry


def test_its_arguments_and_what_disables_it_follow() -> None:
    profile = ProfileConfig(
        plugins=Plugins(
            multi_point=PluginSet(enabled=(PluginRef("acme.rack:RackSpread"),)),
            filter=PluginSet(disabled=(PluginRef("acme.rack:RackSpread"),)),
        ),
        plugin_config=(
            PluginConfig(name="acme.rack:RackSpread", args={"x": 1}),
            PluginConfig(name="NodeAffinity"),
        ),
    )
    (loaded,) = load_plugins(SchedulerConfig(profiles=(profile,))).config.profiles
    assert loaded.plugins.multi_point.enabled == (PluginRef("RackSpread"),)
    assert loaded.plugins.filter.disabled == (PluginRef("RackSpread"),)
    assert [entry.name for entry in loaded.plugin_config] == ["RackSpread", "NodeAffinity"]
    assert loaded.plugin_config[0].args == {"x": 1}


def test_an_entry_point_is_found_by_its_name() -> None:
    loaded = load_plugins(
        config("RackSpread"), entry_points=[offer("RackSpread", "acme.rack:RackSpread")]
    )
    assert loaded.config == config("RackSpread")
    assert loaded.registry["RackSpread"].name == "RackSpread"


def test_entry_points_that_are_not_enabled_are_not_loaded() -> None:
    loaded = load_plugins(config("NodeName"), entry_points=[offer("X", "acme_broken:X")])
    assert loaded.registry == REGISTRY
    assert "acme_broken" not in sys.modules


def test_the_same_class_by_both_ways_is_one_plugin() -> None:
    loaded = load_plugins(
        config("RackSpread", "acme.rack:RackSpread"),
        entry_points=[offer("RackSpread", "acme.rack:RackSpread")],
    )
    assert set(loaded.registry) == {*REGISTRY, "RackSpread"}


def test_a_plain_name_without_entry_point_is_left_to_the_profile() -> None:
    loaded = load_plugins(config("Foo"), entry_points=[])
    assert loaded.config == config("Foo")
    assert loaded.registry == REGISTRY


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(
            "acme_missing:X",
            'cannot load plugin "acme_missing:X": no module "acme_missing"; '
            "is it installed, or its folder on PYTHONPATH?",
            id="no-module",
        ),
        pytest.param(
            "acme.row:X",
            'cannot load plugin "acme.row:X": no module "acme.row"; '
            "is it installed, or its folder on PYTHONPATH?",
            id="no-module-in-the-package",
        ),
        pytest.param(
            "acme_needy:X",
            'cannot load plugin "acme_needy:X": importing module "acme_needy" failed: '
            "ModuleNotFoundError: No module named 'acme_never_made'",
            id="a-module-it-needs",
        ),
        pytest.param(
            "acme_broken:X",
            'cannot load plugin "acme_broken:X": importing module "acme_broken" failed: '
            "ZeroDivisionError: division by zero",
            id="a-module-that-fails",
        ),
        pytest.param(
            "acme.rack:Row",
            'cannot load plugin "acme.rack:Row": module "acme.rack" has no "Row"; '
            "its classes are Nameless, Posing, RackSpread, Twin, Untyped",
            id="no-class",
        ),
        pytest.param(
            "acme:X", 'cannot load plugin "acme:X": module "acme" has no "X"', id="no-classes"
        ),
        pytest.param(
            "acme.rack:",
            'cannot load plugin "acme.rack:": expected "module:Class", found "acme.rack:"',
            id="half-a-reference",
        ),
        pytest.param(
            "acme.rack:factory",
            'cannot load plugin "acme.rack:factory": found a function, expected a class',
            id="a-function",
        ),
        pytest.param(
            "acme.rack:Nameless",
            'cannot load plugin "acme.rack:Nameless": the class has no "name"; give it a text',
            id="nameless",
        ),
        pytest.param(
            "acme.rack:Untyped",
            'cannot load plugin "acme.rack:Untyped": the class has no "args_type"; '
            "set it to the type of its arguments, or to None if it takes none",
            id="untyped",
        ),
        pytest.param(
            "acme.rack:Posing", "a plugin named NodeAffinity already exists", id="a-name-in-use"
        ),
    ],
)
def test_a_class_that_cannot_be_loaded(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_plugins(config(name))
    assert str(raised.value) == message


def test_two_plugins_of_one_name() -> None:
    with pytest.raises(ConfigError, match="a plugin named RackSpread already exists"):
        load_plugins(config("acme.rack:RackSpread", "acme.rack:Twin"))


def test_two_packages_that_offer_one_name() -> None:
    offers = [offer("RackSpread", "acme.rack:RackSpread"), offer("RackSpread", "acme.rack:Twin")]
    with pytest.raises(ConfigError) as raised:
        load_plugins(config("RackSpread"), entry_points=offers)
    assert str(raised.value) == (
        'cannot load plugin "RackSpread": several packages offer it as an entry point of '
        '"kubestow.plugins": acme.rack:RackSpread, acme.rack:Twin; '
        "name the class you mean instead"
    )


def test_an_entry_point_with_another_name_than_its_class() -> None:
    with pytest.raises(ConfigError) as raised:
        load_plugins(config("Row"), entry_points=[offer("Row", "acme.rack:RackSpread")])
    assert str(raised.value) == (
        'cannot load plugin "Row" (entry point of "kubestow.plugins"): '
        'the class acme.rack:RackSpread is named "RackSpread"'
    )
