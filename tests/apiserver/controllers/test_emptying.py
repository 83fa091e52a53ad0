"""A deleted namespace is emptied, and removed when it is empty."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from kubestow.api.meta import JsonObject
from kubestow.apiserver.controllers.emptying import NamespaceController
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import NAMESPACES, PODS, SERVICES
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_namespace_deletes_its_content_and_waits_for_it(clock: ManualClock, pod_document: Build):
    cluster = MemoryCluster(clock, namespace_lifecycle=True)
    for name in ("shop", "other"):
        cluster.create(NAMESPACES, {"metadata": {"name": name}})
        inside = {"namespace": name}
        cluster.create(PODS, pod_document("waiting", metadata=inside))
        cluster.create(PODS, pod_document("running", nodeName="n1", metadata=inside))
        cluster.create(SERVICES, {"metadata": {"name": "front", **inside}})

    async def run() -> None:
        emptying = asyncio.create_task(NamespaceController(cluster).run())
        cluster.delete(NAMESPACES, "", "shop")
        await settle()
        left = [stored.key for stored in cluster.objects_of(PODS) if stored.key[0] == "shop"]
        assert left == [("shop", "running")]
        assert cluster.find(SERVICES, "shop", "front") is None
        assert cluster.find(NAMESPACES, "", "shop") is not None
        cluster.finish_termination("shop", "running")
        await settle()
        assert cluster.find(NAMESPACES, "", "shop") is None
        emptying.cancel()
        with suppress(asyncio.CancelledError):
            await emptying

    asyncio.run(run())
    assert {stored.key for stored in cluster.objects_of(PODS)} == {
        ("other", "waiting"),
        ("other", "running"),
    }
    assert cluster.find(NAMESPACES, "", "other") is not None


def test_an_empty_namespace_is_deleted_at_once_and_its_name_can_be_used_again(clock: ManualClock):
    cluster = MemoryCluster(clock, namespace_lifecycle=True)

    async def run() -> None:
        emptying = asyncio.create_task(NamespaceController(cluster).run())
        for _ in range(2):
            cluster.create(NAMESPACES, {"metadata": {"name": "shop"}})
            await settle()
            cluster.delete(NAMESPACES, "", "shop")
            await settle()
            assert cluster.find(NAMESPACES, "", "shop") is None
        emptying.cancel()
        with suppress(asyncio.CancelledError):
            await emptying

    asyncio.run(run())
