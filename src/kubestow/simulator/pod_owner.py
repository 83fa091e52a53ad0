"""What made a pod: the topmost controller above it, such as `Deployment/web`."""

from collections.abc import Iterator
from typing import NamedTuple

from kubestow.api.meta import JsonObject, OwnerReference
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


class OwnersInFiles:
    """The topmost controllers of pods whose cluster was read from files.

    Owners are found by their names: what is written by hand has no UIDs. A Deployment is known also
    if its ReplicaSet does not name it, or is missing. Each is looked up once: use it while the
    workloads of the cluster do not change.
    """

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        # By what pods of one controller have in common.
        self._known: dict[tuple[str, ...], str] = {}

    def of(self, pod: Pod) -> str:
        """The topmost controller of a pod; empty if it has none."""
        nearest = controller_of(pod)
        if nearest is None:
            return ""
        template_hash = pod.metadata.labels.get(_TEMPLATE_HASH, "")
        namespace = pod.metadata.namespace
        key = (namespace, nearest.api_version, nearest.kind, nearest.name, template_hash)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._topmost(nearest, namespace, template_hash)
        return found

    def _topmost(self, nearest: OwnerReference, namespace: str, template_hash: str) -> str:
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
        *_, top = controllers_above(self._cluster, first, namespace, checks_uid=False)
        kind, _, name = top.name.partition("/")
        suffix = f"-{template_hash}"
        if kind == "ReplicaSet" and template_hash and name.endswith(suffix):
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
