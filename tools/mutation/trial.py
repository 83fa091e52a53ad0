"""One change, and the tests that run the changed statement, until the first of them fails.

Tests of the same package go first, those of the file of the same name before all others; then
recorded decisions, then all other tests that run the statement, the short ones first, up to a
limit. A test run that does not end counts as found, one that only takes long on a busy machine
does not: the limit is one of processor time.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tools.mutation.chooser import TESTS_VARIABLE
from tools.mutation.copies import searched
from tools.mutation.reach import KnownTest, ReachMap
from tools.mutation.sites import PACKAGE, Site

STAGE_LIMIT_S: Final = 60.0  # of tests that run for one change, by the time they took before
_START_S: Final = 40  # processor time for imports and collection, generously
_SLOWER: Final = 4  # a changed program may take longer without being endless
_WALL: Final = 6  # real time for each second of processor time
_OPTIONS: Final = (
    "-q", "-x", "-n0", "--tb=no", "-p", "no:cacheprovider",
    "-p", "tools.mutation.chooser",
    # Plugins of pytest are imported before it is started.
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
_RECORDED: Final = "tests/simulator/conformance"


class Trial(NamedTuple):
    """What became of one change."""

    site: Site
    found_by: str  # the test, or why there was none; empty for a survivor
    test_count: int  # tests that could have run


class TrialRunner:
    """A copy of the repository in which changes are tried, one at a time."""

    def __init__(self, copy: Path) -> None:
        self._copy = copy
        self._starter = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("starter.py"))],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": searched(copy), "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "TrialRunner":
        return self

    def __exit__(self, *_: object) -> None:
        self._starter.communicate()

    def check(self, reach: ReachMap) -> None:
        """Raises RuntimeError if a test fails although nothing is changed."""
        shortest = min(reach.all_tests(), key=lambda test: test.seconds)
        if failure := self._first_failure([shortest]):
            output = (self._copy / "output.txt").read_text(errors="replace")
            raise RuntimeError(f"unchanged sources: {shortest.name} failed: {failure}\n{output}")

    def run_trial(self, site: Site, reach: ReachMap, stage_limit_s: float = STAGE_LIMIT_S) -> Trial:
        """Change the copy, run tests, and change it back."""
        path = self._copy / site.path
        source = path.read_bytes()
        stages = list(stages_of(site, reach, stage_limit_s))
        count = sum(map(len, stages))
        _write(path, site.applied(source))
        try:
            for stage in stages:
                if found_by := self._first_failure(stage):
                    return Trial(site, found_by, count)
        finally:
            _write(path, source)
        return Trial(site, "", count)

    def _first_failure(self, tests: list[KnownTest]) -> str:
        names, output = self._copy / "tests.json", self._copy / "output.txt"
        names.write_text(json.dumps([test.name for test in tests]))
        code = self._exit_code(tests, names, output)
        if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return ""
        if code is None or code == -signal.SIGXCPU:
            return "does not end"
        lines = output.read_text(errors="replace").splitlines()
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        return failed[0].split(" - ")[0] if failed else f"pytest ended with {code}"

    def _exit_code(self, tests: list[KnownTest], names: Path, output: Path) -> int | None:
        processor_s = round(_START_S + _SLOWER * sum(test.seconds for test in tests))
        files = dict.fromkeys(test.file for test in tests)
        run = {
            "arguments": [*_OPTIONS, *files],
            "environment": {"HYPOTHESIS_PROFILE": "ci", TESTS_VARIABLE: str(names)},
            "sources": str(self._copy / "src"),
            "output": str(output),
            "processor_s": processor_s,
            "wall_s": processor_s * _WALL,
        }
        assert self._starter.stdin is not None
        assert self._starter.stdout is not None
        print(json.dumps(run), file=self._starter.stdin, flush=True)
        return json.loads(self._starter.stdout.readline())


def _write(path: Path, source: bytes) -> None:
    """Write it, without what was compiled from it: that is compared by size and whole second."""
    path.write_bytes(source)
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


def stages_of(site: Site, reach: ReachMap, seconds_max: float) -> Iterator[list[KnownTest]]:
    """The tests in two steps, since most changes are found by the first."""
    tests = reach.tests_of((site.path, site.line))
    inner = site.path.removeprefix(f"{PACKAGE}/")
    package, name = inner.partition("/")[0], Path(inner).stem
    own_file = f"tests/{Path(inner).parent}/test_{name}.py"

    def order(test: KnownTest) -> tuple[bool, bool, float]:
        is_near = Path(test.file).parent.as_posix() == f"tests/{Path(inner).parent}"
        return test.file != own_file, not is_near, test.seconds

    def later_order(test: KnownTest) -> tuple[bool, float]:
        return not test.file.startswith(_RECORDED), test.seconds

    own = [test for test in tests if test.file.startswith(f"tests/{package}/")]
    # Those of its own file also run where they are not seen to run the statement: what is kept
    # between tests hides it from all but the first.
    own += [test for test in reach.tests_in(own_file) if test not in own]
    others = [test for test in tests if not test.file.startswith(f"tests/{package}/")]
    for stage in (sorted(own, key=order), sorted(others, key=later_order)):
        if chosen := list(_limited(stage, seconds_max)):
            yield chosen


def _limited(tests: list[KnownTest], seconds_max: float) -> Iterator[KnownTest]:
    seconds = 0.0
    for test in tests:
        seconds += test.seconds
        if seconds > seconds_max:
            return
        yield test
