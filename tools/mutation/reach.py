"""Which test runs which statement, and how long it takes.

The sources are copied with a store before every statement (`_ran[17] = 1`), the tests run once on
that copy, and `recorder` keeps what each of them stored. A change of one statement then needs only
the tests that run it. The result is kept in a file: after a change only those tests run again that
changed, or that run a statement of a source that did.
"""

import ast
import builtins
import hashlib
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from tools.mutation.copies import copied_tree, searched
from tools.mutation.sites import PACKAGE

# Tests of documents, of packaging and of real clusters take minutes and run programs, not calls.
LEFT_OUT: Final = (
    "tests/e2e",
    "tests/bench",
    "tests/docs",
    "tests/deploy",
    "tests/tools/mutation",
)
RECORD_VARIABLE: Final = "KUBESTOW_MUTATION_RECORD"
_SIZE: Final = 1 << 17  # statements that can be counted
_STORE: Final = "_ran"

Place = tuple[str, int]  # file relative to the repository, line of the statement


class KnownTest(NamedTuple):
    """What is known of one test."""

    name: str  # pytest's node id
    seconds: float
    lines: dict[str, list[int]]  # that it runs, by source file

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


class ReachFile(msgspec.Struct):
    """What is kept. A digest is that of a file at the time its tests ran."""

    sources: dict[str, str] = {}
    test_files: dict[str, str] = {}
    tests: dict[str, KnownTest] = {}


class ReachMap:
    """Answers which tests run a statement."""

    def __init__(self, tests: list[KnownTest]) -> None:
        self._by_place: dict[Place, list[KnownTest]] = defaultdict(list)
        self._by_file: dict[str, dict[str, KnownTest]] = defaultdict(dict)
        self._by_test_file: dict[str, list[KnownTest]] = defaultdict(list)
        for test in tests:
            self._by_test_file[test.file].append(test)
            for path, lines in test.lines.items():
                self._by_file[path][test.name] = test
                for line in set(lines):
                    self._by_place[path, line].append(test)

    def tests_of(self, place: Place) -> list[KnownTest]:
        """The tests that run it. What runs on import alone may be noticed by any test that runs
        something of that file, and declarations alone by any test."""
        return (
            self._by_place.get(place)
            or list(self._by_file.get(place[0], {}).values())
            or self.all_tests()
        )

    def all_tests(self) -> list[KnownTest]:
        return [test for tests in self._by_test_file.values() for test in tests]

    def tests_in(self, test_file: str) -> list[KnownTest]:
        return self._by_test_file.get(test_file, [])


def load_reach(
    root: Path, packages: tuple[str, ...], kept: Path, progress: Callable[[str], None]
) -> ReachMap:
    """Read what is kept of the tests, and run those that changed or whose sources did."""
    sources = {_name(root, path): _digest(path) for path in _sources(root, packages)}
    test_files = {_name(root, path): _digest(path) for path in _test_files(root)}
    record = ReachFile()
    if kept.exists():
        record = msgspec.json.decode(kept.read_bytes(), type=ReachFile)
    forget(record, sources, test_files)
    record.sources = sources
    stale = [name for name in test_files if name not in record.test_files]
    if stale:
        with copied_tree(root) as copy:
            statements = _instrument(copy, packages)
            folders = _by_folder(stale)
            for index, (folder, members) in enumerate(folders.items()):
                progress(f"running {folder} once, {index + 1} of {len(folders)}")
                record.tests |= _recorded(copy, members, statements)
                record.test_files |= {name: test_files[name] for name in members}
                kept.write_bytes(msgspec.json.encode(record))
    return ReachMap(list(record.tests.values()))


def forget(record: ReachFile, sources: dict[str, str], test_files: dict[str, str]) -> None:
    """Drop the tests of files that changed or are gone, or that ran a source that did."""
    changed = {name for name, digest in record.sources.items() if sources.get(name) != digest}
    stale = {name for name, digest in record.test_files.items() if test_files.get(name) != digest}
    stale |= {test.file for test in record.tests.values() if not changed.isdisjoint(test.lines)}
    for name in stale:
        record.test_files.pop(name, None)
    record.tests = {name: test for name, test in record.tests.items() if test.file not in stale}


def _by_folder(files: list[str]) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = defaultdict(list)
    for file in files:
        folders[file.rpartition("/")[0]].append(file)
    return folders


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _sources(root: Path, packages: tuple[str, ...]) -> list[Path]:
    folders = [root / PACKAGE / package for package in packages]
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def _test_files(root: Path) -> Iterator[Path]:
    for path in sorted((root / "tests").rglob("test_*.py")):
        if not path.relative_to(root).as_posix().startswith(LEFT_OUT):
            yield path


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _recorded(copy: Path, files: list[str], statements: list[Place]) -> dict[str, KnownTest]:
    """Run these test files. A test that fails even now cannot find anything, and is left out."""
    record = copy / "record.json"
    record.write_text("{}")
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider"]
    command += ["-p", "tools.mutation.recorder", *files]
    subprocess.run(
        command,
        cwd=copy,
        env={**os.environ, "PYTHONPATH": searched(copy), RECORD_VARIABLE: str(record)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    tests = msgspec.json.decode(record.read_bytes(), type=dict[str, tuple[float, list[int]]])
    return {
        name: KnownTest(name, seconds, _lines_of(ran, statements))
        for name, (seconds, ran) in tests.items()
    }


def _lines_of(ran: list[int], statements: list[Place]) -> dict[str, list[int]]:
    lines: dict[str, list[int]] = defaultdict(list)
    for number in ran:
        path, line = statements[number]
        lines[path].append(line)
    return lines


# --- a store before every statement --------------------------------------------------------------


def ran_statements() -> bytearray:
    """What this process ran since it was cleared: 1 where a statement did."""
    name = f"_kubestow{_STORE}"
    if not hasattr(builtins, name):
        setattr(builtins, name, bytearray(_SIZE))
    return getattr(builtins, name)


def _instrument(copy: Path, packages: tuple[str, ...]) -> list[Place]:
    """Change the sources of the copy. Returns the statement that each number means."""
    statements: list[Place] = []
    for path in _sources(copy, packages):
        source = path.read_text(encoding="utf-8")
        path.write_text(instrumented(source, _name(copy, path), statements))
    assert len(statements) < _SIZE, len(statements)
    return statements


def instrumented(source: str, path: str, statements: list[Place]) -> str:
    tree = ast.parse(source)
    for node in list(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if not isinstance(body, list) or isinstance(node, ast.Module | ast.ClassDef):
                continue
            stored: list[ast.stmt] = []
            for statement in body:  # pyright: ignore
                assert isinstance(statement, ast.stmt)
                if not (not stored and _is_docstring(statement)):
                    stored += ast.parse(f"{_STORE}[{len(statements)}] = 1").body
                    statements.append((path, statement.lineno))
                stored.append(statement)
            body[:] = stored
    head = ast.parse(
        f"import builtins as _b\n{_STORE} = _b.__dict__.setdefault("
        f"'_kubestow{_STORE}', bytearray({_SIZE}))"
    ).body
    first = 1 if ast.get_docstring(tree) is not None else 0
    tree.body[first:first] = head
    return ast.unparse(ast.fix_missing_locations(tree))


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
