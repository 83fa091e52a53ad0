"""What must hold whatever goes wrong.

During a run: no node gets more than it has by our bindings, only the holder of the lease binds.
Once it is quiet again: the caches equal the server, every pod that fits somewhere is bound, every
other one waits in exactly one place, and nothing is left over from attempts that have ended.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubestow.api.coordination import Lease
from kubestow.api.node import Node
from kubestow.api.pod import Pod, is_terminal, is_terminating
from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import Resources
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import Clock
from kubestow.cluster.resources import PODS
from kubestow.engine.scheduler import Scheduler
from kubestow.queue.queue import SchedulingQueue
from kubestow.service.debugger import difference
from kubestow.service.run import SchedulerProcess
from kubestow.testing.faults.replica import Replica

_KEPT_LIMIT: Final = 20


class Broken(NamedTuple):
    """An invariant that did not hold."""

    invariant: str
    at_s: float
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} at {self.at_s:.3f} s: {self.text}"


class Invariants:
    def __init__(self, cluster: MemoryCluster, clock: Clock) -> None:
        self.broken: list[Broken] = []
        self._cluster = cluster
        self._clock = clock
        # Nodes on which another client placed pods without looking.
        self._excused: set[str] = set()

    def excuse(self, node_name: str) -> None:
        self._excused.add(node_name)

    def _report(self, invariant: str, text: str) -> None:
        if len(self.broken) < _KEPT_LIMIT:
            self.broken.append(Broken(invariant, self._clock.monotonic_s(), text))

    # --- during a run ---

    def binding_sent(self, replica: Replica, pod: Pod, node_name: str) -> None:
        """A replica sends a binding: another one must not hold the lease."""
        leases = self._cluster.resources.of_type(Lease)
        found = self._cluster.find(leases, "kube-system", "kube-scheduler")
        lease = found.typed if found is not None else None
        holder = lease.spec.holder_identity if isinstance(lease, Lease) else ""
        if holder and holder != replica.identity:
            self._report(
                "one leader",
                f"{replica.name} binds {pod.metadata.name} while {holder} holds the lease",
            )

    async def watch_bindings(self) -> None:
        """Check every node on which a pod appears."""
        watch = self._cluster.watch(PODS, from_version=max(self._cluster.version, 1))
        seen: set[str] = set()
        while batch := await watch.next_batch():
            for event in batch:
                pod = event.object
                if not isinstance(pod, Pod) or not pod.spec.node_name:
                    continue
                if event.type != "DELETED" and pod.metadata.uid not in seen:
                    seen.add(pod.metadata.uid)
                    self._check_node(pod.spec.node_name, pod.metadata.name)

    def _check_node(self, node_name: str, pod_name: str) -> None:
        found = self._cluster.find(self._cluster.resources.of_type(Node), "", node_name)
        if found is None or node_name in self._excused:
            return
        node = found.typed
        assert isinstance(node, Node)
        allocatable = Resources.from_list(node.status.allocatable)
        pods = [PodInfo(pod) for pod in self._pods() if pod.spec.node_name == node_name]
        used_cpu = sum(pod.accounted.requested.milli_cpu for pod in pods)
        if used_cpu > allocatable.milli_cpu or len(pods) > allocatable.allowed_pods:
            self._report(
                "no overcommitment",
                f"{node_name} has {len(pods)} of {allocatable.allowed_pods} pods and {used_cpu} of "
                f"{allocatable.milli_cpu} milli-CPU after {pod_name} was bound",
            )

    # --- at the end ---

    def is_quiet(self, replicas: Iterable[Replica]) -> bool:
        """Whether a leader is there and has nothing left to do at once, and all follow the server.

        Pods may still back off: without any node they are tried again and again. An informer that
        was disturbed often waits for a minute before it lists again.
        """
        processes = [replica.process for replica in replicas]
        leaders = [process for process in processes if process is not None and process.is_active]
        if len(leaders) != 1 or not all(self._follows(process) for process in processes):
            return False
        process = leaders[0]
        queue = process.scheduler.queue.statistics()
        is_busy = queue.active or queue.in_flight or not process.scheduler.tasks.is_idle
        return process.has_synced and not is_busy

    def _follows(self, process: SchedulerProcess | None) -> bool:
        if process is None:
            return False
        server = {pod.metadata.resource_version for pod in self._pods() if not is_terminal(pod)}
        return server == {pod.metadata.resource_version for pod in process.pods()}

    def judge_end(self, replicas: Iterable[Replica], *, has_settled: bool) -> None:
        if not has_settled:
            self._report("quiet", "it does not become quiet")
        for replica in replicas:
            if replica.process is None:
                self._report("quiet", f"{replica.name} does not run")
                continue
            scheduler = replica.process.scheduler
            self._compare_stores(replica.name, scheduler)
            if replica.is_leading:
                self._check_places(replica.name, scheduler)
                self._check_leftovers(replica.name, scheduler)
                self._check_forgotten(replica.name, scheduler)

    def _compare_stores(self, name: str, scheduler: Scheduler) -> None:
        pods = [pod for pod in self._pods() if not is_terminal(pod)]
        self._compare(name, "pods", pods, scheduler.objects.pods.list())
        self._compare(name, "nodes", self._nodes(), scheduler.objects.nodes.list())
        placed = {pod.metadata.uid: pod.spec.node_name for pod in pods if pod.spec.node_name}
        cached = {
            pod.uid: info.name
            for info in scheduler.cache.dump().nodes.values()
            for pod in info.pods
        }
        if placed != cached:
            wrong = sorted(placed.items() ^ cached.items())
            self._report("cache equals server", f"the cache of {name} differs: {wrong[:5]}")

    def _compare(
        self, name: str, what: str, server: Iterable[Pod | Node], store: Iterable[Pod | Node]
    ) -> None:
        def key(item: Pod | Node) -> str:
            return f"{item.metadata.name}@{item.metadata.resource_version}"

        found = difference(map(key, server), map(key, store))
        if not found.is_empty:
            self._report(
                "cache equals server",
                f"the {what} of {name} differ: missing {found.missed[:5]}, "
                f"too many {found.redundant[:5]}",
            )

    def _check_places(self, name: str, scheduler: Scheduler) -> None:
        """Every waiting pod is in the queue, once; nothing else is."""
        waiting = sorted(pod.metadata.uid for pod in self._pods() if not pod.spec.node_name)
        queued = sorted(pod.metadata.uid for pod in scheduler.queue.pending_pods()[0])
        if waiting != queued:
            lost = sorted(set(waiting) - set(queued))
            self._report(
                "no pod lost",
                f"the queue of {name} holds {len(queued)} pods, {len(waiting)} wait; lost: "
                f"{[self._name_of(uid) for uid in lost[:5]]}",
            )

    def _check_leftovers(self, name: str, scheduler: Scheduler) -> None:
        assumed = scheduler.cache.statistics().assumed_pods
        in_flight = scheduler.queue.statistics().in_flight
        if assumed or in_flight:
            self._report(
                "no leftovers", f"{name} still has {assumed} assumed and {in_flight} pods in flight"
            )

    def _check_forgotten(self, name: str, scheduler: Scheduler) -> None:
        for pod in fitting_pods(scheduler):
            text = f"{pod.name} waits at {name} though it fits on {pod.node_name}"
            self._report("no pod forgotten", text)

    # --- the server's truth ---

    def _pods(self) -> list[Pod]:
        pods = (stored.typed for stored in self._cluster.objects_of(PODS))
        return [pod for pod in pods if isinstance(pod, Pod)]

    def _nodes(self) -> list[Node]:
        nodes = self._cluster.objects_of(self._cluster.resources.of_type(Node))
        return [stored.typed for stored in nodes if isinstance(stored.typed, Node)]

    def _name_of(self, uid: str) -> str:
        return next((pod.metadata.name for pod in self._pods() if pod.metadata.uid == uid), uid)


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


def fitting_pods(scheduler: Scheduler) -> list[FittingPod]:
    assert isinstance(scheduler.queue, SchedulingQueue)
    found: list[FittingPod] = []
    scheduler.snapshot.refresh(scheduler.cache)
    for _, queued_pod in list(scheduler.queue.waiting()):
        pod = queued_pod.pod
        if pod.spec.scheduling_gates or is_terminating(pod):
            continue
        profile = scheduler.profiles[pod.spec.scheduler_name]
        decision = scheduler.decider.decide(profile, PodInfo(pod))
        if decision.is_scheduled:
            found.append(FittingPod(queued_pod.key, decision.node_name, queued_pod.rejectors))
    return found
