"""All tasks of a comparison: every variant with every seed, then the runs that say why pods moved.

    tasks ──► runner ──► outcomes, as they come ──► summaries, in the order of the tasks
                                                        │ pods that went elsewhere
                                                        ▼
              the same runs again, following these pods ──► the reason of each

A task that fails is reported with its variant, and the others are kept. If the sweep is interrupted
(Ctrl-C), what has ended counts.

Of a run only a summary is kept; rows of pods and nodes only of the first seed, for charts.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Final

import msgspec

from kubestow.simulator.comparison.measures import Values, measures_of
from kubestow.simulator.comparison.moved import (
    MovedPod,
    PodPlacement,
    different,
    moved_pod,
    placements_of,
)
from kubestow.simulator.comparison.pool import Finished, Runner
from kubestow.simulator.comparison.task import (
    PluginTime,
    PodChoice,
    SchedulerVariant,
    Task,
    TaskFailure,
    TaskOutcome,
)
from kubestow.simulator.reports.figures import Figures, figures_of
from kubestow.simulator.results import RefusedPods, RunResult

# Pods of one variant and one seed that are listed with their reason, in the order in which they
# were created. All others that moved are counted only.
LISTED_MAX: Final = 10_000
_STOPPED: Final = "stopped before it had ended"

# SchedulerVariant and seed.
RunKey = tuple[str, int]
# The placement of a pod in the first variant, and the other one.
_Difference = tuple[PodPlacement, PodPlacement]


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a run; `rows` of the first seed only."""

    seed: int
    figures: Figures
    values: Values
    placements: dict[str, PodPlacement]
    is_partial: bool
    refusals: list[RefusedPods]
    rows: RunResult | None = None
    duration_s: float = 0.0
    times: list[PluginTime] = []


class SweepResult(msgspec.Struct, kw_only=True):
    """`failures` are variant, seed, if it was begun, and what went wrong. `moved_counts` and
    `moved` are pods that went elsewhere than in the first variant, in runs whose seed ran with
    that one, too."""

    runs: dict[RunKey, RunSummary] = {}
    failures: list[tuple[str, int | None, TaskFailure]] = []
    moved_counts: dict[RunKey, int] = {}
    moved: dict[RunKey, list[MovedPod]] = {}
    is_partial: bool = False

    def runs_of(self, variant: str) -> list[RunSummary]:
        """In the order of the seeds."""
        return [run for (name, _), run in self.runs.items() if name == variant]


