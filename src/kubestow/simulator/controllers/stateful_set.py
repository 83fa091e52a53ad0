"""StatefulSets: pods with a fixed name, number and volume.

Pods are created one after the other, each when the one before is ready, and deleted in the opposite
order; with `podManagementPolicy: Parallel` all at once. A changed template replaces them from the
highest number down to the partition. Claims made for a pod stay when the pod is deleted.
"""

from contextlib import suppress
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import Clock
from kubestow.cluster.documents import as_object, objects_in, replaced_at, value_at
from kubestow.cluster.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from kubestow.errors import ApiError, ConflictError
from kubestow.simulator.controllers.owner_controller import OwnerController
from kubestow.simulator.controllers.pods import (
    is_finished,
    is_terminating,
    labels_of,
    pod_from_template,
    ready_since_s,
)
from kubestow.simulator.controllers.templates import template_hash
from kubestow.simulator.event_log import EventLog

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
REVISION: Final = "controller-revision-hash"


class StatefulSetController(OwnerController):
    def __init__(self, cluster: MemoryCluster, clock: Clock, log: EventLog) -> None:
        super().__init__(
            cluster,
            clock,
            log,
            name="statefulset-controller",
            owners="statefulsets.apps",
            dependents="pods",
        )

    def reconcile(self, owner: StoredObject, dependents: list[StoredObject]) -> float | None:
        by_number = {_number_of(owner, pod): pod for pod in dependents}
        by_number.pop(None, None)
        pods = {number: pod for number, pod in by_number.items() if number is not None}
        if not is_terminating(owner):
            self._step(owner, pods)
        self._report(owner, list(pods.values()))
        return self.held_back_s(owner) or None

    def _step(self, owner: StoredObject, pods: dict[int, StoredObject]) -> None:
        """Do what is possible now; each write causes events, and these the next step."""
        spec = as_object(owner.document.get("spec"))
        is_parallel = spec.get("podManagementPolicy") == "Parallel"
        first: int = value_at(spec, "ordinals", "start") or 0
        count = 1 if spec.get("replicas") is None else spec["replicas"]
        wanted = range(first, first + count)
        missing = sum(number not in pods for number in wanted)
        for number in wanted:
            is_ready = self._ensure(owner, number, pods.get(number), missing)
            if not is_ready and not is_parallel:
                return
        surplus = sorted((number for number in pods if number not in wanted), reverse=True)
        for number in surplus:
            self._delete(owner, pods[number])
            if not is_parallel:
                return
        if not surplus:
            self._replace_outdated(owner, {number: pods.get(number) for number in wanted})

    def _ensure(
        self, owner: StoredObject, number: int, pod: StoredObject | None, missing: int
    ) -> bool:
        """Create the pod if it is missing, delete it if it has ended; True if it is ready."""
        if pod is None:
            if not self.held_back_s(owner):
                self._create(owner, number, missing)
            return False
        if is_finished(pod):
            self._delete(owner, pod)
            return False
        return not is_terminating(pod) and ready_since_s(pod) is not None

    def _replace_outdated(self, owner: StoredObject, pods: dict[int, StoredObject | None]) -> None:
        strategy = as_object(value_at(owner.document, "spec", "updateStrategy"))
        if strategy.get("type") == "OnDelete":
            return
        partition: int = value_at(strategy, "rollingUpdate", "partition") or 0
        revision = _revision_of(owner)
        for number in sorted(pods, reverse=True):
            pod = pods[number]
            if number < partition or pod is None:
                return
            if labels_of(pod).get(REVISION) != revision:
                self._delete(owner, pod)
                return
            if ready_since_s(pod) is None:
                return

    def _create(self, owner: StoredObject, number: int, missing: int) -> None:
        template = as_object(value_at(owner.document, "spec", "template"))
        name = f"{owner.name}-{number}"
        self._make_claims(owner, name)
        for label, text in (
            (POD_NAME, name),
            (POD_INDEX, str(number)),
            (REVISION, _revision_of(owner)),
        ):
            template = replaced_at(template, ("metadata", "labels", label), text)
        claims = {claim: f"{claim}-{name}" for claim in _claim_names(owner)}
        volumes = [
            volume
            for volume in objects_in(value_at(template, "spec", "volumes"))
            if volume.get("name") not in claims
        ]
        volumes += [
            {"name": claim, "persistentVolumeClaim": {"claimName": full_name}}
            for claim, full_name in claims.items()
        ]
        template = replaced_at(template, ("spec", "volumes"), volumes)
        template = replaced_at(template, ("spec", "hostname"), name)
        document = pod_from_template(owner, template, metadata={"name": name})
        del document["metadata"]["generateName"]
        note = f"create Pod {name} in StatefulSet {owner.name}"
        try:
            self.cluster.create(PODS, document)
        except ConflictError:
            pass  # Another pod of that name has to be deleted first.
        except ApiError as error:
            self.refused(owner, error, missing, f"{note} failed error")
        else:
            self.accepted(owner)
            self.record(owner, "SuccessfulCreate", f"{note} successful")

    def _make_claims(self, owner: StoredObject, pod_name: str) -> None:
        labels = as_object(value_at(owner.document, "spec", "selector", "matchLabels"))
        for claim in objects_in(value_at(owner.document, "spec", "volumeClaimTemplates")):
            metadata = as_object(claim.get("metadata"))
            document: JsonObject = {
                "metadata": {
                    "name": f"{metadata.get('name', '')}-{pod_name}",
                    "namespace": owner.key[0],
                    "labels": {**as_object(metadata.get("labels")), **labels},
                    "annotations": as_object(metadata.get("annotations")),
                },
                "spec": as_object(claim.get("spec")),
            }
            with suppress(ConflictError):
                self.cluster.create(PERSISTENT_VOLUME_CLAIMS, document)

    def _delete(self, owner: StoredObject, pod: StoredObject) -> None:
        if not is_terminating(pod):
            note = f"delete Pod {pod.name} in StatefulSet {owner.name} successful"
            self.delete(owner, pod, note)

    def _report(self, owner: StoredObject, pods: list[StoredObject]) -> None:
        revision = _revision_of(owner)
        alive = [pod for pod in pods if not is_terminating(pod)]
        ready = sum(ready_since_s(pod) is not None for pod in alive)
        updated = sum(labels_of(pod).get(REVISION) == revision for pod in alive)
        before = as_object(owner.document.get("status"))
        current: str = before.get("currentRevision") or revision
        if updated == len(alive):
            current = revision
        counts = {
            "readyReplicas": ready,
            "availableReplicas": ready,
            "currentReplicas": sum(labels_of(pod).get(REVISION) == current for pod in alive),
            "updatedReplicas": updated,
        }
        status: JsonObject = {
            "replicas": len(pods),
            "observedGeneration": owner.metadata.get("generation") or 0,
            "currentRevision": current,
            "updateRevision": revision,
            "collisionCount": 0,
        }
        status |= {field: count for field, count in counts.items() if count}
        self.write_status(owner, status)


def _number_of(owner: StoredObject, pod: StoredObject) -> int | None:
    text = pod.name.removeprefix(f"{owner.name}-")
    return int(text) if text.isdecimal() else None


def _revision_of(owner: StoredObject) -> str:
    template = as_object(value_at(owner.document, "spec", "template"))
    return f"{owner.name}-{template_hash(template)}"


def _claim_names(owner: StoredObject) -> list[str]:
    claims = objects_in(value_at(owner.document, "spec", "volumeClaimTemplates"))
    return [value_at(claim, "metadata", "name") or "" for claim in claims]
