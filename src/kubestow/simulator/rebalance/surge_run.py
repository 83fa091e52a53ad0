"""Carries a surge out: one pod more, and once it is ready, one less, which is the old pod.

    mark the old pod ──► one replica more ──► the new pod is ready on its node ──► one less ──► gone
                                │ elsewhere, not in time, interrupted
                                └──► mark the new pod instead, one less: all is as before

A controller deletes pods that are not ready first, then those with the lowest deletion cost. It has
seen the mark when it has counted the new pod as ready: a watch brings changes in their order. So
one replica less is asked for only then, and while all pods of the controller are ready.

The mark says what was begun. A process that is killed in between leaves it, and the next run takes
the surge back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from kubestow.api.decode import UNREADABLE
from kubestow.api.meta import OwnerReference
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, key_of
from kubestow.clock import Clock
from kubestow.cluster.documents import value_at
from kubestow.errors import ApiError, ConflictError, NotFoundError
from kubestow.simulator.controllers.owner_controller import controller_reference
from kubestow.simulator.controllers.pods import DELETION_COST
from kubestow.simulator.rebalance.plan import EvictedPod, PlanStep, ScaledOwner
from kubestow.simulator.rebalance.rebalanced import (
    PATIENCE_S,
    POLL_S,
    RebalancedServer,
    SurpriseError,
    is_active,
    is_new,
    is_ready,
    owner_uid,
)
from kubestow.simulator.rebalance.stopping import Stopping
from kubestow.simulator.rebalance.surging import LOWEST_COST

# On the old pod: the controller that is scaled, as JSON.
MARK: Final = "kubestow.dev/surge"
# How long a controller may take to see a mark, where nothing shows that it has.
SEEN_S: Final = 5.0
_SERVER_ERROR: Final = 500

Sleep = Callable[[float], Awaitable[None]]


class BegunSurge(NamedTuple):
    """A surge under way: the old pod, its ReplicaSet, and what is scaled.

    known   UIDs of pods that were there before, as far as that is known
    """

    namespace: str
    pod: str
    uid: str
    replica_set: str
    scaled: ScaledOwner
    known: frozenset[str] = frozenset()


class SurgeRun:
    """One step. `is_done` is whether the old pod was given up, `node` where the new one is."""

    def __init__(
        self,
        server: RebalancedServer,
        clock: Clock,
        sleep: Sleep,
        stopping: Stopping,
        step: PlanStep,
    ) -> None:
        assert step.pod is not None, step
        assert step.scaled is not None, step
        self._server = server
        self._clock = clock
        self._sleep = sleep
        self._stopping = stopping
        self._step = step
        self._pod: EvictedPod = step.pod
        self._scaled: ScaledOwner = step.scaled
        self.is_done = False
        self.node = ""

    async def run(self, versions: Mapping[str, str]) -> bool:
        """False, and nothing done, if the pod or what is scaled has another version by now.

        SurpriseError if it does not come as planned: all is as before, unless `is_done`.
        """
        pod, scaled, server = self._pod, self._scaled, self._server
        pods = await server.pods(pod.namespace)
        old = next((each for each in pods if each.metadata.uid == pod.uid), None)
        owner = None if old is None else controller_of(old)
        if old is None or owner is None:
            raise SurpriseError(f"pod {pod.key} is gone")
        version = old.metadata.resource_version
        if versions.get(pod.uid, "") not in ("", version):
            return False
        known = frozenset(each.metadata.uid for each in pods)
        begun = BegunSurge(pod.namespace, pod.name, owner.uid, owner.name, scaled, known)
        mark = {DELETION_COST: str(LOWEST_COST), MARK: msgspec.json.encode(scaled).decode()}
        try:
            await server.annotate(pod.namespace, pod.name, mark, version)
        except NotFoundError as error:
            raise SurpriseError(f"pod {pod.key} is gone: {error}") from error
        except ConflictError:
            return False
        more, version = scaled.replicas + 1, versions.get(scaled.uid, "")
        try:
            await server.scale(
                pod.namespace, scaled, before=scaled.replicas, after=more, version=version
            )
        except BaseException as error:
            # What is refused was not done; of a request without an answer that is not known.
            is_refused = isinstance(error, ApiError) and error.code < _SERVER_ERROR
            await (unmark(server, begun) if is_refused else take_back(server, self._sleep, begun))
            if isinstance(error, ConflictError):
                return False
            raise
        try:
            await self._brought_up(begun)
            server.note(old, "Rebalance", f"Ends; a pod on {self.node} was brought up first")
            await server.scale(pod.namespace, scaled, before=more, after=scaled.replicas)
        except BaseException:
            await take_back(server, self._sleep, begun)
            raise
        self.is_done = True
        await self._gone(begun)
        return True

    async def _brought_up(self, begun: BegunSurge) -> None:
        """Wait for the new pod; SurpriseError if it is not ready on its node in time."""
        step, key, wanted = self._step, self._pod.key, self._scaled.replicas + 1
        end_s = self._end_s()
        while self._clock.monotonic_s() < end_s:
            if self._stopping.reason:
                raise SurpriseError(self._stopping.reason)
            pods = await self._active(begun)
            if all(each.metadata.uid != self._pod.uid for each in pods):
                raise SurpriseError(f"pod {key} is gone")
            new = [each for each in pods if is_new(each, (begun.uid,), begun.known)]
            node = next((each.spec.node_name for each in new if each.spec.node_name), "")
            if node not in ("", step.to_node):
                raise SurpriseError(
                    f"the replacement of {key} is on {node}, foretold was {step.to_node}"
                )
            self.node = node
            if node and len(pods) == wanted and all(map(is_ready, pods)):
                found = await self._server.replica_set(begun.namespace, begun.replica_set)
                if value_at(found, "status", "readyReplicas") == wanted:
                    return
            await self._sleep(POLL_S)
        where = f"on {self.node} is not ready" if self.node else "has no node"
        raise SurpriseError(f"the replacement of {key} {where} in time")

    async def _gone(self, begun: BegunSurge) -> None:
        """Wait until the old pod is gone; SurpriseError if another pod ends instead."""
        end_s = self._end_s()
        while self._clock.monotonic_s() < end_s:
            pods = await self._server.pods(begun.namespace)
            if all(each.metadata.uid != self._pod.uid for each in pods):
                return
            left = {each.metadata.uid for each in pods if _counts(each, begun)}
            if self._pod.uid in left and len(left) <= self._scaled.replicas:
                self.is_done = False
                await take_back(self._server, self._sleep, begun)
                raise SurpriseError(f"another pod than {self._pod.key} was removed")
            await self._sleep(POLL_S)
        raise SurpriseError(f"pod {self._pod.key} is not gone in time")

    async def _active(self, begun: BegunSurge) -> list[Pod]:
        pods = await self._server.pods(begun.namespace)
        return [each for each in pods if _counts(each, begun)]

    def _end_s(self) -> float:
        expected_s = self._step.ends_at_s - self._step.starts_at_s
        return self._clock.monotonic_s() + expected_s + PATIENCE_S


async def take_back(server: RebalancedServer, sleep: Sleep, begun: BegunSurge) -> None:
    """Remove the newest pod instead of the old one, if there is one more; the marks go last.

    ApiError if the server cannot be reached: the mark is still there then.
    """
    namespace, scaled = begun.namespace, begun.scaled
    pods = [each for each in await server.pods(namespace) if _counts(each, begun)]
    others = [each for each in pods if each.metadata.name != begun.pod]
    with suppress(NotFoundError):
        await server.annotate(namespace, begun.pod, {DELETION_COST: None})
    if others and len(pods) > scaled.replicas:
        newest = max(others, key=lambda pod: (pod.metadata.uid not in begun.known, *_youth(pod)))
        with suppress(NotFoundError):
            cost = {DELETION_COST: str(LOWEST_COST)}
            await server.annotate(namespace, newest.metadata.name, cost)
        if is_ready(newest):
            await sleep(SEEN_S)
    # Another client may have scaled it, or it never came to that.
    with suppress(ConflictError, NotFoundError):
        await server.scale(namespace, scaled, before=scaled.replicas + 1, after=scaled.replicas)
    await unmark(server, begun)


async def unmark(server: RebalancedServer, begun: BegunSurge) -> None:
    """The old pod is as before."""
    with suppress(NotFoundError):
        await server.annotate(begun.namespace, begun.pod, {DELETION_COST: None, MARK: None})


def _counts(pod: Pod, begun: BegunSurge) -> bool:
    return owner_uid(pod) == begun.uid and is_active(pod)


def _youth(pod: Pod) -> tuple[bool, str]:
    """The newest last."""
    created = pod.metadata.creation_timestamp
    return not is_ready(pod), "" if created is None else created.isoformat()


async def end_begun(server: RebalancedServer, sleep: Sleep = asyncio.sleep) -> list[str]:
    """Take back the surges that a run before has left because it was killed; a line for each.

    A mark is an annotation: all who may change a pod can write one. Only what makes the pod is
    scaled, and a mark of anything else is left alone.
    """
    lines: list[str] = []
    for pod in await server.pods(""):
        mark, owner = pod.metadata.annotations.get(MARK), controller_of(pod)
        if mark is None or owner is None or not is_active(pod):
            continue
        metadata = pod.metadata
        try:
            scaled = msgspec.json.decode(mark, type=ScaledOwner)
        except UNREADABLE:
            continue
        name = key_of(pod)
        if not await _scales(server, metadata.namespace, owner, scaled):
            what = f"{scaled.kind}/{scaled.name}"
            lines.append(
                f"left alone: {name} has a mark of a surge of {what}, which does not make it"
            )
            continue
        await take_back(
            server,
            sleep,
            BegunSurge(metadata.namespace, metadata.name, owner.uid, owner.name, scaled),
        )
        lines.append(f"took back a surge for {name}, which a run before has left")
    return lines


async def _scales(
    server: RebalancedServer, namespace: str, owner: OwnerReference, scaled: ScaledOwner
) -> bool:
    """Whether a surge of a pod with this controller scales that object."""
    wanted = (scaled.kind, scaled.name, scaled.uid)
    if owner.kind != "ReplicaSet":
        return False
    if scaled.kind == "ReplicaSet":
        return wanted == (owner.kind, owner.name, owner.uid)
    found = await server.replica_set(namespace, owner.name)
    top = controller_reference(found) or {}
    is_same = value_at(found, "metadata", "uid") == owner.uid
    return is_same and wanted == (top.get("kind"), top.get("name"), top.get("uid"))
