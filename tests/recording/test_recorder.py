"""What is noted with a record: when it was made, and which request an answer belongs to."""

import asyncio
from typing import Any

import pytest

from kubestow.api.meta import ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.cache.objects import ClusterObjects
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.requests import Request
from kubestow.errors import ConflictError
from kubestow.recording.client import RecordingClient
from kubestow.recording.format import SETTLED_TURNS, Answer, Put, Record, TurnsPassed, kind_of
from kubestow.recording.recorder import Recorder
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time

POD = Pod(metadata=ObjectMeta(namespace="ns", name="p"))


class Sink:
    def __init__(self) -> None:
        self.records: list[Record] = []

    def flush(self) -> None:
        pass


def new_recorder(sink: Sink) -> Recorder:
    return Recorder(sink, VirtualClock(asyncio.get_running_loop()))


def test_turns_of_the_event_loop_between_two_records_are_counted() -> None:
    sink = Sink()

    async def run() -> None:
        recorder = new_recorder(sink)
        for turns in (0, 0, 2, 0, SETTLED_TURNS + 5, 1):
            for _ in range(turns):
                await asyncio.sleep(0)
            recorder.put(Node())

    run_in_virtual_time(run())
    found = [each.count if isinstance(each, TurnsPassed) else type(each) for each in sink.records]
    assert found == [SETTLED_TURNS, Put, Put, 2, Put, Put, SETTLED_TURNS, Put, 1, Put]


class SlowClient(ClusterClient):
    """Requests wait until their futures have an answer."""

    def __init__(self) -> None:
        self.sent: list[asyncio.Future[None]] = []

    async def send(self, request: Request) -> None:
        self.sent.append(asyncio.get_running_loop().create_future())
        await self.sent[-1]


@pytest.mark.parametrize("request_name", ["bind", "delete_pod"])
def test_an_answer_says_which_of_the_requests_that_are_alike_it_is_for(request_name: str) -> None:
    sink = Sink()

    async def run() -> None:
        server = SlowClient()
        client = RecordingClient(server, new_recorder(sink))

        def send() -> "asyncio.Task[Any]":
            if request_name == "bind":
                return asyncio.create_task(client.bind(POD, "n"))
            return asyncio.create_task(client.delete_pod(POD))

        tasks = [send() for _ in range(5)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        server.sent[3].set_result(None)
        await asyncio.sleep(0)
        server.sent[0].set_exception(ConflictError("changed"))
        await asyncio.sleep(0)
        server.sent[4].set_result(None)
        await asyncio.sleep(0)
        server.sent[2].set_result(None)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert client._open == {}

    run_in_virtual_time(run())
    answers = [each for each in sink.records if isinstance(each, Answer)]
    # Of 0, 2, 3 and 4, which are under way, two were sent before 3, and so on.
    assert [each.position for each in answers] == [2, 0, 1, 0]
    assert [each.refusal is not None for each in answers] == [False, True, False, False]


def test_every_kind_that_a_scheduler_reads_is_found_again() -> None:
    for cls in ClusterObjects().types():
        assert kind_of(cls.__name__) is cls
