"""The package imports what it declares: nothing that only development has, and no tool."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
MODULES = sorted((SOURCES / "kubestow").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOCK = ROOT / "requirements" / "runtime.txt"


def distribution(requirement: str) -> str:
    """`vl-convert-python` of "vl_convert.python>=1.7", as the registry compares names."""
    name = re.match(r"[\w.-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def imported_as(requirements: list[str]) -> set[str]:
    """The names under which what these distributions have is imported."""
    wanted = {distribution(requirement) for requirement in requirements}
    return {
        name
        for name, homes in packages_distributions().items()
        if wanted & {distribution(home) for home in homes}
    }


OPTIONAL = imported_as([each for extra in EXTRAS.values() for each in extra])


def imports(path: Path) -> Iterator[str]:
    """The packages that a file names in imports, those inside of functions as well."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_every_import_is_declared() -> None:
    declared = imported_as(PROJECT["dependencies"]) | OPTIONAL
    assert {"yaml", "prometheus_client", "vl_convert"} <= declared
    known = declared | sys.stdlib_module_names | {"kubestow"}
    missing = {
        (str(path.relative_to(SOURCES)), name)
        for path in MODULES
        for name in imports(path)
        if name not in known
    }
    assert missing == set()


# Imports each module where the refused packages cannot be found, and prints which of them each
# module lacks.
IMPORT_ALL = """
import importlib, json, sys

refused, modules = json.load(sys.stdin)

class NotThese:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotThese())
lacking = {}
for module in modules:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        lacking[module] = error.name
print(json.dumps(lacking))
"""


@pytest.mark.slow
def test_every_module_imports_with_what_running_needs() -> None:
    locked = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if "==" in line]
    refused = packages_distributions().keys() - imported_as(locked) - {"kubestow"}
    assert {"hypothesis", "pytest"} <= refused
    names = [".".join(path.relative_to(SOURCES).with_suffix("").parts) for path in MODULES]
    modules = [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        input=json.dumps([sorted(refused), modules]),
        check=True,
        capture_output=True,
        text=True,
    )
    lacking = json.loads(done.stdout)
    assert lacking  # what draws charts
    assert set(lacking.values()) <= OPTIONAL
