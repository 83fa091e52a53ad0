"""Changes that would make a waiting pod fit, searched on a copy of the cluster.

The copy is made again for each search, on the scheduler's loop: the parts of a scheduler share
tables that only one thread may use. So it is for the clusters of demos and recordings; a running
scheduler must not wait for it.
"""

from typing import Final

import msgspec

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.profiles import Registry
from kubestow.engine.scheduler import Scheduler
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import Suggestion
from kubestow.explain.suggestions import find_suggestions
from kubestow.explain.suggestions.search import TRIED

# Pods and nodes of a cluster that is copied.
COPIED_MAX: Final = 5_000


class Suggested(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What would make a pod fit.

    note    why nothing was searched for; empty if something was
    tried   what was tried, where nothing was found
    """

    suggestions: tuple[Suggestion, ...] = ()
    note: str = ""
    tried: tuple[str, ...] = ()


def no_suggestions(namespace: str, name: str) -> Suggested:
    """A note in place of suggestions, for a scheduler that must not wait for a search."""
    return Suggested(
        note=f"kubestow explain -n {namespace} {name} searches for changes that make it fit"
    )


class Suggester:
    def __init__(
        self,
        scheduler: Scheduler,
        config: SchedulerConfig,
        client: ClusterClient,
        clock: Clock,
        registry: Registry,
        gates: FeatureGates,
    ) -> None:
        self._scheduler = scheduler
        self._config = config
        self._client = client
        self._clock = clock
        self._registry = registry
        self._gates = gates

    def __call__(self, namespace: str, name: str) -> Suggested:
        objects = self._scheduler.objects
        pod = objects.pods.get(namespace, name)
        if pod is None:
            return Suggested(note="there is no such pod")
        if pod.spec.node_name or pod.spec.scheduler_name not in self._scheduler.profiles:
            return Suggested(note="only waiting pods of this scheduler are searched for")
        if len(objects.pods) + len(objects.nodes) > COPIED_MAX:
            return no_suggestions(namespace, name)
        found = find_suggestions(self._copy(), pod)
        return Suggested(suggestions=found, tried=() if found else TRIED)

    def _copy(self) -> StillCluster:
        cluster = StillCluster(
            self._config, self._client, self._clock, registry=self._registry, gates=self._gates
        )
        objects = self._scheduler.objects
        for cls in objects.types():
            if cls not in (Node, Pod):
                cluster.load(objects.store(cls))
        cluster.load(objects.nodes)
        cluster.load(objects.pods)
        return cluster
