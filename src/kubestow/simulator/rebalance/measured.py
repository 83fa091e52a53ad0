"""Measurements of pods as the objects of a metrics server, which `ground` reads."""

from collections.abc import Iterable, Sequence

from kubestow.api.files import Document
from kubestow.simulator.input.pods import PodKey
from kubestow.simulator.rebalance.ground import METRICS_KIND
from kubestow.usage.measurement import Amounts, Measurement


def pod_metrics(measurements: Iterable[Measurement], source: str) -> list[Document]:
    """For each measured pod the mean of what it used; measurements of nodes do not count."""
    found: dict[PodKey, list[Amounts]] = {}
    for measurement in measurements:
        if measurement.pod:
            key = PodKey(measurement.namespace, measurement.pod)
            found.setdefault(key, []).append(measurement.average)
    return [_metrics(key, amounts, source) for key, amounts in found.items()]


def _metrics(key: PodKey, amounts: Sequence[Amounts], source: str) -> Document:
    cpu_milli = sum(each.cpu_milli for each in amounts) // len(amounts)
    memory_bytes = sum(each.memory_bytes for each in amounts) // len(amounts)
    usage = {"cpu": f"{cpu_milli}m", "memory": str(memory_bytes)}
    return Document(
        {
            "apiVersion": "metrics.k8s.io/v1beta1",
            "kind": METRICS_KIND,
            "metadata": {"namespace": key.namespace, "name": key.name},
            "containers": [{"name": "all", "usage": usage}],
        },
        source,
    )
