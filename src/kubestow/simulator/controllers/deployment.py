"""Deployments: one ReplicaSet per template, and rolling updates from the old one to the new one.

    template changed ──► new ReplicaSet ──► up by maxSurge, old ones down by maxUnavailable
                                        └──► Recreate: old ones to 0 first, then the new one

A ReplicaSet is found by its template, so going back to an earlier template reuses the earlier
ReplicaSet under a new revision number. Scaling during an update is not spread over the ReplicaSets
in proportion; the steps of the update reach the same end.
"""

from contextlib import suppress
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.api.object_copies import LAST_APPLIED
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.documents import (
    as_object,
    objects_in,
    removed_at,
    replaced_at,
    seconds_of,
    value_at,
    whole_seconds,
)
from kubestow.errors import NotFoundError
from kubestow.simulator.controllers.owner_controller import (
    OwnerController,
    owner_reference,
    replicas_of,
)
from kubestow.simulator.controllers.pods import is_terminating
from kubestow.simulator.controllers.rolling import (
    Limits,
    Replicas,
    limits_of,
    new_wanted,
    old_wanted,
)
from kubestow.simulator.controllers.templates import canonical, template_hash
from kubestow.simulator.event_log import EventLog

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
_HASH_LABEL_PATH: Final = ("metadata", "labels", HASH_LABEL)


