"""What tests share: how hard Hypothesis tries, an embedded cluster at a known time, documents.

`fast` is for the minute-to-minute run and draws new examples each time. `ci` always draws the same
ones, so that a build does not fail for something its change did not touch. `thorough` is for
hunting. Choose with HYPOTHESIS_PROFILE; where CI is set and nothing is chosen, it is `ci`.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.testing.clock import ManualClock

# Neither deadlines nor complaints about slow drawing: on a busy machine they would fail tests that
# are unlucky, not wrong.
_CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("fast", _CALM, max_examples=50)
settings.register_profile("ci", _CALM, max_examples=100, derandomize=True, print_blob=True)
settings.register_profile("thorough", _CALM, max_examples=2_000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if "CI" in os.environ else "fast")
)

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
