"""What made a pod: the topmost controller above it, such as `Deployment/web`."""

from collections.abc import Iterator
from typing import NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.errors import NotFoundError
from kubestow.simulator.controllers.owner_controller import controller_reference

_TEMPLATE_HASH = "pod-template-hash"


class ControllerAbove(NamedTuple):
    # As `Kind/name`.
    name: str
    # None if the cluster does not have it.
    stored: StoredObject | None


def controllers_above(
    cluster: MemoryCluster, document: JsonObject, namespace: str, *, checks_uid: bool = True
) -> Iterator[ControllerAbove]:
    """The controllers of an object from the nearest on, as far as the cluster has them."""
    reference = controller_reference(document)
    while reference is not None:
        stored = _find(cluster, reference, namespace)
        if stored is not None and checks_uid and stored.uid != reference.get("uid"):
            stored = None
        yield ControllerAbove(f"{reference.get('kind', '')}/{reference.get('name', '')}", stored)
        reference = None if stored is None else controller_reference(stored.document)


def owner_in_files(cluster: MemoryCluster, pod: Pod) -> str:
    """The topmost controller of a pod whose cluster was read from files; empty if it has none.

    Owners are found by their names: what is written by hand has no UIDs. A Deployment is known also
    if its ReplicaSet does not name it, or is missing.
    """
    nearest = controller_of(pod)
    if nearest is None:
        return ""
    first: JsonObject = {
        "metadata": {
            "ownerReferences": [
                {
                    "apiVersion": nearest.api_version,
                    "kind": nearest.kind,
                    "name": nearest.name,
                    "controller": True,
                }
            ]
        }
    }
    namespace = pod.metadata.namespace
    *_, top = controllers_above(cluster, first, namespace, checks_uid=False)
    kind, _, name = top.name.partition("/")
    suffix = f"-{pod.metadata.labels.get(_TEMPLATE_HASH, '')}"
    if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
        return f"Deployment/{name.removesuffix(suffix)}"
    return top.name


def _find(cluster: MemoryCluster, reference: JsonObject, namespace: str) -> StoredObject | None:
    try:
        kind = reference.get("apiVersion", ""), reference.get("kind", "")
        resource = cluster.served.of_kind(*kind).stored
    except NotFoundError:
        return None
    place = namespace if resource.namespaced else ""
    return cluster.find(resource, place, reference.get("name", ""))
