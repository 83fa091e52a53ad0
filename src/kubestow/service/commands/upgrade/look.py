"""What `kubestow upgrade` does: read the cluster, compare both versions, print what differs."""

from collections.abc import Sequence, Set
from pathlib import Path
from typing import Final

import msgspec

from kubestow.api.files import Document
from kubestow.clock import SystemClock
from kubestow.config.decoding import decode_config
from kubestow.config.defaults import complete_config
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.validation import check_config
from kubestow.editions import edition_named, edition_of_server
from kubestow.editions.choosing import rules_of
from kubestow.editions.edition import Edition, Version
from kubestow.editions.noticed import NoticedChanges
from kubestow.editions.upgrading import changes_between
from kubestow.errors import ConfigError, DecodeError, InputError
from kubestow.plugins.loading import LoadedPlugins
from kubestow.recording.file import RecordingReader
from kubestow.recording.format import FOREIGN_ORIGIN
from kubestow.service.commands.cluster_input import InputRequest, load_input, server_version_of
from kubestow.service.commands.replay.file import ReplaySetup, replay_setup, with_progress
from kubestow.service.commands.scheduler_config import checked_gates, load_scheduler_config
from kubestow.service.commands.upgrade.output import print_upgrade
from kubestow.service.formats import FailOn, UpgradeFormat
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import progress_bar, stderr
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.upgrade.configuration import (
    batching_findings,
    config_findings,
    gate_findings,
    usable_gates,
)
from kubestow.simulator.upgrade.decisions import ComparedPods, compare_pods
from kubestow.simulator.upgrade.objects import completed_pods, failed_bindings, lost_objects
from kubestow.simulator.upgrade.own_plugins import plugin_findings
from kubestow.simulator.upgrade.pair import EditionPair, EditionSide, pair_of
from kubestow.simulator.upgrade.recorded import compare_recording
from kubestow.simulator.upgrade.report import Effect, UnseenChange, UpgradeFinding, UpgradeReport
from kubestow.simulator.upgrade.search import SEARCHED_KINDS, search_documents, search_files

_FOUND: Final = 1  # the exit code


class UpgradeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    cluster: InputRequest
    recording: Path | None
    to: str
    from_version: str
    config_file: Path | None
    feature_gates: Sequence[str]
    search: Sequence[Path]
    fail_on: FailOn | None
    output: UpgradeFormat


def look_and_print(request: UpgradeRequest) -> int:
    """Compare both versions and print what differs; the exit code."""
    with warnings_on_stderr():
        report = _look(request)
    print_upgrade(report, request.output)
    if request.fail_on is FailOn.CHANGED:
        return _FOUND if report.is_changed else 0
    return _FOUND if request.fail_on is FailOn.BROKEN and report.is_broken else 0


def _look(request: UpgradeRequest) -> UpgradeReport:
    after = _edition("--to", request.to)
    if request.recording is not None:
        return _look_at_recording(request, request.recording, after)
    before = _version_now(request, after)
    if before is after and not request.from_version:
        raise InputError(
            f"--to is {after.version}, which the cluster has; name the version to go to, or with "
            "--from the one in use now"
        )
    noticed = changes_between(before, after)
    gates = checked_gates(request.feature_gates, before)
    mine = EditionSide(gates, load_scheduler_config(request.config_file, gates=gates))
    other = EditionSide(usable_gates(gates.overrides, after), mine.loaded)
    loaded, configuration = _read_as(request.config_file, mine, other)
    look = _Look(request, noticed, mine, other._replace(loaded=loaded), configuration)
    given = load_input(
        request.cluster,
        command="upgrade",
        dialects=dialects_of(mine.loaded.config),
        sets_apart=SEARCHED_KINDS,
        gates=gates,
    )
    lost = lost_objects(given.documents, noticed, is_back=look.is_back)
    pair = look.pair(lost.others)
    bindings = failed_bindings(pair.older.objects.pods)
    searched = search_documents(given.set_apart, noticed, is_back=look.is_back)
    objects = (*lost.findings, *completed_pods(pair), *bindings, *searched)
    return look.report(pair, _compared(pair, noticed), objects)


def _look_at_recording(request: UpgradeRequest, path: Path, after: Edition) -> UpgradeReport:
    if request.cluster.files or request.cluster.is_live:
        raise InputError("a recording has its cluster; leave out -f and --from-cluster")
    if request.config_file is not None or request.feature_gates:
        raise InputError(
            "a recording has its configuration; leave out --config and --feature-gates"
        )
    reader = RecordingReader(path)
    setup = replay_setup(reader, None)
    before = setup.gates.edition
    if request.from_version and _edition("--from", request.from_version) is not before:
        raise InputError(f"{path} was recorded with {before.version}; leave out --from")
    noticed = changes_between(before, after)
    config = msgspec.structs.replace(setup.config, extenders=())
    mine = EditionSide(setup.gates, LoadedPlugins(config, dict(setup.registry)))
    gates = usable_gates(setup.gates.overrides, after)
    other = EditionSide(gates, load_scheduler_config(None, gates=gates))
    config, configuration = _recorded_config(reader, setup, gates)
    other = other._replace(loaded=other.loaded._replace(config=config))
    look = _Look(request, noticed, mine, other, configuration)
    pair = look.pair(())
    try:
        found = with_progress(
            "Deciding twice",
            reader,
            lambda records: compare_recording(
                pair, records, noticed, is_foreign=reader.header.origin == FOREIGN_ORIGIN
            ),
        )
    except DecodeError as error:
        raise InputError(f"{path} is damaged: {error}") from error
    return look.report(pair, found.pods, found.bindings)


