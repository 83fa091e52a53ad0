"""Pods that the API server refuses: events, pauses as kube-controller-manager's, and counts."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import EVENTS, PODS

Build = Callable[..., JsonObject]
Play = Callable[..., None]

CLASS: JsonObject = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "gold"},
    "value": 5,
}
KINDS = ("ReplicaSet", "StatefulSet", "Job")


def refused_workload(workload: Build, kind: str) -> JsonObject:
    policy = {"restartPolicy": "Never"} if kind == "Job" else {}
    return workload(kind, template={"priorityClassName": "gold", **policy})


def tries(world: Any) -> int:
    events = [stored.document for stored in world.cluster.objects_of(EVENTS)]
    return sum(each["deprecatedCount"] for each in events if each["reason"] == "FailedCreate")


@pytest.mark.parametrize("kind", KINDS)
def test_the_pause_doubles_up_to_a_limit(play: Play, workload: Build, kind: str) -> None:
    # Upstream: from 5 ms to 1000 s; of a Job from 1 s to 1 min.
    first_s, most_s = (1.0, 60.0) if kind == "Job" else (0.005, 1000.0)

    async def work(world: Any) -> None:
        world.make(refused_workload(workload, kind))
        expected, after_s, pause_s = 1, 0.0, first_s
        while after_s < 3 * most_s:
            await asyncio.sleep(after_s + pause_s / 2 - world.clock.monotonic_s())
            assert tries(world) == expected, after_s
            after_s += pause_s
            pause_s = min(2 * pause_s, most_s)
            expected += 1
        world.make(CLASS)
        await asyncio.sleep(most_s + 1)
        assert len(world.pods()) == 1

    play(work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_that_cannot_change_is_not_asked_for_again(
    play: Play, workload: Build, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    create = MemoryCluster.create

    def counted(self: MemoryCluster, resource: Any, *args: Any, **options: Any) -> Any:
        nonlocal asked
        asked += resource is PODS
        return create(self, resource, *args, **options)

    monkeypatch.setattr(MemoryCluster, "create", counted)

    async def work(world: Any) -> None:
        world.make(refused_workload(workload, kind))
        await asyncio.sleep(10_000)
        assert tries(world) > 20
        assert asked == 1
        # Another class may be the one that is missing.
        world.make({**CLASS, "metadata": {"name": "silver"}})
        await asyncio.sleep(2_000)
        assert asked == 2

    play(work)


def test_an_event_has_the_words_of_upstream(play: Play, workload: Build) -> None:
    async def work(world: Any) -> None:
        world.make(refused_workload(workload, "StatefulSet"))
        await asyncio.sleep(0.001)
        assert world.notes("FailedCreate") == [
            'create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: '
            "no PriorityClass with name gold was found"
        ]

    play(work)
