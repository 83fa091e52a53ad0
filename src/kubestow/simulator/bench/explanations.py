"""What an explanation costs in a large cluster, once it is loaded."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.pod import DEFAULT_SCHEDULER_NAME, Pod
from kubestow.clock import SystemClock, process_cpu_s
from kubestow.config.scheduler import SchedulerConfig
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import Explanation
from kubestow.explain.many import explain_many, waiting_pods
from kubestow.explain.pod import explain_pod
from kubestow.explain.suggestions import find_suggestions
from kubestow.simulator.bench.measure import peak_memory_mib
from kubestow.simulator.still import still_cluster

PODS_PER_NODE: Final = 10
# The CPU that each case asks for; a node has 16, of which its pods take 10.
CASES: Final = {"fits": "1", "fits nowhere": "7"}
# Pods that wait together, of how many workloads; a fifth of these selects nodes that do not exist.
WAITING: Final = 1_000
WORKLOADS: Final = 40

WriteJson = Callable[[Explanation], int]


class ExplanationTimes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Seconds on the clock and of CPU time.

    explain_s     the attempt, and what is said of each node
    suggest_s     the search for changes that would make the pod fit; 0 if it fits
    json_s        writing it as JSON, of `json_mib`
    """

    case: str
    nodes: int
    pods: int
    explain_s: float
    suggest_s: float
    json_s: float
    json_mib: float
    cpu_s: float
    suggestions: int
    peak_memory_mib: float

    @property
    def total_s(self) -> float:
        return self.explain_s + self.suggest_s + self.json_s


def measure_explanations(nodes: int, write_json: WriteJson) -> list[ExplanationTimes]:
    """One pod that fits and one that does not; `write_json` returns how many bytes it wrote."""
    clock = SystemClock()
    cluster = still_cluster([*_documents(nodes)], SchedulerConfig(), clock)
    cluster.refresh()
    times = [_measure(cluster, case, nodes, clock, write_json) for case in CASES]
    return [*times, _measure_many(cluster, nodes, clock)]


def _measure_many(cluster: StillCluster, nodes: int, clock: SystemClock) -> ExplanationTimes:
    """All pods that wait, grouped by cause and by the change that helps most of them."""
    cluster.load(_waiting())
    cpu_s, started_s = process_cpu_s(), clock.monotonic_s()
    explanation = explain_many(cluster, waiting_pods(cluster))
    ended_s = clock.monotonic_s()
    return ExplanationTimes(
        case=f"{explanation.waiting} wait",
        nodes=nodes,
        pods=nodes * PODS_PER_NODE,
        explain_s=round(ended_s - started_s, 4),
        suggest_s=0.0,
        json_s=0.0,
        json_mib=round(len(msgspec.json.encode(explanation)) / 2**20, 2),
        cpu_s=round(process_cpu_s() - cpu_s, 4),
        suggestions=len(explanation.remedies),
        peak_memory_mib=peak_memory_mib(),
    )


def _waiting() -> Iterator[Pod]:
    for number in range(WAITING):
        workload = number % WORKLOADS
        cpu = str(7 + workload % 4)
        document = _pod(f"w{workload}-{number}", cpu, schedulerName=DEFAULT_SCHEDULER_NAME)
        document["metadata"] |= {
            "uid": f"waiting-{number}",
            "labels": {"app": f"w{workload}"},
        }
        if workload % 5 == 0:
            document["spec"]["nodeSelector"] = {"pool": f"p{workload % 2}"}
        yield convert(Pod, document)


def _measure(
    cluster: StillCluster, case: str, nodes: int, clock: SystemClock, write_json: WriteJson
) -> ExplanationTimes:
    pod = cluster.objects.pods.get("default", _name(case))
    assert pod is not None
    cpu_s, started_s = process_cpu_s(), clock.monotonic_s()
    explanation = explain_pod(cluster, pod)
    explained_s = clock.monotonic_s()
    suggestions = () if explanation.node else find_suggestions(cluster, pod)
    suggested_s = clock.monotonic_s()
    written = write_json(explanation)
    ended_s = clock.monotonic_s()
    return ExplanationTimes(
        case=case,
        nodes=nodes,
        pods=nodes * PODS_PER_NODE,
        explain_s=round(explained_s - started_s, 4),
        suggest_s=round(suggested_s - explained_s, 4),
        json_s=round(ended_s - suggested_s, 4),
        json_mib=round(written / 2**20, 2),
        cpu_s=round(process_cpu_s() - cpu_s, 4),
        suggestions=len(suggestions),
        peak_memory_mib=peak_memory_mib(),
    )


def _name(case: str) -> str:
    return case.replace(" ", "-")


def _documents(nodes: int) -> Iterator[JsonObject]:
    resources = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    for number in range(nodes):
        labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
        metadata = {"name": f"node-{number}", "labels": labels}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": metadata,
            "status": {"allocatable": resources},
        }
    for number in range(nodes * PODS_PER_NODE):
        yield _pod(f"pod-{number}", "1", nodeName=f"node-{number % nodes}")
    for case, cpu in CASES.items():
        yield _pod(_name(case), cpu)


def _pod(name: str, cpu: str, **spec: str) -> JsonObject:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name[-1:]}},
        "spec": {"containers": [container], **spec},
    }
