"""Results as reports and data frames; the frames need the extra `reports`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.simulator.reports import files
from kubestow.simulator.reports.extra import require_extra
from kubestow.simulator.results import RunResult
from kubestow.simulator.simulation import SimulationResult

if TYPE_CHECKING:
    import polars

    from kubestow.simulator.reports.frames import Frames


def write_report(
    result: RunResult | SimulationResult, path: str | Path, *, force: bool = False
) -> list[Path]:
    """Write a report, by the suffix of the name (docs/guides/reports.md); returns the files.

    Raises InputError, also if the extra `reports` is missing.
    """
    return files.write_report(_run(result), Path(path), force=force)


def frames(result: RunResult | SimulationResult) -> "Frames":
    """The rows of a result as data frames: `pods`, `nodes`, `samples` and `changes`."""
    require_extra("data frames", "polars")
    from kubestow.simulator.reports.frames import frames_of

    return frames_of(_run(result))


def attempts_frame(decisions: Iterable[FrozenDecision]) -> "polars.DataFrame":
    """A row for each attempt."""
    require_extra("data frames", "polars")
    from kubestow.simulator.reports import frames as made

    return made.attempts_frame(decisions)


def scores_frame(decisions: Iterable[FrozenDecision]) -> "polars.DataFrame":
    """A row for each attempt, feasible node and plugin; `attempt` counts from 0."""
    require_extra("data frames", "polars")
    from kubestow.simulator.reports import frames as made

    return made.scores_frame(decisions)


def _run(result: RunResult | SimulationResult) -> RunResult:
    return result if isinstance(result, RunResult) else result.run
