"""A cluster with a scheduler of v1.37 whose rounds and time a test moves."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.cluster.resources import PODS
from kubestow.editions import edition_named
from kubestow.simulator.conformance.runs.replay import START_S, serve_all
from kubestow.simulator.conformance.runs.stepped_loop import SteppedLoop
from kubestow.simulator.conformance.runs.world import RunWorld

API = "scheduling.k8s.io/v1beta1"


class Cluster:
    """A cluster with a scheduler of v1.37 whose rounds and time the test moves."""

    def __init__(self, loop: SteppedLoop, gates: tuple[str, ...]) -> None:
        scenario: JsonObject = {"gates": list(gates), "deletion": "remove"}
        self._loop = loop
        self.world = RunWorld(scenario, loop, edition_named("v1.37"))
        self.failures: list[tuple[str, str]] = []

    def node(self, name: str, cpu: str) -> None:
        amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
        status = {"allocatable": amounts, "capacity": amounts}
        self._create("nodes", "v1", "Node", name, status=status)

    def gang(self, name: str, min_count: int, **spec: Any) -> None:
        policy = {"gang": {"minCount": min_count}}
        self._create("podgroups", API, "PodGroup", name, spec={"schedulingPolicy": policy, **spec})

    def pod(self, name: str, cpu: str, group: str = "", node: str = "", priority: int = 0) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        spec: JsonObject = {
            "schedulerName": "default-scheduler",
            "containers": [container],
            "priority": priority,
        }
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        if node:
            spec["nodeName"] = node
        self._create("pods", "v1", "Pod", name, spec=spec)

    def _create(self, kind: str, version: str, name_of_kind: str, name: str, **parts: Any) -> None:
        metadata: JsonObject = {"name": name, "uid": f"uid-{kind}-{name}", "generation": 1}
        if kind != "nodes":
            metadata["namespace"] = "default"
        head = {"apiVersion": version, "kind": name_of_kind, "metadata": metadata}
        self.world.create(kind, {**head, **parts})

    async def round(self) -> str:
        """One round; what was popped, empty if there was nothing."""
        popped = self.world.queue.pop_nowait()
        if popped is None:
            return ""
        with self.world.cycle():
            self.world.scheduler.schedule_one(popped)
        await serve_all(self.world, self._loop)
        taken = self.world.take()
        self.failures = [(each["pod"], each["message"]) for each in taken.get("failures", ())]
        return popped.title

    async def advance(self, seconds: int) -> None:
        for _ in range(seconds):
            await self._loop.run_until(self._loop.time() + 1)
            await serve_all(self.world, self._loop)

    def pods(self) -> Iterator[Pod]:
        for stored in self.world.cluster.objects_of(PODS):
            assert isinstance(stored.typed, Pod)
            yield stored.typed

    def bound(self) -> set[str]:
        return {pod.metadata.name for pod in self.pods() if pod.spec.node_name}


def play_run(work: Callable[[Cluster], Coroutine[Any, Any, None]], *gates: str) -> None:
    async def run(loop: SteppedLoop) -> None:
        cluster = Cluster(loop, gates)
        timers = asyncio.create_task(cluster.world.queue.run_timers())
        try:
            await work(cluster)
        finally:
            cluster.world.queue.close()
            await timers

    with asyncio.Runner(loop_factory=lambda: SteppedLoop(start_s=START_S)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SteppedLoop)
        runner.run(run(loop))
