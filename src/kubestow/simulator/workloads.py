"""Turns workload objects (Deployment, StatefulSet, Job, …) into their controllers' pods.

A simulation has no controller manager; a Deployment in the input means its pods. Objects copied
from a live cluster come with their pods, so a workload that owns pods in the same input gets no
others.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import as_object, is_object
from kubestow.errors import InputError

# Kinds whose pods are counted by `replicas`.
_REPLICATED: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")


def expand_workloads(documents: Sequence[JsonObject]) -> list[JsonObject]:
    """The documents, with pods for every workload without pods of its own."""
    owned = _owners_of_pods(documents)
    node_names = [_name(document) for document in documents if document.get("kind") == "Node"]
    result = list(documents)
    for document in documents:
        result.extend(_pods_of(document, owned, node_names))
    return result


def _pods_of(
    document: JsonObject, owned: set[tuple[str, str, str]], node_names: Sequence[str]
) -> Iterator[JsonObject]:
    kind = document.get("kind", "")
    if (kind, _namespace(document), _name(document)) in owned:
        return
    match kind:
        case "Deployment":
            yield from _deployment(document, owned)
        case "Job":
            spec = _spec(document)
            wanted = spec.get("parallelism", 1)
            yield from _replicas(document, min(wanted, spec.get("completions", wanted)))
        case "DaemonSet":
            yield from _daemons(document, node_names)
        case _ if kind in _REPLICATED:
            yield from _replicas(document, _spec(document).get("replicas", 1))
        case _:
            return


def _deployment(document: JsonObject, owned: set[tuple[str, str, str]]) -> Iterator[JsonObject]:
    """A Deployment becomes one ReplicaSet of its current template."""
    spec = _spec(document)
    template_hash = f"{zlib.crc32(msgspec.json.encode(spec.get('template', {}))):08x}"
    name = f"{_name(document)}-{template_hash}"
    if any(
        owner[0] == "ReplicaSet" and owner[2].startswith(f"{_name(document)}-") for owner in owned
    ):
        return
    label = {"pod-template-hash": template_hash}
    selector: JsonObject = spec.get("selector") or {}
    replica_set: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": _namespace(document)},
        "spec": {
            "replicas": spec.get("replicas", 1),
            "selector": {
                **selector,
                "matchLabels": {**selector.get("matchLabels", {}), **label},
            },
            "template": _labelled(spec.get("template", {}), label),
        },
    }
    yield replica_set
    yield from _replicas(replica_set, spec.get("replicas", 1))


def _replicas(document: JsonObject, count: int) -> Iterator[JsonObject]:
    for index in range(count):
        yield _pod(document, f"{_name(document)}-{index}")


def _daemons(document: JsonObject, node_names: Iterable[str]) -> Iterator[JsonObject]:
    """One pod per node, with a required affinity to it, as the DaemonSet controller makes it."""
    for node_name in node_names:
        pod = _pod(document, f"{_name(document)}-{node_name}")
        spec: JsonObject = dict(pod["spec"])
        affinity: JsonObject = dict(spec.get("affinity") or {})
        node_affinity: JsonObject = dict(affinity.get("nodeAffinity") or {})
        field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
        node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [{"matchFields": [field]}]
        }
        affinity["nodeAffinity"] = node_affinity
        spec["affinity"] = affinity
        yield {**pod, "spec": spec}


def _pod(owner: JsonObject, name: str) -> JsonObject:
    template = as_object(_spec(owner).get("template"))
    if not is_object(template.get("spec")):
        raise InputError(
            f'{owner.get("kind")} "{_namespace(owner)}/{_name(owner)}" has no spec.template.spec, '
            "so its pods are not known"
        )
    metadata = dict(as_object(template.get("metadata")))
    metadata.update(
        name=name,
        namespace=_namespace(owner),
        ownerReferences=[
            {
                "apiVersion": owner.get("apiVersion", "v1"),
                "kind": owner.get("kind"),
                "name": _name(owner),
                "uid": owner.get("metadata", {}).get("uid", f"uid-of-{_name(owner)}"),
                "controller": True,
            }
        ],
    )
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _labelled(template: JsonObject, labels: JsonObject) -> JsonObject:
    metadata = as_object(template.get("metadata"))
    all_labels = {**as_object(metadata.get("labels")), **labels}
    return {**template, "metadata": {**metadata, "labels": all_labels}}


def _owners_of_pods(documents: Iterable[JsonObject]) -> set[tuple[str, str, str]]:
    """Kind, namespace and name of everything that owns a pod in the input."""
    return {
        (owner.get("kind", ""), _namespace(document), owner.get("name", ""))
        for document in documents
        if document.get("kind") == "Pod"
        for owner in document.get("metadata", {}).get("ownerReferences") or ()
    }


def _spec(document: JsonObject) -> dict[str, Any]:
    return document.get("spec") or {}


def _name(document: JsonObject) -> str:
    return document.get("metadata", {}).get("name", "")


def _namespace(document: JsonObject) -> str:
    return document.get("metadata", {}).get("namespace") or "default"
