"""What another scheduler knew of a cluster, as far as that shows from outside.

It knows its own decisions at once, in the order in which it makes them, and the changes of others a
little later than they are written. So this cluster has all changes that were written, and all pods
that are decided on count on their nodes. What happened last can be taken back for a while, to find
out what was known before.
"""

from collections import deque
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from kubestow.api.device import ResourceClaim
from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, assign, first_condition, is_assigned
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.engine.decision import Decision
from kubestow.engine.failure import POD_SCHEDULED
from kubestow.explain.cluster import Assumption, StillCluster

_GATED: Final = "SchedulingGated"


class Queued(NamedTuple):
    """A waiting pod, and its place in the order of another scheduler, as far as that is known.

    A scheduler takes the pod with the highest priority from its queue, and of several the one that
    came first. So of two pods that wait for their first attempt, the one that came first is decided
    on first if its priority is not lower. Nothing is known of pods that wait for anything but their
    turn. `position` is that of the change by which the pod came.
    """

    pod: Pod
    position: int
    is_ordered: bool = True

    @classmethod
    def now(cls, pod: Pod, position: int, *, is_new: bool) -> "Queued":
        """A pod that was not queued. If it is not new, it was gated, and counts from before."""
        spec = pod.spec
        waits = bool(spec.resource_claims) or spec.scheduling_group is not None
        return cls(pod, position, is_new and not waits and not was_tried(pod))

    def tried_again(self) -> "Queued":
        return self._replace(is_ordered=False)

    def is_before(self, other: "Queued") -> bool:
        """Whether it is decided on before the other for sure."""
        if not (self.is_ordered and other.is_ordered):
            return False
        priority, others = self.pod.spec.priority or 0, other.pod.spec.priority or 0
        return self.position < other.position and priority >= others


def was_tried(pod: Pod) -> bool:
    """Whether an attempt has failed: the pod is tried again at a time that is not known."""
    condition = first_condition(pod.status.conditions, POD_SCHEDULED)
    return condition is not None and condition.status == "False" and condition.reason != _GATED


# As many changes can be taken back.
STEPS_MAX: Final = 4096
# A scheduler writes these itself, before their pod has its node.
_WRITTEN_BY_SCHEDULERS: Final = (PersistentVolume, PersistentVolumeClaim, ResourceClaim)

# Makes a change undone.
Undo = Callable[[], None]


class StepSort(StrEnum):
    """What a scheduler learns in which way; the text says so of one that it did not know."""

    OBJECTS = "a change of other objects that it had not seen yet"
    PODS = "a change of pods that it had not seen yet"
    # Of a pod that was deleted before it was bound: when that ends a binding is not known.
    GIVEN_UP = "a binding that it had not given up yet"
    # It knows these at once.
    DECISIONS = "it was decided before pods that were bound earlier"


class KnownStep(NamedTuple):
    """A change of the cluster: an object before and after it, None for none.

    position   grows with each change
    decided    for a decision, the pod's place in the queue
    """

    position: int
    at_ns: int
    sort: StepSort
    old: ApiObject | None
    new: ApiObject | None
    decided: Queued | None

    @property
    def like(self) -> ApiObject:
        """The object, before or after the change."""
        found = self.new if self.old is None else self.old
        assert found is not None
        return found


