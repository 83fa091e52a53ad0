"""What `kubestow rebalance` does: read the cluster, look for a plan, print it.

Not here: its options (`command`), what is printed (`output`).
"""

import math
import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec

from kubestow import collector
from kubestow.api.files import Document
from kubestow.clock import SystemClock
from kubestow.editions.edition import ModernVersion
from kubestow.errors import ConfigError, InputError, PluginError
from kubestow.service.commands.cluster_input import InputRequest, edition_of, load_input
from kubestow.service.commands.rebalance.judgement_output import print_judgement
from kubestow.service.commands.rebalance.output import print_plan
from kubestow.service.commands.rebalance.prices import prices_of
from kubestow.service.commands.rebalance.report import check_report, write_report
from kubestow.service.commands.rebalance.running import (
    RunRequest,
    asked_once,
    carry_out,
    check_run,
    confirm,
    end_begun_surges,
    print_run,
)
from kubestow.service.commands.rebalance.server import HttpRebalancedServer
from kubestow.service.commands.scheduler_config import checked_gates, load_scheduler_config
from kubestow.service.formats import AlsoMoved, RebalanceFormat
from kubestow.service.output import progress_bar, stderr
from kubestow.service.usage_errors import print_error
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.input.changes import parse_selector
from kubestow.simulator.rebalance import RebalanceOptions, RebalancePlan, read_goal
from kubestow.simulator.rebalance.descheduler.judgement import PolicyJudgement
from kubestow.simulator.rebalance.descheduler.judging import judge_policy
from kubestow.simulator.rebalance.descheduler.policy import DeschedulerPolicy, load_policy
from kubestow.simulator.rebalance.goals.goal import Goal
from kubestow.simulator.rebalance.goals.reading import NAMES
from kubestow.simulator.rebalance.ground import AUTOSCALER_KIND, METRICS_KIND, ground_of
from kubestow.simulator.rebalance.measured import pod_metrics
from kubestow.simulator.rebalance.options import SYSTEM_PRIORITY
from kubestow.simulator.rebalance.planning import Planner
from kubestow.simulator.rebalance.stopping import Stopping
from kubestow.simulator.rebalance.view import view_of
from kubestow.usage.file_format import read_usage

_NOTHING_HELPS: Final = 1  # exit codes
_PLUGIN_FAILED: Final = 3
_ROUNDS: Final = 10


class RebalanceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    cluster: InputRequest
    goal: str
    max_moves: int
    min_gain: float
    time_limit_s: float
    output: RebalanceFormat
    report: Path | None
    start_s: float
    # Measurements of pods; None: of the metrics server, or none.
    usage: Path | None
    price_label: str
    prices: Path | None
    excluded_namespaces: Sequence[str]
    excluded: Sequence[str]
    nodes: str
    max_priority: int | None
    also: Sequence[AlsoMoved]
    surges: bool
    config_file: Path | None
    feature_gates: Sequence[str]
    compatibility: ModernVersion | None
    # None: nothing is carried out.
    run: RunRequest | None = None
    # A policy of the descheduler that is judged instead.
    policy: Path | None = None
    rounds: int | None = None


def rebalanced(request: RebalanceRequest) -> int:
    """Make a plan and print it, or carry it out, or judge a policy; the exit code."""
    if request.policy is not None:
        return _judged(request, request.policy)
    if request.rounds is not None:
        raise InputError("--rounds is of a policy: give one with --descheduler")
    if not request.goal:
        raise InputError(f"which figure shall get better? Give --goal with {', '.join(NAMES)}")
    # What is wrong with options is found before a cluster is read.
    _check_prices(request, read_goal(request.goal))
    _check_usage(request)
    if request.run is not None:
        check_run(request.cluster)
    if request.report is not None:
        check_report(request.report, force=request.cluster.force)
    try:
        return _Work(request, _options(request)).done()
    except PluginError as error:
        print_error(str(error), "rebalance")
        return _PLUGIN_FAILED


def _check_usage(request: RebalanceRequest) -> None:
    if request.usage is None:
        return
    if "balance" not in request.goal:
        raise InputError("--usage is for --goal balance: other figures are of requests")
    if request.run is not None:
        raise InputError(
            "--run reads what pods use from the metrics server before each eviction: leave out "
            "--usage, and give --goal balance=used"
        )


def _judged(request: RebalanceRequest, path: Path) -> int:
    """Print what a policy of the descheduler comes to; 1 if it does not settle, or in vain."""
    if request.run is not None or request.output is RebalanceFormat.SCRIPT:
        given = "-o script" if request.run is None else "--run"
        raise InputError(f"--descheduler judges a policy and evicts nothing: leave out {given}")
    if request.report is not None:
        raise InputError("--report is for a plan: leave it out with --descheduler")
    if _options(request) != RebalanceOptions():
        raise InputError(
            "--max-moves, --min-gain, --time-limit, --start-time, --surge and what stays are for a "
            "plan, and a policy has limits of its own: leave them out with --descheduler"
        )
    if request.goal:
        _check_prices(request, read_goal(request.goal))
    _check_usage(request)
    policy = load_policy(path)
    try:
        judgement = _Work(request, _options(request)).judgement(policy)
    except ConfigError as error:
        raise InputError(f'policy "{path}": {error}') from error
    except PluginError as error:
        print_error(str(error), "rebalance")
        return _PLUGIN_FAILED
    print_judgement(judgement, request.output)
    is_good = judgement.settles_after is not None and not (
        judgement.count("returned") or judgement.count("waits")
    )
    return 0 if is_good else _NOTHING_HELPS


