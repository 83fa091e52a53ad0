"""Leases of nodes, renewed by simulated kubelets."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.documents import seconds_of
from kubestow.cluster.resources import LEASES, NODES
from kubestow.simulator.heartbeats import LEASE_S, NAMESPACE, RENEW_S, Heartbeats
from kubestow.simulator.virtual_time import EPOCH, VirtualClock, run_in_virtual_time

STOPPED: JsonObject = {"metadata": {"annotations": {"kubestow.io/kubelet": "stopped"}}}
STARTED: JsonObject = {"metadata": {"annotations": {"kubestow.io/kubelet": None}}}


def play(work: Callable[[MemoryCluster], Awaitable[None]]) -> None:
    async def inside() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        cluster = MemoryCluster(clock)
        task = asyncio.create_task(Heartbeats(cluster, clock).run())
        await work(cluster)
        assert not task.done()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    run_in_virtual_time(inside())


def make_node(cluster: MemoryCluster, name: str, **status: object) -> None:
    cluster.create(NODES, {"metadata": {"name": name}, "status": status})


def age_s(cluster: MemoryCluster, name: str) -> float:
    """How long ago the lease was renewed."""
    renewed_s = seconds_of(cluster.get(LEASES, NAMESPACE, name).document["spec"]["renewTime"])
    assert renewed_s is not None
    return EPOCH.timestamp() + asyncio.get_running_loop().time() - renewed_s


def test_a_node_has_a_lease_as_a_kubelet_makes_it():
    async def work(cluster: MemoryCluster) -> None:
        make_node(cluster, "n1")
        await asyncio.sleep(0.1)
        lease = cluster.get(LEASES, NAMESPACE, "n1").document
        assert lease["spec"]["holderIdentity"] == "n1"
        assert lease["spec"]["leaseDurationSeconds"] == LEASE_S
        (owner,) = lease["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("Node", "n1")
        assert owner["uid"] == cluster.get(NODES, "", "n1").uid

    play(work)


def test_leases_are_renewed_in_turns():
    async def work(cluster: MemoryCluster) -> None:
        for number in range(100):
            make_node(cluster, f"n{number}")
        await asyncio.sleep(RENEW_S * 3)
        for _ in range(RENEW_S):
            before = cluster.version
            await asyncio.sleep(1)
            assert cluster.version - before == 100 / RENEW_S
        assert max(age_s(cluster, f"n{number}") for number in range(100)) <= RENEW_S

    play(work)


def test_the_lease_goes_with_its_node():
    async def work(cluster: MemoryCluster) -> None:
        make_node(cluster, "n1")
        await asyncio.sleep(1)
        cluster.delete(NODES, "", "n1")
        await asyncio.sleep(60)
        assert cluster.find(LEASES, NAMESPACE, "n1") is None

    play(work)


def test_a_stopped_kubelet_renews_nothing_until_it_is_started():
    async def work(cluster: MemoryCluster) -> None:
        make_node(cluster, "n1")
        await asyncio.sleep(1)
        cluster.patch(NODES, "", "n1", STOPPED, "merge")
        await asyncio.sleep(100)
        assert age_s(cluster, "n1") > 90
        cluster.patch(NODES, "", "n1", STARTED, "merge")
        await asyncio.sleep(0.1)
        assert age_s(cluster, "n1") < 1

    play(work)


def test_a_node_that_was_lost_elsewhere_stays_lost():
    async def work(cluster: MemoryCluster) -> None:
        ready = {"type": "Ready", "status": "Unknown", "lastHeartbeatTime": "2025-01-01T00:00:00Z"}
        make_node(cluster, "n1", conditions=[ready])
        await asyncio.sleep(30)
        node = cluster.get(NODES, "", "n1").document
        assert node["metadata"]["annotations"] == {"kubestow.io/kubelet": "stopped"}
        assert node["status"]["conditions"] == [ready]
        assert cluster.find(LEASES, NAMESPACE, "n1") is None

    play(work)


def test_a_running_kubelet_reports_again_when_its_node_was_marked_lost():
    async def work(cluster: MemoryCluster) -> None:
        make_node(cluster, "n1")
        await asyncio.sleep(1)
        ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        patch: JsonObject = {"status": {"conditions": [ready]}}
        cluster.patch(NODES, "", "n1", patch, "merge", subresource="status")
        await asyncio.sleep(1)
        conditions = cluster.get(NODES, "", "n1").document["status"]["conditions"]
        assert {one["type"]: one["status"] for one in conditions}["Ready"] == "True"

    play(work)
