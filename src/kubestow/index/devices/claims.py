"""Claims as the scheduler sees them: the informer's, or newer ones it has just written itself.

    informer ──►  store  ──►  claims ──►  plugins, queue
                                ▲
       own writes ── assume ────┘     until the informer has caught up, or `restore`

A claim for which devices were chosen but nothing is written yet is *in flight*: its devices are
taken, and no other pod may choose devices for it.

Invariant: `allocated` covers every allocated claim known here and every one in flight. A claim that
is both counts once, unless other devices were chosen than those that were written.
"""

from collections.abc import Callable, Iterator
from typing import Final

from kubestow.api.device import ResourceClaim
from kubestow.cache.objects import ObjectStore
from kubestow.index.devices.allocated import AllocatedDevices

# Marks claims that the scheduler made for extended resources.
EXTENDED_RESOURCE_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"

Key = tuple[str, str]  # namespace, name
# Called with the claim before and after a change; None where there is none.
ClaimSubscriber = Callable[[ResourceClaim | None, ResourceClaim | None], None]


class Claims:
    """The claims of the cluster: those of the store, or newer ones that were assumed."""

    def __init__(self, store: ObjectStore[ResourceClaim], allocated: AllocatedDevices) -> None:
        self.allocated = allocated
        self._store = store
        self._latest: dict[Key, ResourceClaim] = {}
        self._in_flight: dict[str, _InFlight] = {}
        self._made_for: dict[str, dict[Key, None]] = {}
        # By UID, the allocated claims of `_latest`, as they were counted.
        self._counted: dict[str, ResourceClaim] = {}
        self._subscribers: list[ClaimSubscriber] = []
        for claim in store:
            self._take(_key(claim), claim)
        store.subscribe(self._informed)

    def subscribe(self, subscriber: ClaimSubscriber) -> None:
        """Call it after every change. The queue needs these changes, not those of the store."""
        self._subscribers.append(subscriber)

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        return self._latest.get((namespace, name))

    def made_for(self, pod_uid: str) -> Iterator[ResourceClaim]:
        """Claims made for the extended resources of a pod, by their annotation and owner."""
        return (self._latest[key] for key in self._made_for.get(pod_uid, ()))

    # --- assumed versions ---

    def assume(self, claim: ResourceClaim) -> None:
        """Use this version, which the API server has just confirmed.

        No effect if the informer has delivered a newer one, or the deletion, meanwhile.
        """
        key = _key(claim)
        known = self._latest.get(key)
        if known is not None and known.metadata.uid == claim.metadata.uid:
            if is_newer(claim, known):
                self._take(key, claim)
        elif known is None and self._store.get(*key) is None:
            self._take(key, claim)

    def restore(self, namespace: str, name: str) -> None:
        """Go back to the informer's version."""
        key = (namespace, name)
        informed = self._store.get(namespace, name)
        if self._latest.get(key) is not informed:
            self._take(key, informed)

    # --- in flight ---

    def start_allocation(self, claim: ResourceClaim) -> None:
        """Devices were chosen for the claim: this copy of it contains them.

        A second pod that shares the claim only adds to the number of sharers.
        """
        entry = self._in_flight.get(claim.metadata.uid)
        if entry is None:
            self._in_flight[claim.metadata.uid] = _InFlight(claim)
            self.allocated.count(claim)
        else:
            entry.sharers += 1

    def unconfirmed(self) -> Iterator[ResourceClaim]:
        """Claims that the informer has not delivered as they are here: assumed, or in flight."""
        for key, claim in self._latest.items():
            if self._store.get(*key) is not claim:
                yield claim
        for entry in self._in_flight.values():
            yield entry.claim

    def in_flight(self, uid: str) -> ResourceClaim | None:
        entry = self._in_flight.get(uid)
        return None if entry is None else entry.claim

    def end_allocation(self, uid: str, *, force: bool = False) -> bool:
        """Remove one sharer, or with `force` all; return whether that ended the flight."""
        entry = self._in_flight.get(uid)
        if entry is None:
            return False
        entry.sharers -= 1
        if entry.sharers > 0 and not force:
            return False
        del self._in_flight[uid]
        self.allocated.uncount(entry.claim)
        return True

    # --- following the informer ---

    def _informed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if new is None:
            assert old is not None
            self._take(_key(old), None)
            return
        key = _key(new)
        known = self._latest.get(key)
        # A claim deleted and created again under its name is taken whatever its version.
        if known is None or known.metadata.uid != new.metadata.uid or is_newer(new, known):
            self._take(key, new)

    def _take(self, key: Key, new: ResourceClaim | None) -> None:
        old = self._latest.get(key)
        if new is None:
            self._latest.pop(key, None)
        else:
            self._latest[key] = new
        self._recount(old, new)
        self._index(key, old, new)
        for subscriber in self._subscribers:
            subscriber(old, new)

    def _recount(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Spec 08 B3: only whether a claim is allocated matters; allocations never change."""
        before = old.metadata.uid if old is not None and old.metadata.uid in self._counted else ""
        after = new.metadata.uid if new is not None and new.status.allocation is not None else ""
        if before == after:
            return
        if before:
            self.allocated.uncount(self._counted.pop(before))
        if after:
            assert new is not None
            self._counted[after] = new
            self.allocated.count(new)

    def _index(self, key: Key, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before = "" if old is None else pod_made_for(old)
        after = "" if new is None else pod_made_for(new)
        if before == after:
            return
        if before:
            made = self._made_for[before]
            del made[key]
            if not made:
                del self._made_for[before]
        if after:
            self._made_for.setdefault(after, {})[key] = None


class _InFlight:
    __slots__ = ("claim", "sharers")

    def __init__(self, claim: ResourceClaim) -> None:
        self.claim = claim
        self.sharers = 1


def pod_made_for(claim: ResourceClaim) -> str:
    """UID of the pod for whose extended resources the claim was made; empty for other claims."""
    metadata = claim.metadata
    if metadata.annotations.get(EXTENDED_RESOURCE_ANNOTATION) != "true":
        return ""
    for owner in metadata.owner_references:
        if owner.controller:
            return owner.uid
    return ""


def is_newer(claim: ResourceClaim, known: ResourceClaim) -> bool:
    """Versions are growing numbers; if they are not numeric, the later claim is newer."""
    new, old = claim.metadata.resource_version, known.metadata.resource_version
    if new.isdecimal() and old.isdecimal():
        return int(new) > int(old)
    return True


def _key(claim: ResourceClaim) -> Key:
    return claim.metadata.namespace, claim.metadata.name