class Sweep:
    """Runs variants; the first one is the one that others are compared with."""

    def __init__(
        self,
        runner: Runner,
        variants: Sequence[SchedulerVariant],
        seeds: Sequence[int],
        *,
        has_times: bool = False,
        on_tasks: Callable[[int], None] = lambda _: None,
        on_finished: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_tasks` is called with the number of tasks that are about to run, `on_finished` after
        each of them."""
        self._runner = runner
        self._variants = variants
        self._seeds = seeds
        self._has_times = has_times
        self._on_tasks = on_tasks
        self._on_finished = on_finished
        self.result = SweepResult()

    def run(self, *, finds_reasons: bool = True) -> SweepResult:
        """Run everything, or what is done until it is interrupted."""
        tasks = [
            Task(variant=variant, seed=seed, has_times=self._has_times)
            for variant in self._variants
            for seed in self._seeds
        ]
        runs: dict[int, RunSummary] = {}

        def keep(index: int, outcome: TaskOutcome) -> None:
            if outcome.run is not None:
                is_first = outcome.seed == self._seeds[0]
                runs[index] = _summary(outcome, outcome.run, keeps_rows=is_first)

        self._run_tasks(tasks, keep)
        self.result.runs = {
            (tasks[index].variant.name, tasks[index].seed): runs[index] for index in sorted(runs)
        }
        self._note_moved(finds_reasons and not self.result.is_partial)
        return self.result

    def _run_tasks(self, tasks: Sequence[Task], keep: Callable[[int, TaskOutcome], None]) -> None:
        """Run tasks, and note what fails, in their order."""
        self._on_tasks(len(tasks))
        failures: dict[int, TaskFailure] = {}
        unfinished = set(range(len(tasks)))
        try:
            with closing(self._runner.run([msgspec.json.encode(task) for task in tasks])) as done:
                for finished in done:
                    outcome = _outcome_of(tasks[finished.task_index], finished)
                    unfinished.discard(finished.task_index)
                    if outcome.failure is not None:
                        failures[finished.task_index] = outcome.failure
                    keep(finished.task_index, outcome)
                    self._on_finished()
        except KeyboardInterrupt:
            self.result.is_partial = True
        for index in unfinished:
            failures[index] = TaskFailure(kind="stopped", message=_STOPPED)
        for index, failure in sorted(failures.items()):
            self.result.failures.append((tasks[index].variant.name, tasks[index].seed, failure))

    # --- pods that went elsewhere ---

    def _note_moved(self, finds_reasons: bool) -> None:
        first, *others = self._variants
        found: dict[RunKey, list[_Difference]] = {}
        for variant in others:
            for seed in self._seeds:
                base = self.result.runs.get((first.name, seed))
                run = self.result.runs.get((variant.name, seed))
                if base is not None and run is not None:
                    pods = different(base.placements, run.placements)
                    self.result.moved_counts[variant.name, seed] = len(pods)
                    found[variant.name, seed] = pods[:LISTED_MAX]
        choices = self._choices(found) if finds_reasons else {}
        for (variant, seed), pods in found.items():
            there = choices.get((first.name, seed), {})
            here = choices.get((variant, seed), {})
            self.result.moved[variant, seed] = [
                moved_pod(
                    seed,
                    one,
                    other,
                    there.get(one.pod),
                    here.get(other.pod),
                    first_name=first.name,
                )
                for one, other in pods
            ]

    def _choices(
        self, found: dict[RunKey, list[_Difference]]
    ) -> dict[RunKey, dict[str, PodChoice]]:
        """Run again what has pods on another node, and follow these pods."""
        first = self._variants[0].name
        watched: dict[RunKey, dict[str, list[str]]] = {}
        for (variant, seed), pods in found.items():
            for there, here in pods:
                if there.node and here.node:
                    watched.setdefault((variant, seed), {})[here.pod] = [there.node]
                    names = watched.setdefault((first, seed), {}).setdefault(there.pod, [])
                    names.append(here.node)
        tasks = [
            Task(variant=variant, seed=seed, watched=watched[variant.name, seed])
            for variant in self._variants
            for seed in self._seeds
            if (variant.name, seed) in watched
        ]
        choices: dict[RunKey, dict[str, PodChoice]] = {}

        def keep(index: int, outcome: TaskOutcome) -> None:
            choices[outcome.variant, outcome.seed] = outcome.choices

        if tasks:
            known = len(self.result.failures)
            self._run_tasks(tasks, keep)
            self._keep_new_failures(known)
        return choices

    def _keep_new_failures(self, known: int) -> None:
        """What failed in the first run of a task fails in the second: it is noted once."""
        failures = self.result.failures
        before = failures[:known]
        failures[known:] = [each for each in failures[known:] if each not in before]


def _outcome_of(task: Task, finished: Finished) -> TaskOutcome:
    if finished.content:
        return msgspec.json.decode(finished.content, type=TaskOutcome)
    failure = TaskFailure(kind="worker", message=finished.problem)
    return TaskOutcome(variant=task.variant.name, seed=task.seed, failure=failure)


def _summary(outcome: TaskOutcome, run: RunResult, *, keeps_rows: bool) -> RunSummary:
    figures = figures_of(run)
    return RunSummary(
        seed=outcome.seed,
        figures=figures,
        values=measures_of(figures),
        placements=placements_of(run.pods),
        is_partial=run.is_partial,
        refusals=run.refusals,
        rows=run if keeps_rows else None,
        duration_s=outcome.duration_s,
        times=outcome.times,
    )
