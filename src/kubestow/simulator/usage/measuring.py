"""Measurements of simulated use, as a metrics server would have them: at intervals, and late.

At each interval the last step is measured, which is the use of a window that ends then; it can be
read after a delay. Of nodes whose kubelet is silent there is none.

Nodes are added as columns. Pods are objects, so they are measured only for a scheduler that reads
them.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from kubestow.arrays import IntArray
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.usage.demand import PodName
from kubestow.simulator.usage.plan import UsagePlan
from kubestow.usage.measurement import Amounts, Measurement
from kubestow.usage.store import UsageStore

# The plugin that reads what single pods use.
_READS_PODS: Final = "LoadAware"
_HAIR_S: Final = 1e-3


class Measured(NamedTuple):
    """The use of one window.

    nodes          names, and int64[resource, node]
    pods, nodes_of_pods, pod_amounts   names, and int64[resource, pod]; empty if they are not read
    """

    node_names: Sequence[str]
    node_amounts: IntArray
    pods: Sequence[PodName]
    nodes_of_pods: Sequence[str]
    pod_amounts: IntArray


class MetricsServer:
    def __init__(self, plan: UsagePlan) -> None:
        self._every_s = plan.metrics_every_s
        self._delay_s = plan.metrics_delay_s
        self._window_ns = round(plan.every_s * 1e9)
        self._next_s = plan.metrics_every_s
        self.has_pods = False
        self.store: Final = UsageStore()

    def serve(self, config: SchedulerConfig) -> None:
        """Measure pods as well, if a profile of the configuration has a plugin that reads them."""
        self.has_pods = any(
            ref.name.rpartition(":")[2] == _READS_PODS
            for profile in config.profiles
            for ref in (*profile.plugins.multi_point.enabled, *profile.plugins.score.enabled)
        )

    def is_due(self, time_s: float) -> bool:
        """Whether a window that ends at this time is measured."""
        return time_s >= self._next_s

    def measure(self, measured: Measured, now_s: float, time_ns: int) -> None:
        """Take a measurement, which can be read after the delay; the next one is due later."""
        while self._next_s <= now_s + _HAIR_S:
            self._next_s += self._every_s
        if self._delay_s <= 0:
            self._add(measured, time_ns)
        else:
            loop = asyncio.get_running_loop()
            loop.call_later(self._delay_s, self._add, measured, time_ns)

    def _add(self, measured: Measured, time_ns: int) -> None:
        cpu, memory = measured.node_amounts
        if measured.node_names:
            self.store.add_nodes(
                measured.node_names, time_ns=time_ns, cpu_milli=cpu, memory_bytes=memory
            )
        if measured.pods:
            self.store.add(self._of_pods(measured, time_ns))
        self.store.forget_old(time_ns)

    def _of_pods(self, measured: Measured, time_ns: int) -> list[Measurement]:
        amounts: list[list[int]] = measured.pod_amounts.T.tolist()
        return [
            Measurement(
                time_ns=time_ns,
                average=Amounts(*used),
                node=node,
                namespace=pod.namespace,
                pod=pod.name,
                workload=pod.workload,
                window_ns=self._window_ns,
            )
            for pod, node, used in zip(measured.pods, measured.nodes_of_pods, amounts, strict=True)
        ]
