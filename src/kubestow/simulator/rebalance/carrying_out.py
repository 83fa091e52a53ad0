"""Carries a plan out on a cluster, one step at a time, and stops at the first surprise.

    read the cluster ──► does the rest of the plan still hold? ──► evict ──► wait
          ▲                        │ no: a surprise                            │ on another node, or
          └── the next step ◄──────┼── ready, and the pod is gone ◄────────────┤ none in time:
                                   ▼                                           ▼ a surprise
                  plan again, or open the nodes that were not emptied, and end

A pod is evicted only in the version on which the rest of the plan was proven. If it has changed
since, the cluster is read again.

Interrupted at any point nothing is half done: a pod that was evicted is replaced by its controller,
and a surge whose new pod is not ready yet is taken back (`surge_run`).
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from typing import Final

import msgspec

from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.errors import ApiError, ConflictError, InputError, NotFoundError
from kubestow.simulator.rebalance.pacing import Pacing
from kubestow.simulator.rebalance.plan import EvictedPod, PlanStep, PlanUnit, RebalancePlan
from kubestow.simulator.rebalance.proving import MakePlanner, difference, opened, versions_of
from kubestow.simulator.rebalance.rebalanced import (
    PATIENCE_S,
    POLL_S,
    RebalancedServer,
    SurpriseError,
    is_new,
    is_ready,
    owner_uid,
)
from kubestow.simulator.rebalance.stopping import Stopping
from kubestow.simulator.rebalance.surge_run import SurgeRun

# How long a budget that allows no disruption is asked again: a pod of a StatefulSet that is back
# under its name counts as disrupted for two minutes.
BUDGET_PATIENCE_S: Final = 150.0
# How often the cluster is read again for a step whose pod has changed meanwhile.
READ_AGAIN: Final = 5
_TOO_MANY_REQUESTS: Final = 429


class DoneMove(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An eviction that was made. `took_s` is until the replacement was ready."""

    pod: str
    node: str
    foretold: str
    actual: str
    took_s: float = msgspec.field(name="tookSeconds")


class RebalanceRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was done. `surprise` is why it ended early; empty if all was done as planned."""

    done: tuple[DoneMove, ...]
    planned: int
    plans: int
    surprise: str
    opened_again: tuple[str, ...]


class PlanRunner:
    def __init__(
        self,
        server: RebalancedServer,
        clock: Clock,
        make_planner: MakePlanner,
        *,
        pacing: Pacing,
        stopping: Stopping,
        replans: bool = False,
        max_moves: int = 0,
        on_text: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`replans`: after a surprise, look for another plan, for what is left of `max_moves`."""
        self._server = server
        self._clock = clock
        self._make_planner = make_planner
        self._pacing = pacing
        self._stopping = stopping
        self._replans = replans
        self._max_moves = max_moves
        self._say = on_text
        self._sleep = sleep
        self._done: list[DoneMove] = []
        self._closed: list[str] = []

    async def run(self, plan: RebalancePlan) -> RebalanceRun:
        """Do the steps; ApiError if the server refuses the first request, or cannot be reached, and
        InputError if the cluster cannot be read.

        Once something was done, such an error ends the run with an account. Nodes that were closed
        and did not become empty by it are opened again.
        """
        plans, units, surprise = 1, plan.units, ""
        again: list[str] = []
        try:
            while units and not self._stopping.reason:
                try:
                    surprise = await self._surprise(units)
                    if not surprise:
                        units.pop(0)
                        continue
                    again += await self._open_again(units)
                    units = await self._units_again(plans, surprise)
                    if units:
                        plans, surprise = plans + 1, ""
                except (ApiError, InputError) as error:
                    if not self._done and not self._closed:
                        raise
                    surprise = f"a request failed: {error}"
                    break
        finally:
            again += await self._open_again(units)
        return RebalanceRun(
            done=tuple(self._done),
            planned=plan.moves,
            plans=plans,
            surprise=surprise or self._stopping.reason,
            opened_again=tuple(again),
        )

    async def _surprise(self, units: Sequence[PlanUnit]) -> str:
        """Do the first unit; why it could not be done, empty if it was."""
        try:
            await self._do(units)
        except SurpriseError as error:
            return " ".join(str(error).split())
        return ""

    async def _units_again(self, plans: int, surprise: str) -> list[PlanUnit]:
        """The steps of another plan; none without `replans`, or if nothing helps."""
        left = self._max_moves - len(self._done)
        if not self._replans or self._stopping.reason or left <= 0 or plans > self._max_moves:
            return []
        self._say(f"surprise: {surprise}")
        plan = self._make_planner(await self._server.read()).plan()
        if not plan.moves:
            return []
        self._say(f"planned again: {plan.figure_before:g} before, {plan.figure_after:g} after")
        return plan.units

    async def _open_again(self, units: Sequence[PlanUnit]) -> list[str]:
        """Open nodes that this run closed, if it ends before these steps; not those it emptied."""
        if not units:
            return []
        left = {step.node for unit in units for step in unit}
        emptied = {move.node for move in self._done} - left
        opened_now: list[str] = []
        for name in [name for name in self._closed if name not in emptied]:
            try:
                await self._server.close_node(name, is_closed=False)
            except ApiError as error:
                self._say(f"could not open {name} again: {error}")
                continue
            self._closed.remove(name)
            opened_now.append(name)
            self._say(f"opened {name} again")
        return opened_now

    # --- One step -----------------------------------------------------------------------------

    async def _do(self, units: Sequence[PlanUnit]) -> None:
        unit = units[0]
        pods = [step.pod for step in unit if step.pod is not None]
        if pods:
            await self._wait_turn(len(pods))
            if self._stopping.reason:
                raise SurpriseError(self._stopping.reason)
        steps = [step for each in units for step in each]
        for _ in range(READ_AGAIN):
            # Figures are those of the plan, which began while these nodes were open.
            read = opened(await self._server.read(), self._closed)
            problem = difference(self._make_planner(read), steps, closed=self._closed)
            if problem:
                raise SurpriseError(problem)
            if not pods:
                await self._set_closed(unit[0])
                return
            versions = versions_of(read)
            is_surge = unit[0].action == "surge"
            if await (
                self._surge(unit[0], versions) if is_surge else self._move(unit, pods, versions)
            ):
                return
        raise SurpriseError(f"pod {pods[0].key} changes each time the cluster is read")

    async def _wait_turn(self, count: int) -> None:
        if not self._pacing.allows(count):
            raise SurpriseError(f"a gang of {count} pods is more than may be evicted in an hour")
        is_first = True
        while (wait_s := self._pacing.wait_s(count)) > 0 and not self._stopping.reason:
            if is_first and wait_s > POLL_S:
                self._say(f"the next eviction may be in {wait_s:.0f} s")
            is_first = False
            await self._sleep(min(wait_s, POLL_S))

    async def _set_closed(self, step: PlanStep) -> None:
        is_closed = step.action == "cordon"
        await self._server.close_node(step.node, is_closed=is_closed)
        if is_closed:
            self._closed.append(step.node)
        elif step.node in self._closed:
            self._closed.remove(step.node)
        self._say(f"{step.action}: {step.node}")

    async def _surge(self, step: PlanStep, versions: Mapping[str, str]) -> bool:
        """Bring up a pod, then end another; False, and nothing done, if one has changed."""
        assert step.pod is not None, step
        surge = SurgeRun(self._server, self._clock, self._sleep, self._stopping, step)
        started_s = self._clock.monotonic_s()
        try:
            if not await surge.run(versions):
                return False
        finally:
            if surge.is_done:
                self._pacing.evicted()
                took_s = round(self._clock.monotonic_s() - started_s, 1)
                self._done.append(
                    DoneMove(
                        pod=step.pod.key,
                        node=step.node,
                        foretold=step.to_node,
                        actual=surge.node,
                        took_s=took_s,
                    )
                )
        self._say(f"surge: {step.pod.key} on {step.node} ended, its replacement is on {surge.node}")
        return True

    async def _move(
        self, unit: PlanUnit, pods: Sequence[EvictedPod], versions: Mapping[str, str]
    ) -> bool:
        """Evict a pod, or a gang, and see to what replaces it; False, and nothing done, if a pod
        has changed."""
        before = {each.metadata.uid: each for each in await self._server.pods(pods[0].namespace)}
        owners = _owners_of(pods, before, versions)
        if owners is None:
            return False
        started_s = self._clock.monotonic_s()
        if len(pods) > 1:
            # A refusal is found before the first member is gone.
            for pod in pods:
                await self._evict(pod, "", is_dry=True)
        actual, evicted = ["" for _ in pods], set[str]()
        is_ready = False
        try:
            if not await self._evict(pods[0], versions.get(pods[0].uid, "")):
                return False
            await self._evict_rest(unit, pods, before, evicted)
            actual, is_ready = await self._replaced(unit, pods, owners, set(before))
        finally:
            took_s = round(self._clock.monotonic_s() - started_s, 1)
            self._done += [
                DoneMove(
                    pod=pod.key, node=step.node, foretold=step.to_node, actual=node, took_s=took_s
                )
                for pod, step, node in zip(pods, unit, actual, strict=True)
                if pod.uid in evicted
            ]
        for pod, step, node in zip(pods, unit, actual, strict=True):
            if node != step.to_node:
                raise SurpriseError(
                    f"the replacement of {pod.key} is on {node or 'no node'}, foretold was "
                    f"{step.to_node}"
                )
        if not is_ready:
            raise SurpriseError(
                f"the replacement of {pods[0].key} on {actual[0]} is not ready in time"
            )
        for pod, step, node in zip(pods, unit, actual, strict=True):
            self._say(f"evict: {pod.key} from {step.node}, its replacement is on {node}")
        return True

    async def _evict_rest(
        self,
        unit: PlanUnit,
        pods: Sequence[EvictedPod],
        before: Mapping[str, Pod],
        evicted: set[str],
    ) -> None:
        """After the first pod was evicted the others of its gang; enters the UIDs of all that were,
        also if one of them fails."""
        evicted.add(pods[0].uid)
        # A gang of which a member is gone is evicted whole, also if others have changed. All at
        # once: no member shall be gone before the last one is evicted.
        results = await asyncio.gather(
            *(self._evict(pod, "") for pod in pods[1:]), return_exceptions=True
        )
        evicted.update(pod.uid for pod, done in zip(pods[1:], results, strict=True) if done is True)
        for pod, step in zip(pods, unit, strict=True):
            if pod.uid in evicted:
                text = f"Evicted; its replacement is expected on node {step.to_node}"
                self._server.note(before[pod.uid], "Rebalance", text)
                self._pacing.evicted()
        for error in results:
            if isinstance(error, BaseException):
                raise error

    async def _evict(self, pod: EvictedPod, version: str, *, is_dry: bool = False) -> bool:
        """False if the pod is not in this version any more."""
        end_s = self._clock.monotonic_s() + BUDGET_PATIENCE_S
        while True:
            try:
                await self._server.evict(pod, version, is_dry=is_dry)
                return True
            except ConflictError as error:
                if error.is_replaced:
                    raise SurpriseError(f"pod {pod.key} is gone: {error}") from error
                return False
            except NotFoundError as error:
                raise SurpriseError(f"pod {pod.key} is gone: {error}") from error
            except ApiError as error:
                if error.code != _TOO_MANY_REQUESTS:
                    raise
                if self._clock.monotonic_s() >= end_s or self._stopping.reason:
                    raise SurpriseError(
                        f"the eviction of {pod.key} was refused: {error}"
                    ) from error
            await self._sleep(POLL_S)

    async def _replaced(
        self,
        unit: PlanUnit,
        pods: Sequence[EvictedPod],
        owners: Mapping[str, str],
        known: Container[str],
    ) -> tuple[list[str], bool]:
        """The node of each replacement, and whether all are ready and the pods are gone.

        At once if one is on a node where none is expected; empty for those without one in time.
        """
        patience_s = unit[0].ends_at_s - unit[0].starts_at_s + PATIENCE_S
        end_s = self._clock.monotonic_s() + patience_s
        gone = {pod.uid for pod in pods}
        expected = [(owners[pod.uid], step.to_node) for pod, step in zip(pods, unit, strict=True)]
        nodes = ["" for _ in pods]
        while self._clock.monotonic_s() < end_s:
            now = await self._server.pods(pods[0].namespace)
            new = [each for each in now if is_new(each, owners.values(), known)]
            found = [(owner_uid(each), each.spec.node_name) for each in new]
            nodes = _matched(expected, [each for each in found if each[1]])
            if any(node not in ("", step.to_node) for node, step in zip(nodes, unit, strict=True)):
                return nodes, False
            is_gone = all(each.metadata.uid not in gone for each in now)
            if is_gone and all(nodes) and sum(map(is_ready, new)) >= len(pods):
                return nodes, True
            # An eviction that was begun is seen to its end, also if it is interrupted.
            await self._sleep(POLL_S)
        return nodes, False


