"""Debugging a running scheduler on SIGUSR2 (spec 03 §10).

First the difference between the cache and the informers' stores is logged, if there is one; then
everything the cache and the queue hold.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kubestow.api.pod import Pod
from kubestow.api.resources import Resources
from kubestow.cache.node_info import NodeInfo
from kubestow.engine.scheduler import Scheduler
from kubestow.logs import inform

log = logging.getLogger(__name__)

MISMATCH: Final = "Cache mismatch"


class CacheDifference(NamedTuple):
    """Entries that only one side has, with repetitions."""

    missed: list[str]
    redundant: list[str]

    @property
    def is_empty(self) -> bool:
        return not self.missed and not self.redundant


class CacheDebugger:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def compare_and_dump(self) -> None:
        self.compare()
        self.dump()

    def compare(self) -> None:
        """Log what only the informers' stores or only the cache has."""
        scheduler = self._scheduler
        inform(log, "Cache comparer started", v=3)
        cached = scheduler.cache.dump()
        nodes = difference(
            (node.metadata.name for node in scheduler.objects.nodes.list()), cached.nodes
        )
        if not nodes.is_empty:
            inform(log, MISMATCH, missedNodes=nodes.missed, redundantNodes=nodes.redundant)
        waiting, _ = scheduler.queue.pending_pods()
        on_nodes = [pod.uid for info in cached.nodes.values() for pod in info.pods]
        pods = difference(
            (pod.metadata.uid for pod in scheduler.objects.pods.list()),
            [*on_nodes, *(pod.metadata.uid for pod in waiting)],
        )
        if not pods.is_empty:
            inform(log, MISMATCH, missedPods=pods.missed, redundantPods=pods.redundant)
        inform(log, "Cache comparer finished", v=3)

    def dump(self) -> None:
        """Log every node with its pods, and the queue."""
        scheduler = self._scheduler
        nominator = scheduler.queue.nominator
        blocks = [
            node_text(info, [pod.pod for pod in nominator.nominated_pods_for_node(name)])
            for name, info in scheduler.cache.dump().nodes.items()
        ]
        inform(log, "Dump of cached NodeInfo", nodes="\n\n".join(blocks))
        pods, summary = scheduler.queue.pending_pods()
        text = "".join(map(pod_line, pods))
        inform(log, "Dump of scheduling queue", summary=summary, pods=text)


def difference(actual: Iterable[str], cached: Iterable[str]) -> CacheDifference:
    """Compare two multisets."""
    left, right = sorted(actual), sorted(cached)
    missed: list[str] = []
    redundant: list[str] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            i, j = i + 1, j + 1
        elif left[i] < right[j]:
            missed.append(left[i])
            i += 1
        else:
            redundant.append(right[j])
            j += 1
    return CacheDifference(missed + left[i:], redundant + right[j:])


def node_text(info: NodeInfo, nominated: Sequence[Pod]) -> str:
    lines = [
        f"Node name: {info.name}\n",
        f"Deleted: {str(info.node is None).lower()}\n",
        f"Requested Resources: {_resources_text(info.requested)}\n",
        f"Allocatable Resources:{_resources_text(info.allocatable)}\n",
        f"Scheduled Pods(number: {len(info.pods)}):\n",
        *(pod_line(pod.pod) for pod in info.pods),
    ]
    if nominated:
        lines.append(f"Nominated Pods(number: {len(nominated)}):\n")
        lines.extend(map(pod_line, nominated))
    return "".join(lines)


def pod_line(pod: Pod) -> str:
    metadata, status = pod.metadata, pod.status
    return (
        f"name: {metadata.name}, namespace: {metadata.namespace}, uid: {metadata.uid}, "
        f"phase: {status.phase}, nominated node: {status.nominated_node_name}\n"
    )


def _resources_text(resources: Resources) -> str:
    scalars = " ".join(f"{name}:{resources.scalar[name]}" for name in sorted(resources.scalar))
    return (
        f"&{{MilliCPU:{resources.milli_cpu} Memory:{resources.memory} "
        f"EphemeralStorage:{resources.ephemeral_storage} "
        f"AllowedPodNumber:{resources.allowed_pods} ScalarResources:map[{scalars}]}}"
    )