class DeploymentController(OwnerController):
    def __init__(self, cluster: MemoryCluster, clock: Clock, log: EventLog) -> None:
        super().__init__(
            cluster,
            clock,
            log,
            name="deployment-controller",
            owners="deployments.apps",
            dependents="replicasets.apps",
        )

    def reconcile(self, owner: StoredObject, dependents: list[StoredObject]) -> float | None:
        if self.adopt(owner):
            return 0.0
        template = as_object(value_at(owner.document, "spec", "template"))
        by_age = sorted(dependents, key=lambda one: (one.metadata["creationTimestamp"], one.name))
        wanted = canonical(template)
        new = next((one for one in by_age if canonical(_template_of(one)) == wanted), None)
        old = [one for one in by_age if one is not new]
        if not is_terminating(owner) and not value_at(owner.document, "spec", "paused"):
            new = self._current(owner, template, new, old)
            self._step(owner, new, old)
            self._delete_oldest(owner, old)
        elif new is not None and not is_terminating(owner):
            # A paused deployment makes no new ReplicaSet, but is scaled.
            self._scale(owner, new, replicas_of(owner.document))
        return self._report(owner, new, old)

    # --- ReplicaSets --------------------------------------------------------------------------

    def _current(
        self,
        owner: StoredObject,
        template: JsonObject,
        new: StoredObject | None,
        old: list[StoredObject],
    ) -> StoredObject:
        """The ReplicaSet of the current template, with the highest revision."""
        latest = max(map(_revision, old), default=0)
        if new is None:
            new = self._create(owner, template, latest + 1)
        elif _revision(new) <= latest:
            new = self._annotate(new, latest + 1)
        if _revision(owner) != _revision(new):
            annotations = {REVISION: str(_revision(new))}
            patch: JsonObject = {"metadata": {"annotations": annotations}}
            self.cluster.patch(self.owners, *owner.key, patch, "merge")
        return new

    def _create(self, owner: StoredObject, template: JsonObject, revision: int) -> StoredObject:
        spec = as_object(owner.document.get("spec"))
        hash_text = self._unused_hash(owner, template)
        labels = as_object(value_at(template, "metadata", "labels"))
        selector = as_object(spec.get("selector"))
        match_labels = {**as_object(selector.get("matchLabels")), HASH_LABEL: hash_text}
        annotations = as_object(owner.metadata.get("annotations"))
        kept = {key: text for key, text in annotations.items() if key != LAST_APPLIED}
        document: JsonObject = {
            "metadata": {
                "name": f"{owner.name}-{hash_text}",
                "namespace": owner.key[0],
                "labels": {**labels, HASH_LABEL: hash_text},
                "annotations": {**kept, REVISION: str(revision)},
                "ownerReferences": [owner_reference(owner)],
            },
            "spec": {
                "replicas": 0,
                "minReadySeconds": spec.get("minReadySeconds") or 0,
                "selector": {**selector, "matchLabels": match_labels},
                "template": replaced_at(template, _HASH_LABEL_PATH, hash_text),
            },
        }
        return self.cluster.create(self.dependents, document)

    def _unused_hash(self, owner: StoredObject, template: JsonObject) -> str:
        """The template's hash; another one while the name from it is taken."""
        attempt = 0
        while True:
            text = template_hash(template, attempt)
            name = f"{owner.name}-{text}"
            if self.cluster.find(self.dependents, owner.key[0], name) is None:
                return text
            attempt += 1

    def _annotate(self, replica_set: StoredObject, revision: int) -> StoredObject:
        patch: JsonObject = {"metadata": {"annotations": {REVISION: str(revision)}}}
        return self.cluster.patch(self.dependents, *replica_set.key, patch, "merge")

    def _step(self, owner: StoredObject, new: StoredObject, old: list[StoredObject]) -> None:
        """One step from the old ReplicaSets to the new one."""
        desired = replicas_of(owner.document)
        if value_at(owner.document, "spec", "strategy", "type") == "Recreate":
            for one in old:
                self._scale(owner, one, 0)
            if not any(map(_has_pods, old)):
                self._scale(owner, new, desired)
            return
        limits = limits_of(owner.document, desired)
        counts = [_replicas(one) for one in old]
        current = _replicas(new)
        wanted = new_wanted(desired, limits, current, counts)
        if wanted != current.wanted:
            # The next step follows when the status shows this one.
            self._scale(owner, new, wanted)
            return
        for one, count in zip(old, old_wanted(desired, limits, current, counts), strict=True):
            self._scale(owner, one, count)

    def _scale(self, owner: StoredObject, replica_set: StoredObject, count: int) -> None:
        before = _replicas(replica_set).wanted
        if before == count:
            return
        with suppress(NotFoundError):
            patch: JsonObject = {"spec": {"replicas": count}}
            self.cluster.patch(self.dependents, *replica_set.key, patch, "merge")
            direction = "up" if count > before else "down"
            note = f"Scaled {direction} replica set {replica_set.name} from {before} to {count}"
            self.record(owner, "ScalingReplicaSet", note)

    def _delete_oldest(self, owner: StoredObject, old: list[StoredObject]) -> None:
        limit = value_at(owner.document, "spec", "revisionHistoryLimit")
        unused = [
            one
            for one in sorted(old, key=_revision)
            if not _replicas(one).wanted and not _has_pods(one) and not is_terminating(one)
        ]
        excess = len(unused) - (10 if limit is None else limit)
        for one in unused[: max(excess, 0)]:
            with suppress(NotFoundError):
                self.cluster.delete(self.dependents, *one.key, uid=one.uid)

    # --- Status -------------------------------------------------------------------------------

    def _report(
        self, owner: StoredObject, new: StoredObject | None, old: list[StoredObject]
    ) -> float | None:
        """Write counts and conditions; return the seconds until the progress deadline."""
        found = self.cluster.find(self.owners, *owner.key)
        if found is None:
            return None
        owner = found
        counts = _counts(owner, new, old)
        progress = self._progress(owner, new, counts)
        conditions = [self._availability(owner, counts), progress]
        before = as_object(owner.document.get("status"))
        others = [
            one
            for one in objects_in(before.get("conditions"))
            if one.get("type") not in ("Available", "Progressing")
        ]
        status: JsonObject = {key: value for key, value in counts.written().items() if value}
        status["observedGeneration"] = owner.metadata.get("generation") or 0
        status["conditions"] = [*conditions, *others]
        self.write_status(owner, status)
        if progress["status"] == "True" and progress["reason"] != "NewReplicaSetAvailable":
            return self._deadline_s(owner, progress) - self.clock.now_ns() / NANOSECONDS
        return None

    def _deadline_s(self, owner: StoredObject, progress: JsonObject) -> float:
        """The time at which a deployment without progress counts as failed."""
        allowed_s: int = value_at(owner.document, "spec", "progressDeadlineSeconds") or 600
        return (seconds_of(progress.get("lastUpdateTime")) or 0.0) + allowed_s

    def _availability(self, owner: StoredObject, counts: "_Counts") -> JsonObject:
        limits: Limits = limits_of(owner.document, replicas_of(owner.document))
        if counts.available >= replicas_of(owner.document) - limits.max_unavailable:
            return self._condition(
                owner,
                "Available",
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.",
            )
        return self._condition(
            owner,
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )

    def _progress(
        self, owner: StoredObject, new: StoredObject | None, counts: "_Counts"
    ) -> JsonObject:
        before = _known_condition(owner, "Progressing")
        if new is None:
            return before or self._condition(
                owner, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"
            )
        desired = replicas_of(owner.document)
        name = f'ReplicaSet "{new.name}"'
        if counts.updated == counts.replicas == counts.available == desired:
            note = f"{name} has successfully progressed."
            reason = "NewReplicaSetAvailable"
            return self._condition(owner, "Progressing", "True", reason, note)
        if before is None:
            note = f'Created new replica set "{new.name}"'
            return self._condition(owner, "Progressing", "True", "NewReplicaSetCreated", note)
        status = as_object(owner.document.get("status"))
        has_moved = any(status.get(key, 0) != count for key, count in counts.written().items())
        if has_moved or before.get("reason") == "NewReplicaSetAvailable":
            note = f"{name} is progressing."
            return self._condition(
                owner, "Progressing", "True", "ReplicaSetUpdated", note, is_update=has_moved
            )
        if self._deadline_s(owner, before) <= self.clock.now_ns() / NANOSECONDS:
            note = f"{name} has timed out progressing."
            reason = "ProgressDeadlineExceeded"
            return self._condition(owner, "Progressing", "False", reason, note)
        return before

    def _condition(
        self,
        owner: StoredObject,
        type: str,
        status: str,
        reason: str,
        message: str,
        *,
        is_update: bool = False,
    ) -> JsonObject:
        """A condition whose times change only with its content, or for an update."""
        now = whole_seconds(self.clock.now_ns())
        before = _known_condition(owner, type) or {}
        is_same = (before.get("status"), before.get("reason")) == (status, reason)
        if is_same and before.get("message") == message and not is_update:
            return before
        has_changed = before.get("status") != status
        return {
            "type": type,
            "status": status,
            "lastUpdateTime": now,
            "lastTransitionTime": now if has_changed else before.get("lastTransitionTime"),
            "reason": reason,
            "message": message,
        }


