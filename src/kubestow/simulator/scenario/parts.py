"""The controllers and simulated kubelets of a scenario's cluster.

They are those of `demo --serve`, except for what only a person or a server would see: no events are
written, nodes have no leases, namespaces are only names. Pods that have ended are deleted at the
next check of the pod garbage collector, so memory is for what exists.
"""

from kubestow.apiserver.controllers.garbage_collector import GarbageCollector
from kubestow.apiserver.controllers.group_protection import GroupProtection
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import Clock
from kubestow.simulator.controllers.cron_job import CronJobController
from kubestow.simulator.controllers.daemon_set import DaemonSetController
from kubestow.simulator.controllers.deployment import DeploymentController
from kubestow.simulator.controllers.disruption import DisruptionController
from kubestow.simulator.controllers.job import JobController
from kubestow.simulator.controllers.node_lifecycle import NodeLifecycle
from kubestow.simulator.controllers.pod_gc import PodGC
from kubestow.simulator.controllers.replica_set import ReplicaSetController
from kubestow.simulator.controllers.stateful_set import StatefulSetController
from kubestow.simulator.controllers.taint_eviction import TaintEviction
from kubestow.simulator.embedded import Controller
from kubestow.simulator.ephemeral_volume_controller import EphemeralVolumeController
from kubestow.simulator.event_log import EventLog, OnRefusal
from kubestow.simulator.heartbeats import Heartbeats
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.node_registration import NodeRegistration
from kubestow.simulator.resource_claim_controller import ResourceClaimController
from kubestow.simulator.volume_controller import VolumeController


def parts_of(
    store: MemoryCluster,
    clock: Clock,
    *,
    start_delay_s: float,
    stop_s: float,
    has_controllers: bool = True,
    on_refusal: OnRefusal,
) -> list[Controller]:
    """All parts but the scheduler and what collects the result."""
    log = EventLog(store, clock, is_silent=True, on_refusal=on_refusal)
    kubelets = FakeKubelets(store, clock, start_delay_s=start_delay_s, stop_s=stop_s)
    volumes = [
        VolumeController(store),
        EphemeralVolumeController(store),
        ResourceClaimController(store),
    ]
    if not has_controllers:
        return [PodGC(store, clock, threshold=0), kubelets, *volumes]
    return [
        NodeRegistration(store, clock),
        Heartbeats(store, clock, has_leases=False),
        NodeLifecycle(store, clock, log, has_leases=False),
        TaintEviction(store, clock, log),
        PodGC(store, clock, threshold=0),
        kubelets,
        DeploymentController(store, clock, log),
        ReplicaSetController(store, clock, log),
        StatefulSetController(store, clock, log),
        DaemonSetController(store, clock, log),
        JobController(store, clock, log),
        CronJobController(store, clock, log),
        DisruptionController(store, clock),
        *volumes,
        GarbageCollector(store),
        GroupProtection(store),
    ]
