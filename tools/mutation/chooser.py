"""A plugin of pytest that runs the named tests only, in the order given; `trial` starts it."""

import json
import os
from pathlib import Path

import pytest

TESTS_VARIABLE = "KUBESTOW_MUTATION_TESTS"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    names: list[str] = json.loads(Path(os.environ[TESTS_VARIABLE]).read_text())
    places = {name: place for place, name in enumerate(names)}
    items[:] = sorted(
        (item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid]
    )
