"""Rows of nodes and pods, made of what the scheduler has: its stores, its cache and its queue.

Made when something about the node or pod has changed, never copied from another place: a row shows
what the scheduler itself decides with.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, first_condition, is_terminating, priority_of
from kubestow.api.pod_info import PodInfo
from kubestow.api.taints import taint_text
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.engine.scheduler import Scheduler
from kubestow.errors import CacheError
from kubestow.queue import SchedulingQueue
from kubestow.queue.moves import Place
from kubestow.queue.queued_pod import QueuedPod
from kubestow.web.protocol import NO_NODE, NO_PLACE, NO_WORD, PLACES, NodeRow, PodRow
from kubestow.web.words import WordLists

# Labels with more values than this do not group nodes.
GROUPING_VALUES_MAX: Final = 100
GROUPINGS_MAX: Final = 32

_PLACE_INDEX: Final = {place: PLACES.index(place.value) for place in Place}


class RowMaker:
    def __init__(self, scheduler: Scheduler, words: WordLists, excluded: Iterable[str]) -> None:
        """`excluded` are labels that do not group nodes."""
        assert isinstance(scheduler.queue, SchedulingQueue)
        self._scheduler = scheduler
        self._queue = scheduler.queue
        self._words = words
        self._excluded = frozenset((HOSTNAME_LABEL, *excluded))
        # By node name. A number stays, also when the node is gone: its pods still refer to it.
        self._node_ids: dict[str, int] = {}
        self._node_names: list[str] = []

    @property
    def node_id_count(self) -> int:
        return len(self._node_ids)

    def node_id(self, name: str) -> int:
        found = self._node_ids.get(name)
        if found is None:
            found = self._node_ids[name] = len(self._node_names)
            self._node_names.append(name)
        return found

    def node_name(self, node_id: int) -> str:
        return self._node_names[node_id]

    def node_row(self, node: Node) -> NodeRow:
        metadata, words = node.metadata, self._words
        info = self._scheduler.cache.nodes.get(metadata.name)
        ready = first_condition(node.status.conditions, "Ready")
        allocatable = requested = ()
        if info is not None:
            allocatable = words.amounts(info.allocatable, pods=info.allocatable.allowed_pods)
            requested = words.amounts(info.requested, pods=len(info.pods))
        return NodeRow(
            id=self.node_id(metadata.name),
            name=metadata.name,
            groups=self._groups(metadata.labels),
            unschedulable=node.spec.unschedulable,
            # Nodes of files have no conditions: they are not lost.
            ready=ready is None or ready.status == "True",
            taints=tuple(map(taint_text, node.spec.taints)),
            allocatable=allocatable,
            requested=requested,
            created=_milliseconds(metadata.creation_timestamp),
        )

    def pod_row(self, pod: Pod) -> PodRow:
        metadata, words = pod.metadata, self._words
        node_name, place, info, queued_pod = self._whereabouts(pod)
        request = info.accounted.requested
        reason = rejectors = NO_WORD
        if not node_name:
            condition = first_condition(pod.status.conditions, "PodScheduled")
            if condition is not None and condition.status != "True":
                reason = words.reason(condition.message)
            if queued_pod is not None:
                rejectors = words.rejectors.index(_rejectors(queued_pod))
        return PodRow(
            key=info.key,
            node=self.node_id(node_name) if node_name else NO_NODE,
            place=NO_PLACE if place is None else _PLACE_INDEX[place],
            priority=priority_of(pod),
            owner=self.owner(pod),
            requests=words.requests.index(words.amounts(request, pods=1)),
            reason=reason,
            rejectors=rejectors,
            terminating=is_terminating(pod),
            created=_milliseconds(metadata.creation_timestamp),
        )

    def _whereabouts(self, pod: Pod) -> tuple[str, Place | None, PodInfo, QueuedPod | None]:
        """The node, the place in the queue, and the records that the scheduler has."""
        if pod.spec.node_name:
            return pod.spec.node_name, None, self._cached(pod) or PodInfo(pod), None
        place = self._queue.place_of(pod)
        if place is None or place is Place.IN_FLIGHT:
            # A pod that is being bound is counted on its node.
            info = self._cached(pod)
            if info is not None:
                return info.pod.spec.node_name, Place.IN_FLIGHT, info, None
            return "", place, PodInfo(pod), None
        queued_pod = self._queue.get_pod(pod.metadata.name, pod.metadata.namespace)
        assert queued_pod is not None, pod.metadata.name
        return "", place, queued_pod.pod_info, queued_pod

    def _cached(self, pod: Pod) -> PodInfo | None:
        try:
            return self._scheduler.cache.pod(pod)
        except CacheError:
            return None

    def owner(self, pod: Pod) -> int:
        """The index of what made the pod in the list of owners."""
        return self._words.owners.index(self._owner(pod))

    def _owner(self, pod: Pod) -> str:
        """Kind and name of what made the pod; of a ReplicaSet, of what made that."""
        kind, name = _controller(pod)
        if kind == "ReplicaSet":
            replica_set = self._scheduler.objects.replica_sets.get(pod.metadata.namespace, name)
            if replica_set is not None and (above := _controller(replica_set))[0]:
                kind, name = above
        return f"{kind}/{name}" if kind else ""

    def _groups(self, labels: dict[str, str]) -> tuple[str, ...]:
        groupings = self._words.groupings
        for key in labels:
            if key not in self._excluded and len(groupings.words) < GROUPINGS_MAX:
                groupings.index(key)
        return tuple(labels.get(key, "") for key in groupings.words)


def find_groupings(nodes: Iterable[Node]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The labels by which these nodes can be grouped, the most frequent first; and those that have
    too many values."""
    values: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for node in nodes:
        for key, value in node.metadata.labels.items():
            counts[key] = counts.get(key, 0) + 1
            known = values.setdefault(key, set())
            if len(known) <= GROUPING_VALUES_MAX:
                known.add(value)
    many = frozenset(key for key, known in values.items() if len(known) > GROUPING_VALUES_MAX)
    excluded = many | {HOSTNAME_LABEL}
    found = sorted(counts.keys() - excluded, key=lambda key: (-counts[key], key))
    return tuple(found[:GROUPINGS_MAX]), many


def _milliseconds(time: datetime | None) -> int:
    return 0 if time is None else int(time.timestamp() * 1000)


def _rejectors(queued_pod: QueuedPod) -> str:
    return queued_pod.gating_plugin or ", ".join(sorted(queued_pod.rejectors))


def _controller(made: ApiObject) -> tuple[str, str]:
    for owner in made.metadata.owner_references:
        if owner.controller:
            return owner.kind, owner.name
    return "", ""
