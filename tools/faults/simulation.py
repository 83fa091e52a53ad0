"""Carries out a plan: a cluster in memory, replicas of the scheduler, and what happens to them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from traceback import format_exception
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions import edition_named
from kubestow.engine.decision import Decision
from kubestow.engine.scheduler import Scheduler
from kubestow.errors import ApiError
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.virtual_time import VirtualClock
from tools.faults.coverage import (
    PROCESS_ACTIONS,
    Met,
    PodState,
    pod_states,
    replica_states,
)
from tools.faults.documents import (
    claim_document,
    class_document,
    group_document,
    node_document,
    pod_document,
    priority_class_document,
)
from tools.faults.fault import Fault, FaultRates, Point
from tools.faults.gangs import Gangs
from tools.faults.invariants import Broken, Invariants
from tools.faults.moments import Moment, Moments, Reached, Surroundings
from tools.faults.plan import AT_ONCE, CLUSTER, EVERY, LATE, Plan
from tools.faults.planned import (
    PlannedAction,
    PlannedGroup,
    PlannedNode,
    PlannedPod,
)
from tools.faults.provisioner import FaultyVolumeController
from tools.faults.quiet import Quiet
from tools.faults.replica import Replica
from tools.faults.replicas import run_processes
from tools.faults.wire_server import WireServer

# After the last fault a pod may wait for a backoff of informers, and for the flush of the queue.
SETTLE_LIMIT_S: Final = 1200.0
# It is quiet when nothing was placed for longer than any backoff of a pod.
QUIET_S: Final = 30.0
# After this time every parked pod was tried again: after 5 minutes, looked for every 30 s, and a
# backoff.
FLUSH_S: Final = 345.0
# How many changes of a kind the server keeps: a list that takes long can be too old for a watch.
KEPT_CHANGES: Final = 200
# How long a strike pauses a replica, or cuts it off: within its lease, or beyond.
STRIKE_PAUSES_S: Final = (4.0, 20.0)
# When pods that were bound to a node after it was deleted are deleted, too.
COLLECT_S: Final = 20.0
# A group that does not fit is tried again without a pause (spec 11 §5.3): time would not advance.
# So there is a pause after each: all groups have their turn in less than the longest
# backoff, else they would leave no turn to pods of lower priority.
GROUPS_TURN_S: Final = 8.0
BOOKMARK_INTERVAL_S: Final = 60.0
_NAMESPACE: Final = "default"


class Outcome(NamedTuple):
    """What came of a run."""

    broken: list[Broken]
    bound_count: int
    pending_count: int
    faults: Counter[str]
    met: Counter[Met]
    exits: Counter[str]
    gangs: Counter[str]
    duration_s: float


def failed(invariant: str, text: str) -> Outcome:
    """The outcome of a run that has no other one."""
    nothing: Counter[str] = Counter()
    broken = [Broken(invariant, 0.0, text)]
    return Outcome(broken, 0, 0, nothing, Counter(), nothing, nothing, 0.0)


def run_plan(plan: Plan) -> Outcome:
    """Carry out a plan and judge it, also if an error ends the run."""
    try:
        return run_processes(_run(plan))
    except Exception as error:
        return failed("the run ends", "".join(format_exception(error)))


async def _run(plan: Plan) -> Outcome:
    return await FaultSimulation(plan).run()


class FaultSimulation:
    def __init__(self, plan: Plan) -> None:
        loop = asyncio.get_running_loop()
        rng = np.random.default_rng([plan.seed, 1])
        self._plan = plan
        self._context = copy_context()  # of no process
        self._is_calm = False
        self._rng = rng
        self._clock = VirtualClock(loop)
        edition = edition_named(plan.setup.edition)
        gates = FeatureGates(dict.fromkeys(plan.setup.gates, True), edition)
        self.cluster = MemoryCluster(
            self._clock, seed=plan.seed, history_max=KEPT_CHANGES, gates=gates
        )
        self.invariants = Invariants(self.cluster, self._clock)
        self.gangs = Gangs(self.cluster, self.invariants.report) if plan.setup.gates else None
        self._wire = WireServer(self.cluster, self._clock) if plan.setup.uses_wire else None
        self._moments = Moments()
        self._rates = FaultRates(self._new_rng(), self._cluster_fault)
        self.replicas = {name: self._replica(name) for name in plan.replicas}
        self._quiet = Quiet(
            self.cluster, self.invariants.report, tuple(self.replicas.values()), self.gangs
        )
        self._met: Counter[Met] = Counter()
        self._faults: Counter[str] = Counter()
        self._actions: dict[str, Callable[[PlannedAction], None]] = {
            "add_node": self._add_node,
            "delete_node": self._delete_node,
            "cordon_node": self._cordon_node,
            "uncordon_node": self._uncordon_node,
            "add_group": self._add_group,
            "add_pod": self._add_pod,
            "delete_pod": self._delete_pod,
            "ungate_pod": self._ungate_pod,
            "bind_elsewhere": self._bind_elsewhere,
            "disturb": self._disturb,
            "kill": self._kill,
            "pause": self._pause,
            "cut_off": self._cut_off,
            "move_clock": self._move_clock,
            "strike": self._strike,
        }
        self._tasks: list[asyncio.Task[None]] = []

    def _new_rng(self) -> np.random.Generator:
        return np.random.default_rng(self._rng.integers(2**63))

    def _replica(self, name: str) -> Replica:
        faults = FaultRates(self._new_rng(), partial(self._replica_fault, name))
        around = Surroundings(name, faults, self._moments)
        groups = sum(action.what == "add_group" for action in self._plan.actions)
        return Replica(
            name,
            self.cluster,
            self._wire,
            self._plan.setup,
            around,
            self,
            group_pause_s=GROUPS_TURN_S / max(groups, 1),
        )

    async def run(self) -> Outcome:
        loop = asyncio.get_running_loop()
        self._load_classes()
        controllers = [
            FakeKubelets(self.cluster, self._clock).run(),
            FaultyVolumeController(self.cluster, self._rates).run(),
            self.invariants.watch_bindings(),
            self._send_bookmarks(),
        ]
        if self.gangs is not None:
            controllers.append(self.gangs.watch_deletions())
        self._tasks = [loop.create_task(work) for work in controllers]
        await asyncio.sleep(0)
        self._quiet.note_own_watches()
        self._tasks += [loop.create_task(each.run()) for each in self.replicas.values()]
        for action in self._plan.actions:
            await asyncio.sleep(max(action.at_s - loop.time(), 0))
            self._do(action)
        await self._calm_down()
        settled = await self._settle()
        if settled and (attempts := self._quiet.attempts()):
            self._quiet.judge_forgotten(is_before_flush=True)
            await asyncio.sleep(FLUSH_S)
            settled = await self._settle()
            self._quiet.judge_attempts(attempts)
        self._quiet.judge(has_settled=settled)
        outcome = self._outcome(loop.time())
        await self._close()
        return outcome

    async def _send_bookmarks(self) -> None:
        while True:
            await asyncio.sleep(BOOKMARK_INTERVAL_S)
            self.cluster.send_bookmarks()

    # --- carrying out ---

    def _do(self, action: PlannedAction) -> None:
        self._faults[action.what] += 1
        if action.what in PROCESS_ACTIONS:
            replica = self.replicas[action.name]
            self._note(action.what, replica_states(replica.process, replica.link))
        with suppress(ApiError):  # What it names is not there, or is there already.
            self._actions[action.what](action)

    def _add_node(self, action: PlannedAction) -> None:
        assert isinstance(action.value, PlannedNode)
        self.cluster.load([node_document(action.name, action.value)])

    def _delete_node(self, action: PlannedAction) -> None:
        self._remove_node(action.name)

    def _remove_node(self, name: str) -> None:
        self._note_pods("delete_node", self._pods_meant_for(name))
        self.cluster.delete(NODES, "", name)
        self._collect_pods(name)
        # Bindings that were under way arrive later.
        self._later(COLLECT_S, partial(self._collect_pods, name))

    def _collect_pods(self, node_name: str) -> None:
        """Delete the pods of a node that is gone, as the controller for that does."""
        if self.cluster.find(NODES, "", node_name) is None:
            for pod in self._pods_on(node_name):
                self.cluster.delete(PODS, _NAMESPACE, pod, grace_period_s=0)

    def _cordon_node(self, action: PlannedAction) -> None:
        self._patch_node(action.name, {"spec": {"unschedulable": True}})

    def _uncordon_node(self, action: PlannedAction) -> None:
        self._patch_node(action.name, {"spec": {"unschedulable": None}})

    def _add_group(self, action: PlannedAction) -> None:
        assert isinstance(action.value, PlannedGroup)
        edition = self._plan.setup.edition
        self.cluster.load([group_document(action.name, action.value, edition)])

    def _add_pod(self, action: PlannedAction) -> None:
        assert isinstance(action.value, PlannedPod)
        if class_name := action.value.volume_class:
            claims = PERSISTENT_VOLUME_CLAIMS
            if self.cluster.find(claims, _NAMESPACE, action.name) is None:
                self.cluster.load([claim_document(action.name, class_name)])
        self.cluster.load([pod_document(action.name, action.value)])

    def _delete_pod(self, action: PlannedAction) -> None:
        self._remove_pod(action.name)

    def _remove_pod(self, name: str) -> None:
        self._note_pods("delete_pod", self._pods_named(name))
        self.cluster.delete(PODS, _NAMESPACE, name)

    def _ungate_pod(self, action: PlannedAction) -> None:
        patch: JsonObject = {"spec": {"schedulingGates": None}}
        self.cluster.patch(PODS, _NAMESPACE, action.name, patch, "merge")

    def _bind_elsewhere(self, action: PlannedAction) -> None:
        assert isinstance(action.value, str)
        self._place_elsewhere(action.name, action.value)

    def _place_elsewhere(self, name: str, node_name: str) -> None:
        for pod in self._note_pods("bind_elsewhere", self._pods_named(name)):
            self.member_lost(pod)
            self._quiet.note_bound_elsewhere(pod, node_name)
        self.invariants.excuse(node_name)
        self.cluster.bind(_NAMESPACE, name, node_name)

    # --- disturbing ---

    def _disturb(self, action: PlannedAction) -> None:
        assert isinstance(action.value, Fault)
        fault = action.value
        for rates in self._rates_of(action.name):
            rates.set(fault, action.rate)
            self._later(action.seconds, partial(rates.end, fault))

    def _rates_of(self, target: str) -> list[FaultRates]:
        if target == CLUSTER:
            return [self._rates]
        names = self.replicas.keys() if target == EVERY else (target,)
        return [self.replicas[name].faults for name in names]

    def _kill(self, action: PlannedAction) -> None:
        self.replicas[action.name].kill()

    def _pause(self, action: PlannedAction) -> None:
        replica = self.replicas[action.name]
        # What it is sending arrives when it goes on; by then another one may lead.
        for node_name in replica.link.binding.values():
            self.invariants.excuse(node_name)
        replica.pause()
        self._later(action.seconds, replica.resume)

    def _cut_off(self, action: PlannedAction) -> None:
        link = self.replicas[action.name].link
        link.cut()
        self._later(action.seconds, link.mend)

    def _move_clock(self, action: PlannedAction) -> None:
        assert isinstance(action.value, float)
        self.replicas[action.name].clock.move(action.value)

    def _strike(self, action: PlannedAction) -> None:
        assert isinstance(action.value, str)
        what, delay_s = action.value, action.seconds
        self._moments.arm(
            Moment(action.name),
            lambda reached: self._later(delay_s, partial(self._hit, what, reached)),
        )

    def _hit(self, what: str, reached: Reached) -> None:
        """Do something to the pod, the node or the replica that has reached a moment."""
        if self._is_calm:
            return
        replica = self.replicas[reached.replica]
        pod_name, node_name = reached.pod.metadata.name, reached.node_name
        pause_s = STRIKE_PAUSES_S[int(self._rng.integers(len(STRIKE_PAUSES_S)))]
        by_name: dict[str, Callable[[], object]] = {
            "delete_pod": partial(self._remove_pod, pod_name),
            "delete_node": partial(self._remove_node, node_name),
            "bind_elsewhere": partial(self._place_elsewhere, pod_name, self._some_node()),
            "kill": partial(self._do, PlannedAction(0, "kill", replica.name)),
            "pause": partial(self._do, PlannedAction(0, "pause", replica.name, None, pause_s)),
            "cut_off": partial(self._do, PlannedAction(0, "cut_off", replica.name, None, pause_s)),
        }
        self._faults[f"{what} at a moment"] += 1
        with suppress(ApiError):  # It is gone, or is placed already.
            by_name[what]()

    def _some_node(self) -> str:
        names = [stored.name for stored in self.cluster.objects_of(NODES)]
        return names[int(self._rng.integers(len(names)))] if names else "none"

    def _later(self, seconds: float, call: Callable[[], object]) -> None:
        """Also called by a replica, at a moment: what follows must not wait while it is paused."""
        asyncio.get_running_loop().call_later(seconds, call, context=self._context)

    # --- what replicas report ---

    def decided(self, replica: Replica, decision: Decision) -> None:
        self.invariants.decided(replica, decision)
        self._quiet.note_decision(decision)

    def binding_sent(self, replica: Replica, pod: Pod, node_name: str) -> None:
        self.invariants.binding_sent(replica, pod, node_name)
        self._moments.reach(Moment.BIND, Reached(replica.name, pod, node_name))

    def binding_confirmed(self, replica: Replica, pod: Pod, node_name: str) -> None:
        self.invariants.binding_confirmed(replica, pod)

    def event_lost(self, node_name: str) -> None:
        # Until the next list, the replica does not know what is there.
        self.invariants.excuse(node_name)

    def member_lost(self, pod: Pod) -> None:
        if self.gangs is not None:
            self.gangs.member_lost(pod)

    def freed_without_event(self, node_name: str) -> None:
        self._quiet.note_freed(node_name)

    def ended(self, scheduler: Scheduler) -> None:
        if self.gangs is not None:
            self.gangs.interrupted(scheduler)

    def report(self, invariant: str, text: str) -> None:
        self.invariants.report(invariant, text)

    # --- coverage ---

    def _replica_fault(self, name: str, fault: Fault, point: Point | None) -> None:
        self._faults[fault.name] += 1
        if point is not None:
            self._met[Met(fault.name, point)] += 1
            return
        replica = self.replicas[name]
        self._note(fault.name, replica_states(replica.process, replica.link))

    def _cluster_fault(self, fault: Fault, point: Point | None) -> None:
        self._faults[fault.name] += 1
        leader = self._leader()
        if leader is not None:
            self._note(fault.name, replica_states(leader.process, leader.link))

    def _note_pods(self, what: str, pods: list[Pod]) -> list[Pod]:
        leader = self._leader()
        if leader is not None and leader.process is not None:
            self._note(what, pod_states(leader.process, leader.link, pods))
        return pods

    def _note(self, what: str, states: Iterable[PodState]) -> None:
        self._met.update(Met(what, state) for state in states)

    def _leader(self) -> Replica | None:
        return next((each for each in self.replicas.values() if each.is_leading), None)

    # --- the end ---

    async def _calm_down(self) -> None:
        """End all faults."""
        self._is_calm = True
        self._moments.disarm()
        self._rates.end_all()
        for replica in self.replicas.values():
            replica.calm_down()

    async def _settle(self) -> bool:
        """Wait until nothing is left to do; False if that takes too long."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + SETTLE_LIMIT_S
        placed: set[tuple[str, str]] = set()
        since_s = loop.time()
        while loop.time() < deadline_s:
            await asyncio.sleep(1.0)
            now = {(pod.metadata.uid, pod.spec.node_name) for pod in self._pods()}
            if now != placed or not self._quiet.is_reached():
                placed, since_s = now, loop.time()
            elif loop.time() - since_s >= QUIET_S and self._quiet.is_between_cycles():
                return True
        return False

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
            met=self._met,
            exits=exits,
            gangs=Counter() if self.gangs is None else self.gangs.found,
            duration_s=duration_s,
        )

    # --- the cluster ---

    def _load_classes(self) -> None:
        modes = {LATE: "WaitForFirstConsumer", AT_ONCE: "Immediate"}
        self.cluster.load([class_document(name, mode) for name, mode in modes.items()])
        if self.gangs is not None:
            self.cluster.load([priority_class_document(priority) for priority in (10, 100)])

    def _patch_node(self, name: str, patch: JsonObject) -> None:
        self.cluster.patch(NODES, "", name, patch, "merge")

    def _pods(self) -> list[Pod]:
        pods = (stored.typed for stored in self.cluster.objects_of(PODS))
        return [pod for pod in pods if isinstance(pod, Pod)]

    def _pods_on(self, node_name: str) -> list[str]:
        return [pod.metadata.name for pod in self._pods() if pod.spec.node_name == node_name]

    def _pods_named(self, name: str) -> list[Pod]:
        return [pod for pod in self._pods() if pod.metadata.name == name]

    def _pods_meant_for(self, node_name: str) -> list[Pod]:
        """The pods that the leader counts on a node."""
        leader = self._leader()
        if leader is None or leader.process is None:
            return []
        info = leader.process.scheduler.cache.nodes.get(node_name)
        return [] if info is None else [pod.pod for pod in info.pods]
