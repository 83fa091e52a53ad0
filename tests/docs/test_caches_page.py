"""docs/caches.md is true, and leaves out nothing that is kept in one of the usual ways."""

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeGuard

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "scripts"))

from caches import PACKAGE, PAGE, load, render  # noqa: E402  (found through the line above)

MODULES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))

# What keeps things: ordered and weak tables, and functions with a cache.
TABLES = {"OrderedDict", "WeakValueDictionary", "WeakKeyDictionary", "WeakSet"}
REMEMBERING = {"cache", "cached_property", "lru_cache"}
# Where a last value that is wrong would be a wrong decision.
DECIDING = ("api", "cache", "cluster", "engine", "framework", "index", "plugins", "queue")


class Row(NamedTuple):
    """One entry: the module, the names in it, and what is written about them."""

    module: str
    names: tuple[str, ...]
    texts: tuple[str, ...]
    tests: tuple[str, ...] = ()


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def rows(table: str, *texts: str) -> list[Row]:
    return [
        Row(
            entry["where"],
            tuple(entry.get("names") or [entry["class"]]),
            tuple(entry.get(text, "") for text in texts),
            tuple(entry.get("tests", ())),
        )
        for entry in DATA[table]
    ]


DATA = load()
CACHES = rows("cache", "key", "kept", "dropped", "limit")
FUNCTIONS = rows("function", "kept", "limit")
MEMOS = rows("memo", "kept", "dropped")
ROWS = [*CACHES, *FUNCTIONS, *MEMOS]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def defined(path: Path) -> frozenset[str]:
    """Classes and functions of a file, wherever they are, and the names of the module."""
    found = {
        node.name
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return frozenset(found | {name for name, _ in assigned(path)})


def assigned(path: Path) -> Iterator[tuple[str, ast.expr | None]]:
    for node in tree(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if isinstance(node, ast.AnnAssign):
            targets = (node.target,)
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value  # type: ignore[union-attr]


def imported(module: str) -> object:
    return importlib.import_module(f"kubestow.{module.removesuffix('.py').replace('/', '.')}")


@cache
def on_page(module: str) -> frozenset[str]:
    """Everything that rows on this module name, and its limits that keep nothing."""
    named = {
        name
        for row in ROWS
        if row.module == module
        for name in (*row.names, *(token for text in row.texts for token in quoted(text)))
    }
    return frozenset(named | {*DATA["keeps_nothing"].get(module, ())})


def test_the_tables_are_those_of_the_data() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert render(text, DATA) == text, "`make docs` writes the page again"


def test_numbers_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubestow.api.disruption.COVERED_MAX", 7)
    assert "| `COVERED_MAX` 7 |" in render(PAGE.read_text(encoding="utf-8"), DATA)


# --- What the page says exists ---


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join((row.module, *row.names)))
def test_every_name_exists(row: Row) -> None:
    path = PACKAGE / row.module
    assert path.is_file()
    assert set(row.names) <= defined(path)
    for text in row.texts:
        for token in quoted(text):
            if token.endswith(".py"):
                assert (PACKAGE / token).is_file()
            elif re.fullmatch(r"[A-Z]\w*[a-z]\w*", token):
                assert any(token in defined(PACKAGE / module) for module in MODULES), token


@pytest.mark.parametrize("row", CACHES, ids=lambda row: " ".join((row.module, *row.names)))
def test_every_row_has_tests_that_exist(row: Row) -> None:
    assert row.tests
    for test in row.tests:
        file, _, name = test.partition("::")
        assert name in defined(ROOT / "tests" / file), test


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: " ".join((row.module, *row.names)))
def test_a_function_with_a_limit_names_it(row: Row) -> None:
    """A limit in words has to have the constant; without words it is read from the code."""
    for name in row.names:
        cache_info = getattr(getattr(imported(row.module), name, None), "cache_info", None)
        if row.texts[1] and cache_info is not None and cache_info().maxsize not in (None, 1):
            sizes = {getattr(imported(row.module), token, 0) for token in quoted(row.texts[1])}
            assert cache_info().maxsize in sizes


def test_what_keeps_nothing_exists_and_has_no_row() -> None:
    for module, names in DATA["keeps_nothing"].items():
        assert {*names} <= {name for name, _ in assigned(PACKAGE / module)}, module
        texts = [text for row in ROWS if row.module == module for text in row.texts]
        assert not {*names} & {token for text in texts for token in quoted(text)}, module


# --- What exists is on the page ---


