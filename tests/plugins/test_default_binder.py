"""Spec 05 §12: the binding goes to the API server, and what it says comes back."""

import asyncio

import pytest

from kubestow.api.decode import to_document
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Code, Status
from kubestow.plugins.default_binder import DefaultBinder
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