def _owners_of(
    pods: Sequence[EvictedPod], found: Mapping[str, Pod], versions: Mapping[str, str]
) -> dict[str, str] | None:
    """The UID of each pod's controller; None if a pod has changed, SurpriseError if one is gone."""
    owners: dict[str, str] = {}
    for pod in pods:
        old = found.get(pod.uid)
        owner = None if old is None else controller_of(old)
        if old is None or owner is None:
            raise SurpriseError(f"pod {pod.key} is gone")
        # The server compares as well, but has then spent the budget for a while.
        if versions.get(pod.uid, "") not in ("", old.metadata.resource_version):
            return None
        owners[pod.uid] = owner.uid
    return owners


def _matched(expected: Sequence[tuple[str, str]], found: Sequence[tuple[str, str]]) -> list[str]:
    """The node of the replacement for each expected pair of owner and node.

    Replacements of one owner are all alike: as many as possible are where they are expected.
    """
    left = Counter(found)
    nodes: list[str] = []
    for pair in expected:
        is_met = left[pair] > 0
        left[pair] -= is_met
        nodes.append(pair[1] if is_met else "")
    for number, (owner, _) in enumerate(expected):
        other = next((pair for pair in left.elements() if pair[0] == owner), None)
        if not nodes[number] and other is not None:
            left[other] -= 1
            nodes[number] = other[1]
    return nodes
