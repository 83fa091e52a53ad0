"""First come, first served, by name (spec 02 §19.2)."""

import asyncio

from kubestow.editions.v1_9.queue.fifo import STALE_KEYS_MAX, Fifo
from kubestow.testing.builders import make_pod


def names(queue: Fifo) -> list[str]:
    found: list[str] = []
    while (pod := queue.pop_nowait()) is not None:
        found.append(f"{pod.metadata.name}{pod.metadata.labels.get('v', '')}")
    return found


def test_3_an_update_keeps_the_place() -> None:
    queue = Fifo()
    for name in "abc":
        queue.add(make_pod(name))
    queue.add(make_pod("a", labels={"v": "2"}))
    assert names(queue) == ["a2", "b", "c"]


def test_4_deleted_and_added_again_keeps_the_place() -> None:
    queue = Fifo()
    queue.add(make_pod("a"))
    queue.add(make_pod("b"))
    queue.delete(make_pod("a"))
    queue.add(make_pod("a"))
    assert names(queue) == ["a", "b"]


def test_5_added_if_not_present_is_there_once() -> None:
    queue = Fifo()
    queue.add(make_pod("a"))
    assert names(queue) == ["a"]
    queue.add_if_not_present(make_pod("a"))
    queue.add_if_not_present(make_pod("a", labels={"v": "2"}))
    assert names(queue) == ["a"]


def test_a_waiting_pop_gets_the_next_pod_and_none_after_close() -> None:
    async def run() -> list[str | None]:
        queue = Fifo()
        waiting = asyncio.create_task(queue.pop())
        await asyncio.sleep(0)
        queue.add(make_pod("a"))
        first = await waiting
        queue.close()
        second = await queue.pop()
        return [pod and pod.metadata.name for pod in (first, second)]

    assert asyncio.run(run()) == ["a", None]


def test_keys_of_deleted_pods_are_dropped_in_time() -> None:
    """A standby adds every pod and deletes it when the leader has bound it, but never pops."""
    fifo = Fifo()
    waiting = [make_pod(f"waiting-{number}") for number in range(3)]
    for pod in waiting:
        fifo.add(pod)
    for number in range(3 * STALE_KEYS_MAX):
        pod = make_pod(f"bound-{number}")
        fifo.add(pod)
        fifo.delete(pod)
        assert len(fifo._order) <= 2 * len(fifo) + STALE_KEYS_MAX + 2
    assert [fifo.pop_nowait() for _ in range(4)] == [*waiting, None]
