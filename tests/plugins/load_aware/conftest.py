"""Clusters with measurements, for the tests of LoadAware."""

from typing import Any

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.config.load_aware_args import LoadAwareArgs
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins.load_aware import LoadAware
from kubestow.testing import ManualClock, make_handle, make_node, make_snapshot
from kubestow.usage.measurement import Amounts, Measurement
from kubestow.usage.store import UsageStore

GIB = 1 << 30
SECOND = 10**9


class LoadCluster:
    """Nodes of 4 cores and 16 GiB, a store of measurements, and the plugin on both."""

    def __init__(self, count: int = 4, *, history: int = 40, **args: Any) -> None:
        self.clock = ManualClock(1_000_000)
        self.usage = UsageStore(history=history)
        self.names = [f"n{number}" for number in range(count)]
        nodes = [make_node(name, cpu="4", memory="16Gi", pods=1000) for name in self.names]
        self.snapshot = make_snapshot(nodes)
        self.handle = make_handle(self.snapshot, clock=self.clock)
        self.handle.usage = self.usage
        self.plugin = LoadAware(LoadAwareArgs(**args), self.handle)

    def measure(self, cpu: Any, memory: Any = None, *, age_s: int = 0) -> None:
        """Add measurements of nodes by name: CPU in thousandths, memory in bytes."""
        memory = memory or {}
        time_ns = self.clock.now_ns() - age_s * SECOND
        self.usage.add(
            Measurement(time_ns, Amounts(amount, memory.get(name, GIB)), node=name)
            for name, amount in cpu.items()
        )

    def codes(self, pod: Any) -> list[int]:
        nodes = nodes_of(self.snapshot)
        codes = self.plugin.filter(CycleState(), PodInfo(pod), nodes)
        return [0] * len(nodes) if codes is None else codes.tolist()

    def scores(self, pod: Any) -> list[int] | None:
        """The scores; None if the plugin takes no part."""
        state, nodes = CycleState(), nodes_of(self.snapshot)
        if self.plugin.pre_score(state, PodInfo(pod), nodes) is not None:
            return None
        return self.plugin.score(state, PodInfo(pod), nodes).tolist()

    def reserve(self, pod: Any, node: str) -> None:
        self.plugin.reserve(CycleState(), PodInfo(pod), node)


@pytest.fixture
def load_cluster() -> type[LoadCluster]:
    return LoadCluster
