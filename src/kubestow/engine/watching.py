"""One informer per kind, connected to the stores and the event handlers.

Pods and nodes change the cache; every other kind changes only the stores that plugins read, and
moves pods in the queue if a plugin registered for it (spec 03 §11.2).
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from kubestow.api.device import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_group import CompositePodGroup, PodGroup, PodGroupV1Beta1
from kubestow.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubestow.api.workload import PriorityClass
from kubestow.cache.objects import GROUP_KINDS, ObjectStore
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.informer import POD_FIELD_SELECTOR, SUCCEEDED_SELECTOR, Handler, Informer
from kubestow.engine.handlers import EventHandlers
from kubestow.engine.informers import Informers
from kubestow.engine.scheduler import Scheduler
from kubestow.framework.events import Resource
from kubestow.index.devices import KnownDevices

if TYPE_CHECKING:  # loaded only where rules are read
    from kubestow.index.devices.taint_rules import TaintRules

T = TypeVar("T", bound=ApiObject)

_RESOURCES: Final[Mapping[type[ApiObject], str]] = {
    PersistentVolume: Resource.PERSISTENT_VOLUME,
    PersistentVolumeClaim: Resource.PERSISTENT_VOLUME_CLAIM,
    StorageClass: Resource.STORAGE_CLASS,
    CSINode: Resource.CSI_NODE,
    CSIDriver: Resource.CSI_DRIVER,
    CSIStorageCapacity: Resource.CSI_STORAGE_CAPACITY,
    VolumeAttachment: Resource.VOLUME_ATTACHMENT,
    DeviceClass: Resource.DEVICE_CLASS,
    ResourceSlice: Resource.RESOURCE_SLICE,
    ResourceClaim: Resource.RESOURCE_CLAIM,
    PodGroup: Resource.POD_GROUP,
    PodGroupV1Beta1: Resource.POD_GROUP,
    CompositePodGroup: Resource.COMPOSITE_POD_GROUP,
}
# The API server resolves priorities, and the usual role of a scheduler may not list classes.
_UNWATCHED: Final = (PriorityClass,)
# A server without the alpha API of groups does not list them, so they are watched only if needed.
_GROUP_PLUGINS: Final = frozenset(("GangScheduling", "TopologyPlacementGenerator"))


# Makes a handler for the informer of a kind.
HandlerMaker = Callable[[type[ApiObject]], Handler[Any]]


class ClusterWatcher(Informers):
    """The informers of one scheduler, connected to its stores and its handlers."""

    def __init__(
        self,
        client: ClusterClient,
        scheduler: Scheduler,
        clock: Clock,
        rng: np.random.Generator,
        *,
        make_handler: HandlerMaker | None = None,
    ) -> None:
        """`make_handler` makes one that is called before those of the scheduler."""
        super().__init__(
            client, clock, rng, None if scheduler.cycles is None else scheduler.cycles.are_idle
        )
        self._scheduler = scheduler
        self._objects = scheduler.objects
        for cls in scheduler.objects.types():
            if not _is_watched(cls, scheduler):
                continue
            selector = POD_FIELD_SELECTOR if cls is Pod else ""
            informer = self.add(cls, scheduler.objects.store(cls), selector)
            if make_handler is not None:
                informer.add_handler(make_handler(cls))
            self._connect(informer)
        groups = scheduler.cache.groups
        if groups is None:
            return
        for dialect, store in groups.other_objects.items():
            self.add(dialect.cls, store).add_handler(self._notifier(Resource.POD_GROUP))
        if groups.options.counts_finished:
            finished = self.add(Pod, ObjectStore[Pod](), SUCCEEDED_SELECTOR)
            finished.add_handler(_finished_handler(scheduler.handlers))

    def _connect(self, informer: Informer[Any]) -> None:
        handlers = self._scheduler.handlers
        if informer.cls is Pod:

            def pod_gone(pod: Pod, is_final_state_unknown: bool) -> None:
                if is_final_state_unknown:
                    handlers.pod_deleted_unseen(pod)
                else:
                    handlers.pod_deleted(pod)

            informer.add_handler(Handler(handlers.pod_added, handlers.pod_updated, pod_gone))
        elif informer.cls is Node:

            def node_gone(node: Node, _: bool) -> None:
                handlers.node_deleted(node)

            informer.add_handler(Handler(handlers.node_added, handlers.node_updated, node_gone))
        elif informer.cls is ResourceClaim and (known := KnownDevices.existing(self._objects)):
            # Spec 03 §11.7: this store has the scheduler's own writes before the informer does, and
            # reports each change once.
            known.claims.subscribe(partial(handlers.object_changed, Resource.RESOURCE_CLAIM))
        elif informer.cls is DeviceTaintRule:
            informer.add_handler(self._taint_notifier())
        elif informer.cls in _RESOURCES:
            informer.add_handler(self._notifier(_RESOURCES[informer.cls]))

    def _taint_notifier(self) -> Handler[DeviceTaintRule]:
        """Plugins see the taints of rules in the slices, so the event is that of the slices."""
        rules = _taint_rules(self._scheduler)
        assert rules is not None
        slices = self._objects.resource_slices

        def changed(old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
            for published in rules.changed_slices(old, new):
                each = slices.get(published.name)
                self._scheduler.handlers.object_changed(Resource.RESOURCE_SLICE, each, each)

        def gone(old: DeviceTaintRule, _: bool) -> None:
            changed(old, None)

        return Handler(partial(changed, None), changed, gone)

    def _notifier(self, resource: str) -> Handler[Any]:
        changed = self._scheduler.handlers.object_changed

        def added(new: ApiObject) -> None:
            changed(resource, None, new)

        def updated(old: ApiObject, new: ApiObject) -> None:
            changed(resource, old, new)

        def gone(old: ApiObject, _: bool) -> None:
            changed(resource, old, None)

        return Handler(added, updated, gone)


def _finished_handler(handlers: EventHandlers) -> Handler[Pod]:
    def updated(_: Pod, pod: Pod) -> None:
        handlers.pod_finished(pod)

    def gone(pod: Pod, _: bool) -> None:
        handlers.finished_pod_deleted(pod)

    return Handler(handlers.pod_finished, updated, gone)


def _is_watched(cls: type[ApiObject], scheduler: Scheduler) -> bool:
    if cls in GROUP_KINDS:
        return cls in scheduler.group_kinds and _reads_groups(scheduler)
    if cls is DeviceTaintRule:
        return _taint_rules(scheduler) is not None
    return cls not in _UNWATCHED


def _taint_rules(scheduler: Scheduler) -> "TaintRules | None":
    known = KnownDevices.existing(scheduler.objects)
    return None if known is None else known.taint_rules


def _reads_groups(scheduler: Scheduler) -> bool:
    """Whether groups are scheduled, or a profile has a plugin that reads them (spec 11 §3)."""
    if scheduler.groups is not None:
        return True
    return any(
        not _GROUP_PLUGINS.isdisjoint(profile.plugins) for profile in scheduler.profiles.values()
    )
