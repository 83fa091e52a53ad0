"""docs/caches.md is true, and leaves out nothing that is kept in one of the usual ways."""

import ast
import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kubestow"
MODULES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))
PAGE = ROOT / "docs" / "caches.md"

# What keeps things: ordered and weak tables, and functions with a cache.
TABLES = {"OrderedDict", "WeakValueDictionary", "WeakKeyDictionary", "WeakSet"}
REMEMBERING = {"cache", "cached_property", "lru_cache"}


class Row(NamedTuple):
    """One row of a table: the module, the names beside it, and the other cells."""

    module: str
    names: tuple[str, ...]
    cells: tuple[str, ...]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def rows() -> Iterator[Row]:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            module, *names = quoted(first)
            yield Row(module, tuple(names), tuple(cells))


ROWS = list(rows())
CACHES = [row for row in ROWS if len(row.cells) == 5]
FUNCTIONS = [row for row in ROWS if len(row.cells) == 2]


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
    """Everything that rows on this module name."""
    return frozenset(
        name
        for row in ROWS
        if row.module == module
        for name in (*row.names, *(token for cell in row.cells for token in quoted(cell)))
    )


# --- What the page says exists ---


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join((row.module, *row.names)))
def test_every_name_exists(row: Row) -> None:
    path = PACKAGE / row.module
    assert path.is_file()
    assert set(row.names) <= defined(path)
    for cell in row.cells:
        for token in quoted(cell):
            if token.endswith(".py"):
                assert (PACKAGE / token).is_file()
            elif re.fullmatch(r"[A-Z]\w*[a-z]\w*", token):
                assert any(token in defined(PACKAGE / module) for module in MODULES), token


@pytest.mark.parametrize("row", CACHES, ids=lambda row: " ".join((row.module, *row.names)))
def test_every_row_has_tests_that_exist(row: Row) -> None:
    tests = quoted(row.cells[-1])
    assert tests
    for test in tests:
        file, _, name = test.partition("::")
        assert name in defined(ROOT / "tests" / file), test


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join((row.module, *row.names)))
def test_every_constant_has_the_value_on_the_page(row: Row) -> None:
    for cell in row.cells:
        for name, number in re.findall(r"`(_?[A-Z][A-Z0-9_]+)`(?: (\d[\d,]*))?", cell):
            home = row.module
            if name not in defined(PACKAGE / home):
                (home,) = (module for module in MODULES if name in defined(PACKAGE / module))
            if number:
                assert getattr(imported(home), name) == int(number.replace(",", ""))


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: " ".join((row.module, *row.names)))
def test_every_function_remembers_as_much_as_the_page_says(row: Row) -> None:
    number = re.search(r"\d[\d,]*$", row.cells[-1])
    for name in row.names:
        cache_info = getattr(getattr(imported(row.module), name, None), "cache_info", None)
        if cache_info is not None and cache_info().maxsize is not None:
            assert number is not None
            assert cache_info().maxsize == int(number.group().replace(",", ""))


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


def test_every_limit_is_on_the_page() -> None:
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
