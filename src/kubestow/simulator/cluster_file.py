"""A whole cluster from files, and into a file: `demo --serve --load` and `--save`.

Objects that were read from a server (they have a UID) are kept as they are, with their UID, age and
status, so that owners and their dependents still belong together. Objects written by hand go
through admission, as with `kubectl apply`.

Files often have a part of a cluster only. Then:

    namespaces that are only named             are made
    references to owners that are not there    are left out: the garbage collector would delete
                                               the objects that have them
    kinds the server does not serve            are left out, and counted
    events and node leases                     are left out, in both directions: they are history

Saving leaves out the data of secrets, copies of manifests in annotations, and parameters for the
drivers of devices.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kubestow.api.deep_json import readable_json
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.writes.defaults import apply_defaults
from kubestow.cluster.documents import namespace_of, objects_in, removed_at, replaced_at, value_at
from kubestow.errors import ApiError, InputError, NotFoundError
from kubestow.files import keeping
from kubestow.simulator.kept_documents import without_copied_parts
from kubestow.simulator.loaded_revisions import with_own_revisions

_LEFT_OUT: Final = frozenset(("Event", "Lease"))
# Others need them: a kind its definition, an object its namespace, a pod its classes.
_FIRST: Final = (
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
)


class LoadReport(NamedTuple):
    object_count: int
    # How many objects of each kind were left out.
    ignored: Counter[str]
    # How many references to owners that are not in the files were left out.
    orphan_count: int


class SaveReport(NamedTuple):
    object_count: int
    secret_count: int


def load_cluster_files(store: MemoryCluster, documents: Sequence[Document]) -> LoadReport:
    """Create the objects; InputError names the first that cannot be created."""
    kept = with_own_revisions([one for one in documents if one.raw.get("kind") not in _LEFT_OUT])
    _add_namespaces(store, kept)
    uids = {uid for one in kept if (uid := value_at(one.raw, "metadata", "uid"))}
    store.take_uids(uids)
    ignored: Counter[str] = Counter()
    orphan_count = loaded_count = 0
    for document in sorted(kept, key=_rank):
        raw = document.raw
        references = objects_in(value_at(raw, "metadata", "ownerReferences"))
        known = [one for one in references if one.get("uid") in uids]
        if len(known) < len(references):
            orphan_count += len(references) - len(known)
            raw = replaced_at(raw, ("metadata", "ownerReferences"), known)
        kind: str = raw.get("kind", "")
        try:
            store.served.of_kind(raw.get("apiVersion", ""), kind)
        except NotFoundError:
            ignored[kind] += 1
            continue
        is_recorded = bool(value_at(raw, "metadata", "uid"))
        try:
            # As in `loading`: what was shortened by hand lacks some defaults.
            known_raw = apply_defaults(raw) if is_recorded else raw
            store.load([known_raw], admission=False if is_recorded else None)
        except ApiError as error:
            raise InputError(f"{document.source}: cannot be loaded: {error}") from error
        loaded_count += 1
    return LoadReport(loaded_count, ignored, orphan_count)


def _rank(document: Document) -> int:
    kind = document.raw.get("kind")
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


def _add_namespaces(store: MemoryCluster, documents: Iterable[Document]) -> None:
    """Make the namespaces that objects are in and that are neither there nor in the files."""
    resource = store.resources.named("namespaces")
    given = {value_at(one.raw, "metadata", "name") for one in documents if _is_namespace(one.raw)}
    named = {namespace_in(store, one.raw) for one in documents}
    for name in sorted(named - given):
        if name and store.find(resource, "", name) is None:
            store.create(resource, {"metadata": {"name": name}})


def namespace_in(store: MemoryCluster, document: JsonObject) -> str:
    """The namespace that an object is created in; empty for a kind that has none, or is unknown."""
    try:
        served = store.served.of_kind(document.get("apiVersion", ""), document.get("kind", ""))
    except NotFoundError:
        return ""
    if not served.stored.namespaced:
        return ""
    return namespace_of(document)


def _is_namespace(document: JsonObject) -> bool:
    return document.get("kind") == "Namespace"


# --- Saving -----------------------------------------------------------------------------------


def save_cluster(store: MemoryCluster, path: Path) -> SaveReport:
    """Write all objects as one JSON list, in one step; InputError if that fails."""
    content, report = saved_content(store)
    try:
        keeping.replace(path, content)
    except OSError as error:
        raise InputError(f'cannot save to "{path}": {error.strerror}') from error
    return report


def saved_content(store: MemoryCluster) -> tuple[bytes, SaveReport]:
    """All objects as one JSON list."""
    secret_count = 0
    items: list[JsonObject] = []
    for resource in store.resources:
        if resource.kind in _LEFT_OUT:
            continue
        for stored in store.list(resource).items:
            document = without_copied_parts(stored.document)
            if resource.kind == "Secret":
                secret_count += bool(document.get("data") or document.get("stringData"))
                document = _without_data(document)
            items.append(document)
    content: JsonObject = {"apiVersion": "v1", "kind": "List", "items": items}
    return readable_json(content), SaveReport(len(items), secret_count)


def _without_data(secret: JsonObject) -> JsonObject:
    return removed_at(removed_at(secret, ("data",)), ("stringData",))
