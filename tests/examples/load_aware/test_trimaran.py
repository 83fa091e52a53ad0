"""The plain reading of TargetLoadPacking, by worked examples of its rule."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from load_aware.trimaran import packed_score

from kubestow.config.defaults import complete_config
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.comparison.schedulers import todays_scheduler
from kubestow.simulator.comparison.task import SchedulerVariant
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.usage.results import RunUsage

EXAMPLE = Path(__file__).parents[3] / "examples/load_aware"


@pytest.mark.parametrize(
    ("percent", "score"),
    [(0, 40), (20, 70), (40, 100), (41, 39), (70, 20), (100, 0), (120, 0)],
)
def test_nodes_are_filled_up_to_the_target(percent: float, score: int) -> None:
    assert packed_score(percent, 40) == score


@pytest.mark.slow
def test_pods_of_the_day_are_placed_by_measured_use() -> None:
    """Two hours around the peak: the plugin reads measurements, and pods go elsewhere."""
    scenario = msgspec.structs.replace(
        read_scenario(EXAMPLE / "day.yaml"),
        until_s=2 * 3600,
        start=datetime(2026, 1, 1, 13, tzinfo=UTC),
    )
    variant = SchedulerVariant(name="trimaran", config=(EXAMPLE / "trimaran.conf").read_text())
    other = todays_scheduler(variant, DEFAULT_GATES)
    plain = run_scenario(scenario, complete_config(SchedulerConfig()))
    packed = run_scenario(scenario, other.config, other.registry)
    assert isinstance(plain.usage, RunUsage)
    assert isinstance(packed.usage, RunUsage)
    assert len(plain.pods) == len(packed.pods)
    assert {row.outcome for row in packed.pods} <= {"Running", "Ended"}
    assert [row.node for row in plain.pods] != [row.node for row in packed.pods]
    assert packed.usage.demanded_cpu_s == pytest.approx(plain.usage.demanded_cpu_s, rel=0.02)
