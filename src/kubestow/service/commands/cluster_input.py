"""The cluster that a command works on: from files or from a server, checked, changed and saved.

What is left out, unknown or changed is reported on standard error, a line each.
"""

import shlex
import sys
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kubestow.api.files import STDIN, Document, load_documents
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.editions import DEFAULT, edition_named, edition_of_server
from kubestow.editions.edition import Edition
from kubestow.errors import InputError
from kubestow.plural import counted
from kubestow.redaction import printable
from kubestow.simulator.input.changes import InputChanges, NodesLike
from kubestow.simulator.input.saving import require_place, save_input, saved_version
from kubestow.simulator.manifests import Manifests, select_manifests, unknown_field_texts
from kubestow.simulator.refusals import without_refused
from kubestow.simulator.scenario.document import API_VERSION as SCENARIO_VERSION
from kubestow.simulator.scenario.document import KIND as SCENARIO_KIND

SCENARIO_GROUP: Final = SCENARIO_VERSION.partition("/")[0]
_PLAYERS: Final = ("simulate", "compare")
_FIELDS_SHOWN: Final = 10
if TYPE_CHECKING:
    from kubestow.clock import Clock
    from kubestow.cluster.http.kubeconfig import ServerConfig

_REFUSALS_SHOWN: Final = 10
_PLACES_SHOWN: Final = 5


class InputRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Where a cluster comes from, and what is changed in it."""

    files: Sequence[str] = ()
    is_strict: bool = False
    is_live: bool = False
    kubeconfig: str = ""
    context: str = ""
    changes: InputChanges = InputChanges()
    save: Path | None = None
    # Files that exist are overwritten.
    force: bool = False

    def names_a_cluster(self) -> bool:
        """Whether there is one to read; InputError if options without it would have no effect."""
        if self.files or self.is_live:
            return True
        if self != InputRequest(force=self.force):
            raise InputError(
                "--save, --strict, --kubeconfig, --context and changes of the cluster are for what "
                "-f and --from-cluster read: give one of these, or leave them out"
            )
        return False


def changes_of(
    *,
    reschedule: bool,
    cordon: Sequence[str] | None,
    drain: Sequence[str] | None,
    add_nodes: Sequence[int] | None,
    like: Sequence[str] | None,
    remove_pods: Sequence[str] | None,
) -> InputChanges:
    """The changes that options ask for; InputError if they do not fit together."""
    counts, names = add_nodes or (), like or ()
    if len(counts) != len(names):
        raise InputError(
            "--add-nodes and --like go together: give each number of nodes the node to copy, for "
            "example --add-nodes 3 --like node-1"
        )
    return InputChanges(
        add_nodes=tuple(NodesLike(*pair) for pair in zip(counts, names, strict=True)),
        remove_pods=tuple(remove_pods or ()),
        cordon=tuple(cordon or ()),
        drain=tuple(drain or ()),
        reschedule=reschedule,
    )


def load_input(
    request: InputRequest,
    *,
    command: str,
    reads_config_maps: bool = False,
    dialects: Container[str] = (),
    also_read: Container[str] = (),
    sets_apart: Container[str] = (),
    gates: FeatureGates = DEFAULT_GATES,
    makes_pods: bool = True,
) -> Manifests:
    """The cluster with its changes; InputError says what cannot be used.

    Single objects that cannot be used are left out, unless the request is strict. `dialects` are
    the other API versions of pod groups that are read, `also_read` other kinds, and
    `sets_apart` those that are returned beside the cluster. Without `makes_pods`, pods of workloads
    are made by controllers later.
    """
    _check(request, command)
    live = _read_live(request) if request.is_live else []
    others: list[str] = []
    refusals: list[str] = []
    on_refused = None if request.is_strict else refusals.append
    read = load_documents(request.files, on_other=others.append, on_refused=on_refused)
    read = _without_scenarios(read, request.files, command)
    loaded = [*live, *read]
    _report_others(others)
    if not loaded and refusals:
        raise InputError(refusals[0])
    if not loaded:
        names = ("standard input" if file == STDIN else file for file in request.files)
        raise InputError(f"no objects in {', '.join(names)}")
    manifests = select_manifests(
        loaded,
        reads_config_maps=reads_config_maps,
        dialects=dialects,
        also_read=also_read,
        sets_apart=sets_apart,
    )
    for text in (manifests.ignored_text(), *manifests.notes):
        _report(text)
    report_unknown_fields(manifests.documents[len(live) :], is_strict=request.is_strict)
    checked = without_refused(
        manifests.documents, gates=gates, dialects=dialects, makes_pods=makes_pods
    )
    refusals += checked.refusals
    _report_refusals(refusals, is_strict=request.is_strict, has_others=bool(checked.documents))
    changed = request.changes.apply(checked.documents)
    for note in changed.notes:
        _report(note)
    if request.save is not None:
        file_count = save_input(
            changed.documents,
            request.save,
            force=request.force,
            server_version=server_version_of(request),
        )
        files = "1 file" if file_count == 1 else f"{file_count} files"
        _report(f"{counted(len(changed.documents), 'object')} saved in {files}: {request.save}")
    return manifests._replace(documents=changed.documents, refusals=refusals)


def edition_of(request: InputRequest, compatibility: str | None) -> Edition:
    """The edition to decide with: the one named, that of the cluster, or the default one."""
    if compatibility is not None:
        return edition_named(compatibility)
    return _edition_for(server_version_of(request))


def edition_of_live(server: "ServerConfig", clock: "Clock", compatibility: str | None) -> Edition:
    """The edition named, or that of this server."""
    if compatibility is not None:
        return edition_named(compatibility)
    return _edition_for(_version_at(server, clock))


def _edition_for(version: str) -> Edition:
    if not version:
        return edition_named(DEFAULT)
    edition, note = edition_of_server(version)
    _report(f"{note}: deciding as {edition.version}" if note else "")
    return edition


def server_version_of(request: InputRequest) -> str:
    """The version of the server that the cluster is or was read from; empty if there is none."""
    return _live_version(request) if request.is_live else saved_version(request.files)


def _check(request: InputRequest, command: str) -> None:
    if not request.files and not request.is_live:
        raise InputError(
            f"nothing to {command}: name files with -f, for example -f cluster.yaml, or read the "
            "cluster of your kubeconfig with --from-cluster"
        )
    if not request.is_live and (request.kubeconfig or request.context):
        raise InputError("--kubeconfig and --context need --from-cluster")
    for file in request.files:
        if "://" in file:
            raise InputError(
                f"-f does not read addresses; run: curl -sSL {shlex.quote(file)} | "
                f"kubestow {command} -f -"
            )
    if request.save is not None:
        require_place(request.save, force=request.force)


def _without_scenarios(
    documents: Sequence[Document], files: Sequence[str], command: str
) -> list[Document]:
    """Leave out scenarios, which are no objects; InputError for one that was given by its name."""
    kept: list[Document] = []
    for document in documents:
        if document.raw.get("kind") != SCENARIO_KIND or not _is_ours(document):
            kept.append(document)
            continue
        file = document.source.partition("#")[0]
        player = command if command in _PLAYERS else _PLAYERS[0]
        played = f"{player} --scenario {shlex.quote(file)}"
        if file in files:
            raise InputError(f"{file} is a scenario, not a cluster; play it: kubestow {played}")
        _report(f"ignored: {file} is a scenario, which kubestow {played} plays")
    return kept


def _is_ours(document: Document) -> bool:
    return str(document.raw.get("apiVersion", "")).partition("/")[0] == SCENARIO_GROUP


def _report_others(places: Sequence[str]) -> None:
    if places:
        more = f" and {len(places) - _PLACES_SHOWN} more" if len(places) > _PLACES_SHOWN else ""
        _report(f"ignored, no Kubernetes objects: {', '.join(places[:_PLACES_SHOWN])}{more}")


def _report_refusals(texts: Sequence[str], *, is_strict: bool, has_others: bool) -> None:
    """Name what is left out; InputError for the first, if strict or if nothing else is there."""
    if not texts:
        return
    if is_strict or not has_others:
        more = f"; there are {len(texts) - 1} more" if len(texts) > 1 else ""
        raise InputError(f"the cluster cannot be set up: {texts[0]}{more}")
    for text in texts[:_REFUSALS_SHOWN]:
        _report(f"skipped: {text}")
    objects = "1 object was" if len(texts) == 1 else f"{len(texts)} objects were"
    _report(f"warning: {objects} skipped; --strict refuses such input")


def _report(text: str) -> None:
    if text:
        print(printable(text), file=sys.stderr)


def report_unknown_fields(documents: Sequence[Document], *, is_strict: bool) -> None:
    """Warn of fields that Kubernetes does not have; InputError for the first, if strict."""
    texts = unknown_field_texts(documents)
    if is_strict and texts:
        more = f"; there are {len(texts) - 1} more" if len(texts) > 1 else ""
        raise InputError(texts[0] + more)
    for text in texts[:_FIELDS_SHOWN]:
        _report(f"warning: {text}")
    if len(texts) > _FIELDS_SHOWN:
        _report(f"warning: {len(texts) - _FIELDS_SHOWN} more unknown fields")


def _live_version(request: InputRequest) -> str:
    # Imported here and below: files need no client.
    from kubestow.clock import SystemClock
    from kubestow.cluster.http.users_kubeconfig import Kubeconfig

    clock = SystemClock()
    return _version_at(Kubeconfig(request.kubeconfig, request.context).server(clock), clock)


def _version_at(server: "ServerConfig", clock: "Clock") -> str:
    """Empty if it cannot be read: then neither can the cluster, which is reported there."""
    import asyncio

    from kubestow.errors import ApiError
    from kubestow.service.user_agent import user_agent
    from kubestow.simulator.input.live import read_version

    try:
        return asyncio.run(read_version(server, clock, f"{user_agent()}/read"))
    except ApiError:
        return ""


def _read_live(request: InputRequest) -> list[Document]:
    # Imported here: files need no client.
    import asyncio

    from kubestow.clock import SystemClock
    from kubestow.cluster.http.users_kubeconfig import Kubeconfig
    from kubestow.service.user_agent import user_agent
    from kubestow.simulator.input.live import read_server

    clock = SystemClock()
    server = Kubeconfig(request.kubeconfig, request.context).server(clock)
    live = asyncio.run(read_server(server, clock, f"{user_agent()}/read"))
    for texts, problem in (
        (live.not_served, "not served, so read as empty"),
        (live.forbidden, "warning: you may not list these, so they are read as empty"),
    ):
        _report(f"{problem}: {', '.join(texts)}" if texts else "")
    return live.documents
