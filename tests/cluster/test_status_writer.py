"""Statuses are written beside the loop, those of one pod in order."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.cluster.status_writer import ClientStatusWriter, StatusPatch
from kubestow.errors import ApiError, NotFoundError
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_pod

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def run() -> Run:
    """Runs a test's coroutine in virtual time."""
    return run_in_virtual_time


class SlowServer:
    """Takes a second for each request; the node name of a patch decides the result."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def patch_pod_status(
        self, pod: Pod, *, condition: object, nominated_node_name: str
    ) -> None:
        self.log.append(f"{pod.metadata.name} {nominated_node_name} begins")
        await asyncio.sleep(1)
        if nominated_node_name == "gone":
            raise NotFoundError("pods not found")
        if nominated_node_name == "refused":
            raise ApiError("no")
        if nominated_node_name == "broken":
            raise ValueError("a mistake of ours")
        self.log.append(f"{pod.metadata.name} {nominated_node_name} ends")


def writer_on(server: SlowServer) -> tuple[ClientStatusWriter, list[asyncio.Task[None]]]:
    tasks: list[asyncio.Task[None]] = []

    def spawn(work: Coroutine[Any, Any, None]) -> None:
        tasks.append(asyncio.ensure_future(work))

    return ClientStatusWriter(server, spawn), tasks  # type: ignore[arg-type]


def patch(text: str) -> StatusPatch:
    return StatusPatch(nominated_node_name=text)


def test_writes_of_one_pod_keep_their_order_and_others_do_not_wait(run: Run) -> None:
    async def go() -> None:
        server = SlowServer()
        writer, tasks = writer_on(server)
        a, b = make_pod("a"), make_pod("b")
        writer.start_write(a, patch("1"))
        writer.start_write(a, patch("2"))
        writer.start_write(b, patch("1"))
        await asyncio.gather(*tasks)
        assert server.log[:2] == ["a 1 begins", "b 1 begins"]
        assert [line for line in server.log if line.startswith("a")] == [
            "a 1 begins",
            "a 1 ends",
            "a 2 begins",
            "a 2 ends",
        ]
        assert server.log.index("b 1 ends") < server.log.index("a 2 ends")

    run(go())


def test_what_comes_while_writing_is_written_after(run: Run) -> None:
    async def go() -> None:
        server = SlowServer()
        writer, tasks = writer_on(server)
        pod = make_pod("a")
        writer.start_write(pod, patch("1"))
        await asyncio.sleep(0.5)
        writer.start_write(pod, patch("2"))
        await asyncio.gather(*tasks)
        writer.start_write(pod, patch("3"))  # everything before has ended
        await asyncio.gather(*tasks)
        assert server.log[-2:] == ["a 3 begins", "a 3 ends"]

    run(go())


@pytest.mark.parametrize(
    ("ending", "is_logged"), [("gone", False), ("refused", True)], ids=["gone", "refused"]
)
def test_a_refused_write_does_not_stop_the_next_ones(
    run: Run, caplog: pytest.LogCaptureFixture, ending: str, is_logged: bool
) -> None:
    async def go() -> None:
        server = SlowServer()
        writer, tasks = writer_on(server)
        pod = make_pod("a")
        writer.start_write(pod, patch(ending))
        writer.start_write(pod, patch("2"))
        await asyncio.gather(*tasks)
        assert server.log[-1] == "a 2 ends"
        assert ("Error updating pod default/a: no" in caplog.text) is is_logged

    run(go())


def test_after_an_exception_the_pod_can_be_written_again(run: Run) -> None:
    async def go() -> None:
        server = SlowServer()
        writer, tasks = writer_on(server)
        pod = make_pod("a")
        writer.start_write(pod, patch("broken"))
        (outcome,) = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(outcome, ValueError)
        writer.start_write(pod, patch("2"))
        await asyncio.gather(*tasks, return_exceptions=True)
        assert server.log[-1] == "a 2 ends"

    run(go())


def test_the_last_write_of_a_pod_is_known_until_it_has_ended(run: Run) -> None:
    async def go() -> None:
        server = SlowServer()
        writer, tasks = writer_on(server)
        pod = make_pod("a")
        uid = pod.metadata.uid
        assert writer.under_way(uid) is None
        writer.start_write(pod, patch("1"))
        writer.start_write(pod, patch("refused"))
        # Known at once, before the task of the write has begun.
        last = writer.under_way(uid)
        assert last is not None
        assert writer.under_way(make_pod("b").metadata.uid) is None
        await last
        assert server.log == ["a 1 begins", "a 1 ends", "a refused begins"]
        assert writer.under_way(uid) is None
        await asyncio.gather(*tasks)

    run(go())


def test_a_write_that_is_waited_for_has_its_place_and_its_error(run: Run) -> None:
    async def go() -> None:
        server = SlowServer()
        writer, tasks = writer_on(server)
        pod = make_pod("a")
        writer.start_write(pod, patch("1"))
        with pytest.raises(ApiError, match="no"):
            await writer.write(pod, patch("refused"))
        assert server.log == ["a 1 begins", "a 1 ends", "a refused begins"]
        with pytest.raises(NotFoundError):
            await writer.write(pod, patch("gone"))
        await asyncio.gather(*tasks)

    run(go())


def test_a_cancelled_write_lets_the_others_go_on(run: Run) -> None:
    async def go() -> None:
        server = SlowServer()
        writer, tasks = writer_on(server)
        pod = make_pod("a")
        writer.start_write(pod, patch("1"))
        waiting = asyncio.ensure_future(writer.write(pod, patch("2")))
        writer.start_write(pod, patch("3"))
        await asyncio.sleep(0.5)
        waiting.cancel()
        await asyncio.gather(*tasks)
        assert server.log[-1] == "a 3 ends"
        assert "a 1 ends" in server.log
        assert writer.under_way(pod.metadata.uid) is None

    run(go())
