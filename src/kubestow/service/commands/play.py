"""Plays a scenario for a command: with a progress bar, until its end or until Ctrl-C."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.profiles import Registry
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import progress_bar, stderr
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.scenario import Progress, Scenario


def play(
    scenario: Scenario,
    config: SchedulerConfig,
    registry: Registry,
    gates: FeatureGates,
    *,
    seed: int | None = None,
    record: Path | None = None,
) -> RunResult:
    """The result; after Ctrl-C as far as the run had come, after a second one KeyboardInterrupt."""
    with warnings_on_stderr(), progress_bar("Playing") as progress, _interrupted() as stop:
        task = progress.add_task("", total=round(scenario.until_s))

        def note(each: Progress) -> None:
            progress.update(task, completed=round(each.time_s))

        return run_scenario(
            scenario,
            config,
            registry,
            gates,
            seed=seed,
            on_progress=note,
            stop=stop,
            record=record,
        )


@contextmanager
def _interrupted() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed."""
    is_stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_stopped
        if is_stopped:
            raise KeyboardInterrupt
        is_stopped = True
        stderr().print("Ending the run; Ctrl-C again ends it without a result.")

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield lambda: is_stopped
    finally:
        signal.signal(signal.SIGINT, before)
