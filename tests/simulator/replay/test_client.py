"""Requests get the answers that were recorded for them."""

import asyncio

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod
from kubestow.cache.objects import ClusterObjects
from kubestow.recording.format import Answer, Refusal
from kubestow.simulator.replay.client import ReplayClient
from kubestow.simulator.virtual_time import run_in_virtual_time

POD = Pod(metadata=ObjectMeta(namespace="ns", name="p"))


def answer(position: int, message: str) -> Answer:
    refusal = Refusal("ConflictError", 409, "Conflict", message)
    return Answer(0, "delete_pod", "Pod", "ns", "p", b"", refusal, position)


def test_requests_that_are_alike_get_the_answers_in_the_recorded_order() -> None:
    async def run() -> list[str]:
        client = ReplayClient(ClusterObjects(), [], answers_all=False)
        tasks = [asyncio.create_task(client.delete_pod(POD)) for _ in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        # The second is gone: of the others the last is answered first.
        client.deliver(answer(2, "a"))
        client.deliver(answer(0, "b"))
        await asyncio.sleep(0)
        client.deliver(answer(0, "c"))
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        return [str(each) for each in ended]

    assert run_in_virtual_time(run()) == ["b", "", "c", "a"]
