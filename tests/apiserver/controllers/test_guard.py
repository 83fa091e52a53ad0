"""A fault in the work for one object is logged and tried again; the others are not affected."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from kubestow.apiserver.controllers.guard import RETRIES_MAX, RETRY_S, RETRY_S_MAX, Faults, Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.resources import NAMESPACES
from kubestow.errors import ConflictError
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time


def play(work: Callable[[StoredObject, StoredObject], Awaitable[None]]) -> None:
    async def inside() -> None:
        cluster = MemoryCluster(VirtualClock(asyncio.get_running_loop()))
        bad, good = (
            cluster.create(NAMESPACES, {"metadata": {"name": name}}) for name in ("bad", "good")
        )
        await work(bad, good)

    run_in_virtual_time(inside())


class Work:
    """Fails a number of times, then succeeds; records when it was called."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.called_s: list[float] = []

    def __call__(self) -> None:
        self.called_s.append(asyncio.get_running_loop().time())
        if len(self.called_s) <= self.failures:
            raise TypeError("'<' not supported between instances of 'str' and 'int'")


def test_a_fault_is_tried_again_after_a_pause_that_doubles():
    async def work(bad: StoredObject, good: StoredObject) -> None:
        guard, failing, other = Guard("test"), Work(3), Work(0)
        guard.run(bad, failing)
        guard.run(good, other)
        await asyncio.sleep(1_000)
        assert failing.called_s == [0, RETRY_S, RETRY_S * 3, RETRY_S * 7]
        assert len(other.called_s) == 1

    play(work)


def test_an_event_does_not_wait_for_the_pause():
    async def work(bad: StoredObject, _good: StoredObject) -> None:
        guard, failing = Guard("test"), Work(1)
        guard.run(bad, failing)
        guard.run(bad, failing)
        await asyncio.sleep(1_000)
        assert failing.called_s == [0, 0]

    play(work)


def test_tries_end_and_begin_again_with_an_event():
    async def work(bad: StoredObject, _good: StoredObject) -> None:
        guard, failing = Guard("test"), Work(1_000)
        guard.run(bad, failing)
        await asyncio.sleep(RETRY_S_MAX * RETRIES_MAX * 2)
        assert len(failing.called_s) == 1 + RETRIES_MAX
        guard.run(bad, failing)
        assert len(failing.called_s) == 2 + RETRIES_MAX

    play(work)


def test_success_forgets_the_failures():
    async def work(bad: StoredObject, _good: StoredObject) -> None:
        faults = Faults("test")
        assert faults.failed(bad, ValueError()) == RETRY_S
        assert faults.failed(bad, ValueError()) == RETRY_S * 2
        assert faults.failed(bad, ValueError(), "another step") == RETRY_S
        faults.succeeded(bad)
        assert faults.failed(bad, ValueError()) == RETRY_S

    play(work)


def test_closing_cancels_what_is_due():
    async def work(bad: StoredObject, _good: StoredObject) -> None:
        guard, failing = Guard("test"), Work(1)
        guard.run(bad, failing)
        guard.close()
        await asyncio.sleep(1_000)
        assert len(failing.called_s) == 1

    play(work)


@pytest.mark.parametrize(
    ("error", "level", "text", "has_traceback"),
    [
        pytest.param(TypeError("str and int"), "ERROR", "TypeError: str and int", True, id="fault"),
        pytest.param(ConflictError("modified"), "WARNING", "modified", False, id="refusal"),
    ],
)
def test_the_log_names_the_object_and_the_fault(
    caplog: pytest.LogCaptureFixture, error: Exception, level: str, text: str, has_traceback: bool
):
    def fail() -> None:
        raise error

    async def work(bad: StoredObject, _good: StoredObject) -> None:
        Guard("job-controller").run(bad, fail)

    with caplog.at_level(logging.WARNING):
        play(work)
    (record,) = caplog.records
    assert record.levelname == level
    assert record.getMessage() == f"job-controller: Namespace bad: {text}; next try in 1 s"
    assert bool(record.exc_info) is has_traceback
