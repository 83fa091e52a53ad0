"""The tree keeps its promises: a newcomer opens it, guesses the right file, and is right."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "kubestow"
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
FOLDERS = sorted({module.parent for module in MODULES})
# A file is named after its subject; these name none.
NAMES_WITHOUT_SUBJECT = {"utils", "util", "helpers", "helper", "common", "misc"}


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_every_folder_is_a_package(folder: Path) -> None:
    assert (PACKAGE / folder / "__init__.py").is_file()


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_file_opens_by_saying_why_it_exists(module: Path) -> None:
    assert ast.get_docstring(ast.parse((PACKAGE / module).read_text(encoding="utf-8")))


def test_every_file_is_named_after_its_subject() -> None:
    names = {part for module in MODULES for part in (*module.parent.parts, module.stem)}
    assert not names & NAMES_WITHOUT_SUBJECT


def test_test_folders_are_no_packages() -> None:
    # With packages among them, files of the same name in two folders could shadow each other.
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_the_layers_name_no_folder_twice() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    names = [name.strip(" ()") for layer in contract["layers"] for name in layer.split("|")]
    assert len(names) == len(set(names))
