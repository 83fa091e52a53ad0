"""Clusters as scripts give them: files, folders, objects, a live cluster; and changes of these."""

import asyncio
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from kubestow import __version__
from kubestow.api.files import Document, load_documents
from kubestow.api.meta import JsonObject
from kubestow.clock import SystemClock
from kubestow.cluster.http.users_kubeconfig import Kubeconfig
from kubestow.config.decoding import load_config
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates, parse_gates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.validation import check_config
from kubestow.editions import DEFAULT, edition_named
from kubestow.editions.choosing import rules_of
from kubestow.errors import InputError, InputWarning
from kubestow.explain.explanation import Suggestion
from kubestow.explain.many_explanation import SharedRemedy
from kubestow.explain.suggestions.apply import applied
from kubestow.plugins.loading import LoadedPlugins, load_plugins
from kubestow.simulator.input.changes import InputChanges, NodesLike
from kubestow.simulator.input.live import read_server
from kubestow.simulator.manifests import select_manifests, unknown_field_texts
from kubestow.simulator.refusals import without_refused
from kubestow.simulator.virtual_time import beside_other_loops

# How many parts of an input a warning names.
TEXTS_SHOWN: Final = 10

# A file, a directory, an object as it would be written in a file, or several objects.
Source = str | Path | JsonObject | Sequence[JsonObject]


def read_cluster(
    *, kubeconfig: str | Path = "", context: str = "", strict: bool = False
) -> list[JsonObject]:
    """The objects of a live cluster that decide where pods go, as a source for everything else.

    The cluster is that of kubectl, unless a kubeconfig or a context is named. Only lists are
    requested; secrets and environment variables are not among them. Objects that cannot be used
    are left out with an InputWarning; with `strict` that is an error. Raises InputError, and
    ConfigError if no kubeconfig is found.
    """
    clock = SystemClock()
    server = Kubeconfig(str(kubeconfig), context).server(clock)
    agent = f"kubestow/{__version__}/read"
    live = beside_other_loops(lambda: asyncio.run(read_server(server, clock, agent)))
    return [document.raw for document in _usable(live.documents, strict=strict)]


def change_cluster(
    *sources: Source,
    add_nodes: Mapping[str, int] | None = None,
    cordon: Sequence[str] = (),
    drain: Sequence[str] = (),
    remove_pods: Sequence[str] = (),
    reschedule: bool = False,
    strict: bool = False,
) -> list[JsonObject]:
    """The cluster with changes, as options of `kubestow simulate` make them.

    `add_nodes` says how many copies of which node are added, `cordon` and `drain` name nodes,
    `remove_pods` are label selectors. Raises InputError; `strict` as in `load_cluster`.
    """
    changes = InputChanges(
        add_nodes=tuple(NodesLike(count, like) for like, count in (add_nodes or {}).items()),
        cordon=texts_of("cordon", cordon),
        drain=texts_of("drain", drain),
        remove_pods=texts_of("remove_pods", remove_pods),
        reschedule=reschedule,
    )
    documents = documents_of(sources, strict=strict)
    return [document.raw for document in changes.apply(documents).documents]


def apply_suggestion(
    suggestion: Suggestion | SharedRemedy, *sources: Source, strict: bool = False
) -> list[JsonObject]:
    """The cluster with what a suggestion changes, also one for several pods; InputError if its
    objects are not there.

    `strict` as in `load_cluster`.
    """
    documents = documents_of(sources, strict=strict)
    return [document.raw for document in applied(documents, suggestion)]


def documents_of(
    sources: Sequence[Source],
    *,
    strict: bool,
    gates: FeatureGates = DEFAULT_GATES,
    makes_pods: bool = True,
) -> list[Document]:
    """What decides of the sources; InputError for an object of another kind.

    Files are read as the commands read them: what decides nothing is left out, and what a cluster
    would refuse or not know gives an InputWarning; with `strict` an InputError. Objects that a
    script gives are what it means, and must be right. Without `makes_pods`, pods of workloads are
    made by controllers later.
    """
    read = _read(sources)
    documents = read.documents
    refusals = read.refusals
    if read.from_files:
        checked = without_refused(documents, gates=gates, makes_pods=makes_pods)
        kept = set(map(id, checked.documents))
        refused = (document for document in documents if id(document) not in kept)
        for document, text in zip(refused, checked.refusals, strict=True):
            if id(document) not in read.from_files:
                raise InputError(f"the cluster cannot be set up: {text}")
            refusals.append(text)
        documents = checked.documents
    _report(refusals, "the cluster cannot be set up: ", strict=strict or not documents)
    _report(unknown_field_texts(read.in_files()), "", strict=strict)
    return documents


