"""Which objects of an input a cluster would refuse, found before the cluster is set up.

A folder of manifests, or a part of a cluster, may have an object that no API server accepts, or one
that needs another which is not there. The others are still worth an answer, so it can be left out.

Not here: objects that cannot be decoded (`api.files`), setting up the cluster (`loading`).
"""

from collections.abc import Container, Sequence
from typing import NamedTuple

from kubestow.api.files import Document
from kubestow.apiserver.memory import LOADED_FIRST, MemoryCluster
from kubestow.apiserver.refusals import already_exists
from kubestow.apiserver.writes.names import require_stored_names
from kubestow.clock import SystemClock
from kubestow.cluster.documents import as_object
from kubestow.cluster.resources import ApiResource
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.errors import ApiError, InputError
from kubestow.simulator.loading import stands
from kubestow.simulator.workloads import WORKLOAD_KINDS, sample_pod

# Kind, namespace, name.
_Key = tuple[str, str, str]


class Checked(NamedTuple):
    """The documents that can be used, and a line for each of the others."""

    documents: list[Document]
    refusals: list[str]


def without_refused(
    documents: Sequence[Document],
    *,
    gates: FeatureGates = DEFAULT_GATES,
    dialects: Container[str] = (),
    makes_pods: bool = True,
) -> Checked:
    """Leave out what a cluster would refuse, and new workloads whose pods it would, if those are
    made from it.

    `dialects` are further API versions, whose objects are not checked.
    """
    check = _Check(gates, dialects, makes_pods=makes_pods)
    problems: dict[int, str] = {}
    order = sorted(
        range(len(documents)),
        key=lambda index: documents[index].raw.get("kind") not in LOADED_FIRST,
    )
    for index in order:
        try:
            check.add(documents[index])
        except ApiError as error:
            problems[index] = f"{documents[index].source}: {error}"
        except InputError as error:
            problems[index] = str(error)
    kept = [one for index, one in enumerate(documents) if index not in problems]
    return Checked(kept, [problems[index] for index in sorted(problems)])


class _Check:
    """A server that takes one object after the other."""

    def __init__(self, gates: FeatureGates, dialects: Container[str], *, makes_pods: bool) -> None:
        self._store = MemoryCluster(SystemClock(), gates=gates)
        self._dialects = dialects
        self._makes_pods = makes_pods
        self._keys: set[_Key] = set()
        # Where each UID of a kind is from.
        self._uids: dict[tuple[str, str], str] = {}

    def add(self, document: Document) -> None:
        """ApiError or InputError if the object, or the pods made from it, are refused."""
        raw = document.raw
        kind: str = raw["kind"]
        is_expanded = self._makes_pods and kind in WORKLOAD_KINDS and not stands(raw)
        # What is wrong with a field is named better here than by the server.
        pod = sample_pod(document) if is_expanded else None
        if (raw.get("apiVersion") or "") not in self._dialects:
            served = self._store.served.of_kind(raw.get("apiVersion") or "", kind)
            self._check_identity(served.stored, document)
            self._check_content(document)
        if pod is not None:
            with self._store.dry_run():
                self._store.load([pod.raw])

    def _check_identity(self, resource: ApiResource, document: Document) -> None:
        metadata = as_object(document.raw.get("metadata"))
        if stands(document.raw):
            require_stored_names(resource, metadata)
        name: str = metadata.get("name") or ""
        namespace: str = metadata.get("namespace") or "default"
        key = (resource.kind, namespace if resource.namespaced else "", name)
        if name and key in self._keys:
            raise already_exists(resource, name)
        self._keys.add(key)
        uid = (resource.kind, metadata.get("uid") or "")
        if uid[1] and uid in self._uids:
            raise InputError(
                f'{document.source}: {resource.kind} "{name}" has the UID of {self._uids[uid]}'
            )
        self._uids[uid] = document.source

    def _check_content(self, document: Document) -> None:
        raw = document.raw
        if raw["kind"] in LOADED_FIRST:
            # Others need it.
            self._store.load([raw], admission=False if stands(raw) else None)
        elif not stands(raw):
            with self._store.dry_run():
                self._store.load([raw])
