"""What `kubestow replay` does: run a recording again, print what differs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from kubestow.clock import SystemClock
from kubestow.config.decoding import decode_config
from kubestow.config.defaults import complete_config
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.validation import check_config
from kubestow.editions import NEWEST, edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.edition import ModernVersion, Version
from kubestow.engine.profiles import Registry
from kubestow.errors import ConfigError, DecodeError, InputError
from kubestow.explain.difference import AttemptView
from kubestow.logs import silenced
from kubestow.plugins.loading import UnnamedPluginError, load_named_plugins
from kubestow.recording.file import RecordingReader
from kubestow.recording.format import FOREIGN_ORIGIN, Record
from kubestow.service.commands.replay.agreement import print_agreement
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.formats import DataFormat
from kubestow.service.output import print_data, progress_bar, stderr, stdout
from kubestow.simulator.replay.agreement import AgreementReplay
from kubestow.simulator.replay.agreement_report import AgreementReport
from kubestow.simulator.replay.replay import RecordedAnswers, Replay
from kubestow.simulator.replay.report import ReplayDifference, ReplayReport
from kubestow.simulator.replay.why import AttemptViews, RecordedViews, explain_report
from kubestow.simulator.upgrade.configuration import usable_gates
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.table import Table

T = TypeVar("T")


class ReplaySetup(NamedTuple):
    config: SchedulerConfig
    registry: Registry
    gates: FeatureGates
    # The configuration or the version is not the recorded one.
    is_other: bool


def replay_and_print(
    path: Path,
    config_file: Path | None,
    *,
    plugins: Sequence[str] = (),
    compatibility: ModernVersion | None = None,
    show: int,
    output: DataFormat,
) -> int:
    """Replay and print; the exit code. `plugins` are those that the recording may use."""
    reader = RecordingReader(path)
    setup = replay_setup(reader, config_file, plugins, compatibility)
    try:
        return _replay_and_print(reader, setup, plugins, show=show, output=output)
    except DecodeError as error:
        raise InputError(f"{path} is damaged: {error}") from error


def _replay_and_print(
    reader: RecordingReader,
    setup: ReplaySetup,
    plugins: Sequence[str],
    *,
    show: int,
    output: DataFormat,
) -> int:
    if reader.header.origin == FOREIGN_ORIGIN:
        with silenced():
            agreement = _compare(reader, setup, explained=show)
        print_agreement(agreement, show, output)
        if output is DataFormat.TABLE:
            _print_cut(agreement.cut_at)
        return 1 if agreement.other_rules else 0
    with silenced():
        report = _replay(reader, setup, plugins, explained=show)
    _print_report(report, show, output)
    return 1 if report.differing and not report.is_other else 0


def replay_setup(
    reader: RecordingReader,
    config_file: Path | None,
    plugins: Sequence[str] = (),
    compatibility: ModernVersion | None = None,
) -> ReplaySetup:
    """With the configuration of the file, or else that of the recording: a file of data, which
    imports no module and sends no request that the user has not named. With the rules of the
    recorded version unless another is named."""
    other = None if compatibility == reader.header.edition else compatibility
    is_other = config_file is not None or other is not None
    try:
        gates = _recorded_gates(reader) if other is None else _gates_under(other, reader)
        if config_file is not None:
            loaded = load_scheduler_config(config_file, gates=gates)
        else:
            recorded = _recorded_config(reader, gates)
            check_config(recorded, gates)
            registry = rules_of(gates.edition).registry
            loaded = load_named_plugins(_unconnected(recorded, reader), plugins, registry)
    except UnnamedPluginError as error:
        raise InputError(
            f"{reader.path}: its scheduler had {error}. A recording imports no code by itself: if "
            "you trust them, name each with --plugin, for example --plugin "
            f"{_reference_of(error.names[0])}, or give a configuration with --config"
        ) from error
    except ConfigError as error:
        if config_file is not None:
            raise
        raise InputError(
            f"{reader.path}: its configuration cannot be used here: {error}; plugins of your own "
            "have to be importable, or give another configuration with --config"
        ) from error
    return ReplaySetup(loaded.config, loaded.registry, gates, is_other)


def _recorded_gates(reader: RecordingReader) -> FeatureGates:
    try:
        edition = edition_named(reader.header.edition)
    except ConfigError as error:
        raise InputError(
            f'{reader.path}: it was recorded with the rules of "{reader.header.edition}", which '
            f"are not known here; take a kubestow that has them, as {reader.header.program} does, "
            f"or decide as another version: --compatibility {NEWEST}"
        ) from error
    return FeatureGates(reader.header.gates, edition)


def _gates_under(compatibility: ModernVersion, reader: RecordingReader) -> FeatureGates:
    """The gates that were set, as far as another version has them."""
    return usable_gates(reader.header.gates, edition_named(compatibility))


def _recorded_config(reader: RecordingReader, gates: FeatureGates) -> SchedulerConfig:
    """The configuration of a recording for these gates.

    A recording has all defaults of its version filled in. Where its profiles are the default ones,
    another version has its own.
    """
    text = reader.header.config.encode()
    if reader.header.edition == gates.edition.version or reader.header.edition not in list(Version):
        return decode_config(text, gates)
    before = _recorded_gates(reader)
    config = decode_config(text, before)
    if config.profiles != complete_config(SchedulerConfig(), before).profiles:
        return decode_config(text, gates)
    profiles = complete_config(SchedulerConfig(), gates).profiles
    return msgspec.structs.replace(config, profiles=profiles)


def _unconnected(config: SchedulerConfig, reader: RecordingReader) -> SchedulerConfig:
    """Extenders without certificates, which requests that are answered from the recording do not
    need. Where none are, the addresses in the file are not asked either."""
    if reader.header.origin == FOREIGN_ORIGIN:
        if config.extenders:
            stderr().print("Extenders of a recording are not asked, only those of --config.")
        return msgspec.structs.replace(config, extenders=())
    extenders = (msgspec.structs.replace(each, tls_config=None) for each in config.extenders)
    return msgspec.structs.replace(config, extenders=tuple(extenders))


def _reference_of(name: str) -> str:
    return name if ":" in name else f"module:{name}"


def _replay(
    reader: RecordingReader, setup: ReplaySetup, plugins: Sequence[str], explained: int
) -> ReplayReport:
    """Replay, and explain as many of the differences."""
    answers = with_progress("Reading", reader, RecordedAnswers.of)
    views = AttemptViews(explained)
    report = with_progress(
        "Replaying", reader, lambda records: _run(reader, records, setup, answers, views)
    )
    report.cut_at = reader.cut_at
    if setup.is_other:
        explain_report(report, views.found, _recorded_views(reader, plugins, answers, views))
    else:
        explain_report(report, views.found, {})
    return report


def _recorded_views(
    reader: RecordingReader,
    plugins: Sequence[str],
    answers: RecordedAnswers,
    others: AttemptViews,
) -> Mapping[int, AttemptView]:
    """What the recorded configuration finds in the same attempts; nothing if it cannot be used."""
    if not others.found:
        return {}
    try:
        setup = replay_setup(reader, None, plugins)
    except InputError:
        return {}
    views = RecordedViews(others.found)
    with_progress(
        "Explaining",
        reader,
        lambda records: _run(reader, views.needed(records), setup, answers, views),
    )
    return views.found


def _run(
    reader: RecordingReader,
    records: Iterable[Record],
    setup: ReplaySetup,
    answers: RecordedAnswers,
    views: AttemptViews,
) -> ReplayReport:
    async def run() -> ReplayReport:
        replay = Replay(
            reader.header,
            setup.config,
            setup.gates,
            setup.registry,
            answers,
            is_other=setup.is_other,
            views=views,
        )
        return await replay.run(records)

    return run_in_virtual_time(run())


def with_progress(text: str, reader: RecordingReader, work: Callable[[Iterable[Record]], T]) -> T:
    with progress_bar(text) as progress:
        task = progress.add_task("", total=100)

        def records() -> Iterator[Record]:
            for record in reader:
                progress.update(task, completed=round(100 * reader.share_read))
                yield record

        return work(records())


def _compare(reader: RecordingReader, setup: ReplaySetup, explained: int) -> AgreementReport:
    replay = AgreementReplay(
        setup.config,
        setup.gates,
        setup.registry,
        SystemClock(),
        started_ns=reader.header.started_ns,
        explained=explained,
    )
    report = with_progress("Comparing", reader, replay.run)
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
        _print_reasons(report.differences[:show], report.differing)
    stdout().print(
        f"{report.attempts:,} decisions, {report.changes:,} changes in {report.duration_s:,.1f} s "
        f"of recorded time: {report.differing:,} differ{_parts(report.by_what)}"
    )
    if report.ended:
        text = f"The scheduler ended at {report.ended_s:,.3f}s: {report.ended}"
        stdout().print(text, markup=False, highlight=False)
    _print_cut(report.cut_at)


def _print_reasons(shown: Sequence[ReplayDifference], count: int) -> None:
    """Why those that are shown differ, a line each; `count` are all that do."""
    explained = [(each, each.why) for each in shown if each.why is not None]
    for each, why in explained:
        line = f"{each.pod} at {each.at_s:.3f}s: {why.summary}"
        stdout().print(line, markup=False, highlight=False)
    if explained:
        stdout().print()
    if count > len(shown):
        stdout().print(f"{count - len(shown):,} more differ; --show N shows the first N.")


def _parts(counts: dict[str, int]) -> str:
    if not counts:
        return ""
    return f" ({', '.join(f'{what} {count:,}' for what, count in sorted(counts.items()))})"


def _print_cut(cut_at: int | None) -> None:
    if cut_at is not None:
        stdout().print(f"The recording is cut off at byte {cut_at:,}; all before it was replayed.")
