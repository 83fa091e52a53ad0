"""Turns workload objects (Deployment, StatefulSet, Job, …) into their controllers' pods.

A simulation has no controller manager; a Deployment in the input means its pods. Objects copied
from a live cluster come with their pods, so a workload that owns pods in the same input gets no
others; a DaemonSet gets pods for the nodes without one. Pods are documents that come from where
their workload was written, which errors name.

Not here: which nodes have the pod of a DaemonSet (`controllers.daemon_set`).
"""

import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Final, NamedTuple

import msgspec

from kubestow.api.check import check_object
from kubestow.api.decode import convert
from kubestow.api.files import Document
from kubestow.api.meta import ApiObject, JsonObject, LabelSelector, Object, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod, PodSpec
from kubestow.cluster.documents import (
    as_list,
    as_object,
    namespace_of,
    objects_in,
    replaced_at,
    value_at,
)
from kubestow.errors import DecodeError, InputError
from kubestow.simulator.controllers.daemon_set import (
    daemon_template,
    node_of,
    pinned,
    suitable_nodes,
)
from kubestow.simulator.controllers.owner_controller import controller_reference

WORKLOAD_KINDS: Final = (
    "DaemonSet",
    "Deployment",
    "Job",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
)


class _Template(Object, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec | None = None


class _Spec(Object, frozen=True, kw_only=True):
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    template: _Template = _Template()


class _SelectingSpec(_Spec, frozen=True, kw_only=True):
    selector: LabelSelector | None = None


class _Workload(ApiObject, frozen=True, kw_only=True):
    spec: _SelectingSpec = _SelectingSpec()


class _PlainWorkload(ApiObject, frozen=True, kw_only=True):
    """A ReplicationController, whose selector is a map of labels."""

    spec: _Spec = _Spec()


class OwnerKey(NamedTuple):
    kind: str
    namespace: str
    name: str


class Made(NamedTuple):
    """A pod, or the ReplicaSet of a Deployment, and the workload that it is made of."""

    document: Document
    workload: Document


def expand_workloads(documents: Sequence[Document]) -> list[Document]:
    """The documents, with the pods that are missing of every workload.

    Raises InputError for a workload that does not decode.
    """
    return [*documents, *(made.document for made in made_of_workloads(documents))]


def made_of_workloads(documents: Sequence[Document]) -> list[Made]:
    """The pods that are missing of every workload; raises InputError as `expand_workloads`."""
    workloads = [one for one in documents if one.raw.get("kind") in WORKLOAD_KINDS]
    if not workloads:
        return []
    present = _Present(documents)
    return [
        Made(Document(raw, workload.source), workload)
        for workload in workloads
        for raw in _made_of(workload, present)
    ]


def sample_pod(workload: Document) -> Document | None:
    """A pod as the workload's controller makes it; None if it makes none.

    Raises InputError for a workload that does not decode.
    """
    raw = workload.raw
    with _blaming(workload):
        spec = _decoded(raw)
        if not _pod_count(raw, spec):
            return None
        _check_template(raw, spec)
        owner = _replica_set(raw) if raw["kind"] == "Deployment" else raw
        return Document(_pod(owner, f"{_name(owner)}-0", _template(owner)), workload.source)


def controller_of(pod: JsonObject) -> OwnerKey | None:
    """What made the pod; None if nothing makes it again."""
    owner = controller_reference(pod)
    if owner is None:
        return None
    return OwnerKey(owner.get("kind") or "", namespace_of(pod), owner.get("name") or "")


def scaled_down(documents: Sequence[Document], removed_from: Set[OwnerKey]) -> list[Document]:
    """The documents, in which owners that lost all their pods make no others.

    A DaemonSet makes others as soon as it lost one, so it is removed.
    """
    left = {
        owner
        for document in documents
        if document.raw.get("kind") == "Pod"
        if (owner := controller_of(document.raw)) is not None
    }
    empty = _with_deployments(removed_from) - _with_deployments(left)
    daemons = {owner for owner in removed_from if owner.kind == "DaemonSet"}
    return [
        _emptied(document) if _key(document.raw) in empty else document
        for document in documents
        if _key(document.raw) not in daemons
    ]


def _emptied(document: Document) -> Document:
    field = "parallelism" if document.raw["kind"] == "Job" else "replicas"
    return Document(replaced_at(document.raw, ("spec", field), 0), document.source)


class _Present:
    """What the input has already: owners that have pods, and the nodes with each daemon."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.owners = _owners(documents)
        self.nodes = [
            convert(Node, document.raw)
            for document in documents
            if document.raw.get("kind") == "Node"
        ]
        self._daemon_nodes: dict[OwnerKey, set[str]] = {}
        for document in documents:
            owner = controller_of(document.raw) if document.raw.get("kind") == "Pod" else None
            if owner is not None and owner.kind == "DaemonSet":
                self._daemon_nodes.setdefault(owner, set()).add(node_of(document.raw))

    def nodes_without(self, daemon_set: JsonObject) -> list[Node]:
        """The nodes that have no pod of this DaemonSet."""
        taken = self._daemon_nodes.get(_key(daemon_set), set())
        return [node for node in self.nodes if node.metadata.name not in taken]


def _made_of(document: Document, present: _Present) -> Iterator[JsonObject]:
    """What the controller of a workload creates."""
    raw = document.raw
    with _blaming(document):
        spec = _decoded(raw)
        count = _pod_count(raw, spec)
        has_pods = raw["kind"] != "DaemonSet" and _key(raw) in present.owners
        if not has_pods and count:
            _check_template(raw, spec)
            yield from _created(raw, count, present)


@contextmanager
def _blaming(document: Document) -> Generator[None]:
    try:
        yield
    except DecodeError as error:
        raise InputError(f"{document.source}: {error}") from error


def _decoded(raw: JsonObject) -> _Spec:
    kind = raw["kind"]
    spec = convert(_PlainWorkload if kind == "ReplicationController" else _Workload, raw).spec
    for field in ("replicas", "parallelism", "completions"):
        if (getattr(spec, field) or 0) < 0:
            raise DecodeError(
                f"{_label(raw)}: spec.{field} is {getattr(spec, field)}, expected 0 or more"
            )
    return spec


def _pod_count(raw: JsonObject, spec: _Spec) -> int:
    """How many pods there are to be; of a DaemonSet, for each suitable node."""
    match raw["kind"]:
        case "DaemonSet":
            return 1
        case "Job" if spec.suspend or _has_ended(raw):
            return 0
        case "Job":
            parallelism = 1 if spec.parallelism is None else spec.parallelism
            return min(parallelism, parallelism if spec.completions is None else spec.completions)
        case _:
            return 1 if spec.replicas is None else spec.replicas


def _has_ended(job: JsonObject) -> bool:
    return any(
        condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
        for condition in objects_in(value_at(job, "status", "conditions"))
    )


def _check_template(raw: JsonObject, spec: _Spec) -> None:
    if spec.template.spec is None:
        raise DecodeError(f"{_label(raw)} has no spec.template.spec, so its pods are not known")
    check_object(convert(Pod, _pod(raw, _name(raw), _template(raw))))


def _created(raw: JsonObject, count: int, present: _Present) -> Iterator[JsonObject]:
    match raw["kind"]:
        case "Deployment":
            replica_set = _replica_set(raw)
            yield replica_set
            yield from _replicas(replica_set, count)
        case "DaemonSet":
            template = daemon_template(_template(raw))
            for node_name in suitable_nodes(template, present.nodes_without(raw)):
                yield _pod(raw, f"{_name(raw)}-{node_name}", pinned(template, node_name))
        case _:
            yield from _replicas(raw, count)


def _replica_set(deployment: JsonObject) -> JsonObject:
    """A Deployment becomes one ReplicaSet of its current template."""
    template = _template(deployment)
    template_hash = f"{zlib.crc32(msgspec.json.encode(template)):08x}"
    label = {"pod-template-hash": template_hash}
    selector = as_object(value_at(deployment, "spec", "selector"))
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{_name(deployment)}-{template_hash}",
            "namespace": namespace_of(deployment),
        },
        "spec": {
            "replicas": value_at(deployment, "spec", "replicas"),
            "selector": {
                **selector,
                "matchLabels": {**as_object(selector.get("matchLabels")), **label},
            },
            "template": _labelled(template, label),
        },
    }


def _replicas(owner: JsonObject, count: int) -> Iterator[JsonObject]:
    for index in range(count):
        yield _pod(owner, f"{_name(owner)}-{index}", _template(owner))


def _pod(owner: JsonObject, name: str, template: JsonObject) -> JsonObject:
    metadata = {
        **as_object(template.get("metadata")),
        "name": name,
        "namespace": namespace_of(owner),
        "ownerReferences": [
            {
                "apiVersion": owner.get("apiVersion", "v1"),
                "kind": owner.get("kind"),
                "name": _name(owner),
                "uid": value_at(owner, "metadata", "uid") or f"uid-of-{_name(owner)}",
                "controller": True,
            }
        ],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _labelled(template: JsonObject, labels: JsonObject) -> JsonObject:
    metadata = as_object(template.get("metadata"))
    all_labels = {**as_object(metadata.get("labels")), **labels}
    return {**template, "metadata": {**metadata, "labels": all_labels}}


def _owners(documents: Iterable[Document]) -> set[OwnerKey]:
    """Everything that owns a pod in the input, or a ReplicaSet."""
    owners = {
        OwnerKey(owner.get("kind", ""), namespace_of(document.raw), owner.get("name", ""))
        for document in documents
        if document.raw.get("kind") in ("Pod", "ReplicaSet")
        for owner in map(as_object, as_list(value_at(document.raw, "metadata", "ownerReferences")))
    }
    return _with_deployments(owners)


def _with_deployments(owners: Set[OwnerKey]) -> set[OwnerKey]:
    # The ReplicaSet between a Deployment and its pods may be missing in the input; it is named
    # after the Deployment, with a hash that has no dash.
    return {*owners} | {
        OwnerKey("Deployment", owner.namespace, owner.name.rpartition("-")[0])
        for owner in owners
        if owner.kind == "ReplicaSet"
    }


def _key(document: JsonObject) -> OwnerKey:
    return OwnerKey(document.get("kind") or "", namespace_of(document), _name(document))


def _label(document: JsonObject) -> str:
    return f'{document["kind"]} "{namespace_of(document)}/{_name(document)}"'


def _template(workload: JsonObject) -> JsonObject:
    return as_object(value_at(workload, "spec", "template"))


def _name(document: JsonObject) -> str:
    return value_at(document, "metadata", "name") or ""
