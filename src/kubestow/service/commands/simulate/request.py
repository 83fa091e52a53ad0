"""What the command line of `kubestow simulate` asks for, and what both kinds of runs share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kubestow.config.feature_gates import parse_gates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.algorithm_options import AlgorithmOptions
from kubestow.editions.edition import Edition
from kubestow.editions.options import EditionOptions
from kubestow.recording.recording import RecordTo
from kubestow.service.commands.cluster_input import InputRequest
from kubestow.service.formats import OutputFormat, TraceFormat
from kubestow.service.output import stderr
from kubestow.simulator.reports.files import Report, check_reports, write_report
from kubestow.simulator.results import GATED, PENDING, RunResult

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
    # A trace with its files, or None: place the pods of the cluster.
    trace: TraceFormat | None = None
    nodes: Path | None = None
    pods: Path | None = None
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

    def choice(self) -> EditionOptions:
        """What was chosen of an edition; raises ConfigError."""
        gates = parse_gates(self.feature_gates, self.edition)
        return EditionOptions(gates=gates, algorithm=self.algorithm)


def with_percentage(config: SchedulerConfig, request: SimulateRequest) -> SchedulerConfig:
    if request.percentage is None:
        return config
    return msgspec.structs.replace(config, percentage_of_nodes_to_score=request.percentage)


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
