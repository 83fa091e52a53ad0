"""Which test runs which statement, and how long it takes.

The sources are copied with a store before every statement (`_ran[17] = 1`), the tests run once on
that copy, and `recorder` keeps what each of them stored. A change of one statement then needs only
the tests that run it. The result is kept in a file: after a change of some tests only these run
again, after a change of the sources all of them.
"""

import ast
import builtins
import hashlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubestow.testing.mutation.copies import copied_tree, searched
from kubestow.testing.mutation.sites import PACKAGE

# Tests of documents, of packaging and of real clusters take minutes and run programs, not calls.
LEFT_OUT: Final = (
    "tests/e2e",
    "tests/bench",
    "tests/docs",
    "tests/deploy",
    "tests/testing/mutation",
)
RECORD_VARIABLE: Final = "KUBESTOW_MUTATION_RECORD"
_SIZE: Final = 1 << 17  # statements that can be counted
_STORE: Final = "_ran"

Place = tuple[str, int]  # file relative to the repository, line of the statement


class KnownTest(NamedTuple):
    """What is known of one test."""

    name: str  # pytest's node id
    seconds: float
    places: frozenset[Place]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


class Reach:
    """Answers which tests run a statement."""

    def __init__(self, tests: list[KnownTest]) -> None:
        self._by_place: dict[Place, list[KnownTest]] = defaultdict(list)
        self._by_file: dict[str, dict[str, KnownTest]] = defaultdict(dict)
        self._by_test_file: dict[str, list[KnownTest]] = defaultdict(list)
        for test in tests:
            self._by_test_file[test.file].append(test)
            for path, line in test.places:
                self._by_place[path, line].append(test)
                self._by_file[path][test.name] = test

    def tests_of(self, place: Place) -> list[KnownTest]:
        """Those that run it. What runs on import alone may be noticed by any test that runs
        something of that file, and declarations alone by any test."""
        return (
            self._by_place.get(place)
            or list(self._by_file.get(place[0], {}).values())
            or [test for tests in self._by_test_file.values() for test in tests]
        )

    def tests_in(self, test_file: str) -> list[KnownTest]:
        return self._by_test_file.get(test_file, [])


def load_reach(
    root: Path, packages: tuple[str, ...], kept: Path, progress: Callable[[str], None]
) -> Reach:
    """Read what is kept of the tests, and run those that changed."""
    sources = _digest(_sources(root, packages))
    files = {path.relative_to(root).as_posix(): _digest([path]) for path in _test_files(root)}
    record: Any = json.loads(kept.read_text()) if kept.exists() else {}
    if record.get("sources") != sources:
        record = {"sources": sources, "statements": [], "files": {}, "tests": {}}
    _forget(record, files)
    stale = [name for name in files if name not in record["files"]]
    if stale:
        with copied_tree(root) as copy:
            record["statements"] = _instrument(copy, packages)
            folders = _by_folder(stale)
            for index, (folder, members) in enumerate(folders.items()):
                progress(f"running {folder} once, {index + 1} of {len(folders)}")
                record["tests"] |= _recorded(copy, members)
                record["files"] |= {name: files[name] for name in members}
                kept.write_text(json.dumps(record))
    return Reach(
        [_test(name, test, record["statements"]) for name, test in record["tests"].items()]
    )


def _forget(record: Any, files: dict[str, str]) -> None:
    """Drop the tests of files that changed or are gone."""
    record["files"] = {
        name: digest for name, digest in record["files"].items() if files.get(name) == digest
    }
    record["tests"] = {
        name: test
        for name, test in record["tests"].items()
        if name.partition("::")[0] in record["files"]
    }


def _by_folder(files: list[str]) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = defaultdict(list)
    for file in files:
        folders[file.rpartition("/")[0]].append(file)
    return folders


def _test(name: str, record: tuple[float, list[int]], statements: list[Place]) -> KnownTest:
    seconds, ran = record
    return KnownTest(name, seconds, frozenset((statements[n][0], statements[n][1]) for n in ran))


def _sources(root: Path, packages: tuple[str, ...]) -> list[Path]:
    folders = [root / PACKAGE / package for package in packages]
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def _test_files(root: Path) -> Iterator[Path]:
    for path in sorted((root / "tests").rglob("test_*.py")):
        if not path.relative_to(root).as_posix().startswith(LEFT_OUT):
            yield path


def _digest(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _recorded(copy: Path, files: list[str]) -> dict[str, tuple[float, list[int]]]:
    """Run these test files. A test that fails even now cannot find anything, and is left out."""
    record = copy / "record.json"
    record.write_text("{}")
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider"]
    command += ["-p", "kubestow.testing.mutation.recorder", *files]
    subprocess.run(
        command,
        cwd=copy,
        env={**os.environ, "PYTHONPATH": searched(copy), RECORD_VARIABLE: str(record)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return json.loads(record.read_text())


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
        name = path.relative_to(copy).as_posix()
        path.write_text(instrumented(path.read_text(encoding="utf-8"), name, statements))
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
