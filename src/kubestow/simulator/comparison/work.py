"""Runs one task: the same function in a copy of this process and on a Dask worker.

Nothing is raised: what goes wrong is part of the outcome, so that other tasks go on.
"""

import threading
from typing import Final

import msgspec

from kubestow.clock import SystemClock
from kubestow.config.feature_gates import parse_gates
from kubestow.editions import edition_named
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.metrics import SchedulerMetrics
from kubestow.engine.observer import DecisionListener
from kubestow.engine.scheduler import Scheduler
from kubestow.errors import KubestowError
from kubestow.framework.faults import describe, place_of
from kubestow.logs import silenced
from kubestow.simulator.comparison.choices import WatchedChoices
from kubestow.simulator.comparison.played import scenario_of
from kubestow.simulator.comparison.plugin_times import PluginTimes
from kubestow.simulator.comparison.schedulers import PluginScheduler, todays_scheduler
from kubestow.simulator.comparison.task import Material, Task, TaskFailure, TaskOutcome
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.run import run_scenario

_INITIALIZING: Final = "initializing plugin"
# A Dask worker may have several threads. Runs in one process do not get faster side by side, and
# each of them sets the garbage collector of the process.
_ONE_AT_A_TIME: Final = threading.Lock()


def run_task(material: bytes, task: bytes) -> bytes:
    """An `TaskOutcome` for a `Task`, all as JSON."""
    return run_with(msgspec.json.decode(material, type=Material), task)


def run_with(material: Material, task: bytes) -> bytes:
    """As `run_task`, with the material as it was read."""
    # Errors are part of the outcome; log lines would only repeat them.
    with _ONE_AT_A_TIME, silenced():
        outcome = outcome_of(material, msgspec.json.decode(task, type=Task))
        return msgspec.json.encode(outcome)


def outcome_of(material: Material, task: Task) -> TaskOutcome:
    """Run it; what goes wrong is part of the outcome."""
    started_s = SystemClock.monotonic_s()
    observed = _Observed(task)
    run, failure = None, None
    try:
        run = observed.run(material)
        if run.failures:
            failure = TaskFailure(kind="plugin", message=_failures_text(run))
    except KubestowError as error:
        failure = TaskFailure(kind="input", message=_with_place(error))
    except Exception as error:  # A plugin of a user may raise anything when it is made.
        failure = TaskFailure(kind="plugin", message=describe(error, place_of(error)))
    return TaskOutcome(
        variant=task.variant.name,
        seed=task.seed,
        run=run,
        failure=failure,
        choices=observed.choices.choices,
        times=observed.times.rows(),
        duration_s=round(SystemClock.monotonic_s() - started_s, 3),
    )


def _with_place(error: KubestowError) -> str:
    """The text; with the place in its file where a plugin could not be made."""
    cause = error.__cause__
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    if cause is None or isinstance(cause, KubestowError) or _INITIALIZING not in str(error):
        return str(error)
    return f"{error} ({place_of(cause)})"


def _failures_text(run: RunResult) -> str:
    count = run.failed_attempts
    return f"{count} {'attempt' if count == 1 else 'attempts'} failed: {run.failures[0].message}"


class _Observed:
    """A task and what follows it."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.choices = WatchedChoices(task.watched)
        self.times = PluginTimes()

    def run(self, material: Material) -> RunResult:
        task = self._task
        edition = edition_named(task.variant.version)
        if edition.is_modern:
            gates = parse_gates(material.gates, edition)
            run = self._run_with_plugins(material, todays_scheduler(task.variant, gates))
        else:
            # Imported here, like every other edition: only when it is to run.
            from kubestow.editions import comparing

            if edition.has_plugins:
                scheduler = comparing.scheduler_of_edition(task.variant)
                run = self._run_with_plugins(material, scheduler)
            else:
                run = comparing.run_v1_9(material, task, self.choices.choices)
        return msgspec.structs.replace(run, variant=task.variant.name)

    def _run_with_plugins(self, material: Material, scheduler: PluginScheduler) -> RunResult:
        with scenario_of(material, scheduler.config, self._task.variant.without) as scenario:
            return run_scenario(
                scenario,
                scheduler.config,
                scheduler.registry,
                scheduler.gates,
                seed=self._task.seed,
                factory=self._factory(scheduler.factory),
            )

    def _factory(self, factory: type[SchedulerFactory]) -> type[SchedulerFactory]:
        """A factory whose schedulers are followed by what the task asks for."""
        listeners = (self.choices,) if self._task.watched else ()
        metrics = self.times if self._task.has_times else None
        return observed_factory(factory, listeners, metrics)


def observed_factory(
    factory: type[SchedulerFactory],
    listeners: tuple[DecisionListener, ...],
    metrics: SchedulerMetrics | None,
) -> type[SchedulerFactory]:
    """A factory whose schedulers are followed by these, too."""

    class Observed(factory):
        def build(self) -> Scheduler:
            self.listeners = (*self.listeners, *listeners)
            if metrics is not None:
                self.metrics = metrics
            return super().build()

    return Observed
