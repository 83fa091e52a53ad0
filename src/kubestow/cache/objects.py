"""The objects of the cluster as last delivered by the informers, by kind.

Plugins look things up here: the claim a pod names, the services of a namespace, the class of a
volume. Informers update the stores first and call their handlers afterwards, so a handler of an
event finds its object here.

Invariants: a store holds the newest version delivered of each object; `version` grows with every
change, so an answer computed from a store is good for as long as its version stays the same.
Not here: which pods count on which node (`cache`), where the objects come from (`cluster`).
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec

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
from kubestow.api.workload import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

T = TypeVar("T", bound=ApiObject)

# Called with the object before and after a change; None where there is none.
Subscriber = Callable[[T | None, T | None], None]


class ObjectStore(Generic[T]):
    """The objects of one kind, by namespace and name; without namespaces, by the empty one."""

    __slots__ = ("_in_namespace", "_listed", "_namespaces", "_subscribers", "version")

    version: int

    def __init__(self) -> None:
        self.version = 0
        self._namespaces: dict[str, dict[str, T]] = {}
        # Results of `list` and `list_namespace` since the last change: plugins ask once a cycle.
        self._listed: tuple[T, ...] | None = None
        self._in_namespace: dict[str, tuple[T, ...]] = {}
        self._subscribers: tuple[Subscriber[T], ...] = ()

    def get(self, namespace_or_name: str, name: str | None = None, /) -> T | None:
        """`get(namespace, name)`, or `get(name)` for kinds without namespaces; None if unknown."""
        namespace = "" if name is None else namespace_or_name
        in_namespace = self._namespaces.get(namespace)
        if in_namespace is None:
            return None
        return in_namespace.get(namespace_or_name if name is None else name)

    def list(self) -> tuple[T, ...]:
        """All objects: namespaces in order of first use, objects in order of arrival."""
        if self._listed is None:
            self._listed = tuple(self)
        return self._listed

    def list_namespace(self, namespace: str) -> tuple[T, ...]:
        """The objects of one namespace, in order of arrival."""
        listed = self._in_namespace.get(namespace)
        if listed is None:
            in_namespace = self._namespaces.get(namespace)
            if in_namespace is None:
                return ()  # Not kept: nothing would drop it when the namespace is gone.
            listed = self._in_namespace[namespace] = tuple(in_namespace.values())
        return listed

    def put(self, new: T) -> T | None:
        """Keep this version of the object; return the one it replaces, None if it is new."""
        metadata = new.metadata
        in_namespace = self._namespaces.setdefault(metadata.namespace, {})
        old = in_namespace.get(metadata.name)
        in_namespace[metadata.name] = new
        self._changed(old, new)
        return old

    def remove(self, namespace_or_name: str, name: str | None = None, /) -> T | None:
        """Forget the object; return its last version, None if it was not stored."""
        namespace = "" if name is None else namespace_or_name
        in_namespace = self._namespaces.get(namespace)
        if in_namespace is None:
            return None
        old = in_namespace.pop(namespace_or_name if name is None else name, None)
        if old is None:
            return None
        if not in_namespace:
            del self._namespaces[namespace]
        self._changed(old, None)
        return old

    def subscribe(self, subscriber: Subscriber[T]) -> Callable[[], None]:
        """Call `subscriber(old, new)` after every change; return a function that ends it."""
        self._subscribers = (*self._subscribers, subscriber)

        def unsubscribe() -> None:
            kept = list(self._subscribers)
            kept.remove(subscriber)
            self._subscribers = tuple(kept)

        return unsubscribe

    def __len__(self) -> int:
        return sum(map(len, self._namespaces.values()))

    def __iter__(self) -> Iterator[T]:
        for in_namespace in self._namespaces.values():
            yield from in_namespace.values()

    def _changed(self, old: T | None, new: T | None) -> None:
        self.version += 1
        self._listed = None
        if self._in_namespace:
            changed = new if new is not None else old
            assert changed is not None
            self._in_namespace.pop(changed.metadata.namespace, None)
        for subscriber in self._subscribers:
            subscriber(old, new)


# The kinds that have the rules of groups; a version has one of the first two.
GROUP_KINDS: Final = (PodGroup, PodGroupV1Beta1, CompositePodGroup)


class ClusterObjects:
    """One store per kind the scheduler reads."""

    def __init__(self) -> None:
        self.pods = ObjectStore[Pod]()
        self.nodes = ObjectStore[Node]()
        self.namespaces = ObjectStore[Namespace]()
        self.services = ObjectStore[Service]()
        self.replication_controllers = ObjectStore[ReplicationController]()
        self.replica_sets = ObjectStore[ReplicaSet]()
        self.stateful_sets = ObjectStore[StatefulSet]()
        self.pod_disruption_budgets = ObjectStore[PodDisruptionBudget]()
        self.persistent_volumes = ObjectStore[PersistentVolume]()
        self.persistent_volume_claims = ObjectStore[PersistentVolumeClaim]()
        self.storage_classes = ObjectStore[StorageClass]()
        self.csi_nodes = ObjectStore[CSINode]()
        self.csi_drivers = ObjectStore[CSIDriver]()
        self.csi_storage_capacities = ObjectStore[CSIStorageCapacity]()
        self.volume_attachments = ObjectStore[VolumeAttachment]()
        self.priority_classes = ObjectStore[PriorityClass]()
        self.pod_groups = ObjectStore[PodGroup]()
        # As of v1.37.
        self.pod_groups_v1beta1 = ObjectStore[PodGroupV1Beta1]()
        self.composite_pod_groups = ObjectStore[CompositePodGroup]()
        self.device_classes = ObjectStore[DeviceClass]()
        self.resource_slices = ObjectStore[ResourceSlice]()
        self.resource_claims = ObjectStore[ResourceClaim]()
        self.device_taint_rules = ObjectStore[DeviceTaintRule]()
        # Any: the type of a dict cannot express that key and value have the same type argument.
        self._stores: dict[type[ApiObject], ObjectStore[Any]] = {
            Pod: self.pods,
            Node: self.nodes,
            Namespace: self.namespaces,
            Service: self.services,
            ReplicationController: self.replication_controllers,
            ReplicaSet: self.replica_sets,
            StatefulSet: self.stateful_sets,
            PodDisruptionBudget: self.pod_disruption_budgets,
            PersistentVolume: self.persistent_volumes,
            PersistentVolumeClaim: self.persistent_volume_claims,
            StorageClass: self.storage_classes,
            CSINode: self.csi_nodes,
            CSIDriver: self.csi_drivers,
            CSIStorageCapacity: self.csi_storage_capacities,
            VolumeAttachment: self.volume_attachments,
            PriorityClass: self.priority_classes,
            PodGroup: self.pod_groups,
            PodGroupV1Beta1: self.pod_groups_v1beta1,
            CompositePodGroup: self.composite_pod_groups,
            DeviceClass: self.device_classes,
            ResourceSlice: self.resource_slices,
            ResourceClaim: self.resource_claims,
            DeviceTaintRule: self.device_taint_rules,
        }
        # What readers derive from the stores and share, by its class.
        self.derived: dict[type, Any] = {}

    def store(self, cls: type[T]) -> ObjectStore[T]:
        """The store of a kind; KeyError if the scheduler does not read that kind."""
        return self._stores[cls]

    def types(self) -> tuple[type[ApiObject], ...]:
        """The kinds that have a store, in a fixed order."""
        return tuple(self._stores)

    def put(self, *objects: ApiObject) -> None:
        """Keep each object in the store of its kind; for stores that no informer fills."""
        for api_object in objects:
            self.store(type(api_object)).put(api_object)

    def statistics(self) -> "ObjectStatistics":
        return ObjectStatistics(
            counts={cls.__name__: len(store) for cls, store in self._stores.items() if len(store)}
        )


class ObjectStatistics(msgspec.Struct, frozen=True):
    """How many objects of each kind are known; kinds without any are left out."""

    counts: dict[str, int]