def _check_prices(request: RebalanceRequest, goal: Goal) -> None:
    """InputError if prices are given for a goal that has none; only empty-nodes closes nodes."""
    if (request.prices is not None or request.price_label) and not goal.closes_nodes:
        raise InputError(f"prices are for the goal empty-nodes, and the goal is {goal.text}")


class _Work:
    """One call of the command."""

    def __init__(self, request: RebalanceRequest, options: RebalanceOptions) -> None:
        self._request = request
        self._options = options
        self._clock = SystemClock()
        edition = edition_of(request.cluster, request.compatibility)
        gates = checked_gates(request.feature_gates, edition)
        loaded = load_scheduler_config(request.config_file, gates=gates)
        self._setup = PlacingSetup(loaded.config, loaded.registry, gates)

    def done(self) -> int:
        request = self._request
        if request.run is not None and request.surges:
            end_begun_surges(request.cluster, self._setup, self._clock)
        plan = self._plan()
        is_run = request.run is not None and plan.moves > 0
        if not is_run or request.output is RebalanceFormat.TABLE:
            print_plan(plan, request.output)
        if request.run is not None and is_run:
            return self._run(plan, request.run)
        is_done = not plan.more_is_better and not plan.figure_before
        return 0 if plan.moves or is_done else _NOTHING_HELPS

    def judgement(self, policy: DeschedulerPolicy) -> PolicyJudgement:
        documents, rounds = self._documents(), self._request.rounds or _ROUNDS
        with progress_bar("Following the policy") as progress:
            task = progress.add_task("", total=rounds)
            return judge_policy(
                documents,
                policy,
                self._goal(documents) if self._request.goal else None,
                self._setup,
                rounds=rounds,
                clock=self._clock,
                on_round=lambda count: progress.update(task, completed=count),
            )

    def _plan(self) -> RebalancePlan:
        documents = self._documents()
        stopping = Stopping(self._clock, self._options.time_limit_s)
        with (
            _interruptible(stopping, "Ending with the best plan so far"),
            progress_bar("Looking for moves") as progress,
            collector.paused(),
        ):
            task = progress.add_task("", total=self._options.max_moves)
            planner = Planner(
                ground_of(documents, self._setup, self._clock),
                self._goal(documents),
                self._options,
                stopping,
                on_step=lambda count: progress.update(task, completed=count),
            )
            plan = planner.plan()
        if self._request.report is not None:
            write_report(plan, view_of(planner, plan), self._request.report)
        return plan

    def _documents(self) -> Sequence[Document]:
        request = self._request
        loaded = load_input(
            request.cluster,
            command="rebalance",
            dialects=dialects_of(self._setup.config),
            also_read=(AUTOSCALER_KIND,),
            # No API server has them: a server of their own answers for it.
            sets_apart=(METRICS_KIND,),
            gates=self._setup.gates,
        )
        documents = [*loaded.documents, *loaded.set_apart]
        if request.cluster.is_live and request.surges:
            asked = asked_once(
                request.cluster, self._setup, self._clock, HttpRebalancedServer.autoscalers
            )
            documents = [*documents, *asked]
        if request.usage is not None:
            measured = pod_metrics(read_usage(request.usage), str(request.usage))
            # The file says what pods use, also where there are PodMetrics.
            others = (one for one in documents if one.raw["kind"] != METRICS_KIND)
            return [*others, *measured]
        if request.cluster.is_live and "balance=used" in request.goal:
            usage = asked_once(
                request.cluster, self._setup, self._clock, HttpRebalancedServer.usage
            )
            return [*documents, *usage]
        return documents

    def _goal(self, documents: Sequence[Document]) -> Goal:
        request = self._request
        prices = prices_of(documents, request.price_label, request.prices)
        return read_goal(request.goal, prices, of_used=request.usage is not None)

    def _run(self, plan: RebalancePlan, run: RunRequest) -> int:
        request = self._request
        if not confirm(plan, run):
            stderr().print("Nothing was evicted.")
            return _NOTHING_HELPS
        # It has no limit of time: hours may pass between two evictions.
        stopping = Stopping(self._clock, math.inf)
        with _interruptible(stopping, "Ending after the eviction that is under way"):
            done = carry_out(
                plan,
                run,
                cluster=request.cluster,
                setup=self._setup,
                make_planner=self._planner,
                max_moves=self._options.max_moves,
                clock=self._clock,
                stopping=stopping,
            )
        print_run(done, request.output)
        return _NOTHING_HELPS if done.surprise else 0

    def _planner(self, documents: Sequence[Document]) -> Planner:
        ground = ground_of(documents, self._setup, self._clock)
        stopping = Stopping(self._clock, self._options.time_limit_s)
        return Planner(ground, self._goal(documents), self._options, stopping)


def _options(request: RebalanceRequest) -> RebalanceOptions:
    return RebalanceOptions(
        max_moves=request.max_moves,
        min_gain=request.min_gain,
        time_limit_s=request.time_limit_s,
        start_s=request.start_s,
        also_local_volumes=AlsoMoved.LOCAL_VOLUMES in request.also,
        also_jobs=AlsoMoved.JOBS in request.also,
        surges=request.surges,
        max_priority=(
            SYSTEM_PRIORITY - 1 if request.max_priority is None else request.max_priority
        ),
        excluded_namespaces=tuple(request.excluded_namespaces),
        excluded_selectors=tuple(map(parse_selector, request.excluded)),
        node_selector=parse_selector(request.nodes) if request.nodes else None,
    )


@contextmanager
def _interruptible(stopping: Stopping, text: str) -> Generator[None]:
    """Inside, the first Ctrl-C or SIGTERM stops in order, the second at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        if stopping.reason == "interrupted":
            raise KeyboardInterrupt
        stopping.stop()
        stderr().print(f"{text}; Ctrl-C again ends at once.")

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
