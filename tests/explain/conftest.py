"""Clusters that stand still, for explanations."""

from collections.abc import Callable

import pytest

from kubestow.api.meta import ApiObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.profile import ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.profiles import Registry
from kubestow.explain.cluster import StillCluster
from kubestow.plugins.registry import REGISTRY
from kubestow.testing import ManualClock

MakeCluster = Callable[..., StillCluster]


@pytest.fixture(scope="session")
def make_cluster() -> MakeCluster:
    def make(
        *objects: ApiObject,
        gates: FeatureGates = DEFAULT_GATES,
        config: SchedulerConfig | None = None,
        registry: Registry | None = REGISTRY,
    ) -> StillCluster:
        clock = ManualClock()
        config = config or SchedulerConfig(profiles=(ProfileConfig(),))
        client = MemoryClient(MemoryCluster(clock))
        cluster = StillCluster(config, client, clock, registry=registry, gates=gates)
        cluster.load(objects)
        return cluster

    return make
