"""What every edition has to have, whichever version it is."""

import tomllib
from pathlib import Path

import pytest

from kubestow.config.defaults import default_plugins
from kubestow.config.feature_gates import FeatureGates, parse_gates
from kubestow.config.profile import enabled_names
from kubestow.editions import NEWEST, edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.edition import Edition, ModernVersion, Version
from kubestow.editions.v1_20.profiles import default_profile
from kubestow.errors import ConfigError

ROOT = Path(__file__).parents[2]
EDITIONS = [edition_named(version) for version in Version]
WITH_PLUGINS = [edition for edition in EDITIONS if edition.has_plugins]


def test_a_version_is_a_folder_and_a_folder_is_a_version() -> None:
    folders = {path.name for path in (ROOT / "src/kubestow/editions").glob("v*")}
    assert folders == {version.replace(".", "_") for version in Version}


def test_modern_versions_are_those_of_modern_editions() -> None:
    modern = [edition.version for edition in EDITIONS if edition.is_modern]
    assert list(map(str, ModernVersion)) == modern


def test_every_edition_is_protected_from_imports() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        contract
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["name"] == "Only what chooses an edition imports one"
    )
    folders = {f"kubestow.editions.{version.replace('.', '_')}" for version in Version}
    assert set(contract["protected_modules"]) == {*folders, "kubestow.editions.shared"}


def test_an_edition_is_found_by_its_version() -> None:
    assert [edition.version for edition in EDITIONS] == list(Version)
    assert EDITIONS[0].version == NEWEST
    with pytest.raises(
        ConfigError, match=r'is "v1\.8", expected one of v1\.17, v1\.20, v1\.36, v1\.37, v1'
    ):
        edition_named("v1.8")


@pytest.mark.parametrize("edition", EDITIONS, ids=lambda edition: edition.version)
def test_gates_need_gates_that_exist(edition: Edition) -> None:
    for name, gate in edition.gates.items():
        assert set(gate.needs) <= edition.gates.keys(), name
    assert edition.gated_plugins.keys() <= edition.gates.keys()
    assert not edition.gates.keys() & edition.other_gates.keys()


@pytest.mark.parametrize("edition", EDITIONS, ids=lambda edition: edition.version)
def test_an_unknown_gate_is_refused(edition: Edition) -> None:
    with pytest.raises(ConfigError, match="unrecognized feature gate: Unheard"):
        parse_gates(["Unheard=true"], edition)


def test_an_edition_with_few_gates_names_them() -> None:
    with pytest.raises(ConfigError, match=r"; with v1\.9 it can be EnableEquivalenceClassCache$"):
        parse_gates(["SchedulerQueueingHints=true"], edition_named("v1.9"))
    with pytest.raises(ConfigError, match=r"; with v1\.17 it can be none$"):
        parse_gates(["EnableEquivalenceClassCache=true"], edition_named("v1.17"))


@pytest.mark.parametrize("edition", WITH_PLUGINS, ids=lambda edition: edition.version)
def test_the_default_plugins_of_an_edition_are_among_its_plugins(edition: Edition) -> None:
    gates = FeatureGates({}, edition)
    plugins = default_plugins(gates) if edition.is_modern else default_profile(gates).plugins
    names = enabled_names(plugins)
    assert names
    assert set(names) <= rules_of(edition).registry.keys()


def test_the_edition_without_plugins_has_no_rules_of_plugins() -> None:
    with pytest.raises(ConfigError, match=r"v1\.9 has no plugins"):
        rules_of(edition_named("v1.9"))


@pytest.mark.parametrize("edition", EDITIONS, ids=lambda edition: edition.version)
def test_a_gate_without_its_rules_stays_off(edition: Edition) -> None:
    assert edition.missing_gates <= edition.gates.keys()
    for name in edition.missing_gates:
        with pytest.raises(ConfigError, match=f"cannot set feature gate {name} to true: kubestow"):
            parse_gates([f"{name}=true"], edition)
        assert not parse_gates([f"{name}=false"], edition).enabled(name)
        assert not parse_gates(["AllAlpha=true"], edition).enabled(name)
