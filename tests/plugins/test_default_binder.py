"""Spec 05 §12: the binding goes to the API server, and what it says comes back."""

import asyncio
from typing import Any

import pytest

from kubestow.api.decode import to_document
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.errors import ApiError, UnreachableError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Code, Status
from kubestow.plugins.default_binder import DefaultBinder
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import ManualClock, make_handle, make_pod


@pytest.fixture
def client() -> MemoryClient:
    return MemoryClient(MemoryCluster(ManualClock(), admission=False))


def bind(client: MemoryClient, pod: Pod, node_name: str) -> Status | None:
    plugin = DefaultBinder(None, make_handle(client=client))
    return asyncio.run(plugin.bind(CycleState(), PodInfo(pod), node_name))


def created(client: MemoryClient, pod: Pod) -> Pod:
    return asyncio.run(client.create(pod))


def test_1_the_pod_is_bound_to_the_chosen_node(client: MemoryClient) -> None:
    pod = created(client, make_pod("p", namespace="ns"))
    assert bind(client, pod, "n1") is None
    bound = asyncio.run(client.get(Pod, "ns", "p"))
    assert bound.spec.node_name == "n1"


def test_2_a_pod_that_is_bound_already_is_an_error(client: MemoryClient) -> None:
    pod = created(client, make_pod("p", namespace="ns"))
    bind(client, pod, "n1")
    status = bind(client, pod, "n2")
    assert status is not None
    assert status.code is Code.ERROR
    assert 'already assigned to node "n1"' in status.message


def test_another_pod_of_the_same_name_is_not_bound(client: MemoryClient) -> None:
    created(client, make_pod("p", namespace="ns"))
    status = bind(client, make_pod("p", namespace="ns", uid="other"), "n1")
    assert status is not None
    assert status.code is Code.ERROR
    assert "nodeName" not in to_document(asyncio.run(client.get(Pod, "ns", "p")))["spec"]


def test_a_pod_that_is_gone_is_an_error(client: MemoryClient) -> None:
    status = bind(client, make_pod("gone"), "n1")
    assert status is not None
    assert status.code is Code.ERROR


class LosingClient(MemoryClient):
    """Loses the answer to a binding; reading fails a few times before it works."""

    def __init__(
        self, cluster: MemoryCluster, error: ApiError, *, is_carried_out: bool, failing_reads: int
    ) -> None:
        super().__init__(cluster)
        self.reads = 0
        self._error = error
        self._is_carried_out = is_carried_out
        self._failing_reads = failing_reads

    async def bind(self, pod: Pod, node_name: str) -> None:
        if self._is_carried_out:
            await super().bind(pod, node_name)
        raise self._error

    async def get(self, cls: Any, namespace: str, name: str) -> Any:
        self.reads += 1
        if self.reads <= self._failing_reads:
            raise UnreachableError("connection reset by peer")
        return await super().get(cls, namespace, name)


LOST = UnreachableError("connection reset by peer")
REFUSED = UnreachableError("connection refused", cause="refused")
INTERNAL = ApiError("internal error")
BUSY = ApiError("too many requests", code=429)


@pytest.mark.parametrize(
    ("error", "is_carried_out", "failing_reads", "is_bound", "reads"),
    [
        pytest.param(LOST, True, 0, True, 1, id="answer lost"),
        pytest.param(LOST, True, 3, True, 4, id="and reading fails at first"),
        pytest.param(LOST, True, 99, False, 7, id="and reading never works"),
        pytest.param(LOST, False, 0, False, 1, id="request lost"),
        pytest.param(INTERNAL, True, 0, True, 1, id="500 after the write"),
        pytest.param(REFUSED, False, 0, False, 0, id="nothing was sent"),
        pytest.param(BUSY, False, 0, False, 0, id="clearly not done"),
    ],
)
def test_an_unclear_answer_is_settled_by_reading_the_pod(
    error: ApiError, is_carried_out: bool, failing_reads: int, is_bound: bool, reads: int
) -> None:
    async def go() -> None:
        client = LosingClient(
            MemoryCluster(ManualClock(), admission=False),
            error,
            is_carried_out=is_carried_out,
            failing_reads=failing_reads,
        )
        pod = await client.create(make_pod("p", namespace="ns"))
        plugin = DefaultBinder(None, make_handle(client=client))
        status = await plugin.bind(CycleState(), PodInfo(pod), "n1")
        assert (status is None) == is_bound
        assert client.reads == reads
        if status is not None:
            assert status.message == str(error)

    run_in_virtual_time(go())


def test_a_pod_made_again_meanwhile_is_not_taken_for_it() -> None:
    async def go() -> None:
        cluster = MemoryCluster(ManualClock(), admission=False)
        client = LosingClient(cluster, LOST, is_carried_out=False, failing_reads=0)
        await client.create(make_pod("p", namespace="ns", uid="new", node="n1"))
        plugin = DefaultBinder(None, make_handle(client=client))
        old = PodInfo(make_pod("p", namespace="ns", uid="old"))
        assert await plugin.bind(CycleState(), old, "n1") is not None

    run_in_virtual_time(go())
