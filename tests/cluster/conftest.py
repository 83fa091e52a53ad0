"""A cluster at a known time, and documents that say only what matters."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.cluster.memory import MemoryCluster
from kubestow.cluster.memory_client import MemoryClient
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]

START_S = 1_700_000_000  # 2023-11-14T22:13:20Z


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_S)


@pytest.fixture
def cluster(clock: ManualClock) -> MemoryCluster:
    return MemoryCluster(clock)


@pytest.fixture
def recorded(clock: ManualClock) -> MemoryCluster:
    """A cluster that takes objects as they come."""
    return MemoryCluster(clock, admission=False)


@pytest.fixture
def client(cluster: MemoryCluster) -> MemoryClient:
    return MemoryClient(cluster)


@pytest.fixture
def pod_document() -> Build:
    def build(name: str = "web-1", *, metadata: Any = None, status: Any = None, **spec: Any):
        document: JsonObject = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", **(metadata or {})},
            "spec": {"containers": [{"name": "main", "image": "nginx"}], **spec},
        }
        if status is not None:
            document["status"] = status
        return document

    return build


@pytest.fixture
def node_document() -> Build:
    def build(name: str = "n1", **status: Any):
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}, **status},
        }

    return build
