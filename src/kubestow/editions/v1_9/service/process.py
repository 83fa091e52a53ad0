"""The process of a v1.9 scheduler.

Lease, HTTPS port, events and the order of start and end are those of every process
(`service.run`): a lock in an annotation of Endpoints would not be seen by today's schedulers.
"""

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np

from kubestow.api.config_map import ConfigMap
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.editions.options import EditionOptions
from kubestow.editions.shared.config_map_watch import end_on_change
from kubestow.editions.v1_9 import EQUIVALENCE_CACHE
from kubestow.editions.v1_9.cache import ObjectsV19
from kubestow.editions.v1_9.engine.algorithm import Algorithm
from kubestow.editions.v1_9.engine.extenders import extenders_v1_9
from kubestow.editions.v1_9.engine.scheduler import SchedulerV19
from kubestow.editions.v1_9.engine.watching import WatcherV19
from kubestow.editions.v1_9.service.metrics import ProcessMetricsV19
from kubestow.engine.profile_events import ProfileEvents
from kubestow.engine.waiting_cycle import WaitingCycles
from kubestow.logs import inform
from kubestow.redaction import without_secrets
from kubestow.service.connections import Connections
from kubestow.service.debugger import MISMATCH, difference, node_text, pod_line
from kubestow.service.loops import Loops
from kubestow.service.options import SchedulerOptions
from kubestow.service.run import ServiceProcess

log = logging.getLogger(__name__)


class ProcessV19(ServiceProcess):
    def __init__(
        self,
        options: SchedulerOptions,
        algorithm: Algorithm,
        connections: Connections,
        metrics: ProcessMetricsV19,
        clock: Clock,
        rng: np.random.Generator,
        *,
        hostname: str,
        config_map: ConfigMap | None = None,
        loops: Loops | None = None,
        set_verbosity: Callable[[int], None] | None = None,
        on_synced: Callable[[], None] | None = None,
    ) -> None:
        """`config_map` is the one that has the Policy: the process ends when it changes."""
        super().__init__(
            options,
            options.config,
            connections,
            metrics,
            clock,
            rng,
            hostname=hostname,
            loops=loops,
            set_verbosity=set_verbosity,
            on_synced=on_synced,
            configz=lambda: configz_v1_9(options.choice, algorithm),
        )
        self._config_map = config_map
        name = options.choice.algorithm.scheduler_name
        cycles = WaitingCycles() if algorithm.extenders else None
        self.scheduler = SchedulerV19(
            algorithm,
            client=connections.main,
            objects=ObjectsV19(),
            events=ProfileEvents(self.recorder, name),
            clock=clock,
            scheduler_name=name,
            use_equivalence_cache=options.choice.gates.enabled(EQUIVALENCE_CACHE),
            extenders=None
            if cycles is None
            else extenders_v1_9(algorithm.extenders, wait=cycles.wait),
            cycles=cycles,
            may_bind=self._may_bind,
            metrics=metrics.scheduler,
        )
        self.watcher = WatcherV19(connections.main, self.scheduler, clock, rng)

    @property
    def has_synced(self) -> bool:
        return self.watcher.has_synced

    def pods(self) -> tuple[Pod, ...]:
        return self.scheduler.objects.pods.list()

    async def _watch(self) -> None:
        if self._config_map is not None:
            self._spawn(end_on_change(self._connections.main, self._config_map))
        await self.watcher.run()

    async def _wait_synced(self) -> None:
        await self.watcher.wait_synced()
        await self.watcher.wait_following()

    def _scheduling(self) -> Sequence[Coroutine[Any, Any, None]]:
        return (self.scheduler.run(),)

    async def _drain(self, limit_s: float) -> bool:
        self.scheduler.stop()
        return await self.scheduler.tasks.drain(limit_s)

    def compare_and_dump(self) -> None:
        scheduler = self.scheduler
        cached, waiting = scheduler.cache.dump(), scheduler.queue.pods()
        nodes = difference(
            (node.metadata.name for node in scheduler.objects.nodes.list()), cached.nodes
        )
        if not nodes.is_empty:
            inform(log, MISMATCH, missedNodes=nodes.missed, redundantNodes=nodes.redundant)
        blocks = [node_text(info, ()) for info in cached.nodes.values()]
        inform(log, "Dump of cached NodeInfo", nodes="\n\n".join(blocks))
        inform(log, "Dump of scheduling queue", pods="".join(map(pod_line, waiting)))


def configz_v1_9(choice: EditionOptions, algorithm: Algorithm) -> JsonObject:
    """The flags, and the rules that they select."""
    options = choice.algorithm
    source: JsonObject
    match options.source:
        case "provider":
            source = {"provider": options.algorithm_provider}
        case "file":
            source = {"policy": {"file": {"path": options.policy_config_file}}}
        case "configmap":
            reference = {
                "namespace": options.policy_configmap_namespace,
                "name": options.policy_configmap,
            }
            source = {"policy": {"configMap": reference}}
    return {
        "componentconfig": {
            "schedulerName": options.scheduler_name,
            "algorithmSource": source,
            "hardPodAffinitySymmetricWeight": algorithm.hard_pod_affinity_weight,
            "predicates": [predicate.name for predicate in algorithm.predicates],
            "priorities": {entry.priority.name: entry.weight for entry in algorithm.priorities},
            "extenders": [without_secrets(one.url_prefix) for one in algorithm.extenders],
            "featureGates": choice.gates.values(),
        }
    }