def copies_of(source: Source, *, strict: bool) -> list[Document]:
    """What is to be copied into a cluster; what it needs there is checked when it is copied."""
    read = _read([source])
    _report(read.refusals, "", strict=strict or not read.documents)
    _report(unknown_field_texts(read.in_files()), "", strict=strict)
    return read.documents


def _usable(documents: Sequence[Document], *, strict: bool) -> list[Document]:
    checked = without_refused(documents)
    _report(checked.refusals, "the cluster cannot be set up: ", strict=strict)
    return checked.documents


class _Read(NamedTuple):
    """`from_files` are the identities of documents from files, `refusals` what is not among them
    because it does not decode."""

    documents: list[Document]
    from_files: set[int]
    refusals: list[str]

    def in_files(self) -> list[Document]:
        return [document for document in self.documents if id(document) in self.from_files]


def _read(sources: Sequence[Source]) -> _Read:
    read = _Read([], set(), [])
    for number, source in enumerate(sources, start=1):
        if isinstance(source, str | Path):
            loaded = load_documents([source], on_refused=read.refusals.append)
            found = select_manifests(loaded).documents
            read.from_files.update(map(id, found))
            read.documents.extend(found)
        elif isinstance(source, dict):
            read.documents.append(_of_object(source, f"object {number}"))
        else:
            for position, one in enumerate(source):
                read.documents.append(_of_object(one, f"object {number}[{position}]"))
    return read


def _report(texts: Sequence[str], prefix: str, *, strict: bool) -> None:
    """Warn of parts of files; InputError for the first, if strict."""
    if not texts:
        return
    if strict:
        more = f"; there are {len(texts) - 1} more" if len(texts) > 1 else ""
        raise InputError(f"{prefix}{texts[0]}{more}")
    left = len(texts) - TEXTS_SHOWN
    shown = [*texts[:TEXTS_SHOWN], *([f"and {left} more"] if left > 0 else [])]
    text = "; ".join(shown)
    # The line of the script: above it are its function of the library, and the caller of this.
    warnings.warn(
        f"left out of the input (strict=True refuses it): {text}", InputWarning, stacklevel=4
    )


def scheduler_of(
    config: str | Path | None, feature_gates: Iterable[str]
) -> tuple[LoadedPlugins, FeatureGates]:
    gates = parse_gates(texts_of("feature_gates", feature_gates), edition_named(DEFAULT))
    registry = rules_of(gates.edition).registry
    if config is None:
        return LoadedPlugins(SchedulerConfig(), dict(registry)), gates
    loaded = load_config(str(config), gates)
    check_config(loaded, gates)
    return load_plugins(loaded, registry), gates


def texts_of(name: str, given: Iterable[str]) -> tuple[str, ...]:
    """The texts of a parameter; InputError for one text alone, which is an iterable of letters."""
    if isinstance(given, str):
        raise InputError(f'{name} is "{given}", expected a list: {name}=["{given}"]')
    return tuple(given)


def _of_object(raw: Any, place: str) -> Document:
    """The declared type is not trusted: scripts are often not type-checked."""
    if not isinstance(raw, dict):
        raise InputError(f"{place} is {raw!r}, expected a Kubernetes object as a dictionary")
    document = Document(cast(JsonObject, raw), place)
    kind = document.raw.get("kind")
    if not isinstance(kind, str) or not kind:
        raise InputError(f"{place} has no kind")
    if not select_manifests([document]).documents:
        raise InputError(f"{place} is a {kind}, which decides nothing about pods")
    return document