class _Counts(NamedTuple):
    replicas: int
    updated: int
    ready: int
    available: int
    unavailable: int
    terminating: int

    def written(self) -> dict[str, int]:
        """The fields of the status."""
        return {
            "replicas": self.replicas,
            "updatedReplicas": self.updated,
            "readyReplicas": self.ready,
            "availableReplicas": self.available,
            "unavailableReplicas": self.unavailable,
            "terminatingReplicas": self.terminating,
        }


def _counts(owner: StoredObject, new: StoredObject | None, old: list[StoredObject]) -> _Counts:
    every = [*old, *([] if new is None else [new])]

    def total(field: str) -> int:
        return sum(value_at(one.document, "status", field) or 0 for one in every)

    replicas, available = total("replicas"), total("availableReplicas")
    updated = 0 if new is None else value_at(new.document, "status", "replicas") or 0
    return _Counts(
        replicas=replicas,
        updated=updated,
        ready=total("readyReplicas"),
        available=available,
        unavailable=max(0, max(replicas, replicas_of(owner.document)) - available),
        terminating=total("terminatingReplicas"),
    )


def _known_condition(owner: StoredObject, type: str) -> JsonObject | None:
    for condition in objects_in(value_at(owner.document, "status", "conditions")):
        if condition.get("type") == type:
            return condition
    return None


def _template_of(replica_set: StoredObject) -> JsonObject:
    """The template without the label that distinguishes the ReplicaSets."""
    template = as_object(value_at(replica_set.document, "spec", "template"))
    return removed_at(template, _HASH_LABEL_PATH)


def _replicas(replica_set: StoredObject) -> Replicas:
    return Replicas(
        wanted=value_at(replica_set.document, "spec", "replicas") or 0,
        available=value_at(replica_set.document, "status", "availableReplicas") or 0,
    )


def _has_pods(replica_set: StoredObject) -> bool:
    status = as_object(replica_set.document.get("status"))
    return bool(status.get("replicas") or status.get("terminatingReplicas"))


def _revision(stored: StoredObject) -> int:
    text = as_object(stored.metadata.get("annotations")).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0
