"""`kubestow rebalance --run`: asks, carries the plan out, and says what was done."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from kubestow.api.duration import parse_duration
from kubestow.api.files import Document
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.http.users_kubeconfig import Kubeconfig
from kubestow.errors import InputError
from kubestow.files import keeping
from kubestow.plural import counted
from kubestow.service.commands.cluster_input import InputRequest
from kubestow.service.commands.rebalance.server import HttpRebalancedServer
from kubestow.service.formats import DataFormat, RebalanceFormat
from kubestow.service.output import print_data, say, stderr
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.input.changes import InputChanges
from kubestow.simulator.rebalance.carrying_out import PlanRunner, RebalanceRun
from kubestow.simulator.rebalance.pacing import Hours, Pacing, parse_hours
from kubestow.simulator.rebalance.plan import RebalancePlan
from kubestow.simulator.rebalance.planning import Planner
from kubestow.simulator.rebalance.stopping import Stopping
from kubestow.simulator.rebalance.surge_run import end_begun

T = TypeVar("T")

_METRICS: Final = """\
# HELP kubestow_rebalance_evictions Evictions of the last run.
# TYPE kubestow_rebalance_evictions gauge
kubestow_rebalance_evictions{{goal="{goal}"}} {done}
# HELP kubestow_rebalance_planned_evictions Evictions that were planned.
# TYPE kubestow_rebalance_planned_evictions gauge
kubestow_rebalance_planned_evictions{{goal="{goal}"}} {planned}
# HELP kubestow_rebalance_figure The figure of the goal before the run, and as foretold after it.
# TYPE kubestow_rebalance_figure gauge
kubestow_rebalance_figure{{goal="{goal}",when="before"}} {before:g}
kubestow_rebalance_figure{{goal="{goal}",when="foretold"}} {after:g}
# HELP kubestow_rebalance_ended_early Whether the run ended at a surprise, or was interrupted.
# TYPE kubestow_rebalance_ended_early gauge
kubestow_rebalance_ended_early{{goal="{goal}"}} {surprises}
"""
_METRICS_MODE: Final = 0o644


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How a plan is carried out."""

    is_confirmed: bool = False
    replans: bool = False
    pause_s: float = 0.0
    per_hour: int = 0
    hours: Hours | None = None
    metrics_file: Path | None = None
    surges: bool = False


def run_request(
    *,
    is_run: bool,
    yes: bool,
    replan: bool,
    pace: str,
    max_per_hour: int,
    hours: str,
    metrics_file: Path | None,
    surges: bool,
) -> RunRequest | None:
    """What the options ask for, None without --run; InputError names one that cannot be used."""
    if not is_run:
        given = {
            "--yes": yes,
            "--replan": replan,
            "--pace": pace,
            "--max-per-hour": max_per_hour,
            "--hours": hours,
            "--metrics-file": metrics_file,
        }
        if names := [name for name, value in given.items() if value]:
            raise InputError(f"{', '.join(names)}: only with --run; without it nothing is evicted")
        return None
    if metrics_file is not None:
        # Each run replaces the file of the one before.
        keeping.require_new(metrics_file, "--metrics-file", force=True)
    try:
        pause_s = parse_duration(pace) / NANOSECONDS if pace else 0.0
    except ValueError as error:
        raise InputError(f"--pace {pace}: {error}; for example 30s or 5m") from error
    return RunRequest(
        is_confirmed=yes,
        replans=replan,
        pause_s=max(pause_s, 0.0),
        per_hour=max_per_hour,
        hours=parse_hours(hours) if hours else None,
        metrics_file=metrics_file,
        surges=surges,
    )


def check_run(cluster: InputRequest) -> None:
    """InputError if the cluster is not one that a plan can be carried out on as it is."""
    if not cluster.is_live:
        raise InputError("--run needs --from-cluster: there is nothing to evict in files")
    if cluster.files or cluster.changes != InputChanges():
        raise InputError(
            "--run takes the cluster as it is: leave out -f and changes such as --cordon"
        )


