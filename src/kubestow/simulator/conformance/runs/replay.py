"""Replays one recorded run, step by step, and compares after each step and each round.

Later rounds depend on earlier ones, so the replay of a run ends with the first that differs.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from kubestow.api.group import group_key_of
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, is_terminating, key_of
from kubestow.api.pod_group import UpstreamPodGroup
from kubestow.cluster.resources import PODS
from kubestow.editions import CORE
from kubestow.editions.edition import Edition
from kubestow.simulator.conformance.report import Report
from kubestow.simulator.conformance.runs.api import shown_condition, shown_group_condition
from kubestow.simulator.conformance.runs.compare import RunComparer
from kubestow.simulator.conformance.runs.state import state_of
from kubestow.simulator.conformance.runs.stepped_loop import SteppedLoop
from kubestow.simulator.conformance.runs.volumes import bind_volumes
from kubestow.simulator.conformance.runs.world import EPOCH_NS, KINDS, RunWorld, StepError
from kubestow.simulator.recorded_parts import PODS as POD_COUNT

# The recorder's clock stands between two full seconds.
START_S: Final = 0.5


def replay_run(scenario: JsonObject, report: Report, *, edition: Edition = CORE) -> None:
    """Replay one run and count what differs."""
    with asyncio.Runner(loop_factory=lambda: SteppedLoop(start_s=START_S)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SteppedLoop)
        runner.run(_Replay(scenario, report, loop, edition).run())


async def serve_all(world: RunWorld, loop: SteppedLoop) -> None:
    """Serve writes, and let volumes be bound, until there is nothing left to do.

    As in the recording, a task goes on with the answer, to its next write, before the event of its
    write is handled.
    """
    await loop.settle()
    while world.api.serve_next() or bind_volumes(world):
        await loop.settle()
        world.deliver()
        await loop.settle()


class _Replay:
    def __init__(
        self, scenario: JsonObject, report: Report, loop: SteppedLoop, edition: Edition
    ) -> None:
        self._edition = edition
        self._scenario = scenario
        self._report = report
        self._loop = loop
        self._pod_names: dict[str, str] = {}
        self._node_order: list[str] = []

    async def run(self) -> None:
        scenario = self._scenario
        self._world = world = RunWorld(scenario, self._loop, self._edition)
        timers = asyncio.create_task(world.queue.run_timers())
        try:
            for kind in KINDS:
                for document in scenario["objects"].get(kind, ()):
                    self._do({"do": "create", "kind": kind, "object": document})
            await self._loop.settle()
            comparer = RunComparer(self._report, scenario, "initial")
            comparer.compare_state(scenario["initial"].get("state", {}), self._state())
            for number, (step, expected) in enumerate(
                zip(scenario["steps"], scenario["expected"], strict=True)
            ):
                if not comparer.is_equal:
                    return
                comparer = RunComparer(self._report, scenario, _title(number, step))
                await self._replay_step(step, expected, comparer)
            if comparer.is_equal:
                comparer = RunComparer(self._report, scenario, "final")
                comparer.compare_final(scenario["final"]["pods"], self._pods())
                comparer.compare_final(scenario["final"].get("podgroups", {}), self._groups())
        finally:
            world.queue.close()
            await timers

    # --- steps ---

    async def _replay_step(
        self, step: JsonObject, expected: JsonObject, comparer: RunComparer
    ) -> None:
        world, got = self._world, dict[str, Any]()
        match step["do"]:
            case "run":
                await self._run_rounds(step["cycles"], expected, comparer)
                if not comparer.is_equal:
                    return
            case "advance":
                for _ in range(step["seconds"]):
                    await self._loop.run_until(self._loop.time() + 1)
                    await self._serve_all()
            case "start":
                for started in expected.get("started", ()):
                    patch = {"status": {"startTime": started["startTime"]}}
                    world.patch("pods", started["pod"], patch)
            case "reap":
                if reaped := world.reap():
                    got["reaped"] = reaped
            case "hold":
                world.api.held.add(step["name"])
            case "release":
                world.api.held.discard(step["name"])
                await self._serve_all()
            case "during":
                world.during[step["name"]] = step["steps"]
            case "failBind":
                world.api.failing_bindings[step["name"]] = step["times"]
            case "failReserve":
                world.failing_reserves[step["name"]] = step["times"]
            case _:
                if error := self._do(step):
                    got["error"] = error
        await self._serve_all()
        got["at"] = self._loop.time()
        if outside := world.take():
            got["async"] = outside
        comparer.compare_step(expected, got)
        comparer.compare_state(expected.get("state", {}), self._state())

    def _do(self, step: JsonObject) -> str:
        """Do a step that changes an object; the error if it cannot be done."""
        try:
            self._world.do(step)
        except StepError as error:
            return str(error)
        return ""

    # --- rounds ---

    async def _run_rounds(self, cycles: int, expected: JsonObject, comparer: RunComparer) -> None:
        recorded: list[JsonObject] = expected.get("cycles", [])
        rounds = 0
        for _ in range(cycles):
            got = await self._round()
            if got is None:
                break
            rounds += 1
            self._report.counts(comparer.family, POD_COUNT).compared += 1
            if rounds > len(recorded):
                break
            comparer.compare_round(rounds, recorded[rounds - 1], got)
            if not comparer.is_equal:
                return
        comparer.compare_round_count(len(recorded), rounds)

    async def _round(self) -> JsonObject | None:
        """One round of the scheduler; None if there is nothing to pop."""
        world = self._world
        source = "active" if world.queue.statistics().active else "backoff"
        queued_pod = world.queue.pop_nowait()
        if queued_pod is None:
            return None
        will_interrupt = queued_pod.key in world.during
        with world.cycle():
            world.scheduler.schedule_one(queued_pod)
        await self._serve_all()
        got: JsonObject = {"popped": queued_pod.title, "from": source, **world.take()}
        if got["popped"].startswith("compositepodgroup "):
            got["composite"] = True
        if will_interrupt and queued_pod.key not in world.during:
            got["during"] = queued_pod.key
        order = list(world.scheduler.snapshot.names)
        if order != self._node_order:
            got["nodeOrder"] = self._node_order = order
        got["state"] = self._state()
        return got

    async def _serve_all(self) -> None:
        await serve_all(self._world, self._loop)

    # --- reading ---

    def _state(self) -> JsonObject:
        for pod in self._all_pods():
            self._pod_names[pod.metadata.uid] = key_of(pod)
        named = {key for pod in self._all_pods() if (key := group_key_of(pod)) is not None}
        return state_of(self._world.scheduler, self._pod_names, EPOCH_NS, named)

    def _pods(self) -> JsonObject:
        return {key_of(pod): _shown(pod) for pod in self._all_pods()}

    def _groups(self) -> JsonObject:
        """The conditions of all groups, by name."""
        groups: JsonObject = {}
        for stored in self._world.cluster.objects_of(self._world.resource("podgroups")):
            assert isinstance(stored.typed, UpstreamPodGroup)
            conditions = [shown_group_condition(each) for each in stored.typed.status.conditions]
            groups["/".join(stored.key)] = conditions
        return {name: conditions for name, conditions in groups.items() if conditions}

    def _all_pods(self) -> Iterator[Pod]:
        for stored in self._world.cluster.objects_of(PODS):
            assert isinstance(stored.typed, Pod)
            yield stored.typed


def _shown(pod: Pod) -> JsonObject:
    """A pod at the end, as the recording shows it; empty parts are left out."""
    conditions = [shown_condition(condition) for condition in pod.status.conditions]
    for condition in conditions:
        if condition["status"] == "True" and condition["type"] == "PodScheduled":
            # The recorder's API server does not write it when it binds a pod.
            condition.pop("observedGeneration", None)
    parts: JsonObject = {
        "node": pod.spec.node_name,
        "nominatedNodeName": pod.status.nominated_node_name,
        "conditions": conditions,
        "deleting": is_terminating(pod),
    }
    return {key: value for key, value in parts.items() if value}


def _title(number: int, step: JsonObject) -> str:
    name = step["object"]["metadata"]["name"] if "object" in step else step.get("name", "")
    return f"step {number}: {step['do']} {name}".rstrip()
