"""What the informer's store has shown of the deletion of pods."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kubestow.api.pod import Pod
from kubestow.cache.objects import ObjectStore
from kubestow.plugins.default_preemption.deletions import Deletions
from kubestow.testing import make_pod

V = make_pod("v", uid="u1", node="n1")
TERMINATING = make_pod("v", uid="u1", node="n1", deleted=datetime(2026, 1, 1, tzinfo=UTC))
SUCCESSOR = make_pod("v", uid="u2")

Store = ObjectStore[Pod]


@pytest.mark.parametrize(
    ("stored", "is_seen", "is_gone"),
    [
        pytest.param(V, False, False, id="running"),
        pytest.param(TERMINATING, True, False, id="terminating"),
        pytest.param(None, True, True, id="gone"),
        pytest.param(SUCCESSOR, True, True, id="another-has-its-name"),
    ],
)
def test_states(stored: Pod | None, is_seen: bool, is_gone: bool) -> None:
    pods = Store()
    if stored is not None:
        pods.put(stored)
    deletions = Deletions(pods)
    assert (deletions.is_seen(V), deletions.is_gone(V)) == (is_seen, is_gone)


def remove(pods: Store) -> None:
    pods.remove("default", "v")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(remove, id="gone"),
        pytest.param(lambda pods: pods.put(TERMINATING), id="terminating"),
        pytest.param(lambda pods: pods.put(SUCCESSOR), id="another-has-its-name"),
    ],
)
def test_all_that_wait_for_a_pod_go_on(change: Callable[[Store], None]) -> None:
    async def main() -> None:
        pods = Store()
        other = make_pod("w", uid="u9", node="n1")
        pods.put(V)
        pods.put(other)
        deletions = Deletions(pods)
        waiting = [asyncio.create_task(deletions.wait_seen([V])) for _ in range(2)]
        both = asyncio.create_task(deletions.wait_seen([other, V]))
        await asyncio.sleep(0)
        pods.put(make_pod("v", uid="u1", node="n1", labels={"a": "b"}))  # another change
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        change(pods)
        await asyncio.gather(*waiting)
        assert not both.done()
        pods.remove("default", "w")
        await both

    asyncio.run(main())
