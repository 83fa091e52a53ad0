"""What the command line of `kubestow simulate` asks for, and what both kinds of runs share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kubestow.api.files import Document
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates, parse_gates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.edition import Edition
from kubestow.editions.flags import AlgorithmOptions
from kubestow.editions.options import EditionOptions
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.profiles import Registry
from kubestow.errors import InputError
from kubestow.plugins.loading import LoadedPlugins
from kubestow.recording.recording import RecordTo
from kubestow.service.commands.cluster_input import InputRequest
from kubestow.service.commands.scheduler_config import checked_gates
from kubestow.service.formats import OutputFormat, TraceFormat
from kubestow.service.output import stderr
from kubestow.simulator.reports.files import Report, check_reports, write_report
from kubestow.simulator.results import GATED, PENDING, RunResult
from kubestow.simulator.scenario.run import MakeCluster

# Exit codes.
PODS_REFUSED: Final = 1
PLUGIN_FAILED: Final = 3
INTERRUPTED: Final = 130
_FILES_SHOWN: Final = 3


class SimulateRequest(msgspec.Struct, frozen=True, kw_only=True):
    cluster: InputRequest
    # A scenario, or None.
    scenario: Path | None = None
    until: str = ""
    seed: int | None = None
    # Play the scenario with this many seeds, in this many processes.
    repeat: int | None = None
    jobs: int | None = None
    # A trace with its files, or None: place the pods of the cluster.
    trace: TraceFormat | None = None
    nodes: Path | None = None
    pods: Path | None = None
    usage: Path | None = None
    output: OutputFormat
    has_headers: bool
    reports: Sequence[Path] = ()
    record: RecordTo | None
    # None: as long as it takes, or the whole trace.
    limit_s: float | None
    config_file: Path | None
    percentage: int | None
    feature_gates: Sequence[str]
    is_failing_on_pending: bool
    edition: Edition
    algorithm: AlgorithmOptions

    def modern_gates(self) -> FeatureGates:
        """The gates, under an edition that is not modern those of the core; raises ConfigError."""
        if not self.edition.is_modern:
            return DEFAULT_GATES
        return checked_gates(self.feature_gates, self.edition)

    def choice(self) -> EditionOptions:
        """What was chosen of an edition; raises ConfigError."""
        gates = parse_gates(self.feature_gates, self.edition)
        return EditionOptions(gates=gates, algorithm=self.algorithm)


def with_percentage(config: SchedulerConfig, request: SimulateRequest) -> SchedulerConfig:
    if request.percentage is None:
        return config
    return msgspec.structs.replace(config, percentage_of_nodes_to_score=request.percentage)


class RunScheduler(NamedTuple):
    """The scheduler of a run."""

    config: SchedulerConfig
    registry: Registry
    gates: FeatureGates = DEFAULT_GATES
    factory: type[SchedulerFactory] | None = None
    # Of v1.9, which has no plugins.
    make_cluster: MakeCluster | None = None


def run_scheduler(
    request: SimulateRequest, loaded: LoadedPlugins, config_maps: Sequence[Document] = ()
) -> RunScheduler:
    """The scheduler asked for; `loaded` is the modern one, `config_maps` may have the Policy of
    another."""
    if request.edition.is_modern:
        gates = request.modern_gates()
        return RunScheduler(with_percentage(loaded.config, request), loaded.registry, gates)
    # Imported here, like every other edition: only when it is to run.
    from kubestow.editions.choosing import rules_of
    from kubestow.editions.simulating import plugins_config, v1_9_cluster

    choice = request.choice()
    if not request.edition.has_plugins:
        make_cluster = v1_9_cluster(choice, config_maps)
        return RunScheduler(SchedulerConfig(), {}, make_cluster=make_cluster)
    rules = rules_of(request.edition)
    config, registry = plugins_config(request.config_file, choice, rules, config_maps)
    return RunScheduler(with_percentage(config, request), registry, factory=rules.factory)


def require_no_trace_files(request: SimulateRequest) -> None:
    """InputError if files of a trace are given to a run that plays none."""
    if any((request.nodes, request.pods, request.usage)):
        raise InputError(
            "--nodes, --pods and --usage are files of a trace: give its format with --trace"
        )


def exit_code_of(report: Report, request: SimulateRequest) -> int:
    """The exit code after a run of a scenario or trace."""
    if report.is_partial:
        return INTERRUPTED
    if report.failed_attempts:
        return PLUGIN_FAILED
    if report.refused_pods:
        return PODS_REFUSED
    outcomes = report.figures.outcomes
    waiting = outcomes.get(PENDING, 0) + outcomes.get(GATED, 0)
    return 1 if request.is_failing_on_pending and waiting else 0


def check_outputs(request: SimulateRequest) -> None:
    """InputError if a file could not be written: at the end of the work it would be late."""
    check_reports(request.reports, force=request.cluster.force)
    if request.record is not None:
        request.record.check()


def written(result: RunResult, request: SimulateRequest) -> None:
    """Write the reports, and print the names of the files on standard error."""
    for path in request.reports:
        files = write_report(result, path, force=request.cluster.force)
        names = ", ".join(map(str, files[:_FILES_SHOWN]))
        more = f" and {len(files) - _FILES_SHOWN} more" if len(files) > _FILES_SHOWN else ""
        stderr().print(f"report written: {names}{more}", markup=False)
