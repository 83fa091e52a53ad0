"""Plays a scenario for a command: with a progress bar, until its end or until Ctrl-C."""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from kubestow.clock import SystemClock
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.profiles import Registry
from kubestow.recording.recording import RecordTo
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import duration_text, run_bar, run_fields, stderr
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.run import MakeCluster, run_scenario
from kubestow.simulator.scenario.scenario import Progress, Scenario


def play(
    scenario: Scenario,
    config: SchedulerConfig,
    registry: Registry,
    gates: FeatureGates,
    *,
    seed: int | None = None,
    record: RecordTo | None = None,
    factory: type[SchedulerFactory] | None = None,
    make_cluster: MakeCluster | None = None,
) -> RunResult:
    """The result; after Ctrl-C as far as the run had come, after a second one KeyboardInterrupt.

    How long it took is printed on standard error: it differs from run to run.
    """
    clock = SystemClock()
    started_s = clock.monotonic_s()
    with warnings_on_stderr(), run_bar() as progress, _interrupted() as stop:
        task = progress.add_task("Playing", total=1.0, rate="")

        def note(each: Progress) -> None:
            fields = run_fields(
                time_s=each.time_s,
                until_s=each.until_s,
                placed=each.placed,
                elapsed_s=clock.monotonic_s() - started_s,
            )
            progress.update(task, **fields)

        result = run_scenario(
            scenario,
            config,
            registry,
            gates,
            seed=seed,
            on_progress=note,
            stop=stop,
            record=record,
            factory=factory,
            make_cluster=make_cluster,
        )
    took_s = clock.monotonic_s() - started_s
    played = duration_text(result.virtual_duration_s)
    stderr().print(f"{played} of virtual time played in {duration_text(took_s)}")
    return result


@contextmanager
def _interrupted() -> Generator[Callable[[], bool]]:
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