class KnownCluster:
    """A cluster with the pods that are decided on, bound or not."""

    def __init__(self, cluster: StillCluster) -> None:
        self.cluster = cluster
        # Of the last change.
        self.position = 0
        self._steps: deque[KnownStep] = deque(maxlen=STEPS_MAX)
        # Of pods that are decided on and not bound yet, by UID.
        self._assumed: dict[str, _Assumed] = {}

    # --- changes ---

    def put(
        self,
        new: ApiObject,
        at_ns: int,
        decided: Queued | None = None,
        *,
        is_old: bool = False,
    ) -> None:
        """An object was written; `decided` if that was decided by the scheduler, `is_old` if it was
        created long ago. A pod that is decided on keeps its node."""
        old = self.cluster.find(new)
        if isinstance(new, Pod) and (assumed := self._assumed.get(new.metadata.uid)):
            if is_assigned(new):
                # It was known: no step.
                self._end(new)
                self.cluster.put(new)
                return
            new = assign(new, assumed.node)
        self.cluster.put(new)
        if old is not None or not is_old:
            self._note(old, new, at_ns, decided)

    def remove(self, like: ApiObject, at_ns: int) -> None:
        old = self.cluster.find(like)
        if old is None:
            return
        is_given_up = isinstance(old, Pod) and self._end(old)
        self.cluster.remove(old)
        self._note(old, None, at_ns, is_given_up=is_given_up)

    def assume(self, decision: Decision, node: str, at_ns: int, queued: Queued) -> None:
        """The scheduler has chosen this node, whether it fits or not."""
        pod = decision.pod.pod
        self._assumed[pod.metadata.uid] = self._put_on(decision, node)
        self._note(pod, assign(pod, node), at_ns, queued)

    def assumed_node(self, pod: Pod) -> str:
        """The node of a pod that is decided on and not bound yet, else ""."""
        assumed = self._assumed.get(pod.metadata.uid)
        return "" if assumed is None else assumed.node

    def give_up(self, pod: Pod, at_ns: int) -> None:
        """The scheduler could not bind the pod, which waits again."""
        self._end(pod)
        old = self.cluster.find(pod)
        self.cluster.put(pod)
        self._note(old, pod, at_ns)

    def _end(self, pod: Pod) -> bool:
        """End the assumption of a pod; False if there is none."""
        assumed = self._assumed.pop(pod.metadata.uid, None)
        if assumed is not None and assumed.reserved is not None:
            # What was written meanwhile stays; only what plugins keep in memory goes.
            assumed.reserved.give_back()
        return assumed is not None

    def _put_on(self, decision: Decision, node: str) -> "_Assumed":
        names = decision.node_names
        rows: list[int] = decision.feasible.tolist()
        if any(names[row] == node for row in rows):
            return _Assumed(node, self.cluster.assume(decision, node))
        self.cluster.put(assign(decision.pod.pod, node))
        return _Assumed(node, None)

    def _note(
        self,
        old: ApiObject | None,
        new: ApiObject | None,
        at_ns: int,
        decided: Queued | None = None,
        *,
        is_given_up: bool = False,
    ) -> None:
        self.position += 1
        if not _matters(old, new):
            return
        if decided is not None:
            sort = StepSort.DECISIONS
        elif is_given_up:
            sort = StepSort.GIVEN_UP
        else:
            is_pod = isinstance(new if old is None else old, Pod)
            sort = StepSort.PODS if is_pod else StepSort.OBJECTS
        self._steps.append(KnownStep(self.position, at_ns, sort, old, new, decided))

    # --- what was known before, or more than is written ---

    def last_steps(self) -> Iterator[KnownStep]:
        """What can be taken back, the last one first."""
        return reversed(self._steps)

    def take_back(self, step: KnownStep) -> Undo:
        """Make a step unknown, until the returned function is called."""
        like = step.like
        current = self.cluster.find(like)
        assumed = self._assumed.get(like.metadata.uid) if step.decided is not None else None
        reserved = None if assumed is None else assumed.reserved
        if reserved is not None:
            reserved.give_back()
        self._set(like, step.old)

        def undo() -> None:
            self._set(like, current)
            if reserved is not None:
                reserved.take_again()

        return undo

    def add(self, pod: Pod, node: str) -> Undo:
        """Count a waiting pod on a node for a while."""
        on_node = self._put_on(self.cluster.decide(pod), node)

        def undo() -> None:
            if on_node.reserved is not None:
                on_node.reserved.give_back()
            self.cluster.put(pod)

        return undo

    def _set(self, like: ApiObject, value: ApiObject | None) -> None:
        if value is None:
            self.cluster.remove(like)
        else:
            self.cluster.put(value)


class _Assumed(NamedTuple):
    node: str
    reserved: Assumption | None  # None if the node does not fit


def _matters(old: ApiObject | None, new: ApiObject | None) -> bool:
    """Whether a scheduler may decide otherwise before and after this change."""
    if isinstance(old, Pod | None) and isinstance(new, Pod | None):
        return _read_of_pod(old) != _read_of_pod(new)
    if isinstance(old, Node) and isinstance(new, Node):
        return _read_of_node(old) != _read_of_node(new)
    return old is None or new is None or not isinstance(new, _WRITTEN_BY_SCHEDULERS)


def _read_of_pod(pod: Pod | None) -> object:
    """What counts of a pod for others: what it is and requests on its node, or is nominated to."""
    if pod is None:
        return None
    if not is_assigned(pod):
        nominated = pod.status.nominated_node_name
        return (nominated, pod.spec.priority) if nominated else None
    return pod.spec, pod.metadata.labels, pod.metadata.deletion_timestamp is None


def _read_of_node(node: Node) -> object:
    return node.spec, node.metadata.labels, node.status.allocatable, node.status.images
