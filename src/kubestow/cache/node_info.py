"""The pods on one node and the sums over them (spec 01 §5, spec 03 §1.2).

A NodeInfo exists as soon as a pod or a Node object names it; one without Node object is a ghost.
Every change takes the next number of one process-wide counter, by which a snapshot finds changes.

Not here: who may change a NodeInfo (`cache`), the same numbers for all nodes as arrays (`columns`).
"""

from collections.abc import Iterator
from itertools import count
from typing import TypeVar

from kubestow.api.declared_features import known_features
from kubestow.api.node import Node
from kubestow.api.pod import Pod, attaches_unclaimed, is_terminating
from kubestow.api.pod_info import PodClass, PodInfo
from kubestow.api.ports import UsedPorts
from kubestow.api.quantity import INT64_MAX, INT64_MIN, wrap_int64
from kubestow.api.resources import Resources
from kubestow.cache.images import ImageRecord
from kubestow.cache.owned_terms import OwnedTerm, owned_terms
from kubestow.errors import CacheError

K = TypeVar("K")

_generations: Iterator[int] = count(1)


class NodeInfo:
    """One node's pods and aggregates.

    `pods` is ordered; removal swaps the last pod into the gap, as upstream does, because preemption
    lists victims in this order. `class_counts` counts pods by (namespace, labels): selectors are
    evaluated per class, never per pod. `term_counts` counts the affinity terms the pods own,
    `unclaimed_volumes` their volumes that a driver may attach without a named claim.
    """

    __slots__ = (
        "_places",
        "_terminating_class_counts",
        "allocatable",
        "class_counts",
        "counted_generation",
        "declared_features",
        "generation",
        "images",
        "name",
        "node",
        "non_zero_cpu",
        "non_zero_memory",
        "pods",
        "pods_with_affinity",
        "pods_with_required_anti_affinity",
        "pvc_ref_counts",
        "requested",
        "term_counts",
        "unclaimed_volumes",
        "used_ports",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.pods: list[PodInfo] = []
        self._places: dict[str, int] = {}
        self.pods_with_affinity: list[PodInfo] = []
        self.pods_with_required_anti_affinity: list[PodInfo] = []
        self.used_ports = UsedPorts()
        self.requested = Resources()
        self.non_zero_cpu = 0
        self.non_zero_memory = 0
        self.allocatable = Resources()
        self.images: tuple[ImageRecord, ...] = ()
        self.pvc_ref_counts: dict[str, int] = {}
        self.unclaimed_volumes = 0
        self.class_counts: dict[PodClass, int] = {}
        self._terminating_class_counts: dict[PodClass, int] = {}
        self.term_counts: dict[OwnedTerm, int] = {}
        self.declared_features = 0
        # Of the last change, and of the last one of anything but pods that count the same.
        self.generation = self.counted_generation = next(_generations)

    @property
    def display_name(self) -> str:
        return self.name if self.node is not None else "<no node>"

    @property
    def counts_by_state(self) -> dict[PodClass, int]:
        """`class_counts` with the pods that are being deleted apart, under classes of their own."""
        terminating = self._terminating_class_counts
        if not terminating:
            return self.class_counts
        counts = self.live_class_counts
        for pod_class, number in terminating.items():
            counts[pod_class.terminating] = number
        return counts

    @property
    def live_class_counts(self) -> dict[PodClass, int]:
        """`class_counts` without the pods that are being deleted."""
        if not self._terminating_class_counts:
            return self.class_counts
        live = self.class_counts.copy()
        for pod_class, number in self._terminating_class_counts.items():
            _add_count(live, pod_class, -number)
        return live

    def set_node(self, node: Node) -> None:
        self.node = node
        self.allocatable = Resources.from_list(node.status.allocatable)
        self.declared_features = known_features(node.status.declared_features)
        self.generation = self.counted_generation = next(_generations)

    def remove_node(self) -> None:
        """Become a ghost: everything but the Node object stays."""
        self.node = None
        self.generation = self.counted_generation = next(_generations)

    def add_pod(self, pod: PodInfo) -> None:
        self._places[pod.uid] = len(self.pods)
        self.pods.append(pod)
        if pod.pod.spec.affinity is not None:
            if pod.has_affinity:
                self.pods_with_affinity.append(pod)
                self._count_terms(pod, 1)
            if pod.has_required_anti_affinity:
                self.pods_with_required_anti_affinity.append(pod)
        self._count(pod, 1)

    def remove_pod(self, pod: Pod) -> PodInfo:
        """Remove the pod with this UID and return what was stored for it.

        The sums are reduced by what the stored pod counted, not by the passed object.
        """
        uid = pod.metadata.uid
        if not uid:
            raise CacheError("cannot get cache key for pod with empty UID")
        # Spec 01 §5: these two depend on the object passed in, and are not undone on failure.
        affinity = pod.spec.affinity
        if affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity):
            _swap_remove(self.pods_with_affinity, uid)
            if affinity.pod_anti_affinity and affinity.pod_anti_affinity.required:
                _swap_remove(self.pods_with_required_anti_affinity, uid)
        place = self._places.pop(uid, None)
        if place is None:
            raise self._missing(pod.metadata.name)
        stored = self.pods[place]
        last = self.pods.pop()
        if last is not stored:
            self.pods[place] = last
            self._places[last.uid] = place
        if self.term_counts and stored.has_affinity:
            self._count_terms(stored, -1)
        self._count(stored, -1)
        return stored

    def renew_pod(self, pod: PodInfo) -> None:
        """Replace the pod with this UID by a newer version that counts the same, but for its class.

        As removing the old and adding the new version would, without counting twice. Not for pods
        with affinity, which are in more lists, nor with host ports: one that another pod's removal
        has freed is taken again when the pod is added.
        """
        pods, places = self.pods, self._places
        place, last = places.get(pod.uid), len(pods) - 1
        if place is None:
            raise self._missing(pod.name)
        before, after = pods[place].pod_class, pod.pod_class
        if before is not after:
            _add_count(self.class_counts, before, -1)
            _add_count(self.class_counts, after, 1)
            if is_terminating(pod.pod):
                _add_count(self._terminating_class_counts, before, -1)
                _add_count(self._terminating_class_counts, after, 1)
        if place != last:
            moved = pods[place] = pods[last]
            places[moved.uid] = place
            places[pod.uid] = last
        pods[last] = pod
        self.generation = next(_generations)
        if before is not after:
            self.counted_generation = self.generation

    def clone(self) -> "NodeInfo":
        """A copy whose pods may change; it shares the immutable Pod and Node objects."""
        copy = self._copied_as(type(self))
        copy.term_counts = self.term_counts.copy()
        return copy

    def simulated(self) -> "NodeInfo":
        """A copy to add pods to and remove pods from in a simulation. It counts no terms: plugins
        count those that concern the incoming pod, and a pod may have thousands."""
        copy = self._copied_as(_SimulatedInfo)
        copy.term_counts = {}
        return copy

    def _copied_as(self, cls: "type[NodeInfo]") -> "NodeInfo":
        """A copy without `term_counts`."""
        copy = cls.__new__(cls)
        copy.name = self.name
        copy.node = self.node
        copy.pods = self.pods.copy()
        copy._places = self._places.copy()
        copy.pods_with_affinity = self.pods_with_affinity.copy()
        copy.pods_with_required_anti_affinity = self.pods_with_required_anti_affinity.copy()
        copy.used_ports = self.used_ports.copy()
        copy.requested = self.requested.clone()
        copy.non_zero_cpu = self.non_zero_cpu
        copy.non_zero_memory = self.non_zero_memory
        copy.allocatable = self.allocatable
        copy.images = self.images
        copy.pvc_ref_counts = self.pvc_ref_counts.copy()
        copy.unclaimed_volumes = self.unclaimed_volumes
        copy.class_counts = self.class_counts.copy()
        copy._terminating_class_counts = self._terminating_class_counts.copy()
        copy.declared_features = self.declared_features
        copy.generation = self.generation
        copy.counted_generation = self.counted_generation
        return copy

    def reorder_as(self, copy: "NodeInfo") -> None:
        """Put the pods in the order of a copy with the same pods: taking one off changed it."""
        self.pods, self._places = copy.pods, copy._places
        self.pods_with_affinity = copy.pods_with_affinity
        self.pods_with_required_anti_affinity = copy.pods_with_required_anti_affinity

    def _missing(self, pod_name: str) -> CacheError:
        return CacheError(f"no corresponding pod {pod_name} in pods of node {self.display_name}")

    def _count(self, pod: PodInfo, sign: int) -> None:
        accounted = pod.accounted
        request, requested = accounted.requested, self.requested
        cpu = requested.milli_cpu + sign * request.milli_cpu
        memory = requested.memory + sign * request.memory
        non_zero_cpu = self.non_zero_cpu + sign * accounted.non_zero_cpu
        non_zero_memory = self.non_zero_memory + sign * accounted.non_zero_memory
        # Sums wrap as 64-bit counters do: the columns could not hold larger ones.
        if not (
            INT64_MIN <= cpu <= INT64_MAX
            and INT64_MIN <= memory <= INT64_MAX
            and INT64_MIN <= non_zero_cpu <= INT64_MAX
            and INT64_MIN <= non_zero_memory <= INT64_MAX
        ):
            sums = cpu, memory, non_zero_cpu, non_zero_memory
            cpu, memory, non_zero_cpu, non_zero_memory = map(wrap_int64, sums)
        requested.milli_cpu, requested.memory = cpu, memory
        self.non_zero_cpu, self.non_zero_memory = non_zero_cpu, non_zero_memory
        if request.ephemeral_storage:
            requested.ephemeral_storage = wrap_int64(
                requested.ephemeral_storage + sign * request.ephemeral_storage
            )
        if request.scalar:
            for name, amount in request.scalar.items():
                # A scalar that drops to zero stays: upstream never deletes the entry.
                requested.scalar[name] = wrap_int64(requested.scalar.get(name, 0) + sign * amount)
        for port in pod.host_ports:
            if sign > 0:
                self.used_ports.add(port)
            else:
                self.used_ports.remove(port)
        volumes = pod.pod.spec.volumes
        if volumes:
            for key in pod.pvc_keys:
                _add_count(self.pvc_ref_counts, key, sign)
            self.unclaimed_volumes += sign * sum(map(attaches_unclaimed, volumes))
        _add_count(self.class_counts, pod.pod_class, sign)
        if pod.pod.metadata.deletion_timestamp is not None:
            _add_count(self._terminating_class_counts, pod.pod_class, sign)
        self.generation = self.counted_generation = next(_generations)

    def _count_terms(self, pod: PodInfo, sign: int) -> None:
        for term in owned_terms(pod):
            _add_count(self.term_counts, term, sign)


class _SimulatedInfo(NodeInfo):
    __slots__ = ()

    def _count_terms(self, pod: PodInfo, sign: int) -> None: ...


def _add_count(counts: dict[K, int], key: K, sign: int) -> None:
    left = counts.get(key, 0) + sign
    if left > 0:
        counts[key] = left
    else:
        counts.pop(key, None)


def _swap_remove(pods: list[PodInfo], uid: str) -> None:
    for place, pod in enumerate(pods):
        if pod.uid == uid:
            pods[place] = pods[-1]
            pods.pop()
            return
