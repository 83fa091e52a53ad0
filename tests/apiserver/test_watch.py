"""Waiting for changes: one wake-up for a burst, and an end that wakes the reader."""

import asyncio
from collections.abc import Callable

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.selectors import EVERYTHING, parse_selection
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.watch import UNREAD_MAX, Watch, WatchEvent, WatchGroup
from kubestow.cluster.resources import PODS

Build = Callable[..., JsonObject]


def added(name: str, version: int) -> WatchEvent:
    document = {"metadata": {"name": name, "resourceVersion": str(version)}}
    return WatchEvent("ADDED", StoredObject(PODS, document, version))


def test_a_waiting_reader_gets_a_burst_in_one_batch(cluster: MemoryCluster, pod_document: Build):
    async def run() -> list[list[str]]:
        watch = cluster.watch(PODS)
        batches: list[list[str]] = []

        async def read() -> None:
            while batch := await watch.next_batch():
                batches.append([event.stored.name for event in batch])

        reader = asyncio.create_task(read())
        await asyncio.sleep(0)
        for index in range(3):
            cluster.create(PODS, pod_document(f"a{index}"))
        await asyncio.sleep(0)
        cluster.create(PODS, pod_document("b"))
        watch.close()
        await reader
        return batches

    assert asyncio.run(run()) == [["a0", "a1", "a2"], ["b"]]


def test_pending_events_are_read_without_yielding():
    async def run() -> int:
        watch = Watch(EVERYTHING)
        watch.push(added("a", 1))
        coroutine = watch.next_batch()
        with pytest.raises(StopIteration) as stopped:
            coroutine.send(None)
        return len(stopped.value.value)

    assert asyncio.run(run()) == 1


def test_closing_ends_the_wait_with_an_empty_batch():
    async def run() -> list[int]:
        watch = Watch(EVERYTHING)
        reader = asyncio.create_task(watch.next_batch())
        await asyncio.sleep(0)
        watch.close()
        return [len(await reader), len(await watch.next_batch())]

    assert asyncio.run(run()) == [0, 0]


def test_a_cancelled_reader_can_be_replaced_by_another():
    async def run() -> int:
        watch = Watch(EVERYTHING)
        reader = asyncio.create_task(watch.next_batch())
        await asyncio.sleep(0)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        watch.push(added("a", 1))
        return len(await watch.next_batch())

    assert asyncio.run(run()) == 1


def test_a_reader_too_far_behind_loses_its_watch():
    closed: list[Watch] = []
    watch = Watch(EVERYTHING, on_close=closed.append, pending_max=2)
    for version in range(1, 4):
        watch.push(added(f"p{version}", version))
    assert watch.is_closed
    assert closed == [watch]
    # All unread events are dropped: a gap in the middle could not be detected.
    assert watch.events_nowait() == []


# --- Events that can wait, and events that are left out ----------------------------------------


def test_events_that_can_wait_are_read_with_the_next_that_cannot():
    async def run() -> list[list[str]]:
        watch = Watch(EVERYTHING, wakes=lambda event: event.stored.name == "urgent")
        batches: list[list[str]] = []

        async def read() -> None:
            while batch := await watch.next_batch():
                batches.append([event.stored.name for event in batch])

        reader = asyncio.create_task(read())
        await asyncio.sleep(0)
        for version, name in enumerate(("a", "b", "urgent", "c"), start=1):
            watch.push(added(name, version))
            await asyncio.sleep(0)
        watch.close()
        await reader
        return batches

    assert asyncio.run(run()) == [["a", "b", "urgent"], ["c"]]


def test_many_events_that_can_wait_are_read_at_last():
    async def run() -> int:
        watch = Watch(EVERYTHING, wakes=lambda event: False)
        reader = asyncio.create_task(watch.next_batch())
        for version in range(1, UNREAD_MAX + 1):
            await asyncio.sleep(0)
            assert not reader.done()
            watch.push(added(f"p{version}", version))
        return len(await reader)

    assert asyncio.run(run()) == UNREAD_MAX


