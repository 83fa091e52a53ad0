"""Makes the claims of pods with ephemeral volumes, and deletes them with their pods."""

from contextlib import suppress
from functools import partial

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, is_terminating
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.traits import HAS_VOLUMES
from kubestow.cluster.client import EventType
from kubestow.cluster.documents import as_object
from kubestow.cluster.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from kubestow.errors import NotFoundError
from kubestow.simulator.standing import NOTHING_STANDS, StandingObjects


class EphemeralVolumeController:
    def __init__(
        self, cluster: MemoryCluster, *, standing: StandingObjects = NOTHING_STANDS
    ) -> None:
        """Nothing is done for pods among `standing`."""
        self._cluster = cluster
        self._standing = standing
        self._guard = Guard("ephemeral-volume-controller")

    async def run(self) -> None:
        """Follow the pods until cancelled."""
        watch = self._cluster.watch(PODS, traits=HAS_VOLUMES)
        try:
            while batch := await watch.next_batch():
                for event in batch:
                    pod = event.object
                    assert isinstance(pod, Pod), pod
                    self._guard.run(event.stored, partial(self._handle, pod, event.type))
        finally:
            watch.close()
            self._guard.close()

    def _handle(self, pod: Pod, type: EventType) -> None:
        if pod in self._standing:
            return
        if type == "DELETED":
            self._delete_claims(pod)
        elif not is_terminating(pod):
            self._make_claims(pod)

    def _make_claims(self, pod: Pod) -> None:
        for name, template in _templates(pod):
            if self._cluster.find(PERSISTENT_VOLUME_CLAIMS, pod.metadata.namespace, name) is None:
                self._cluster.create(PERSISTENT_VOLUME_CLAIMS, _claim(pod, name, template))

    def _delete_claims(self, pod: Pod) -> None:
        for name, _ in _templates(pod):
            found = self._cluster.find(PERSISTENT_VOLUME_CLAIMS, pod.metadata.namespace, name)
            if found is None:
                continue
            owners = found.typed.metadata.owner_references
            if any(owner.uid == pod.metadata.uid for owner in owners):
                with suppress(NotFoundError):
                    self._cluster.delete(PERSISTENT_VOLUME_CLAIMS, *found.key)


def _templates(pod: Pod) -> list[tuple[str, JsonObject]]:
    """Name and template of each claim the pod needs."""
    return [
        (f"{pod.metadata.name}-{volume.name}", volume.ephemeral.volume_claim_template or {})
        for volume in pod.spec.volumes
        if volume.ephemeral is not None
    ]


def _claim(pod: Pod, name: str, template: JsonObject) -> JsonObject:
    metadata = as_object(template.get("metadata"))
    owner: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": pod.metadata.namespace,
            "labels": as_object(metadata.get("labels")),
            "annotations": as_object(metadata.get("annotations")),
            "ownerReferences": [owner],
        },
        "spec": as_object(template.get("spec")),
    }
