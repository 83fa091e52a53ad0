"""Carries out a plan: a cluster in memory, replicas of the scheduler, and what happens to them."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.resources import PODS
from kubestow.errors import ApiError
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.virtual_time import VirtualClock
from kubestow.simulator.volume_controller import VolumeController
from kubestow.testing.faults.client import Fault
from kubestow.testing.faults.documents import claim_document, node_document, pod_document
from kubestow.testing.faults.invariants import Broken, Invariants, fitting_pods
from kubestow.testing.faults.plan import Plan, PlannedAction, PlannedNode, PlannedPod
from kubestow.testing.faults.replica import Replica
from kubestow.testing.faults.replicas import run_processes

# After the last fault a pod may wait for a backoff of informers, and for the flush of the queue.
SETTLE_LIMIT_S: Final = 1200.0
# It is quiet when nothing was placed for longer than any backoff of a pod.
QUIET_S: Final = 30.0
# After this time every parked pod was tried again: after 5 minutes, looked for every 30 s.
FLUSH_S: Final = 335.0
_NAMESPACE: Final = "default"


class Outcome(NamedTuple):
    """What came of a run."""

    broken: list[Broken]
    bound_count: int
    pending_count: int
    faults: Counter[str]
    exits: Counter[str]
    duration_s: float


def run_plan(plan: Plan) -> Outcome:
    """Carry out a plan and judge it."""
    return run_processes(_run(plan))


async def _run(plan: Plan) -> Outcome:
    return await FaultSimulation(plan).run()


class FaultSimulation:
    def __init__(self, plan: Plan) -> None:
        loop = asyncio.get_running_loop()
        rng = np.random.default_rng([plan.seed, 1])
        self._plan = plan
        self._clock = VirtualClock(loop)
        self.cluster = MemoryCluster(self._clock, seed=plan.seed)
        self._client = MemoryClient(self.cluster)
        self.invariants = Invariants(self.cluster, self._clock)
        self.replicas = {
            name: Replica(
                name,
                self.cluster,
                np.random.default_rng(rng.integers(2**63)),
                self.invariants.binding_sent,
            )
            for name in plan.replicas
        }
        self._faults: Counter[str] = Counter()
        self._actions: dict[str, Callable[[PlannedAction], None]] = {
            "add_node": self._add_node,
            "delete_node": self._delete_node,
            "cordon_node": self._cordon_node,
            "uncordon_node": self._uncordon_node,
            "add_pod": self._add_pod,
            "delete_pod": self._delete_pod,
            "ungate_pod": self._ungate_pod,
            "bind_elsewhere": self._bind_elsewhere,
            "disturb": self._disturb,
            "kill": self._kill,
            "pause": self._pause,
            "cut_off": self._cut_off,
            "move_clock": self._move_clock,
        }
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> Outcome:
        loop = asyncio.get_running_loop()
        self._load_classes()
        controllers = (
            FakeKubelets(self.cluster, self._clock),
            VolumeController(self.cluster),
            *self.replicas.values(),
        )
        self._tasks = [loop.create_task(part.run()) for part in controllers]
        self._tasks.append(loop.create_task(self.invariants.watch_bindings()))
        for action in self._plan.actions:
            await asyncio.sleep(max(action.at_s - loop.time(), 0))
            self._do(action)
        await self._calm_down()
        settled = await self._settle()
        if settled and self._only_flush_helps():
            self._faults["waited for the flush"] += 1
            await asyncio.sleep(FLUSH_S)
            settled = await self._settle()
        self.invariants.judge_end(self.replicas.values(), has_settled=settled)
        outcome = self._outcome(loop.time())
        await self._close()
        return outcome

    # --- carrying out ---

    def _do(self, action: PlannedAction) -> None:
        self._faults[action.what] += 1
        with suppress(ApiError):  # What it names is not there, or is there already.
            self._actions[action.what](action)

    def _add_node(self, action: PlannedAction) -> None:
        assert isinstance(action.value, PlannedNode)
        self.cluster.load([node_document(action.name, action.value)])

    def _delete_node(self, action: PlannedAction) -> None:
        nodes = self.cluster.resources.of_kind("v1", "Node")
        self.cluster.delete(nodes, "", action.name)
        for pod in self._pods_on(action.name):
            # As the collector of pods of lost nodes does.
            self.cluster.delete(PODS, _NAMESPACE, pod, grace_period_s=0)

    def _cordon_node(self, action: PlannedAction) -> None:
        self._patch_node(action.name, {"spec": {"unschedulable": True}})

    def _uncordon_node(self, action: PlannedAction) -> None:
        self._patch_node(action.name, {"spec": {"unschedulable": None}})

    def _add_pod(self, action: PlannedAction) -> None:
        assert isinstance(action.value, PlannedPod)
        if action.value.has_volume:
            claim = claim_document(action.name)
            claims = self.cluster.resources.of_kind("v1", "PersistentVolumeClaim")
            if self.cluster.find(claims, _NAMESPACE, action.name) is None:
                self.cluster.load([claim])
        self.cluster.load([pod_document(action.name, action.value)])

    def _delete_pod(self, action: PlannedAction) -> None:
        self.cluster.delete(PODS, _NAMESPACE, action.name)

    def _ungate_pod(self, action: PlannedAction) -> None:
        patch: JsonObject = {"spec": {"schedulingGates": None}}
        self.cluster.patch(PODS, _NAMESPACE, action.name, patch, "merge")

    def _bind_elsewhere(self, action: PlannedAction) -> None:
        assert isinstance(action.value, str)
        self.invariants.excuse(action.value)
        self.cluster.bind(_NAMESPACE, action.name, action.value)

    # --- disturbing ---

    def _disturb(self, action: PlannedAction) -> None:
        assert isinstance(action.value, Fault)
        link, fault = self.replicas[action.name].link, action.value
        link.rates[fault] = action.rate
        self._later(action.seconds, lambda: link.rates.pop(fault, None))

    def _kill(self, action: PlannedAction) -> None:
        self.replicas[action.name].kill()

    def _pause(self, action: PlannedAction) -> None:
        replica = self.replicas[action.name]
        replica.pause()
        self._later(action.seconds, replica.resume)

    def _cut_off(self, action: PlannedAction) -> None:
        link = self.replicas[action.name].link
        link.cut()
        self._later(action.seconds, link.mend)

    def _move_clock(self, action: PlannedAction) -> None:
        assert isinstance(action.value, float)
        self.replicas[action.name].clock.move(action.value)

    def _later(self, seconds: float, call: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_later(seconds, call)

    # --- the end ---

    async def _calm_down(self) -> None:
        """End all faults."""
        for replica in self.replicas.values():
            self._faults.update({fault.name: count for fault, count in replica.link.counts.items()})
            replica.link.rates.clear()
            replica.link.mend()
            replica.resume()

    async def _settle(self) -> bool:
        """Wait until nothing is left to do; False if that takes too long."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + SETTLE_LIMIT_S
        placed: set[tuple[str, str]] = set()
        since_s = loop.time()
        while loop.time() < deadline_s:
            await asyncio.sleep(1.0)
            now = {(pod.metadata.uid, pod.spec.node_name) for pod in self._pods()}
            if now != placed or not self.invariants.is_quiet(self.replicas.values()):
                placed, since_s = now, loop.time()
            elif loop.time() - since_s >= QUIET_S:
                return True
        return False

    def _only_flush_helps(self) -> bool:
        """Whether some pods fit though they wait, all of them such as upstream forgets."""
        processes = [replica.process for replica in self.replicas.values() if replica.is_leading]
        found = [pod for process in processes if process for pod in fitting_pods(process.scheduler)]
        return bool(found) and all(pod.waits_for_flush for pod in found)

    async def _close(self) -> None:
        for replica in self.replicas.values():
            replica.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _outcome(self, duration_s: float) -> Outcome:
        pods = self._pods()
        exits = Counter(str(code) for each in self.replicas.values() for code in each.exit_codes)
        return Outcome(
            broken=list(self.invariants.broken),
            bound_count=sum(1 for pod in pods if pod.spec.node_name),
            pending_count=sum(1 for pod in pods if not pod.spec.node_name),
            faults=self._faults,
            exits=exits,
            duration_s=duration_s,
        )

    # --- the cluster ---

    def _load_classes(self) -> None:
        self.cluster.load(
            [
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": "late"},
                    "provisioner": "example.com/disks",
                    "volumeBindingMode": "WaitForFirstConsumer",
                }
            ]
        )

    def _patch_node(self, name: str, patch: JsonObject) -> None:
        self.cluster.patch(self.cluster.resources.of_kind("v1", "Node"), "", name, patch, "merge")

    def _pods(self) -> list[Pod]:
        pods = (stored.typed for stored in self.cluster.objects_of(PODS))
        return [pod for pod in pods if isinstance(pod, Pod)]

    def _pods_on(self, node_name: str) -> list[str]:
        return [pod.metadata.name for pod in self._pods() if pod.spec.node_name == node_name]