def base_names(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).partition("[")[0] for base in node.bases}


def test_every_follower_is_on_the_page() -> None:
    classes = {
        (module, node.name): base_names(node)
        for module in MODULES
        for node in ast.walk(tree(PACKAGE / module))
        if isinstance(node, ast.ClassDef)
    }
    followers = {"Follower"}
    while True:
        more = {name for (_, name), bases in classes.items() if bases & followers}
        if more <= followers:
            break
        followers |= more
    assert len(followers) > 5
    assert [key for key in classes if key[1] in followers and key[1] not in on_page(key[0])] == []


def missing(found: Callable[[Path], Iterable[str]]) -> list[tuple[str, str]]:
    """What is found in some module and not on the page."""
    return [
        (module, name)
        for module in MODULES
        for name in set(found(PACKAGE / module)) - on_page(module)
    ]


def test_every_limit_is_in_the_data() -> None:
    assert missing(lambda path: [name for name, _ in assigned(path) if name.endswith("_MAX")]) == []


def test_every_function_that_remembers_is_on_the_page() -> None:
    assert missing(remembering_functions) == []


def remembering_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if any(text.partition("(")[0].rpartition(".")[2] in REMEMBERING for text in decorators):
                yield node.name


def test_every_ordered_or_weak_table_is_on_the_page() -> None:
    assert missing(holders_of_tables) == []


def holders_of_tables(path: Path) -> Iterator[str]:
    for name, value in assigned(path):
        if value is not None and makes_table(value):
            yield name
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ClassDef) and makes_table(node):
            yield node.name


def makes_table(node: ast.AST) -> bool:
    return any(
        isinstance(call, ast.Call)
        and ast.unparse(call.func).partition("[")[0].rpartition(".")[2] in TABLES
        for call in ast.walk(node)
    )


# --- Last values ---


def attributes_of_memos() -> dict[tuple[str, str], set[str]]:
    return {(entry["where"], entry["class"]): {*entry["attributes"]} for entry in DATA["memo"]}


def test_every_last_value_is_in_the_data() -> None:
    known = attributes_of_memos()
    for place, names in DATA["progress"].items():
        module, _, holder = place.partition(" ")
        assert set(names) <= last_values(PACKAGE / module)[holder], place
        known.setdefault((module, holder), set()).update(names)
    missing = {
        (module, holder): names - known.get((module, holder), set())
        for module in MODULES
        if module.startswith(tuple(f"{folder}/" for folder in DECIDING))
        for holder, names in last_values(PACKAGE / module).items()
    }
    assert {place: names for place, names in missing.items() if names} == {}


def test_every_attribute_of_a_last_value_exists() -> None:
    for (module, holder), names in attributes_of_memos().items():
        (found,) = (
            node
            for node in ast.walk(tree(PACKAGE / module))
            if isinstance(node, ast.ClassDef) and node.name == holder
        )
        assert names <= {
            node.attr for node in ast.walk(found) if isinstance(node, ast.Attribute)
        }, holder


def test_a_last_value_is_one_that_a_method_reads_writes_and_returns(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "class Memo:\n"
        "    def __init__(self):\n"
        "        self._last: int | None = None\n"
        "        self._other = None\n"
        "    def value(self):\n"
        "        if self._last is None:\n"
        "            self._last = 1\n"
        "        return self._last\n"
        "    def forget(self):\n"
        "        self._other = None\n"
    )
    assert last_values(path) == {"Memo": {"_last"}}


def last_values(path: Path) -> dict[str, set[str]]:
    """By class: attributes that begin as None and that a method with a result reads and writes."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.ClassDef):
            continue
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        empty = {
            target.attr
            for method in methods
            if method.name == "__init__"
            for statement in ast.walk(method)
            if isinstance(statement, ast.Assign | ast.AnnAssign)
            and isinstance(statement.value, ast.Constant)
            and statement.value.value is None
            for target in (
                statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            )
            if isinstance(target, ast.Attribute)
        }
        for method in methods:
            has_result = any(
                isinstance(each, ast.Return) and each.value is not None for each in ast.walk(method)
            )
            if method.name != "__init__" and has_result:
                used = [each for each in ast.walk(method) if is_own_attribute(each)]
                read = {each.attr for each in used if isinstance(each.ctx, ast.Load)}
                written = {each.attr for each in used if isinstance(each.ctx, ast.Store)}
                if names := empty & read & written:
                    found.setdefault(node.name, set()).update(names)
    return found


def is_own_attribute(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )
