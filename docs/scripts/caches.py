"""Writes the tables of docs/caches.md, from docs/caches.toml and the numbers in the code."""

import importlib
import inspect
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pages import ROOT, replace_section

PAGE: Final = ROOT / "docs" / "caches.md"
DATA: Final = ROOT / "docs" / "caches.toml"
PACKAGE: Final = ROOT / "src" / "kubestow"

Entry = Mapping[str, Any]

_COLUMNS: Final = ("key", "what is kept", "dropped when", "limit", "where", "test")
_FUNCTION_COLUMNS: Final = ("what is kept", "limit", "function")
_MEMO_COLUMNS: Final = ("what is kept", "dropped when", "where")
_CONSTANT: Final = re.compile(r"`(_?[A-Z][A-Z0-9_]+)`")


def load() -> dict[str, Any]:
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def render(text: str, data: Mapping[str, Any]) -> str:
    """The page with its tables made again; ValueError if a section of the data is not on it."""
    sections = dict.fromkeys(entry["section"] for entry in data["cache"])
    for section in sections:
        rows = [_cache_row(entry) for entry in data["cache"] if entry["section"] == section]
        text = replace_section(text, section, _table(_COLUMNS, rows))
    functions = [_function_row(entry) for entry in data["function"]]
    text = replace_section(text, "functions", _table(_FUNCTION_COLUMNS, functions))
    memos = [(entry["kept"], entry["dropped"], _place(entry)) for entry in data["memo"]]
    return replace_section(text, "last values", _table(_MEMO_COLUMNS, memos))


def _cache_row(entry: Entry) -> tuple[str, ...]:
    cells = (entry.get(name, "") for name in ("key", "kept", "dropped", "limit"))
    files = dict.fromkeys(test.partition("::")[0] for test in entry["tests"])
    tests = " ".join(f"`{file}`" for file in files)
    return (*(_with_numbers(cell, entry["where"]) for cell in cells), _place(entry), tests)


def _function_row(entry: Entry) -> tuple[str, ...]:
    limit = entry.get("limit") or f"{_remembered(entry):,}"
    return (entry["kept"], _with_numbers(limit, entry["where"]), _place(entry))


def _place(entry: Entry) -> str:
    names = entry.get("names") or [entry["class"]]
    return " ".join(f"`{name}`" for name in (entry["where"], *names))


def _remembered(entry: Entry) -> int:
    """How many results all functions of the entry keep."""
    module = _imported(entry["where"])
    functions = [getattr(module, name) for name in entry["names"]]
    # Without arguments there is one result.
    (size,) = {
        each.cache_info().maxsize if inspect.signature(each).parameters else 1 for each in functions
    }
    return size


def _with_numbers(text: str, where: str) -> str:
    """The text with the value of each constant after its name."""

    def numbered(found: re.Match[str]) -> str:
        value = getattr(_imported(_home(found[1], where)), found[1])
        return f"{found[0]} {value:,}" if isinstance(value, int) else found[0]

    return _CONSTANT.sub(numbered, text)


def _home(constant: str, where: str) -> str:
    """The module that sets the constant: that of the entry, or the only other one."""
    setting = re.compile(rf"^{constant}\b[^=\n]*= ", re.MULTILINE)
    if setting.search((PACKAGE / where).read_text(encoding="utf-8")):
        return where
    (home,) = (path for path in PACKAGE.rglob("*.py") if setting.search(_text(path)))
    return home.relative_to(PACKAGE).as_posix()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _imported(where: str) -> object:
    return importlib.import_module(f"kubestow.{where.removesuffix('.py').replace('/', '.')}")


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(columns)
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8"), load()), encoding="utf-8")
