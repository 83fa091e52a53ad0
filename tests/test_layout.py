"""The tree keeps its promises: a newcomer opens it, guesses the right file, and is right."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "src" / "kubestow", ROOT / "tools"
MODULES = sorted(path.relative_to(ROOT) for package in PACKAGES for path in package.rglob("*.py"))
FOLDERS = sorted({module.parent for module in MODULES})
# The edition whose rules are the core's.
CORE_EDITION = "kubestow.editions.v1_36"
NEWEST_EDITION = "kubestow.editions.v1_37"
# A file is named after its subject; these name none.
NAMES_WITHOUT_SUBJECT = {"utils", "util", "helpers", "helper", "common", "misc"}
# How a description begins that has its subject in the one above.
FRAGMENT = re.compile(r"(The same|That of|Those of|Of|Likewise)\b")


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_every_folder_is_a_package(folder: Path) -> None:
    assert (ROOT / folder / "__init__.py").is_file()


@cache
def _tree(module: Path) -> ast.Module:
    return ast.parse((ROOT / module).read_text(encoding="utf-8"))


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_file_opens_by_saying_why_it_exists(module: Path) -> None:
    assert ast.get_docstring(_tree(module))


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_no_description_is_a_part_of_the_one_above(module: Path) -> None:
    """An editor shows each by itself, and a search finds it alone."""
    described = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    texts = [
        ast.get_docstring(node) for node in ast.walk(_tree(module)) if isinstance(node, described)
    ]
    assert [text for text in texts if text and FRAGMENT.match(text)] == []


def test_every_file_is_named_after_its_subject() -> None:
    names = {part for module in MODULES for part in (*module.parent.parts, module.stem)}
    assert not names & NAMES_WITHOUT_SUBJECT


def test_test_folders_are_no_packages() -> None:
    # With packages among them, files of the same name in two folders could shadow each other.
    assert not list((ROOT / "tests").rglob("__init__.py"))


def _layer_contracts() -> list[dict[str, list[str]]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return [contract for contract in contracts if contract["type"] == "layers"]


@pytest.mark.parametrize("contract", _layer_contracts(), ids=lambda contract: contract["name"])
def test_the_layers_name_no_folder_twice(contract: dict[str, list[str]]) -> None:
    names = [name.strip(" ()") for layer in contract["layers"] for name in layer.split("|")]
    assert len(names) == len(set(names))


def _loaded_by(*arguments: str) -> set[str]:
    """The parts of this package that a command line loads, in a process of its own."""
    code = (
        "import sys\n"
        "from kubestow.service.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('loaded:', *sys.modules)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True
    ).stdout
    names = output.rpartition("loaded:")[2].split()
    return {name for name in names if name.startswith("kubestow.")}


def test_the_running_scheduler_loads_no_api_server_and_no_simulator() -> None:
    loaded = _loaded_by("run", "--kubeconfig=missing")
    assert "kubestow.engine.scheduler" in loaded
    assert not {name.split(".")[1] for name in loaded} & {"apiserver", "simulator"}


def test_the_running_scheduler_loads_only_what_it_is_asked_for() -> None:
    loaded = _loaded_by("run", "--kubeconfig=missing")
    on_demand = {"web", "recording", "cel", "linear_regex"}
    assert not {name.split(".")[1] for name in loaded} & on_demand
    # Attempts are kept from the start, as they may be asked for at any time.
    kept = {"kubestow.explain", "kubestow.explain.history", "kubestow.explain.running_pod"}
    assert {name for name in loaded if name.startswith("kubestow.explain")} == kept


@pytest.mark.parametrize(
    ("arguments", "work"),
    [
        (("run", "--kubeconfig=missing"), "run.process"),
        (("simulate", "-f", "missing"), "simulate.files"),
        (("conformance", "missing"), "conformance.replay"),
    ],
)
def test_an_older_version_is_loaded_when_it_is_asked_for(
    arguments: tuple[str, ...], work: str
) -> None:
    loaded = _loaded_by(*arguments)
    assert f"kubestow.service.commands.{work}" in loaded
    # The newest one decides on files.
    modern = (CORE_EDITION, NEWEST_EDITION) if work == "simulate.files" else (CORE_EDITION,)
    assert not [
        name
        for name in loaded
        if name.startswith("kubestow.editions.v1_") and not name.startswith(modern)
    ]
