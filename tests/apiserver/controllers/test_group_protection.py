"""A group that is deleted goes once no pod that has not ended refers to it."""

import asyncio

from kubestow.apiserver.controllers.group_protection import GroupProtection
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import POD_GROUPS, PODS
from kubestow.config.feature_gates import FeatureGates
from kubestow.testing import ManualClock, run_in_virtual_time

GROUP = {
    "metadata": {"name": "g", "namespace": "ns"},
    "spec": {"schedulingPolicy": {"basic": {}}},
}
POD = {
    "metadata": {"name": "p", "namespace": "ns"},
    "spec": {
        "schedulingGroup": {"podGroupName": "g"},
        "containers": [{"name": "c", "image": "i"}],
    },
}


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_group_stays_while_a_pod_uses_it() -> None:
    async def test() -> None:
        store = MemoryCluster(ManualClock(), gates=FeatureGates({"GenericWorkload": True}))
        store.create(POD_GROUPS, GROUP)
        store.create(PODS, POD)
        task = asyncio.create_task(GroupProtection(store).run())
        await settle()
        store.delete(POD_GROUPS, "ns", "g")
        await settle()
        assert store.find(POD_GROUPS, "ns", "g") is not None
        store.patch(PODS, "ns", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
        await settle()
        assert store.find(POD_GROUPS, "ns", "g") is None
        task.cancel()

    run_in_virtual_time(test())


def test_an_unused_group_goes_at_once() -> None:
    async def test() -> None:
        store = MemoryCluster(ManualClock(), gates=FeatureGates({"GenericWorkload": True}))
        store.create(POD_GROUPS, GROUP)
        task = asyncio.create_task(GroupProtection(store).run())
        await settle()
        store.delete(POD_GROUPS, "ns", "g")
        await settle()
        assert store.find(POD_GROUPS, "ns", "g") is None
        task.cancel()

    run_in_virtual_time(test())
