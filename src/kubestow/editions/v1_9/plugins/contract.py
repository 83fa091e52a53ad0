"""What a v1.9 predicate and a v1.9 priority are.

A predicate returns for each of some nodes whether the pod fits, why not, or an error (spec 05 §16).
A priority scores the feasible nodes from 0 to 10, in one step or in two: `map` by node, then
`reduce` over the list.

Both get an `Attempt`: the pod, and the cluster beyond the snapshot. Verdicts are numbers
(`reasons`), so that a rule over all nodes works on arrays.
"""

from collections.abc import Sequence
from enum import Flag, auto
from functools import cached_property
from typing import ClassVar, Final, NamedTuple, Protocol, TypeGuard

from kubestow.api.meta import ResourceList
from kubestow.api.resources import Resources
from kubestow.arrays import IntArray
from kubestow.cache.cache import Cache
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.editions.v1_9.plugins.pod import PodInfoV19, fit_request, is_best_effort, limits
from kubestow.errors import KubestowError
from kubestow.index.nodes import Nodes

MAX_PRIORITY: Final = 10


class Reads(Flag):
    """What a predicate's verdict on a node depends on, besides the pod and the Node object."""

    NOTHING_ELSE = 0
    PODS = auto()  # the pods on that node
    CLUSTER = auto()  # pods and nodes anywhere
    VOLUMES = auto()  # persistent volumes and claims
    SERVICES = auto()


class Verdicts(NamedTuple):
    """codes    int64[node]: 0 fits; above 0 the reasons it does not (`reasons.reasons_of`); below
    0 the predicate failed, and -1 means the first of `errors`. None: all nodes fit."""

    codes: IntArray | None
    errors: Sequence[str] = ()


ALL_FIT: Final = Verdicts(None)


class PriorityError(KubestowError):
    """A priority cannot score the nodes; ends the attempt. The text is the message for one node."""


class LegacyCluster:
    """What rules read beyond the snapshot: the object stores, and pods whose node is gone."""

    def __init__(self, cache: Cache, objects: ClusterObjects) -> None:
        self._cache = cache
        self.objects = objects

    def ghosts(self) -> list[NodeInfo]:
        """Entries without a Node object: their pods still count as pods of the cluster."""
        cache = self._cache
        if cache.node_count() == cache.node_tree.node_count:
            return []
        return [info for info in cache.nodes.values() if info.node is None]


class Attempt:
    """One pod to place, with what several rules derive from it: upstream's metadata."""

    def __init__(self, pod: PodInfoV19, cluster: LegacyCluster) -> None:
        self.pod = pod
        self.cluster = cluster

    @cached_property
    def request(self) -> Resources:
        """What the resource predicate compares."""
        return fit_request(self.pod.pod)

    @cached_property
    def limits(self) -> ResourceList:
        return limits(self.pod.pod)

    @cached_property
    def is_best_effort(self) -> bool:
        return is_best_effort(self.pod.pod)


class NamedRule:
    """A rule with the name of its class, unless a Policy uses another one for it."""

    def __init__(self, name: str = "") -> None:
        self.name = name or type(self).__name__


class Predicate(Protocol):
    """`check` may get any view, and must not write to the snapshot's arrays."""

    reads: ClassVar[Reads]

    @property
    def name(self) -> str: ...

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts: ...


class Priority(Protocol):
    """`map` scores the feasible nodes, int64[node]; raises PriorityError if it cannot."""

    @property
    def name(self) -> str: ...

    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray: ...


class ReducingPriority(Priority, Protocol):
    """A priority whose scores depend on each other."""

    def reduce(self, attempt: Attempt, nodes: Nodes, scores: IntArray) -> IntArray: ...


def is_reducing(priority: Priority) -> TypeGuard[ReducingPriority]:
    # Not isinstance: that is slow for protocols, and this runs for every priority of every pod.
    return hasattr(priority, "reduce")