def test_events_of_no_concern_are_left_out():
    watch = Watch(EVERYTHING, concerns=lambda event: event.stored.name != "b")
    group = WatchGroup([watch])
    for version, name in enumerate(("a", "b", "c"), start=1):
        watch.push(added(name, version))
    assert [event.stored.name for event in group.events_nowait()] == ["a", "c"]


@pytest.mark.parametrize("before", ["Pending", "Running", "Succeeded", None])
@pytest.mark.parametrize("after", ["Pending", "Running", "Failed", None])
def test_what_leaves_out_some_pods_says_when_they_come_and_go(
    cluster: MemoryCluster, pod_document: Build, before: str | None, after: str | None
):
    if before is not None:
        cluster.create(PODS, {**pod_document("a"), "status": {"phase": before}})
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    # The second selects alike, and is asked about each pod.
    watches = [
        cluster.watch(PODS, parse_selection(PODS, field_selector=text))
        for text in (selector, f"{selector},spec.nodeName!=none")
    ]
    for watch in watches:
        watch.events_nowait()
    if before is None and after is not None:
        cluster.create(PODS, {**pod_document("a"), "status": {"phase": after}})
    elif before is not None and after is not None:
        status = {"phase": after, "message": "new"}
        cluster.patch(PODS, "default", "a", {"status": status}, "merge", subresource="status")
    elif before is not None:
        cluster.delete(PODS, "default", "a", grace_period_s=0)
    was_seen, is_seen = before in ("Pending", "Running"), after in ("Pending", "Running")
    expected = {(False, True): ["ADDED"], (True, True): ["MODIFIED"], (True, False): ["DELETED"]}
    for watch in watches:
        types = [event.type for event in watch.events_nowait()]
        assert types == expected.get((was_seen, is_seen), [])


def test_an_observer_is_called_with_each_write(cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document("first"))
    seen: list[tuple[str, str]] = []
    cluster.observe(PODS, lambda event: seen.append((event.type, event.stored.name)))
    cluster.create(PODS, pod_document("second"))
    assert seen == [("ADDED", "first"), ("ADDED", "second")]
    cluster.delete(PODS, "default", "first", grace_period_s=0)
    assert seen[-1] == ("DELETED", "first")


# --- Groups -----------------------------------------------------------------------------------


def test_a_group_gives_the_events_of_all_watches_in_the_order_of_the_writes():
    first, second = Watch(EVERYTHING), Watch(EVERYTHING)
    group = WatchGroup([first, second])
    first.push(added("a", 1))
    first.push(added("c", 3))
    second.push(added("b", 2))
    assert [event.stored.name for event in group.events_nowait()] == ["a", "b", "c"]
    assert group.events_nowait() == []


def test_a_group_waits_for_any_of_its_watches():
    async def run() -> list[str]:
        first, second = Watch(EVERYTHING), Watch(EVERYTHING)
        group = WatchGroup([first, second])
        seen: list[str] = []
        for watch, name in ((first, "a"), (second, "b"), (second, "c")):
            waiting = asyncio.create_task(group.wait())
            await asyncio.sleep(0)
            assert not waiting.done()
            watch.push(added(name, 1))
            await waiting
            seen += [event.stored.name for event in group.events_nowait()]
        return seen

    assert asyncio.run(run()) == ["a", "b", "c"]


@pytest.mark.parametrize("is_early", [True, False], ids=["before", "while-waiting"])
def test_a_group_can_be_woken(is_early: bool):
    async def run() -> None:
        group = WatchGroup([Watch(EVERYTHING)])
        if is_early:
            group.wake()
        waiting = asyncio.create_task(group.wait())
        await asyncio.sleep(0)
        group.wake()
        await waiting
        group.wake()
        await group.wait()

    asyncio.run(run())


def test_a_group_ends_with_its_first_watch():
    async def run() -> bool:
        watches = [Watch(EVERYTHING), Watch(EVERYTHING)]
        group = WatchGroup(watches)
        waiting = asyncio.create_task(group.wait())
        await asyncio.sleep(0)
        watches[1].close()
        await waiting
        return group.is_closed

    assert asyncio.run(run())
