"""Small scenarios, from text or from parts, and their runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow.config.defaults import complete_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.run import run_scenario

CONFIG = complete_config(SchedulerConfig())
Write = Callable[..., Path]
Play = Callable[..., RunResult]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a scenario of some fields; by default it is an hour of two nodes."""

    def write(**fields: Any) -> Path:
        nodes = [{"name": "node", "count": 2, "capacity": {"cpu": 4}}]
        document = {"name": "test", "until": "1h", "nodes": nodes, **fields}
        path = tmp_path / "scenario.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        return path

    return write


@pytest.fixture
def play(write: Write) -> Play:
    """Runs a scenario of some fields."""

    def play(**fields: Any) -> RunResult:
        return run_scenario(read_scenario(write(**fields)), CONFIG)

    return play
