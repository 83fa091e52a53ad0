"""Which nodes could go without any pod becoming pending: a list, in order, with where pods go.

Nodes are tried one after the other, the least used first. A node is taken away with everything on
it, and its pods are placed on the nodes that are left; if all find a place, the next node is tried
in what remains, else everything is put back. So every step of the list was done once.

Daemons, static pods and pods that are ending go with their node. A pod without a controller would
be lost, so its node stays. Disruption budgets delay a drain but do not prevent it; they are not
considered.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from kubestow.api.files import Document
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, made_again
from kubestow.api.pod_info import PodInfo
from kubestow.cache.node_info import NodeInfo
from kubestow.cluster.documents import replaced_at
from kubestow.explain.together import in_queue_order
from kubestow.simulator.capacity.amounts import Room, allocatable, requested, total
from kubestow.simulator.capacity.placing import PlacingCluster, PlacingSetup
from kubestow.simulator.input.pods import MIRROR, PodKey, evicted, key_of, without_pods
from kubestow.simulator.virtual_time import run_in_virtual_time

NO_CONTROLLER: Final = "it has no controller, so it would be lost"
NO_ROOM: Final = "no other node has room for it"


class Move(msgspec.Struct, frozen=True, rename="camel"):
    """Where a pod goes."""

    pod: str  # namespace and name
    node: str


class RemovableNode(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    moves: list[Move]


class NeededNode(msgspec.Struct, frozen=True, rename="camel"):
    """A node that stays, and what is with the pod because of which it does."""

    name: str
    reason: str
    pod: str  # namespace and name


class DrainCheck(msgspec.Struct, frozen=True, rename="camel"):
    """`removable` nodes can go in this order; `needed` ones cannot after those went."""

    removable: list[RemovableNode]
    needed: list[NeededNode]
    node_count: int


def drain_check(
    cluster: Sequence[Document],
    setup: PlacingSetup | None = None,
    *,
    on_node: Callable[[str], None] = lambda _: None,
) -> DrainCheck:
    """Try all nodes; `on_node` is called with the name of each that was tried."""

    async def run() -> DrainCheck:
        return await _Check(cluster, setup or PlacingSetup(), on_node).run()

    return run_in_virtual_time(run())


class _Check:
    def __init__(
        self, cluster: Sequence[Document], setup: PlacingSetup, on_node: Callable[[str], None]
    ) -> None:
        self._documents = cluster
        self._setup = setup
        self._on_node = on_node
        self._names: list[str] | None = None  # of nodes that were not tried yet
        self._node_count = 0
        self._removable: list[RemovableNode] = []
        self._needed: list[NeededNode] = []
        # Of the cluster that runs: what is free on its nodes, and what was done without its API.
        self._room: Room | None = None
        self._gone: set[str] = set()
        self._nodes_of_moved: dict[PodKey, str] = {}

    async def run(self) -> DrainCheck:
        while self._names is None or self._names:
            async with PlacingCluster(self._documents, self._setup).running() as placing:
                await self._run(placing)
        return DrainCheck(self._removable, self._needed, self._node_count)

    async def _run(self, placing: PlacingCluster) -> None:
        """Try nodes until all were tried, or until the cluster has to be set up again."""
        if self._names is None:
            self._names = _by_use(placing.snapshot().node_infos)
            self._node_count = len(self._names)
        self._room = Room(placing.snapshot().node_infos) if placing.counts_resources else None
        self._gone, self._nodes_of_moved = set(), {}
        while self._names:
            name = self._names.pop(0)
            self._on_node(name)
            info = placing.node_info(name)
            movable = [made_again(each.pod) for each in info.pods if _is_movable(each.pod)]
            problem = self._problem(info, movable)
            if problem is not None:
                self._needed.append(problem)
            elif all(map(placing.can_place, movable)):
                self._try_in_place(placing, name, movable)
            elif await self._try_anew(placing, name, movable):
                return

    def _problem(self, info: NodeInfo, movable: list[Pod]) -> NeededNode | None:
        """Why the node cannot go, where nothing has to be placed to know it."""
        for pod in movable:
            if controller_of(pod) is None:
                return NeededNode(info.name, NO_CONTROLLER, _label(pod))
        if self._room is not None:
            misfit = self._room.misfit_without(info.name, map(PodInfo, movable))
            if misfit is not None:
                return NeededNode(info.name, NO_ROOM, _label(misfit.pod))
        return None

    def _try_in_place(self, placing: PlacingCluster, name: str, movable: list[Pod]) -> None:
        node, everything = placing.take_away(name)
        placed, left = place_all(placing, movable)
        if left:
            self._needed.append(self._needed_for(placing, name, left[-1]))
            placing.take_off(placed)
            placing.put_back(node, everything)
            return
        self._removable.append(RemovableNode(name, _moves(placed)))
        self._gone.add(name)
        self._nodes_of_moved |= {PodKey.of(pod): pod.spec.node_name for pod in placed}
        if self._room is not None:
            self._room.gone(name)
            for changed in {pod.spec.node_name for pod in placed}:
                self._room.changed(placing.node_info(changed))

    def _needed_for(self, placing: PlacingCluster, name: str, pod: Pod) -> NeededNode:
        return NeededNode(name, placing.failure_text(PodKey.of(pod)), _label(pod))

    async def _try_anew(self, placing: PlacingCluster, name: str, movable: list[Pod]) -> bool:
        """Try a node in a cluster of its own, where claims of the pods are made again."""
        leaving = {PodKey.of(pod) for pod in movable}
        documents = _without_node(list(self._current(placing)), name, leaving)
        already_waiting = {PodKey.of(pod) for pod in placing.waiting()}
        async with PlacingCluster(documents, self._setup).running() as trial:
            left = [pod for pod in trial.waiting() if PodKey.of(pod) not in already_waiting]
            if left:
                message = trial.message_of(PodKey.of(left[0]))
                self._needed.append(NeededNode(name, message, _label(left[0])))
                return False
            moves = [Move("/".join(key), trial.node_of(key)) for key in sorted(leaving)]
            self._removable.append(RemovableNode(name, moves))
            self._documents = trial.documents()
        return True

    def _current(self, placing: PlacingCluster) -> Iterator[Document]:
        """Everything in the cluster, with what was done without its API."""
        for one in placing.documents():
            if one.raw["kind"] == "Pod":
                node = self._nodes_of_moved.get(key_of(one.raw))
                if node is not None:
                    yield Document(replaced_at(one.raw, ("spec", "nodeName"), node), one.source)
                elif one.raw["spec"].get("nodeName") not in self._gone:
                    yield one
            elif one.raw["kind"] != "Node" or one.raw["metadata"]["name"] not in self._gone:
                yield one


def place_all(placing: PlacingCluster, pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod]]:
    """Place pods by priority; those that were placed, and those that are left.

    A pod that does not fit is tried again after others were placed: it may need one of them.
    """
    placed: list[Pod] = []
    left = in_queue_order(pods)
    while left:
        remaining: list[Pod] = []
        for pod in left:
            done = placing.place(pod)
            if done is None:
                remaining.append(pod)
            else:
                placed.append(done)
        if len(remaining) == len(left):
            break
        left = remaining
    return placed, left


def _by_use(infos: Iterable[NodeInfo]) -> list[str]:
    """The names of the nodes, those with the smallest share in use first."""

    def share(info: NodeInfo) -> float:
        moving = (each for each in info.pods if _is_movable(each.pod))
        return float((total(map(requested, moving)) / np.maximum(allocatable(info), 1)).max())

    return [info.name for info in sorted(infos, key=lambda info: (share(info), info.name))]


def _is_movable(pod: Pod) -> bool:
    metadata, owner = pod.metadata, controller_of(pod)
    return (
        (owner is None or owner.kind != "DaemonSet")
        and MIRROR not in metadata.annotations
        and metadata.deletion_timestamp is None
    )


def _without_node(documents: Sequence[Document], name: str, leaving: set[PodKey]) -> list[Document]:
    """The documents without the node; these pods wait, all others on it are gone."""
    gone = {
        key_of(one.raw)
        for one in documents
        if one.raw["kind"] == "Pod" and one.raw["spec"].get("nodeName") == name
    } - leaving
    kept = evicted(without_pods(documents, gone), leaving)
    return [one for one in kept if one.raw["kind"] != "Node" or one.raw["metadata"]["name"] != name]


def _moves(placed: Iterable[Pod]) -> list[Move]:
    return [Move(_label(pod), pod.spec.node_name) for pod in placed]


def _label(pod: Pod) -> str:
    return "/".join(PodKey.of(pod))
