"""A scheduler on an API server that lacks some API groups."""

import asyncio
from typing import Any

import pytest

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.resources import NODES, PODS
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import NotFoundError
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.testing import make_node, make_pod

GROUPS = {
    "resource.k8s.io": {"DeviceClass", "ResourceClaim", "ResourceSlice"},
    "policy": {"PodDisruptionBudget"},
    "storage.k8s.io": {
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "StorageClass",
        "VolumeAttachment",
    },
}


class OldServer(MemoryClient):
    def __init__(self, cluster: MemoryCluster, missing: set[str]) -> None:
        super().__init__(cluster)
        self._missing = missing

    async def is_served(self, cls: type[ApiObject]) -> bool:
        return cls.__name__ not in self._missing

    async def list_and_watch(self, cls: type[Any], **options: str) -> Any:
        if cls.__name__ in self._missing:
            raise NotFoundError("the server could not find the requested resource")
        return await super().list_and_watch(cls, **options)


@pytest.mark.parametrize("group", GROUPS)
def test_pods_are_scheduled_without_it(group: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> str:
        clock = VirtualClock(asyncio.get_running_loop())
        store = MemoryCluster(clock)
        store.create(NODES, to_document(make_node("n1")))
        store.create(PODS, to_document(make_pod("p")))
        client = OldServer(store, GROUPS[group])
        cluster = EmbeddedCluster(store, SchedulerConfig(), clock, client=client)
        async with asyncio.timeout(30), cluster.running():
            await asyncio.sleep(10)
        bound: Any = store.get(PODS, "default", "p").typed
        return bound.spec.node_name

    assert run_in_virtual_time(main()) == "n1"
    kinds = ", ".join(sorted(GROUPS[group]))
    assert caplog.messages == [
        f"the API server at memory does not serve {kinds}: going on as if there were none, "
        "looking again every 5 min"
    ]
