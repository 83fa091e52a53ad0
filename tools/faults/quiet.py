"""What must hold once nothing goes wrong any more.

The caches equal the server, every pod that fits somewhere is bound, every other one waits in one
place and is tried again after a time, and nothing is left over from what has ended.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from kubestow.api.group import group_key_of
from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, is_terminal, is_terminating
from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import PODS
from kubestow.engine.decision import Decision
from kubestow.engine.scheduler import Scheduler
from kubestow.errors import CacheError
from kubestow.plugins.volume_binding import VolumeBinding
from kubestow.service.debugger import difference
from kubestow.service.run import SchedulerProcess
from tools.faults.gangs import Gangs
from tools.faults.invariants import Report
from tools.faults.queued import entries, queue_of, tried_pods, waiting_pods
from tools.faults.replica import Replica


class Quiet:
    def __init__(
        self,
        cluster: MemoryCluster,
        report: Report,
        replicas: Sequence[Replica],
        gangs: Gangs | None = None,
    ) -> None:
        self._cluster = cluster
        self._gangs = gangs
        self._own_watches = 0
        # Pods that another client has bound, by UID, and nodes that lost a place by it.
        self._bound_elsewhere: dict[str, str] = {}
        self._freed_without_event: set[str] = set()
        self._report = report
        self._replicas = replicas

    def note_own_watches(self) -> None:
        """Called before any replica runs: the watches of the simulation itself."""
        self._own_watches = self._cluster.statistics().watch_count

    def note_bound_elsewhere(self, pod: Pod, node_name: str) -> None:
        """Called before another client binds the pod. The place that the leader has for it is freed
        without an event (spec 03 §11.9, example 2)."""
        self._bound_elsewhere[pod.metadata.uid] = node_name
        leader = self._leader()
        if leader is not None and leader.process is not None:
            with suppress(CacheError):
                counted = leader.process.scheduler.cache.pod(pod)
                self._note_place(pod.metadata.uid, counted.pod.spec.node_name)

    def note_decision(self, decision: Decision) -> None:
        """A pod may be assumed before the watch shows that it is bound already."""
        if decision.is_scheduled:
            self._note_place(decision.pod.uid, decision.node_name)

    def note_freed(self, node_name: str) -> None:
        """A place on the node is freed without an event that wakes the pods that fit into it."""
        self._freed_without_event.add(node_name)

    def _note_place(self, uid: str, node_name: str) -> None:
        if self._bound_elsewhere.get(uid, node_name) != node_name:
            self.note_freed(node_name)

    def is_reached(self) -> bool:
        """Whether a leader is there and has nothing left to do at once, and all follow the server.

        Pods may still back off: without any node they are tried again and again. An informer that
        was disturbed often waits for a minute before it lists again.
        """
        processes = [replica.process for replica in self._replicas]
        leaders = [process for process in processes if process is not None and process.is_active]
        if len(leaders) != 1 or not all(self._follows(process) for process in processes):
            return False
        scheduler = leaders[0].scheduler
        queue = queue_of(scheduler)
        in_flight = set(queue.uids_in_flight())
        busy = [pod for pod in scheduler.objects.pods if pod.metadata.uid in in_flight]
        busy += queue.pods_in_active()
        # Groups that do not fit are tried all the time; what has come of it is judged later.
        has_groups = scheduler.groups is not None
        is_busy = not all(has_groups and group_key_of(pod) is not None for pod in busy)
        return not is_busy and scheduler.tasks.is_idle

    def is_between_cycles(self) -> bool:
        """Whether the leader is not trying a group that does not fit, which it does all the time.

        With an extender that takes a while.
        """
        leader = self._leader()
        if leader is None or leader.process is None:
            return True
        return leader.process.scheduler.queue.statistics().in_flight == 0

    def _follows(self, process: SchedulerProcess | None) -> bool:
        if process is None or not process.has_synced:
            return False
        return all(
            self._versions(informer.cls)
            == {item.metadata.resource_version for item in informer.store.list()}
            for informer in process.watcher.informers
        )

    def _versions(self, cls: type[ApiObject]) -> set[str]:
        return {item.metadata.resource_version for item in self._objects(cls)}

    # --- every pod is tried again ---

    def attempts(self) -> dict[str, int]:
        """How often each waiting pod was tried that is not gated; by UID."""
        leader = self._leader()
        if leader is None or leader.process is None:
            return {}
        waiting = tried_pods(leader.process.scheduler)
        return {queued_pod.uid: queued_pod.attempts for queued_pod in waiting}

    def judge_attempts(self, earlier: dict[str, int]) -> None:
        """Since then all pods that still wait must have been tried."""
        for uid, attempts in self.attempts().items():
            if attempts <= earlier.get(uid, -1):
                text = f"{self._name_of(uid)} is not tried again after {attempts} attempts"
                self._report("no pod stuck", text)

    # --- at the end ---

    def judge(self, *, has_settled: bool) -> None:
        if not has_settled:
            self._report("quiet", "it does not become quiet")
        for replica in self._replicas:
            if replica.process is None:
                self._report("quiet", f"{replica.name} does not run")
                continue
            self._compare_stores(replica.name, replica.process)
            self._compare_cache(replica.name, replica.process.scheduler)
            self._compare_snapshot(replica.name, replica.process.scheduler)
            if replica.is_leading:
                self._check_places(replica.name, replica.process.scheduler)
                self._check_leftovers(replica, replica.process)
                if self._gangs is not None:
                    self._gangs.judge(replica.process.scheduler)
        self.judge_forgotten(is_before_flush=False)
        self._check_watches()

    def judge_forgotten(self, *, is_before_flush: bool) -> None:
        """No pod waits that fits, but for those that upstream leaves to the flush."""
        leader = self._leader()
        for pod in () if leader is None else fitting_pods(leader):
            waits_for_flush = pod.waits_for_flush or pod.node_name in self._freed_without_event
            if not (is_before_flush and waits_for_flush):
                text = f"{pod.name} waits though it fits on {pod.node_name}"
                self._report("no pod forgotten", text)
        if self._gangs is not None and leader is not None and leader.process is not None:
            with leader.extender.answering_at_once():
                self._gangs.judge_forgotten(leader.process.scheduler)

    def _compare_stores(self, name: str, process: SchedulerProcess) -> None:
        def key(item: ApiObject) -> str:
            return f"{item.metadata.name}@{item.metadata.resource_version}"

        for informer in process.watcher.informers:
            found = difference(
                map(key, self._objects(informer.cls)), map(key, informer.store.list())
            )
            if not found.is_empty:
                self._report(
                    "cache equals server",
                    f"{informer.cls.__name__} objects of {name} differ: missing "
                    f"{found.missed[:5]}, too many {found.redundant[:5]}",
                )

    def _compare_cache(self, name: str, scheduler: Scheduler) -> None:
        """Pods are counted where they are, and nodes that are gone are forgotten."""
        pods = [pod for pod in self._objects(Pod) if isinstance(pod, Pod)]
        placed = {pod.metadata.uid: pod.spec.node_name for pod in pods if pod.spec.node_name}
        nodes = scheduler.cache.dump().nodes
        cached = {pod.uid: info.name for info in nodes.values() for pod in info.pods}
        if placed != cached:
            wrong = sorted(placed.items() ^ cached.items())
            self._report("cache equals server", f"the cache of {name} differs: {wrong[:5]}")
        for info in nodes.values():
            used = sum(pod.accounted.requested.milli_cpu for pod in info.pods)
            if used != info.requested.milli_cpu:
                self._report(
                    "cache equals server",
                    f"the cache of {name} counts {info.requested.milli_cpu} milli-CPU on "
                    f"{info.name}, its pods request {used}",
                )
        known = {node.metadata.name for node in self._objects(Node)} | set(placed.values())
        if left := sorted(nodes.keys() - known):
            self._report("nothing grows", f"the cache of {name} still has {left[:5]}")

    def _compare_snapshot(self, name: str, scheduler: Scheduler) -> None:
        """Nothing is left in the snapshot of pods that were only tried."""
        snapshot, cache = scheduler.snapshot, scheduler.cache
        snapshot.refresh(cache)
        wrong = [
            info.name
            for info, cpu_milli in zip(
                snapshot.node_infos, snapshot.columns.requested[0].tolist(), strict=True
            )
            if cache.nodes.get(info.name) is not info or info.requested.milli_cpu != cpu_milli
        ]
        if wrong:
            text = f"the snapshot of {name} differs from its cache: {wrong[:5]}"
            self._report("cache equals server", text)

    def _check_places(self, name: str, scheduler: Scheduler) -> None:
        """Every waiting pod is in the queue, once; nothing else is."""
        pods = [pod for pod in self._objects(Pod) if isinstance(pod, Pod)]
        waiting = {pod.metadata.uid for pod in pods if not pod.spec.node_name}
        places = Counter(queued_pod.uid for queued_pod in waiting_pods(scheduler))
        wrong = [uid for uid in sorted(waiting | places.keys()) if places[uid] != (uid in waiting)]
        if wrong:
            found = [f"{self._name_of(uid)}: {places[uid]} times" for uid in wrong[:5]]
            text = f"the queue of {name} holds {places.total()} pods, {len(waiting)} wait; {found}"
            self._report("no pod lost", text)

    def _check_leftovers(self, replica: Replica, process: SchedulerProcess) -> None:
        scheduler = process.scheduler
        queue = scheduler.queue.statistics()
        left = {
            "assumed pods": scheduler.cache.statistics().assumed_pods,
            "pods in flight": queue.in_flight,
            "events of pods in flight": queue.in_flight_events,
            "pods at Permit": sum(1 for _ in scheduler.waiting_pods),
            "pods in PreBind": len(scheduler.binder.in_pre_bind),
            "bindings": scheduler.binder.running_count + len(replica.link.binding),
            "assumed volumes and claims": sum(_assumed_storage(scheduler)),
            "events to send": process.recorder.statistics().waiting_count,
        }
        if found := {what: count for what, count in left.items() if count}:
            self._report("no leftovers", f"{replica.name} still has {found}")
        pending = len(scheduler.queue.pending_pods()[0])
        if queue.nominated > pending:
            text = f"{replica.name} has {queue.nominated} nominations for {pending} pods"
            self._report("nothing grows", text)

    def _check_watches(self) -> None:
        """Watches that were given up are closed."""
        needed = self._own_watches
        for replica in self._replicas:
            if replica.process is not None:
                # A scheduler that does not lead watches the lease.
                needed += len(replica.process.watcher.informers) + (not replica.is_leading)
        found = self._cluster.statistics().watch_count
        if found > needed:
            self._report("nothing grows", f"the server has {found} watches, {needed} are in use")

    # --- the server's truth ---

    def _objects(self, cls: type[ApiObject]) -> Iterable[ApiObject]:
        for stored in self._cluster.objects_of(self._cluster.resources.of_type(cls)):
            found = stored.typed
            if not (isinstance(found, Pod) and is_terminal(found)):
                yield found

    def _name_of(self, uid: str) -> str:
        for stored in self._cluster.objects_of(PODS):
            if stored.uid == uid:
                return stored.name
        return uid

    def _leader(self) -> Replica | None:
        return next((replica for replica in self._replicas if replica.is_leading), None)


class FittingPod(NamedTuple):
    """A waiting pod that would be placed if it were tried now."""

    name: str
    node_name: str
    rejectors: frozenset[str]

    @property
    def waits_for_flush(self) -> bool:
        """Whether upstream leaves such pods to the flush.

        Its hint of InterPodAffinity looks at the pod's own terms. A pod that the anti-affinity of
        others keeps away is not woken by a new node.
        """
        return "InterPodAffinity" in self.rejectors


def fitting_pods(leader: Replica) -> list[FittingPod]:
    assert leader.process is not None
    scheduler = leader.process.scheduler
    found: list[FittingPod] = []
    scheduler.snapshot.refresh(scheduler.cache)
    with leader.extender.answering_at_once():
        for queued_pod in list(entries(scheduler)):
            pod = queued_pod.pod
            if pod.spec.scheduling_gates or is_terminating(pod):
                continue
            if scheduler.groups is not None and scheduler.groups.is_member(queued_pod):
                continue  # It may fit alone, without the others of its group.
            profile = scheduler.profiles[pod.spec.scheduler_name]
            decision = scheduler.decider.decide(profile, PodInfo(pod))
            if decision.is_scheduled:
                found.append(FittingPod(queued_pod.key, decision.node_name, queued_pod.rejectors))
    return found


def _assumed_storage(scheduler: Scheduler) -> Iterable[int]:
    for profile in scheduler.profiles.values():
        plugin = profile.plugins.get("VolumeBinding")
        if isinstance(plugin, VolumeBinding):
            yield len(plugin.assumed_volumes()) + len(plugin.assumed_claims())
