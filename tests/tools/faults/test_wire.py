"""The client of the service over a faulty link: what it does with answers that are wrong."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from kubestow.api.node import Node
from kubestow.apiserver.memory import MemoryCluster
from kubestow.errors import ApiError, UnreachableError
from kubestow.simulator.virtual_time import VirtualClock
from tools.faults.client import LOSS_UNNOTICED_S, SLOW_LIST_S, ClientHooks
from tools.faults.documents import node_document
from tools.faults.fault import Fault, FaultRates
from tools.faults.link import Link
from tools.faults.planned import PlannedNode
from tools.faults.replicas import run_processes
from tools.faults.wire import Wire, WireClient
from tools.faults.wire_server import WireServer

NODE = PlannedNode(cpu_milli=1000, pods=10, zone="z1")


class World:
    """A cluster of one node, and a client of it."""

    def __init__(self) -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        self.cluster = MemoryCluster(clock)
        self.cluster.load([node_document("n1", NODE)])
        self.happened: list[Fault] = []
        self.lost: list[str] = []
        self.reports: list[tuple[str, str]] = []
        rng = np.random.default_rng(0)
        self.faults = FaultRates(rng, lambda fault, _: self.happened.append(fault))
        hooks = ClientHooks(
            binding_sent=lambda pod, node_name: None,
            binding_confirmed=lambda pod, node_name: None,
            event_lost=self.lost.append,
            report=lambda invariant, text: self.reports.append((invariant, text)),
        )
        wire = Wire(WireServer(self.cluster, clock), Link(self.faults), hooks)
        self.client = WireClient(wire, clock, rng, timeout_s=None)

    def end_after(self, fault: Fault, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.faults.end, fault)


def run(body: Callable[[World], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        return await body(World())

    return run_processes(go())


def test_a_request_is_repeated_after_the_time_of_the_header() -> None:
    async def body(world: World) -> tuple[str, float, list[tuple[str, str]]]:
        world.faults.set(Fault.RETRY_AFTER, 1.0)
        world.end_after(Fault.RETRY_AFTER, 2.5)
        node = await world.client.get(Node, "", "n1")
        return node.metadata.name, asyncio.get_running_loop().time(), world.reports

    name, ended_s, reports = run(body)
    assert (name, reports) == ("n1", [])
    assert ended_s >= 2.5


def test_a_request_that_is_repeated_too_early_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubestow.cluster.http.session.retry_after_s", lambda head: 0.1)

    async def body(world: World) -> list[tuple[str, str]]:
        world.faults.set(Fault.RETRY_AFTER, 1.0)
        world.end_after(Fault.RETRY_AFTER, 0.5)
        await world.client.get(Node, "", "n1")
        return world.reports

    assert {invariant for invariant, _ in run(body)} == {"Retry-After"}


def test_an_equal_request_after_one_that_was_given_up_is_no_repetition() -> None:
    """As of a leader that gives up its lease while a renewal waits for its Retry-After."""

    async def body(world: World) -> list[tuple[str, str]]:
        world.faults.set(Fault.RETRY_AFTER, 1.0)
        world.end_after(Fault.RETRY_AFTER, 0.5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.6):
                await world.client.get(Node, "", "n1")
        await world.client.get(Node, "", "n1")
        assert world.happened == [Fault.RETRY_AFTER]
        return world.reports

    assert run(body) == []


def test_an_answer_that_ends_in_the_middle_is_an_error() -> None:
    async def body(world: World) -> list[type[Exception]]:
        world.faults.set(Fault.TRUNCATED, 1.0)
        errors: list[type[Exception]] = []
        for number in range(8):
            try:
                document = node_document(f"new-{number}", NODE)
                await world.client.create_document("/api/v1/nodes", document)
            except ApiError as error:
                errors.append(type(error))
        return errors

    errors = run(body)
    # Cut by the connection, or by a proxy that sends half of it as a whole.
    assert len(errors) == 8
    assert set(errors) == {ApiError, UnreachableError}


def test_events_go_on_while_a_list_comes_slowly() -> None:
    async def body(world: World) -> tuple[float, list[str], list[str]]:
        loop = asyncio.get_running_loop()
        world.faults.set(Fault.SLOW_LIST, 1.0)
        loop.call_later(1.0, world.cluster.load, [node_document("n2", NODE)])
        page = await world.client.list(Node)
        listed_s = loop.time()
        listing = await world.client.list_and_watch(Node)
        world.cluster.load([node_document("n3", NODE)])
        batch = await listing.watch.next_batch()
        names = [node.metadata.name for node in page]
        return listed_s, names, [event.object.metadata.name for event in batch]

    listed_s, names, followed = run(body)
    assert listed_s >= SLOW_LIST_S
    assert (names, followed) == (["n1"], ["n3"])


def test_a_watch_that_lost_an_event_ends_and_cannot_be_resumed() -> None:
    async def body(world: World) -> tuple[list[str], str]:
        listing = await world.client.list_and_watch(Node)
        world.faults.set(Fault.WATCH_LOST, 1.0)
        world.cluster.load([node_document("n2", NODE)])
        async with asyncio.timeout(2 * LOSS_UNNOTICED_S):
            assert await listing.watch.next_batch() == []
        world.faults.end(Fault.WATCH_LOST)
        with pytest.raises(ApiError) as refused:
            await world.client.watch(Node, resource_version=listing.resource_version)
        again = await world.client.list_and_watch(Node)
        assert [node.metadata.name for node in again.items] == ["n1", "n2"]
        return world.lost, refused.value.reason

    assert run(body) == (["n2"], "Expired")
