"""Runs the tests near a change, between two edits: `python -m tools.near --base main`.

The change is everything that differs from the point where the branch left the base, what is not
committed included. These tests are near, from the nearest:

    folder      test files that changed, and all of the folder that mirrors the one of a source
    imports     test files anywhere that import a module that changed
    importers   the test file of each module that imports a module that changed

Tests marked slow are left out, as those beyond `FURTHER_MAX` files that are near by imports alone;
how many is printed. Which files import a module is read from the sources, so nothing has to run
before (what `tools.mutation` keeps is exact, and takes a run of all tests to make).
"""

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

# Files that are near by their imports alone; a module that all tests use would choose all of them.
FURTHER_MAX: Final = 40
# What a change of any source can break, in a few seconds.
ALWAYS: Final = "tests/test_layout.py"
_PACKAGE: Final = "src/kubestow/"
# Run programs and real clusters: minutes, for any change.
_LEFT_OUT: Final = ("tests/e2e/", "tests/bench/")
# How pytest ends if all tests of the files are marked slow.
_NO_TESTS: Final = 5


class NearTests(NamedTuple):
    """Test files, the nearest first, and how many more are near by imports."""

    files: list[str]
    left_out_count: int


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests near a change.")
    parser.add_argument("--base", default="main", help="a branch or commit (default: main)")
    arguments, for_pytest = parser.parse_known_args()
    root = Path.cwd()
    try:
        changed = changed_files(root, arguments.base)
    except subprocess.CalledProcessError as error:
        print(error.stderr.strip(), file=sys.stderr)
        print("name what to compare with: make near BASE=origin/main", file=sys.stderr)
        return 2
    near = near_tests(root, changed)
    if not near.files:
        print(f"nothing that is tested differs from {arguments.base}")
        return 0
    further = f"; {near.left_out_count} more import it: make quick" if near.left_out_count else ""
    print(f"{len(changed)} changed, {len(near.files)} test files are near{further}", flush=True)
    command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal"]
    command += ["-m", "not slow", *for_pytest, *near.files]
    code = subprocess.run(command, cwd=root).returncode
    return 0 if code == _NO_TESTS else code


def changed_files(root: Path, base: str) -> list[str]:
    """Paths that differ from where the branch left its base, deleted and new ones included."""
    start = _git(root, "merge-base", base, "HEAD").strip()
    differing = _git(root, "diff", "--name-only", "--no-renames", "-z", start)
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted({path for path in (differing + new).split("\0") if path})


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout


def near_tests(root: Path, changed: Iterable[str]) -> NearTests:
    changed = list(changed)
    nearest = {
        name for path in changed for name in _of_folder(root, path) if not _is_left_out(name)
    }
    modules = {name for path in changed if (name := module_name(path))}
    if any(path.startswith((_PACKAGE, "tools/")) for path in changed):
        nearest |= {ALWAYS} if (root / ALWAYS).exists() else set()
    further = [name for name in _by_imports(root, modules) if name not in nearest]
    return NearTests(sorted(nearest) + further[:FURTHER_MAX], max(len(further) - FURTHER_MAX, 0))


def module_name(path: str) -> str:
    """The module of a source, as it is imported; empty for other files."""
    if not path.endswith(".py") or not path.startswith((_PACKAGE, "tools/", "tests/")):
        return ""
    parts = PurePosixPath(path.removeprefix("src/")).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _of_folder(root: Path, path: str) -> Iterator[str]:
    """The test itself, or the tests of the folder that mirrors that of the file."""
    if _is_test(path):
        if (root / path).exists():
            yield path
        return
    folder = path.removeprefix(_PACKAGE).removeprefix("tests/").rpartition("/")[0]
    # Without a folder that mirrors it, the one above: `docs/guides` is tested in tests/docs.
    while folder and not (root / "tests" / folder).is_dir():
        folder = folder.rpartition("/")[0]
    for test in sorted((root / "tests" / folder).glob("test_*.py")):
        yield test.relative_to(root).as_posix()


def _is_test(path: str) -> bool:
    return path.startswith("tests/") and PurePosixPath(path).match("test_*.py")


def _is_left_out(test: str) -> bool:
    return test.startswith(_LEFT_OUT)


def _by_imports(root: Path, modules: set[str]) -> list[str]:
    """The tests that import one of the modules, then those of modules that do; in each the ones
    that import least come first, as they are about little else."""
    if not modules:
        return []
    tests: list[tuple[int, str]] = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        imported = _imported(path, modules)
        if imported and not _is_left_out(name := path.relative_to(root).as_posix()):
            tests.append((len(imported), name))
    found = [name for _, name in sorted(tests)]
    for path in sorted((root / _PACKAGE).rglob("*.py")):
        inside = path.relative_to(root / _PACKAGE)
        own = root / "tests" / inside.parent / f"test_{path.stem}.py"
        if own.exists() and _imported(path, modules):
            found.append(own.relative_to(root).as_posix())
    return list(dict.fromkeys(found))


def _imported(path: Path, modules: set[str]) -> set[str]:
    """Everything of this repository that a file imports; empty if no module of these is in it."""
    source = path.read_text(encoding="utf-8")
    # Parsing takes long: most files do not even have one of the words.
    if not any(name.rpartition(".")[2] in source for name in modules):
        return set()
    imported = imported_modules(source)
    return imported if imported & modules else set()


def imported_modules(source: str) -> set[str]:
    """Everything of this repository that a source imports, in functions too. `from a import b` may
    name a module `a.b`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.partition(".")[0] in ("kubestow", "tools", "tests")}


if __name__ == "__main__":
    sys.exit(main())
