"""The devices that drivers have published, found by node and by pool.

A slice belongs to a pool, and a pool may have many slices and nodes. The pools that a node can
reach are computed per node and kept until `stamp_of` changes (`dynamic_resources.pools`).

Invariants: a `PublishedSlice` and its devices never change, a new version of a slice makes new
ones; so what is cached on a device is forgotten together with it.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

import msgspec

from kubestow.api.decode import enc_hook
from kubestow.api.device import Device, DeviceAttribute, DeviceTaint, ResourceSlice
from kubestow.cache.objects import ObjectStore
from kubestow.index.devices.node_match import Reach
from kubestow.index.devices.per_node import NodeSlots

if TYPE_CHECKING:  # most clusters have no expression
    from kubestow.cel import CelError, Value

PoolKey = tuple[str, str]  # driver, pool
DeviceId = tuple[str, str, str]  # driver, pool, device
K = TypeVar("K")
# Of an expression: whether it selects a device, or the attribute that it computes.
Answer = bool | DeviceAttribute | Exception


class DeviceContent:
    """What expressions read of a device, and their answers.

    Interned: devices that expressions cannot distinguish share one object, as long as one of them
    exists. Most devices of a cluster differ in their names only.
    """

    __slots__ = ("__weakref__", "cel_value", "costly_matches", "matches")

    def __init__(self) -> None:
        # Belongs to `expressions`; those below to `selectors`, which limits how many it keeps.
        self.cel_value: Value | CelError | None = None
        self.matches: dict[str, Answer] = {}
        self.costly_matches: dict[str, Answer | Future[Any]] = {}


_ENCODE: Final = msgspec.json.Encoder(enc_hook=enc_hook).encode
_CONTENTS: Final[WeakValueDictionary[bytes, DeviceContent]] = WeakValueDictionary()


class TaintSource:
    """Where the taints come from that published devices have besides those of their driver."""

    __slots__ = ("added",)

    def __init__(self) -> None:
        self.added: Callable[[DeviceId], Iterable[DeviceTaint]] | None = None


_NO_TAINTS: Final = TaintSource()


class PublishedDevice:
    """One device, with what was computed for it."""

    __slots__ = ("_content", "device", "id", "is_taken_as_whole", "of", "pool", "reach")

    def __init__(self, device: Device, of: "PublishedSlice") -> None:
        self.device = device
        self.of = of
        self.pool = of.pool
        self.id: DeviceId = (*of.pool, device.name)
        # Only used with per-device node selection.
        self.reach = Reach(device.node_name, device.all_nodes, device.node_selector)
        # Whether a request that names no capacities takes all that there is of each.
        self.is_taken_as_whole = all(
            [
                capacity.request_policy is None and capacity.value.nano >= 0
                for capacity in device.capacity.values()
            ]
        )
        self._content: DeviceContent | None = None

    @property
    def taints(self) -> tuple[DeviceTaint, ...]:
        """Those that the driver published, and those of rules."""
        added = self.of.taint_source.added
        return self.device.taints if added is None else (*self.device.taints, *added(self.id))

    @property
    def content(self) -> DeviceContent:
        if self._content is None:
            device, of = self.device, self.of
            key = _ENCODE(
                (
                    of.spec.driver,
                    of.allows_lists,
                    device.attributes,
                    device.capacity,
                    device.allow_multiple_allocations,
                )
            )
            content = _CONTENTS.get(key)
            if content is None:
                content = _CONTENTS[key] = DeviceContent()
            self._content = content
        return self._content

    def __str__(self) -> str:
        return "/".join(self.id)


class PublishedSlice:
    """One slice with its devices."""

    __slots__ = (
        "allows_lists",
        "devices",
        "generation",
        "has_counters",
        "has_groups",
        "is_local",
        "is_partitioned",
        "name",
        "per_device",
        "pool",
        "reach",
        "slice_count",
        "spec",
        "taint_source",
    )

    def __init__(
        self,
        resource_slice: ResourceSlice,
        *,
        allows_lists: bool = False,
        local_counters: bool = False,
        taint_source: TaintSource = _NO_TAINTS,
    ) -> None:
        """`allows_lists`: attributes may be lists of values. `local_counters`: counters are only
        for the nodes that the slice names."""
        self.allows_lists = allows_lists
        self.taint_source = taint_source
        spec = self.spec = resource_slice.spec
        self.name = resource_slice.metadata.name
        self.pool: PoolKey = (spec.driver, spec.pool.name)
        self.generation = spec.pool.generation
        self.slice_count = spec.pool.resource_slice_count
        self.has_counters = bool(spec.shared_counters)
        self.per_device = bool(spec.per_device_node_selection)
        # Needs the gate of partitionable devices.
        self.is_partitioned = self.has_counters or spec.per_device_node_selection is not None
        # Needs the gate of compatibility groups.
        self.has_groups = any(
            [
                consumption.compatibility_groups
                for device in spec.devices
                for consumption in device.consumes_counters
            ]
        )
        self.reach = Reach(spec.node_name, spec.all_nodes, spec.node_selector)
        # Before v1.37 counters are for the whole pool, whatever node the slice names.
        self.is_local = bool(spec.node_name) and (local_counters or not self.has_counters)
        self.devices = tuple(PublishedDevice(device, self) for device in spec.devices)


class DeviceInventory:
    """All published slices. Follows the store they are in."""

    def __init__(
        self,
        store: ObjectStore[ResourceSlice],
        slots: NodeSlots,
        *,
        allows_lists: bool = False,
        local_counters: bool = False,
    ) -> None:
        """`allows_lists` and `local_counters` are for slices."""
        self.taint_source = TaintSource()
        self._slots = slots
        self._allows_lists = allows_lists
        self._local_counters = local_counters
        self._slices: dict[str, PublishedSlice] = {}
        self._local: dict[str, dict[str, PublishedSlice]] = {}
        self._elsewhere: dict[str, PublishedSlice] = {}
        self._pools: dict[PoolKey, dict[str, PublishedSlice]] = {}
        # Of nodes that have slices of their own. No stamp is given twice.
        self._local_stamps: dict[str, int] = {}
        self._stamp_count = 0
        self._common_stamp = 0
        for resource_slice in store:
            self._put(resource_slice)
        store.subscribe(self._changed)

    def __iter__(self) -> Iterator[PublishedSlice]:
        return iter(self._slices.values())

    @property
    def node_count(self) -> int:
        """How many nodes were asked about: those of the cluster, and some that are gone."""
        return len(self._slots)

    def candidates(self, node_name: str) -> Iterator[PublishedSlice]:
        """The slices that may have devices for the node: its own, and those of no node."""
        yield from self._local.get(node_name, {}).values()
        yield from self._elsewhere.values()

    def of_pool(self, pool: PoolKey) -> Iterable[PublishedSlice]:
        return self._pools.get(pool, {}).values()

    def stamp_of(self, node_name: str) -> tuple[int, int]:
        """Changes whenever a slice changes in a pool that the node may reach."""
        return self._local_stamps.get(node_name, 0), self._common_stamp

    def note_change(self, pool: PoolKey | None) -> None:
        """Something changed in the pool, so for all nodes that may reach it. None: in any pool."""
        if pool is None:
            self._slots.log.invalidate()
            return
        for published in self.of_pool(pool):
            if not published.is_local:
                self._slots.log.invalidate()
                return
        for published in self.of_pool(pool):
            self._slots.note(published.reach.node_name)

    def _changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if old is not None:
            self._remove(old.metadata.name)
        if new is not None:
            self._put(new)

    def _put(self, resource_slice: ResourceSlice) -> None:
        published = PublishedSlice(
            resource_slice,
            allows_lists=self._allows_lists,
            local_counters=self._local_counters,
            taint_source=self.taint_source,
        )
        self._slices[published.name] = published
        self._pools.setdefault(published.pool, {})[published.name] = published
        if published.is_local:
            self._local.setdefault(published.reach.node_name, {})[published.name] = published
        else:
            self._elsewhere[published.name] = published
        self._stamp(published.pool)

    def _remove(self, name: str) -> None:
        published = self._slices.pop(name)
        self._stamp(published.pool)
        _discard(self._pools, published.pool, name)
        if published.is_local:
            node_name = published.reach.node_name
            _discard(self._local, node_name, name)
            if node_name not in self._local:
                del self._local_stamps[node_name]
        else:
            del self._elsewhere[name]

    def _stamp(self, pool: PoolKey) -> None:
        """Whether a pool is complete depends on all its slices, so all its nodes get new stamps."""
        self.note_change(pool)
        for published in self._pools[pool].values():
            if published.is_local:
                self._stamp_count += 1
                self._local_stamps[published.reach.node_name] = self._stamp_count
            else:
                self._common_stamp += 1


def _discard(index: dict[K, dict[str, PublishedSlice]], key: K, name: str) -> None:
    entries = index[key]
    del entries[name]
    if not entries:
        del index[key]
