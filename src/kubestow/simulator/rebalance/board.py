"""Evicts pods and places their replacements, one after the other; every step can be undone.

    mark = board.mark()
    found = board.evict(pod)
    ...
    board.undo(mark)

The decision on a replacement is the scheduler's own, on the state that the steps before left. The
row at which its search begins goes on from step to step, as that of a scheduler does.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple

import msgspec

from kubestow.api.group import GroupKey
from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, PodStatus, assign, is_assigned
from kubestow.api.pod_info import PodInfo
from kubestow.api.topology import REGION_LABEL, ZONE_LABEL
from kubestow.engine.decision import Decision
from kubestow.engine.groups.collect import CollectedGroup
from kubestow.engine.groups.outcome import MemberOutcome
from kubestow.errors import PluginError
from kubestow.explain.cluster import StillCluster
from kubestow.explain.together import class_of, in_queue_order
from kubestow.explain.waiting import may_try
from kubestow.queue import QueuedPod
from kubestow.simulator.rebalance.gangs import gang_key, gang_members
from kubestow.simulator.rebalance.goals.goal import Goal
from kubestow.simulator.rebalance.plan import ScaledOwner
from kubestow.simulator.rebalance.rules import MovableRules
from kubestow.simulator.rebalance.surging import Surges

RETURNS: Final = "its replacement would come back to the same node"
UNCERTAIN: Final = (
    "where its replacement goes depends on whether its controller makes it before the pod is gone"
)
GANG_RETURNS: Final = "the replacements of its gang would come back to the same nodes"
GANG_MISFIT: Final = "not all of its gang fits beside the members that are ending"
GANG_UNCERTAIN: Final = (
    "where the replacements of its gang go depends on the order in which they are made"
)
# In names and UIDs of replacements.
_AGAIN: Final = "-again-"
# Any time: that it has one is what counts.
_ENDING: Final = datetime(2000, 1, 1, tzinfo=UTC)
# An API server copies them from the node to the pods that it binds.
_COPIED_LABELS: Final = (ZONE_LABEL, REGION_LABEL)


class PlacedAlso(NamedTuple):
    """A pod that waited, and the node it gets because another pod left."""

    pod: str  # namespace and name
    node: str


class Evicted(NamedTuple):
    """What evicting a pod comes to. With an `obstacle` nothing was done.

    waits_for_end   the replacement is placed once the pod is gone, not before
    scaled          what brings up the replacement before the pod ends; None if the pod is evicted
    gang, members   the gang that was evicted with the pod, and what became of each member; one may
                    be back on its node
    """

    pod: PodInfo
    from_node: str
    obstacle: str = ""
    node: str = ""
    waits_for_end: bool = False
    also: tuple[PlacedAlso, ...] = ()
    scaled: ScaledOwner | None = None
    gang: str = ""
    members: "tuple[Evicted, ...]" = ()

    @property
    def moves(self) -> "tuple[Evicted, ...]":
        """Each pod that was evicted."""
        return self.members or (self,)


class Board:
    """The state of a plan: the cluster, the goal's figure, and how to undo each change."""

    def __init__(
        self, cluster: StillCluster, rules: MovableRules, goal: Goal, surges: Surges | None = None
    ) -> None:
        """`surges` says which pods are replaced before they end; None: every pod is evicted."""
        self.cluster: Final = cluster
        self.goal: Final = goal
        self._rules = rules
        self._surges = surges
        self._undo: list[Callable[[], None]] = []
        # The row at which the next search begins.
        self.start_index = 0
        self._made_count = 0
        # Pods that were evicted, by UID: a pod is moved once.
        self.moved: set[str] = set()
        self._waiting = in_queue_order(
            pod for pod in cluster.objects.pods if not is_assigned(pod) and may_try(cluster, pod)
        )
        cluster.refresh()
        self._waiting_classes: dict[str, Hashable] = {
            pod.metadata.uid: class_of(pod) for pod in self._waiting
        }
        self.trial_count = 0

    # --- Undoing ------------------------------------------------------------------------------

    def mark(self) -> int:
        """The present state, for `undo`."""
        return len(self._undo)

    def undo(self, mark: int) -> None:
        """Go back to a state."""
        while len(self._undo) > mark:
            self._undo.pop()()

    # --- Steps --------------------------------------------------------------------------------

    def evict(self, pod: PodInfo) -> Evicted:
        """Evict a pod, and place its replacement; on an obstacle everything is as before.

        A member of a gang is evicted with the whole gang. The replacement of a pod that cannot be
        spared is placed before it ends.
        """
        self.trial_count += 1
        mark, from_node = self.mark(), pod.pod.spec.node_name
        key = gang_key(self.cluster, pod.pod)
        if key is not None:
            return self._evict_gang(pod, key)
        replaced = self._rules.replaced(pod.pod)
        scaled = None if self._surges is None else self._surges.scaled(pod.pod)
        if scaled is not None:
            placed = self._place_before(pod)
        elif replaced == "unknown":
            placed = self._place_either_way(pod)
        else:
            placed = self._replace(pod, while_ending=replaced == "while-ending")
        if placed.obstacle:
            self.undo(mark)
            return Evicted(pod, from_node, placed.obstacle)
        assert placed.info is not None, pod.key
        self._count_move(pod, placed.info, placed.node)
        also = tuple(self._place_waiting()) if self._waiting else ()
        return Evicted(pod, from_node, "", placed.node, placed.waits_for_end, also, scaled)

    def move_count(self, pod: PodInfo) -> int:
        """How many pods are evicted with a pod: all of its gang."""
        key = gang_key(self.cluster, pod.pod)
        return 1 if key is None else len(gang_members(self.cluster, key))

    def is_there(self, pod: PodInfo) -> bool:
        found = self.cluster.objects.pods.get(pod.namespace, pod.name)
        return found is not None and found.metadata.uid == pod.uid

    def displace(self, pod: PodInfo) -> Evicted:
        """Evict a pod in any case: its replacement may return, or wait.

        With an obstacle the pod is gone, and its replacement waits as others do. For policies that
        do not ask before; a plan evicts with `evict`.
        """
        from_node = pod.pod.spec.node_name
        is_early = self._rules.replaced(pod.pod) != "after-end"
        placed = self._replace(pod, while_ending=is_early)
        self._count(pod, from_node, -1)
        if placed.info is None:
            self._add_waiting(self._made_again(pod.pod))
            return Evicted(pod, from_node, placed.obstacle)
        self._count(placed.info, placed.node, 1)
        also = tuple(self._place_waiting()) if self._waiting else ()
        return Evicted(pod, from_node, "", placed.node, placed.waits_for_end, also)

    def close(self, node_name: str) -> None:
        """Close a node to new pods."""
        self._set_unschedulable(node_name, is_closed=True)

    def open(self, node_name: str) -> None:
        """Open a node to new pods."""
        self._set_unschedulable(node_name, is_closed=False)

    def row_of(self, node_name: str) -> int:
        row = self.cluster.snapshot.row_of(node_name)
        assert row is not None, node_name
        return row

    def pods_on(self, node_name: str) -> list[PodInfo]:
        """The pods that are on a node now."""
        return list(self.cluster.scheduler.cache.node(node_name).pods)

    def is_closed(self, node_name: str) -> bool:
        node = self.cluster.scheduler.cache.node(node_name).node
        return node is not None and node.spec.unschedulable

    # --- Gangs --------------------------------------------------------------------------------

    def _evict_gang(self, pod: PodInfo, key: GroupKey) -> Evicted:
        """The replacements are made while all members are ending.

        Which controller is first, and how far it is when the last member is evicted, is not known:
        the nodes must be the same for the members together, and one by one in the other order.
        """
        members, mark = gang_members(self.cluster, key), self.mark()
        from_node = pod.pod.spec.node_name
        one_by_one = self._gang_placed(key, members[::-1], together=False)
        self.undo(mark)
        placed = self._gang_placed(key, members, together=True)
        obstacle = ""
        if isinstance(placed, str) or isinstance(one_by_one, str):
            obstacle = placed if isinstance(placed, str) else str(one_by_one)
        elif _places(members, placed) != _places(members[::-1], one_by_one):
            obstacle = GANG_UNCERTAIN
        elif all(
            info.pod.spec.node_name == old.pod.spec.node_name
            for old, info in zip(members, placed, strict=True)
        ):
            obstacle = GANG_RETURNS
        if obstacle or isinstance(placed, str):
            self.undo(mark)
            return Evicted(pod, from_node, obstacle)
        moves: list[Evicted] = []
        for old, info in zip(members, placed, strict=True):
            self._remove(old.pod)
            self._count_move(old, info, info.pod.spec.node_name)
            moves.append(Evicted(old, old.pod.spec.node_name, "", info.pod.spec.node_name))
        also = tuple(self._place_waiting()) if self._waiting else ()
        first = moves[0]
        return first._replace(also=also, gang=str(key), members=tuple(moves))

    def _gang_placed(
        self, key: GroupKey, members: Sequence[PodInfo], *, together: bool
    ) -> list[PodInfo] | str:
        """The replacements on their nodes, in the order of the members; a text if one has none."""
        placed: dict[str, PodInfo] = {}
        made: list[Pod] = []
        for batch in [members] if together else [[member] for member in members]:
            for member in batch:
                self._mark_ending(member.pod)
            again = [self._made_again(member.pod) for member in batch]
            for each in again:
                self._put(each)
            made += again
            for found in self._decide_group(key, again):
                assumed = self._assume(found.queued_pod.pod, found.decision, found.node_name)
                if assumed.info is not None:
                    placed[found.queued_pod.uid] = assumed.info
            if len(placed) < len(made):
                return GANG_MISFIT
        return [placed[each.metadata.uid] for each in made]

    def _decide_group(self, key: GroupKey, pods: Sequence[Pod]) -> Sequence[MemberOutcome]:
        """The members of a group for which there is a node; none if the group is not placed."""
        cluster = self.cluster
        scheduler, groups = cluster.scheduler, cluster.scheduler.cache.groups
        profile = cluster.profile_of(pods[0])
        assert scheduler.groups is not None, key
        assert groups is not None, key
        assert profile is not None, pods[0].spec.scheduler_name
        queued = [QueuedPod(scheduler.cache.info_of(pod), timestamp_ns=0) for pod in pods]
        groups.start_trying(key, [each.uid for each in queued])
        scheduler.decider.next_start_index = before = self.start_index
        cluster.forget_batches()
        try:
            outcome = scheduler.groups.decide(CollectedGroup(key, profile, queued))
        finally:
            for pod in pods:
                groups.stop_trying(pod)
        status = outcome.status
        if status is not None and not status.is_rejected:
            raise PluginError(f'pod group "{key}": {status.message}')
        self.start_index = scheduler.decider.next_start_index
        self._undo.append(partial(self._search_from, before))
        if status is not None:
            return ()
        return [each for each in outcome.members if each.status is None and each.node_name]

    # --- Replacing ----------------------------------------------------------------------------

    def _replace(self, pod: PodInfo, *, while_ending: bool) -> "_Placed":
        again = self._made_again(pod.pod)
        if while_ending:
            self._mark_ending(pod.pod)
            placed = self._place(again)
            if not placed.obstacle:
                self._remove(pod.pod)
                return self._judged(pod, placed)
        self._remove(pod.pod)
        placed = self._place(again)
        return self._judged(pod, placed._replace(waits_for_end=True))

    def _place_before(self, pod: PodInfo) -> "_Placed":
        """The pod runs until its replacement does."""
        placed = self._place(self._made_again(pod.pod))
        if not placed.obstacle:
            self._remove(pod.pod)
        return self._judged(pod, placed)

    def _judged(self, pod: PodInfo, placed: "_Placed") -> "_Placed":
        if not placed.obstacle and placed.node == pod.pod.spec.node_name:
            return placed._replace(obstacle=RETURNS)
        return placed

    def _place_either_way(self, pod: PodInfo) -> "_Placed":
        """Place the replacement before the pod is gone and after; the node must be the same.

        Controllers of other kinds may create it at either time.
        """
        mark = self.mark()
        early = self._replace(pod, while_ending=True)
        self.undo(mark)
        late = self._replace(pod, while_ending=False)
        if not late.obstacle and early.node != late.node:
            return late._replace(obstacle=UNCERTAIN)
        return late

    def _made_again(self, pod: Pod) -> Pod:
        """The pod that its controller makes in its place."""
        self._made_count += 1
        metadata = pod.metadata
        labels = metadata.labels
        if not labels.keys().isdisjoint(_COPIED_LABELS):
            labels = {key: labels[key] for key in labels if key not in _COPIED_LABELS}
        suffix = f"{_AGAIN}{self._made_count}"
        # A replacement that is evicted as well is made again under the first name.
        is_again = _AGAIN in metadata.uid
        name = metadata.name.rpartition(_AGAIN)[0] if is_again else metadata.name
        own = msgspec.structs.replace(
            metadata,
            name=f"{name}{suffix}",
            uid=f"{metadata.uid}{suffix}",
            labels=labels,
            deletion_timestamp=None,
        )
        return msgspec.structs.replace(assign(pod, ""), metadata=own, status=PodStatus())

    def _place(self, pod: Pod) -> "_Placed":
        """Decide on a pod, and count it on its node."""
        cluster = self.cluster
        decision = cluster.decide(pod, start_index=self.start_index)
        if not decision.is_scheduled:
            status = decision.status
            if status is not None and not status.is_rejected:
                raise PluginError(f'pod "{decision.pod.key}": {decision.message}')
            return _Placed(obstacle=f"it fits on no other node: {decision.message}")
        before = self.start_index
        self.start_index = cluster.scheduler.decider.next_start_index
        placed = self._assume(pod, decision, decision.node_name)
        if placed.obstacle:
            self.start_index = before
        else:
            self._undo.append(partial(self._search_from, before))
        return placed

    def _assume(self, pod: Pod, decision: Decision, node: str) -> "_Placed":
        """Count a pod on the node that was found for it."""
        cluster = self.cluster
        old = cluster.find(pod)
        assumption = cluster.assume(decision, node)

        def put_back() -> None:
            if assumption.refusal is None:
                assumption.give_back()
            cluster.remove(assumption.placed.pod)
            if old is not None:
                cluster.put(old)

        if assumption.refusal is not None:
            put_back()
            return _Placed(obstacle=f"it fits on no other node: {assumption.refusal.message}")
        self._undo.append(put_back)
        return _Placed(node=node, info=assumption.placed)

    def _add_waiting(self, pod: Pod) -> None:
        self._put(pod)
        self._waiting = [*self._waiting, pod]
        self._waiting_classes[pod.metadata.uid] = class_of(pod)

    def _place_waiting(self) -> Iterable[PlacedAlso]:
        """Place the pods that waited and fit now; of equal ones the first that does not is enough.

        In the order of the queue, and after the replacement: they wait for the end of the pod.
        """
        hopeless: set[Hashable] = set()
        for pod in self._waiting:
            uid = pod.metadata.uid
            kind = self._waiting_classes[uid]
            if uid in self.moved or kind in hopeless:
                continue
            placed = self._place(pod)
            if placed.obstacle or placed.info is None:
                hopeless.add(kind)
                continue
            self._count(placed.info, placed.node, 1)
            self.moved.add(uid)
            self._undo.append(lambda uid=uid: self.moved.discard(uid))
            yield PlacedAlso(placed.info.key, placed.node)

    # --- Changes ------------------------------------------------------------------------------

    def _count(self, pod: PodInfo, node_name: str, sign: int) -> None:
        row = self.row_of(node_name)
        do, undo = (self.goal.put, self.goal.take) if sign > 0 else (self.goal.take, self.goal.put)
        do(pod, row)
        self._undo.append(lambda: undo(pod, row))

    def _search_from(self, row: int) -> None:
        self.start_index = row

    def _count_move(self, pod: PodInfo, again: PodInfo, node_name: str) -> None:
        self._count(pod, pod.pod.spec.node_name, -1)
        self._count(again, node_name, 1)
        self.moved.add(again.uid)
        self._undo.append(lambda: self.moved.discard(again.uid))

    def _mark_ending(self, pod: Pod) -> None:
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=_ENDING)
        self._put(msgspec.structs.replace(pod, metadata=metadata))

    def _put(self, new: ApiObject) -> None:
        old = self.cluster.find(new)
        self.cluster.put(new)
        if old is None:
            self._undo.append(lambda: self.cluster.remove(new))
        else:
            self._undo.append(lambda: self.cluster.put(old))

    def _remove(self, gone: ApiObject) -> None:
        old = self.cluster.find(gone)
        assert old is not None, gone.metadata.name
        self.cluster.remove(old)
        self._undo.append(lambda: self.cluster.put(old))

    def _set_unschedulable(self, node_name: str, *, is_closed: bool) -> None:
        node = self.cluster.objects.nodes.get(node_name)
        assert isinstance(node, Node), node_name
        spec = msgspec.structs.replace(node.spec, unschedulable=is_closed)
        self._put(msgspec.structs.replace(node, spec=spec))


def _places(members: Sequence[PodInfo], placed: Sequence[PodInfo]) -> Counter[Hashable]:
    """How many members that are alike but for their nodes go to each node."""
    return Counter(
        (alike(old)[1:], info.pod.spec.node_name) for old, info in zip(members, placed, strict=True)
    )


class _Placed(NamedTuple):
    node: str = ""
    info: PodInfo | None = None
    obstacle: str = ""
    waits_for_end: bool = False


def alike(pod: PodInfo) -> tuple[Hashable, ...]:
    """Equal for pods whose evictions come to the same, if they are on the same node."""
    owners = tuple(owner.uid for owner in pod.pod.metadata.owner_references)
    return pod.pod.spec.node_name, class_of(pod.pod), owners


def without_likes(pods: Iterable[PodInfo]) -> Sequence[PodInfo]:
    """The first by name of pods that are alike, in the order given."""
    first: dict[Hashable, PodInfo] = {}
    for pod in pods:
        kind = alike(pod)
        known = first.get(kind)
        if known is None or pod.key < known.key:
            first[kind] = pod
    return list(first.values())