def confirm(plan: RebalancePlan, request: RunRequest) -> bool:
    """Ask whether pods may be evicted; InputError without a terminal to ask on."""
    if request.is_confirmed:
        return True
    if not sys.stdin.isatty():
        raise InputError("--run asks before it evicts, and there is no terminal; give --yes")
    stderr().print(f"Evict {counted(plan.moves, 'pod')}? [y/N] ", end="", markup=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def carry_out(
    plan: RebalancePlan,
    request: RunRequest,
    *,
    cluster: InputRequest,
    setup: PlacingSetup,
    make_planner: Callable[[Sequence[Document]], Planner],
    max_moves: int,
    clock: Clock,
    stopping: Stopping,
) -> RebalanceRun:
    """Do the steps of a plan on the cluster of the kubeconfig."""

    async def run() -> RebalanceRun:
        server = HttpRebalancedServer(
            Kubeconfig(cluster.kubeconfig, cluster.context).server(clock),
            clock,
            setup.gates,
            dialects=dialects_of(setup.config),
            reads_usage="balance=used" in plan.goal,
            reads_autoscalers=request.surges,
        )
        runner = PlanRunner(
            server,
            clock,
            make_planner,
            pacing=Pacing(
                clock, pause_s=request.pause_s, per_hour=request.per_hour, hours=request.hours
            ),
            stopping=stopping,
            replans=request.replans,
            max_moves=max_moves,
            on_text=lambda text: stderr().print(text, markup=False),
        )
        try:
            return await runner.run(plan)
        finally:
            await server.close()

    done = asyncio.run(run())
    if request.metrics_file is not None:
        _write_metrics(request.metrics_file, metrics_text(plan, done))
    return done


def end_begun_surges(cluster: InputRequest, setup: PlacingSetup, clock: Clock) -> None:
    """Take back what a run before has left because it was killed."""
    for line in asked_once(cluster, setup, clock, end_begun):
        stderr().print(line, markup=False)


def _write_metrics(path: Path, text: str) -> None:
    """In one step, as Prometheus may read at any time, and for its exporter, which is another user;
    a warning if that fails: the pods are evicted."""
    try:
        keeping.replace(path, text, mode=_METRICS_MODE)
    except OSError as error:
        stderr().print(f'warning: cannot write "{path}": {error.strerror}', markup=False)


def asked_once(
    cluster: InputRequest,
    setup: PlacingSetup,
    clock: Clock,
    ask: Callable[[HttpRebalancedServer], Coroutine[Any, Any, T]],
) -> T:
    """What the server of the kubeconfig is asked beside the cluster."""

    async def run() -> T:
        config = Kubeconfig(cluster.kubeconfig, cluster.context).server(clock)
        server = HttpRebalancedServer(config, clock, setup.gates)
        try:
            return await ask(server)
        finally:
            await server.close()

    return asyncio.run(run())


def metrics_text(plan: RebalancePlan, done: RebalanceRun) -> str:
    """What was done, in the format of Prometheus' text files."""
    return _METRICS.format(
        goal=plan.goal.replace("\\", "\\\\").replace('"', '\\"'),
        done=len(done.done),
        planned=done.planned,
        before=plan.figure_before,
        after=plan.figure_after,
        surprises=int(bool(done.surprise)),
    )


def print_run(done: RebalanceRun, output: RebalanceFormat) -> None:
    """The account of a run."""
    if output in (RebalanceFormat.JSON, RebalanceFormat.YAML):
        print_data(done, DataFormat(output.value))
        return
    as_foretold = sum(move.actual == move.foretold for move in done.done)
    text = (
        f"{len(done.done)} of {counted(done.planned, 'eviction')} made, {as_foretold} as foretold"
    )
    if done.plans > 1:
        text += f", planned {done.plans} times"
    if done.surprise:
        text += f"; ended early: {done.surprise}"
    say(text)
