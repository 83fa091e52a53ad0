"""A plugin of pytest that records which statements each test runs; `reach` starts it."""

import json
import os
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from tools.mutation.reach import RECORD_VARIABLE, ran_statements

_tests: dict[str, tuple[float, list[int]]] = {}
_failed: set[str] = set()
_seconds: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    ran = ran_statements()
    ran[:] = bytes(len(ran))
    result = yield
    numbers = np.flatnonzero(np.frombuffer(bytes(ran), dtype=np.uint8)).tolist()
    _tests[item.nodeid] = (round(_seconds.get(item.nodeid, 0.0), 4), numbers)
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if not report.passed:
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    passed = {name: test for name, test in _tests.items() if name not in _failed}
    Path(os.environ[RECORD_VARIABLE]).write_text(json.dumps(passed))
