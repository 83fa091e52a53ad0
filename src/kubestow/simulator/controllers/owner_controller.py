"""The common part of the controllers here: an owner, the objects it controls, and a loop.

The loop collects changes, then reconciles each changed owner once, also after several events.
Before that it handles the events of every write so far, its own included, so that a controller
never acts twice on the same difference.

    events ──► dirty owners ──► reconcile(owner, dependents) ──► writes ──► events …
                   ▲                        └── seconds to the next call ──► timer
                   └────────────────────────────────────────────────────────┘

A fault in one owner is logged and does not touch the others; that owner is tried again when its
spec changes, or after a pause that doubles with each failure.

Not here: reconciling each kind (`replica_set`, `deployment`, `job`).
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from kubestow.api.decode import convert
from kubestow.api.labels import Selector, SelectorError, parse_label_selector
from kubestow.api.meta import JsonObject, LabelSelector
from kubestow.apiserver.controllers.guard import Faults
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import Key, StoredObject
from kubestow.apiserver.watch import WatchEvent, WatchGroup
from kubestow.clock import Clock
from kubestow.cluster.documents import as_object, is_object, objects_in, value_at
from kubestow.cluster.events import EventKind
from kubestow.cluster.resources import (
    NAMESPACES,
    POD_GROUPS,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
)
from kubestow.errors import ApiError, ConflictError, InputError, NotFoundError
from kubestow.simulator.event_log import EventLog

logger = logging.getLogger(__name__)

# How long a controller waits before it repeats a write that failed.
RETRY_S: Final = 5.0
# Answers that stay the same as long as what admission reads does.
_LASTING: Final = (403, 422)
# What admission of a pod reads.
_READ: Final = (PRIORITY_CLASSES, RUNTIME_CLASSES, NAMESPACES, POD_GROUPS)


class _Refusal:
    """Pods of an owner that the server refuses."""

    __slots__ = ("error", "missing", "note", "pause_s", "state", "until_s")

    def __init__(self, pause_s: float) -> None:
        self.pause_s = pause_s  # after the next refusal
        self.missing = 0
        self.until_s = 0.0
        self.note = ""
        self.error: ApiError | None = None
        # Of the owner, and of what admission reads.
        self.state: tuple[int, ...] = ()


class OwnerController(ABC):
    """Reconciles the objects of one resource with those they control."""

    # After a refusal: how long to wait at first, and at most. The wait doubles each time.
    refusal_pause_s: float = 0.005
    refusal_pause_s_max: float = 1000.0

    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock,
        log: EventLog,
        *,
        name: str,
        owners: str,
        dependents: str,
        affects_all: str = "",
    ) -> None:
        """All three are qualified names of resources, such as `jobs.batch`.

        A change of an object of `affects_all` makes every owner dirty.
        """
        self.cluster: Final = cluster
        self.clock: Final = clock
        self.name: Final = name
        self.owners: Final = cluster.resources.named(owners)
        self.dependents: Final = cluster.resources.named(dependents)
        self._others = [cluster.resources.named(affects_all)] if affects_all else []
        self._log = log
        # By UID of the owner.
        self._refusals: dict[str, _Refusal] = {}
        # By the owner's UID, and by key within; a dependent without a controller by its namespace.
        self._owned: dict[str, dict[Key, StoredObject]] = {}
        self._orphans: dict[str, dict[Key, StoredObject]] = {}
        self._controller_uid: dict[Key, str] = {}
        self._owner_keys: set[Key] = set()
        self._dirty: dict[Key, None] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._faults = Faults(name)
        # UID and generation of owners whose last try ended in a fault.
        self._faulty: dict[Key, tuple[str, int]] = {}
        self._group: WatchGroup | None = None

    @abstractmethod
    def reconcile(self, owner: StoredObject, dependents: list[StoredObject]) -> float | None:
        """One step towards the desired state; return the seconds until the next call, or None."""

    async def run(self) -> None:
        """Serve until cancelled."""
        dependents = self.cluster.watch(
            self.dependents, only_while=self.owners, wakes=self._is_urgent
        )
        followed = (self.owners, *self._others)
        group = self._group = WatchGroup(
            (*(self.cluster.watch(one) for one in followed), dependents)
        )
        try:
            while not group.is_closed:
                await group.wait()
                self._handle_events(group.events_nowait())
                while self._dirty:
                    self._reconcile_one(next(iter(self._dirty)), group)
                    # Yield to other tasks: a large workload is many writes.
                    await asyncio.sleep(0)
                    self._handle_events(group.events_nowait())
        finally:
            group.close()
            for timer in self._timers.values():
                timer.cancel()

    def _is_urgent(self, event: WatchEvent) -> bool:
        """Whether the event of a dependent may make an owner dirty."""
        reference = controller_reference(event.document)
        # One without a controller may be adopted.
        return reference is None or reference.get("kind") == self.owners.kind

    def _reconcile_one(self, key: Key, group: WatchGroup) -> None:
        self._handle_events(group.events_nowait())
        self._dirty.pop(key, None)
        owner = self.cluster.find(self.owners, *key)
        if owner is not None and key in self._timers and self._faulty.get(key) == _state_of(owner):
            # The events of its dependents do not shorten the pause of a faulty owner.
            return
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        self._faulty.pop(key, None)
        if owner is None:
            return
        delay_s = self._try(owner)
        if delay_s is not None:
            loop = asyncio.get_running_loop()
            self._timers[key] = loop.call_later(max(delay_s, 0), self._on_timer, key)

    def _try(self, owner: StoredObject) -> float | None:
        """Reconcile one owner; return the seconds until the next call, or None."""
        try:
            delay_s = self.reconcile(owner, list(self._owned.get(owner.uid, {}).values()))
        except ApiError as error:
            # A conflicting write, or a refusal: a later try, or the owner's next change, may
            # succeed. The other owners are not affected.
            logger.debug("%s: %s %s: %s", self.name, self.owners.kind, "/".join(owner.key), error)
            return RETRY_S
        except Exception as error:
            # A field of a wrong type, or a defect: the other owners are not affected.
            self._faulty[owner.key] = _state_of(owner)
            return self._faults.failed(owner, error)
        self._faults.succeeded(owner)
        return delay_s

    def _on_timer(self, key: Key) -> None:
        self._timers.pop(key, None)
        if self._is_refused_again(key):
            return
        self._dirty[key] = None
        if self._group is not None:
            self._group.wake()

    # --- Owners and dependents ----------------------------------------------------------------

    def _handle_events(self, events: Iterable[WatchEvent]) -> None:
        for event in events:
            if event.stored.resource is self.owners:
                self._handle_owner(event)
            elif event.stored.resource is self.dependents:
                self._guard_dependent(event)
            else:
                for owner in self.cluster.objects_of(self.owners):
                    self._dirty[owner.key] = None

    def _handle_owner(self, event: WatchEvent) -> None:
        key = event.stored.key
        self._dirty[key] = None
        had_any = bool(self._owner_keys)
        if event.type == "DELETED":
            self._faults.succeeded(event.stored)
            self._refusals.pop(event.stored.uid, None)
            self._owner_keys.discard(key)
            if not self._owner_keys:
                # What happens to dependents from here on is not followed.
                for followed in (self._owned, self._orphans, self._controller_uid):
                    followed.clear()
            return
        self._owner_keys.add(key)
        if not had_any:
            for stored in self.cluster.objects_of(self.dependents):
                self._guard_dependent(WatchEvent("ADDED", stored))

    def _guard_dependent(self, event: WatchEvent) -> None:
        try:
            self._handle_dependent(event)
        except Exception as error:
            # Its next event is another try; the other dependents are not affected.
            self._faults.failed(event.stored, error)
        else:
            self._faults.succeeded(event.stored)

    def _handle_dependent(self, event: WatchEvent) -> None:
        stored = event.stored
        key, (namespace, _) = stored.key, stored.key
        self._forget(key)
        reference = controller_reference(stored.document)
        if reference is not None:
            if reference.get("kind") != self.owners.kind:
                return
            self._dirty[namespace, reference.get("name", "")] = None
        if event.type == "DELETED":
            return
        if reference is None:
            self._orphans.setdefault(namespace, {})[key] = stored
            self._mark_adopters(stored)
            return
        uid: str = reference.get("uid", "")
        self._owned.setdefault(uid, {})[key] = stored
        self._controller_uid[key] = uid

    def _forget(self, key: Key) -> None:
        uid = self._controller_uid.pop(key, None)
        if uid is not None:
            owned = self._owned[uid]
            owned.pop(key, None)
            if not owned:
                del self._owned[uid]
        else:
            self._orphans.get(key[0], {}).pop(key, None)

    def _mark_adopters(self, orphan: StoredObject) -> None:
        """Make the owners dirty that select the orphan, because they may adopt it."""
        labels = as_object(orphan.metadata.get("labels"))
        if not labels or "deletionTimestamp" in orphan.metadata:
            return
        for owner in self.cluster.objects_of(self.owners):
            # An invalid selector selects nothing; reconciling its owner reports it.
            with suppress(InputError, SelectorError):
                if owner.key[0] == orphan.key[0] and selector_of(owner.document).matches(labels):
                    self._dirty[owner.key] = None

    # --- For subclasses -----------------------------------------------------------------------

    def adopt(self, owner: StoredObject) -> bool:
        """Adopt the orphans that the owner selects; True if there was any."""
        selector = selector_of(owner.document)
        adopted = False
        for orphan in list(self._orphans.get(owner.key[0], {}).values()):
            if "deletionTimestamp" in orphan.metadata:
                continue
            if not selector.matches(as_object(orphan.metadata.get("labels"))):
                continue
            if value_at(orphan.document, "status", "phase") in ("Succeeded", "Failed"):
                continue
            references = objects_in(orphan.metadata.get("ownerReferences"))
            metadata: JsonObject = {
                "uid": orphan.uid,
                "ownerReferences": [*references, owner_reference(owner)],
            }
            with suppress(NotFoundError, ConflictError):
                self.cluster.patch(self.dependents, *orphan.key, {"metadata": metadata}, "merge")
                adopted = True
        return adopted

    def record(
        self, owner: StoredObject, reason: str, note: str, *, type: EventKind = "Normal"
    ) -> None:
        """Record an event, which `kubectl describe` shows."""
        self._log.record(owner, reporter=self.name, reason=reason, note=note, type=type)

    def refused(
        self, owner: StoredObject, error: ApiError, missing: int, note: str = "Error creating"
    ) -> float:
        """Record that the missing pods could not be made; return the seconds until the next try."""
        refusal = self._refusals.setdefault(owner.uid, _Refusal(self.refusal_pause_s))
        if missing != refusal.missing:
            self._log.on_refusal(owner, str(error), missing - refusal.missing)
            refusal.missing = missing
        refusal.note = f"{note}: {error}"
        refusal.error = error
        refusal.state = self._state_for_admission(owner)
        return self._refuse(owner, refusal)

    def accepted(self, owner: StoredObject) -> None:
        """Forget the refusals: pods of the owner were made, or none is missing."""
        refusal = self._refusals.pop(owner.uid, None)
        if refusal is not None:
            self._log.on_refusal(owner, str(refusal.error), -refusal.missing)

    def held_back_s(self, owner: StoredObject) -> float:
        """How long to wait after a refusal, even if the owner is reconciled earlier."""
        refusal = self._refusals.get(owner.uid)
        return 0.0 if refusal is None else max(refusal.until_s - self.clock.monotonic_s(), 0.0)

    def _refuse(self, owner: StoredObject, refusal: _Refusal) -> float:
        self.record(owner, "FailedCreate", refusal.note, type="Warning")
        pause_s = refusal.pause_s
        refusal.pause_s = min(pause_s * 2, self.refusal_pause_s_max)
        refusal.until_s = self.clock.monotonic_s() + pause_s
        return pause_s

    def _is_refused_again(self, key: Key) -> bool:
        """Whether the next try of an owner is refused as the last one was; then it is counted and
        the one after it is due. The refusal is known: nothing has changed that it depends on."""
        owner = self.cluster.find(self.owners, *key)
        refusal = None if owner is None else self._refusals.get(owner.uid)
        if owner is None or refusal is None or self.held_back_s(owner) or key in self._dirty:
            return False
        assert refusal.error is not None
        state = self._state_for_admission(owner)
        if refusal.error.code not in _LASTING or refusal.state != state:
            return False
        pause_s = self._refuse(owner, refusal)
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(pause_s, self._on_timer, key)
        return True

    def _state_for_admission(self, owner: StoredObject) -> tuple[int, ...]:
        return (
            owner.metadata.get("generation") or 0,
            *(self.cluster.version_of(resource) for resource in _READ),
        )

    def delete(self, owner: StoredObject, dependent: StoredObject, note: str) -> None:
        """Delete a dependent and record it; no effect if it is gone."""
        with suppress(NotFoundError):
            self.cluster.delete(self.dependents, *dependent.key, uid=dependent.uid)
            self.record(owner, "SuccessfulDelete", note)

    def delete_pods(self, owner: StoredObject, pods: Iterable[StoredObject]) -> None:
        for pod in pods:
            self.delete(owner, pod, f"Deleted pod: {pod.name}")

    def write_status(self, owner: StoredObject, status: JsonObject) -> None:
        """Replace the owner's status, unless it is equal already."""
        if as_object(owner.document.get("status")) == status:
            return
        with suppress(NotFoundError):
            self.cluster.change(
                self.owners,
                *owner.key,
                lambda document: {**document, "status": status},
                subresource="status",
            )


def _state_of(owner: StoredObject) -> tuple[str, int]:
    """What changes with an owner's spec, and with its deletion."""
    return owner.uid, owner.metadata.get("generation") or 0


def owner_reference(owner: StoredObject) -> JsonObject:
    """The reference of a dependent to the object that controls it."""
    return {
        "apiVersion": owner.resource.api_version,
        "kind": owner.resource.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_reference(document: JsonObject) -> JsonObject | None:
    for reference in objects_in(value_at(document, "metadata", "ownerReferences")):
        if reference.get("controller"):
            return reference
    return None


def selector_of(document: JsonObject) -> Selector:
    """The selector of an owner; one that matches nothing, if it has none."""
    selector = value_at(document, "spec", "selector")
    return parse_label_selector(convert(LabelSelector, selector) if is_object(selector) else None)


def replicas_of(owner: JsonObject) -> int:
    """How many pods an owner asks for; absent is 1."""
    replicas: int | None = value_at(owner, "spec", "replicas")
    return 1 if replicas is None else replicas
