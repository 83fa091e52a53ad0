"""What must hold whatever goes wrong, while it does.

No node gets more than it has by our bindings, only the holder of the lease binds, no pod is bound
again that is known to be bound, or before its volumes are, no pod waits that is known to be bound,
and no node is chosen that is known to be gone.
Not here: what must hold once it is quiet again (`quiet`).
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from kubestow.api.coordination import Lease
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import Resources
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.api.volume_claims import is_fully_bound
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import Clock
from kubestow.cluster.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from kubestow.engine.decision import Decision
from kubestow.engine.scheduler import Scheduler
from kubestow.queue.queue import SchedulingQueue
from tools.faults.replica import Replica

_KEPT_LIMIT: Final = 20

# Called with the name of an invariant that does not hold, and what was found.
Report = Callable[[str, str], None]


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
        # Nodes on which another client placed pods without looking, or of which a watch lost an
        # event.
        self._excused: set[str] = set()
        # The process, by its identity, and the UID of a pod whose binding was confirmed to it.
        self._confirmed: set[tuple[str, str]] = set()

    def excuse(self, node_name: str) -> None:
        self._excused.add(node_name)

    def report(self, invariant: str, text: str) -> None:
        if len(self.broken) < _KEPT_LIMIT:
            self.broken.append(Broken(invariant, self._clock.monotonic_s(), text))

    # --- decisions and bindings ---

    def decided(self, replica: Replica, decision: Decision) -> None:
        """A node is chosen: the watch must show it. Pods that it shows on a node do not wait."""
        process = replica.process
        if process is None:
            return
        self._check_queue(replica.name, process.scheduler)
        if decision.status is not None:
            return
        if process.scheduler.objects.nodes.get(decision.node_name) is None:
            text = f"{replica.name} chooses {decision.node_name} for {decision.pod.name}"
            self.report("no deleted node", text)

    def _check_queue(self, name: str, scheduler: Scheduler) -> None:
        """A pod that is tried again after it was bound does little harm: the server refuses, and
        the pod is forgotten then. So nothing else would show it."""
        assert isinstance(scheduler.queue, SchedulingQueue)
        for _, queued_pod in scheduler.queue.waiting():
            metadata = queued_pod.pod.metadata
            seen = scheduler.objects.pods.get(metadata.namespace, metadata.name)
            if seen is not None and seen.metadata.uid == metadata.uid and seen.spec.node_name:
                text = f"{name} has {metadata.name} in its queue, which is on {seen.spec.node_name}"
                self.report("no bound pod waits", text)

    def binding_sent(self, replica: Replica, pod: Pod, node_name: str) -> None:
        leases = self._cluster.resources.of_type(Lease)
        found = self._cluster.find(leases, "kube-system", "kube-scheduler")
        lease = found.typed if found is not None else None
        holder = lease.spec.holder_identity if isinstance(lease, Lease) else ""
        name = pod.metadata.name
        if holder and holder != replica.identity:
            text = f"{replica.name} binds {name} while {holder} holds the lease"
            self.report("one leader", text)
        if (replica.identity, pod.metadata.uid) in self._confirmed:
            self.report("no second binding", f"{replica.name} binds {name} again, to {node_name}")
        self._check_volumes(replica, pod)

    def _check_volumes(self, replica: Replica, pod: Pod) -> None:
        for volume in pod.spec.volumes:
            if (source := volume.persistent_volume_claim) is None:
                continue
            namespace, name = pod.metadata.namespace, source.claim_name
            found = self._cluster.find(PERSISTENT_VOLUME_CLAIMS, namespace, name)
            claim = None if found is None else found.typed
            if not isinstance(claim, PersistentVolumeClaim) or not is_fully_bound(claim):
                text = f"{replica.name} binds {pod.metadata.name} before its claim {name} is bound"
                self.report("volumes first", text)

    def binding_confirmed(self, replica: Replica, pod: Pod) -> None:
        self._confirmed.add((replica.identity, pod.metadata.uid))

    # --- nodes ---

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
        found = self._cluster.find(NODES, "", node_name)
        if found is None or node_name in self._excused:
            return
        node = found.typed
        assert isinstance(node, Node)
        allocatable = Resources.from_list(node.status.allocatable)
        stored = (stored.typed for stored in self._cluster.objects_of(PODS))
        pods = [
            PodInfo(pod)
            for pod in stored
            if isinstance(pod, Pod) and pod.spec.node_name == node_name
        ]
        used_cpu = sum(pod.accounted.requested.milli_cpu for pod in pods)
        if used_cpu > allocatable.milli_cpu or len(pods) > allocatable.allowed_pods:
            self.report(
                "no overcommitment",
                f"{node_name} has {len(pods)} of {allocatable.allowed_pods} pods and {used_cpu} of "
                f"{allocatable.milli_cpu} milli-CPU after {pod_name} was bound",
            )
