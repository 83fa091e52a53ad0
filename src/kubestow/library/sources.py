"""Clusters as scripts give them: files, folders, objects, a live cluster; and changes of these."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from kubestow import __version__
from kubestow.api.files import Document, load_documents
from kubestow.api.meta import JsonObject
from kubestow.clock import SystemClock
from kubestow.cluster.http.users_kubeconfig import Kubeconfig
from kubestow.config.decoding import load_config
from kubestow.config.feature_gates import FeatureGates, parse_gates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.validation import check_config
from kubestow.errors import InputError
from kubestow.explain.explanation import Suggestion
from kubestow.explain.suggestions.apply import applied
from kubestow.plugins.loading import LoadedPlugins, load_plugins
from kubestow.plugins.registry import REGISTRY
from kubestow.simulator.input.changes import InputChanges, NodesLike
from kubestow.simulator.input.live import read_server
from kubestow.simulator.manifests import select_manifests
from kubestow.simulator.virtual_time import beside_other_loops

# A file, a directory, an object as it would be written in a file, or several objects.
Source = str | Path | JsonObject | Sequence[JsonObject]


def read_cluster(*, kubeconfig: str | Path = "", context: str = "") -> list[JsonObject]:
    """The objects of a live cluster that decide where pods go, as a source for everything else.

    The cluster is that of kubectl, unless a kubeconfig or a context is named. Only lists are
    requested; secrets and environment variables are not among them. Raises InputError, and
    ConfigError if no kubeconfig is found.
    """
    clock = SystemClock()
    server = Kubeconfig(str(kubeconfig), context).server(clock)
    agent = f"kubestow/{__version__}/read"
    live = beside_other_loops(lambda: asyncio.run(read_server(server, clock, agent)))
    return [document.raw for document in live.documents]


def change_cluster(
    *sources: Source,
    add_nodes: Mapping[str, int] | None = None,
    cordon: Sequence[str] = (),
    drain: Sequence[str] = (),
    remove_pods: Sequence[str] = (),
    reschedule: bool = False,
) -> list[JsonObject]:
    """The cluster with changes, as options of `kubestow simulate` make them.

    `add_nodes` says how many copies of which node are added, `cordon` and `drain` name nodes,
    `remove_pods` are label selectors. Raises InputError.
    """
    changes = InputChanges(
        add_nodes=tuple(NodesLike(count, like) for like, count in (add_nodes or {}).items()),
        cordon=tuple(cordon),
        drain=tuple(drain),
        remove_pods=tuple(remove_pods),
        reschedule=reschedule,
    )
    return [document.raw for document in changes.apply(documents_of(sources)).documents]


def apply_suggestion(suggestion: Suggestion, *sources: Source) -> list[JsonObject]:
    """The cluster with what a suggestion changes; InputError if its objects are not there."""
    return [document.raw for document in applied(documents_of(sources), suggestion)]


def documents_of(sources: Sequence[Source]) -> list[Document]:
    """What decides of the sources; InputError for an object of another kind.

    Files may have such objects: they are left out, as the commands do.
    """
    documents: list[Document] = []
    for number, source in enumerate(sources, start=1):
        if isinstance(source, str | Path):
            documents += select_manifests(load_documents([source])).documents
        elif isinstance(source, dict):
            documents.append(_of_object(source, f"object {number}"))
        else:
            for position, one in enumerate(source):
                documents.append(_of_object(one, f"object {number}[{position}]"))
    return documents


def scheduler_of(
    config: str | Path | None, feature_gates: Iterable[str]
) -> tuple[LoadedPlugins, FeatureGates]:
    gates = parse_gates(feature_gates)
    if config is None:
        return LoadedPlugins(SchedulerConfig(), REGISTRY), gates
    loaded = load_config(str(config))
    check_config(loaded)
    return load_plugins(loaded), gates


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
