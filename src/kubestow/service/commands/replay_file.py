"""What `kubestow replay` does: run a recording again, print what differs."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kubestow.clock import SystemClock
from kubestow.config.decoding import decode_config
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.profiles import Registry
from kubestow.errors import ConfigError, InputError
from kubestow.plugins.loading import load_plugins
from kubestow.recording.file import RecordingReader
from kubestow.recording.format import Record
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.formats import DataFormat
from kubestow.service.output import Table, print_data, progress_bar, stdout
from kubestow.simulator.replay.agreement import Agreement, AgreementReplay, AgreementReport
from kubestow.simulator.replay.replay import RecordedAnswers, Replay
from kubestow.simulator.replay.report import ReplayReport
from kubestow.simulator.virtual_time import run_in_virtual_time

# What `kubestow record` writes: changes only, of a cluster that another program schedules.
FOREIGN_ORIGIN: Final = "record"


class ReplaySetup(NamedTuple):
    config: SchedulerConfig
    registry: Registry
    gates: FeatureGates
    is_other: bool


def replay_and_print(path: Path, config_file: Path | None, *, show: int, output: DataFormat) -> int:
    """Replay and print; the exit code."""
    reader = RecordingReader(path)
    setup = replay_setup(reader, config_file)
    # What the scheduler logs was logged when it was recorded.
    logging.getLogger("kubestow").setLevel(logging.CRITICAL + 1)
    if reader.header.origin == FOREIGN_ORIGIN:
        agreement = _compare(reader, setup)
        _print_agreement(agreement, show, output)
        return 0 if agreement.agreeing == agreement.decisions else 1
    report = _replay(reader, setup)
    _print_report(report, show, output)
    return 1 if report.differing and not report.is_other else 0


def replay_setup(reader: RecordingReader, config_file: Path | None) -> ReplaySetup:
    try:
        gates = FeatureGates(reader.header.gates)
        if config_file is not None:
            loaded = load_scheduler_config(config_file)
        else:
            loaded = load_plugins(decode_config(reader.header.config.encode(), gates))
    except ConfigError as error:
        if config_file is not None:
            raise
        raise InputError(
            f"{reader.path}: its configuration cannot be used here: {error}; plugins of your own "
            "have to be importable, or give another configuration with --config"
        ) from error
    return ReplaySetup(loaded.config, loaded.registry, gates, config_file is not None)


def _replay(reader: RecordingReader, setup: ReplaySetup) -> ReplayReport:
    with progress_bar("Replaying") as progress:
        task = progress.add_task("", total=200)

        def records(start: int) -> Iterator[Record]:
            for record in reader:
                progress.update(task, completed=start + round(100 * reader.share_read))
                yield record

        answers = RecordedAnswers.of(records(0))

        async def run() -> ReplayReport:
            replay = Replay(
                reader.header,
                setup.config,
                setup.gates,
                setup.registry,
                answers,
                is_other=setup.is_other,
            )
            return await replay.run(records(100))

        report = run_in_virtual_time(run())
    report.cut_at = reader.cut_at
    return report


def _compare(reader: RecordingReader, setup: ReplaySetup) -> AgreementReport:
    replay = AgreementReplay(setup.config, setup.gates, setup.registry, SystemClock())
    report = replay.run(reader)
    report.cut_at = reader.cut_at
    return report


def _print_report(report: ReplayReport, show: int, output: DataFormat) -> None:
    if output is not DataFormat.TABLE:
        report.differences = report.differences[:show]
        print_data(report, output)
        return
    table = Table("AT", "POD", "DIFFERS IN", "RECORDED", "REPLAYED")
    for each in report.differences[:show]:
        table.add(f"{each.at_s:.3f}s", each.pod, ",".join(each.what), each.recorded, each.replayed)
    if report.differences and show:
        table.print()
        stdout().print()
    stdout().print(
        f"{report.attempts:,} decisions in {report.duration_s:,.1f} s, {report.changes:,} changes: "
        f"{report.differing:,} differ{_parts(report.by_what)}"
    )
    _print_cut(report.cut_at)


def _print_agreement(report: AgreementReport, show: int, output: DataFormat) -> None:
    if output is not DataFormat.TABLE:
        report.cases = report.cases[:show]
        print_data(report, output)
        return
    table = Table("AT", "POD", "AGREEMENT", "RECORDED", "HERE")
    for each in report.cases[:show]:
        agreement = f"{each.agreement} by {each.behind}" if each.behind else str(each.agreement)
        table.add(f"{each.at_s:.3f}s", each.pod, agreement, each.recorded, each.here)
    if report.cases and show:
        table.print()
        stdout().print()
    share = report.agreeing / report.decisions if report.decisions else 1.0
    stdout().print(
        f"{report.decisions:,} decisions in {report.duration_s:,.1f} s, {report.changes:,} "
        f"changes: {report.agreeing:,} agree ({share:.1%}){_parts(report.counts)}"
    )
    if report.counts.keys() - {Agreement.SAME}:
        stdout().print(
            "Both schedulers do not see the same moment: one knows its own last decisions earlier, "
            "chooses among equals at random, and in large clusters looks at a part of the nodes."
        )
    if report.unseen:
        stdout().print(f"{report.unseen:,} pods had a node when they were first seen.")
    _print_cut(report.cut_at)


def _parts(counts: dict[str, int]) -> str:
    if not counts:
        return ""
    return f" ({', '.join(f'{what} {count:,}' for what, count in sorted(counts.items()))})"


def _print_cut(cut_at: int | None) -> None:
    if cut_at is not None:
        stdout().print(f"The recording is cut off at byte {cut_at:,}; all before it was replayed.")