def _recorded_config(
    reader: RecordingReader, setup: ReplaySetup, gates: FeatureGates
) -> tuple[SchedulerConfig, list[UpgradeFinding]]:
    """The configuration of a recording as the other version has it.

    A recording has all defaults of its version filled in; where nothing else is in it, it is the
    default one, also of the other version.
    """
    if setup.config.profiles == complete_config(SchedulerConfig(), setup.gates).profiles:
        return SchedulerConfig(), []
    try:
        read = decode_config(reader.header.config.encode(), gates)
        check_config(read, gates)
    except ConfigError as error:
        text = f"{error}; decided with the default configuration of the other version instead"
        where = f"configuration of {reader.path}"
        return SchedulerConfig(), [UpgradeFinding(effect=Effect.NOTE, where=where, text=text)]
    return msgspec.structs.replace(read, extenders=()), []


class _Look:
    """Two versions of a scheduler, and what is known of them before the cluster is read."""

    def __init__(
        self,
        request: UpgradeRequest,
        noticed: NoticedChanges,
        before: EditionSide,
        after: EditionSide,
        configuration: Sequence[UpgradeFinding],
    ) -> None:
        self._noticed = noticed
        self._is_recording = request.recording is not None
        self._before, self._after = before, after
        self.is_back = before.gates.edition.version == noticed.newer
        self._configuration = (
            *gate_findings(before.gates, after.gates.edition),
            *configuration,
        )
        self._searched = search_files(request.search, noticed, is_back=self.is_back)

    def pair(self, documents: Sequence[Document]) -> EditionPair:
        return pair_of(documents, self._before, self._after, SystemClock(), is_back=self.is_back)

    def report(
        self, pair: EditionPair, pods: ComparedPods, objects: Sequence[UpgradeFinding]
    ) -> UpgradeReport:
        own = self._before.loaded.registry.keys() - rules_of(self._before.gates.edition).registry
        configuration = (
            *self._configuration,
            *batching_findings(pair),
            *plugin_findings(pair, own),
        )
        findings = (*configuration, *objects, *self._searched.findings)
        seen = {each.change for each in (*pods.causes, *findings)}
        return UpgradeReport(
            before=self._before.gates.edition.version,
            after=self._after.gates.edition.version,
            is_back=self.is_back,
            compared=pods.compared,
            differing=pods.differing,
            left_out=(*pods.left_out, *self._searched.left_out),
            causes=pods.causes,
            configuration=configuration,
            objects=tuple(objects),
            searched=self._searched.searched,
            files=self._searched.findings,
            unseen=_unseen(self._noticed, seen),
            is_recording=self._is_recording,
        )


def _edition(option: str, text: str) -> Edition:
    known = [version for version in Version if edition_named(version).is_modern]
    if text not in known:
        names = " or ".join(sorted(known))
        raise InputError(f'{option} is "{text}", expected {names}')
    return edition_named(text)


def _version_now(request: UpgradeRequest, after: Edition) -> Edition:
    """The version named, that of the cluster, or the other one."""
    if request.from_version:
        return _edition("--from", request.from_version)
    version = server_version_of(request.cluster)
    if version:
        edition, note = edition_of_server(version)
        if note:
            stderr().print(f"{note}: compared as {edition.version}")
        return edition
    others = [edition_named(each) for each in Version if edition_named(each).is_modern]
    return next(each for each in others if each is not after)


def _read_as(
    path: Path | None, mine: EditionSide, other: EditionSide
) -> tuple[LoadedPlugins, list[UpgradeFinding]]:
    """The configuration as the other version reads it, or its defaults if it refuses the file."""
    try:
        loaded = load_scheduler_config(path, gates=other.gates)
    except ConfigError as error:
        finding = UpgradeFinding(effect=Effect.REFUSED, where=f"--config {path}", text=str(error))
        return load_scheduler_config(None, gates=other.gates), [finding]
    if path is None:
        return loaded, []
    return loaded, list(config_findings(str(path), mine.loaded.config, loaded.config))


def _compared(pair: EditionPair, noticed: NoticedChanges) -> ComparedPods:
    with progress_bar("Deciding twice") as progress:
        task = progress.add_task("", total=None)
        return compare_pods(
            pair, noticed, lambda done, count: progress.update(task, completed=done, total=count)
        )


def _unseen(noticed: NoticedChanges, seen: Set[int | None]) -> tuple[UnseenChange, ...]:
    return tuple(
        UnseenChange(change=each.number, text=each.text, section=each.section, why=each.unseen)
        for each in noticed.changes
        if each.unseen and each.number not in seen
    )
