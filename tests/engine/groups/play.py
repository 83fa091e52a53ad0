"""A scheduler with groups on a small cluster, played round by round in virtual time."""

import asyncio
from collections.abc import Iterable

from kubestow.api.decode import to_document
from kubestow.api.device import DeviceClass, ResourceClaim, ResourceSlice
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_group import PodGroup
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubestow.api.workload import PodDisruptionBudget
from kubestow.simulator.conformance.runs.replay import serve_all
from kubestow.simulator.conformance.runs.state import state_of
from kubestow.simulator.conformance.runs.stepped_loop import SteppedLoop
from kubestow.simulator.conformance.runs.world import EPOCH_NS, RunWorld

KINDS = {
    Node: "nodes",
    Pod: "pods",
    PodGroup: "podgroups",
    PodDisruptionBudget: "pdbs",
    DeviceClass: "deviceclasses",
    ResourceClaim: "resourceclaims",
    ResourceSlice: "resourceslices",
    StorageClass: "storageclasses",
    PersistentVolume: "pvs",
    PersistentVolumeClaim: "pvcs",
}
GANG = ("GenericWorkload", "GangScheduling")
TAS = "TopologyAwareWorkloadScheduling"
WAP = "WorkloadAwarePreemption"
TAIL = (
    ", waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)
FAIL_RESERVE = {"plugins": {"reserve": {"enabled": [{"name": "FailReserve"}]}}}


def own_mode(**args: object) -> JsonObject:
    """A profile with the plugin Gangs; `args` as in a configuration file."""
    return {
        "plugins": {"multiPoint": {"enabled": [{"name": "Gangs"}]}},
        "pluginConfig": [{"name": "Gangs", "args": args}],
    }


class Play:
    """Use it as a context manager: `with Play(...) as play`."""

    def __init__(
        self,
        *objects: ApiObject,
        gates: Iterable[str] = GANG,
        config: JsonObject | None = None,
        deletion: str = "remove",
        profiles: Iterable[JsonObject] = (),
    ) -> None:
        self._objects = objects
        self._scenario = {
            "gates": list(gates),
            "config": config or {},
            "deletion": deletion,
            "otherProfiles": list(profiles),
        }
        self._names: dict[str, str] = {}

    def __enter__(self) -> "Play":
        self._loop = SteppedLoop(start_s=0.5)
        self._runner = asyncio.Runner(loop_factory=lambda: self._loop)
        try:
            self._runner.run(self._begin())
        except BaseException:
            self._runner.close()
            raise
        for each in self._objects:
            self.create(each)
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._end())
        self._runner.close()

    async def _begin(self) -> None:
        self.world = RunWorld(self._scenario, self._loop)
        self._timers = asyncio.create_task(self.world.queue.run_timers())
        await self._loop.settle()

    async def _end(self) -> None:
        self.world.queue.close()
        await self._timers
        await self.world.scheduler.tasks.drain(0)

    # --- what the cluster does ---

    def create(self, *objects: ApiObject) -> None:
        for each in objects:
            kind = KINDS[type(each)]
            document = to_document(each)
            if isinstance(each, Pod):
                self._names[each.metadata.uid] = f"{each.metadata.namespace}/{each.metadata.name}"
                document["metadata"]["generation"] = 1
            self._runner.run(self._create(kind, document))

    def create_document(self, kind: str, document: JsonObject) -> None:
        """An object of any kind, named as in recordings."""
        self._runner.run(self._create(kind, document))

    async def _create(self, kind: str, document: JsonObject) -> None:
        self.world.create(kind, document)
        await self._serve()

    def patch(self, kind: str, name: str, patch: JsonObject) -> None:
        async def work() -> None:
            self.world.patch(kind, f"default/{name}", patch)
            await self._serve()

        self._runner.run(work())

    def delete(self, kind: str, name: str) -> None:
        async def work() -> None:
            self.world.delete(kind, f"default/{name}")
            await self._serve()

        self._runner.run(work())

    def advance(self, seconds: int) -> JsonObject:
        """Let time pass; what happened outside of rounds."""

        async def work() -> JsonObject:
            for _ in range(seconds):
                await self._loop.run_until(self._loop.time() + 1)
                await self._serve()
            return self.world.take()

        return self._runner.run(work())

    async def _serve(self) -> None:
        await serve_all(self.world, self._loop)

    # --- what the scheduler does ---

    def round(self) -> JsonObject:
        """One cycle and everything that follows from it."""

        async def work() -> JsonObject:
            self.world.take()
            queued_pod = self.world.queue.pop_nowait()
            assert queued_pod is not None, "no pod is ready to be tried"
            with self.world.cycle():
                self.world.scheduler.schedule_one(queued_pod)
            await self._serve()
            return {"popped": queued_pod.pod_info.name, **self.world.take()}

        return self._runner.run(work())

    # --- reading ---

    @property
    def state(self) -> JsonObject:
        return state_of(self.world.scheduler, self._names, EPOCH_NS)

    def nodes_of(self, *names: str) -> list[str]:
        """Where these pods run; empty for pods without a node."""
        resource = self.world.resource("pods")
        found = [self.world.cluster.find(resource, "default", name) for name in names]
        return [
            "gone" if each is None else each.document["spec"].get("nodeName", "") for each in found
        ]

    def nominated(self, name: str) -> str:
        stored = self.world.cluster.get(self.world.resource("pods"), "default", name)
        return stored.document.get("status", {}).get("nominatedNodeName", "")

    def condition(self, name: str = "g") -> tuple[str, str, str] | None:
        """Status, reason and message of the group's condition."""
        stored = self.world.cluster.get(self.world.resource("podgroups"), "default", name)
        for condition in stored.typed.status.conditions:  # type: ignore[attr-defined]
            return condition.status, condition.reason, condition.message
        return None


def messages(result: JsonObject) -> dict[str, str]:
    """Why members failed in a round, by name."""
    return {
        failure["pod"].split("/")[1]: failure["message"] for failure in result.get("failures", ())
    }


def order(result: JsonObject) -> list[str]:
    return [name.split("/")[1] for name in result["pods"]]


def evicted(result: JsonObject) -> list[str]:
    return [
        write["name"].split("/")[1]
        for write in result.get("writes", ())
        if write["verb"] == "delete"
    ]
