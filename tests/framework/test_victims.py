"""Victims are deleted with one request each, and by their UID."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from kubestow.api.meta import Condition
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ObjectStore
from kubestow.cluster.resources import PODS
from kubestow.errors import ApiError
from kubestow.framework.victims import DeletionResult, SharedVictims
from kubestow.testing import ManualClock, make_pod

LEAVING = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


class Server(MemoryClient):
    """Its deletions wait until they are let go, and fail where configured."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster(ManualClock())
        super().__init__(self.cluster)
        self.calls: list[str] = []
        self.answering = asyncio.Event()
        self.failure: ApiError | None = None

    async def patch_pod_status(self, pod: Pod, **changes: Any) -> None:
        self.calls.append("patch")
        await super().patch_pod_status(pod, **changes)

    async def delete_pod(self, pod: Pod) -> None:
        self.calls.append("delete")
        await self.answering.wait()
        if self.failure is not None:
            raise self.failure
        await super().delete_pod(pod)


class Setting:
    """A pod on a node, in the API server and in the informer's store."""

    def __init__(self) -> None:
        self.server = Server()
        self.store = ObjectStore[Pod]()
        self.victim = self.create()
        self.store.put(self.victim)
        self.victims = SharedVictims(self.server, self.store)

    def create(self) -> Pod:
        spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "web"}]}
        metadata = {"name": "db-0", "namespace": "default"}
        stored = self.server.cluster.create(PODS, {"metadata": metadata, "spec": spec})
        assert isinstance(stored.typed, Pod)
        return stored.typed

    def start(self) -> "asyncio.Task[DeletionResult]":
        return asyncio.ensure_future(self.victims.delete(self.victim, LEAVING))


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_calls_for_the_same_victim_share_a_request_until_it_is_seen() -> None:
    async def main() -> None:
        setting = Setting()
        uid, victims = setting.victim.metadata.uid, setting.victims
        first, second = setting.start(), setting.start()
        await turns()
        assert (victims.is_requested(uid), victims.is_sent(setting.victim)) == (True, True)
        setting.server.answering.set()
        assert (await first, await second) == (DeletionResult.MADE, DeletionResult.SHARED)
        # Answered, and the watch has not shown it yet.
        assert (victims.is_requested(uid), victims.is_sent(setting.victim)) == (True, False)
        assert await setting.start() is DeletionResult.SHARED
        setting.store.remove("default", "db-0")
        assert not victims.is_requested(uid)
        assert await setting.start() is DeletionResult.SHARED
        assert setting.server.calls == ["patch", "delete"]
        assert len(victims) == 0

    run(main())


def test_a_watch_that_is_ahead_of_the_answer_leaves_nothing_behind() -> None:
    async def main() -> None:
        setting = Setting()
        first = setting.start()
        await turns()
        setting.store.remove("default", "db-0")
        assert setting.victims.is_requested(setting.victim.metadata.uid)
        setting.server.answering.set()
        assert await first is DeletionResult.MADE
        await turns()
        assert len(setting.victims) == 0

    run(main())


def test_a_pod_made_again_under_the_name_of_a_victim_is_left_alone() -> None:
    async def main() -> None:
        setting = Setting()
        setting.server.answering.set()
        setting.server.cluster.delete(PODS, "default", "db-0", grace_period_s=0)
        again = setting.create()
        assert await setting.start() is DeletionResult.GONE
        assert setting.server.calls == ["patch"]
        # Without a condition to write, the deletion itself is refused.
        assert await setting.victims.delete(setting.victim, None) is DeletionResult.SHARED
        setting.store.put(again)
        setting.store.put(setting.victim)
        assert await setting.victims.delete(setting.victim, None) is DeletionResult.GONE
        found = setting.server.cluster.get(PODS, "default", "db-0").document
        assert found["metadata"]["uid"] == again.metadata.uid
        assert "deletionTimestamp" not in found["metadata"]
        assert not found["status"].get("conditions")

    run(main())


def test_after_a_failure_the_request_is_made_again() -> None:
    async def main() -> None:
        setting = Setting()
        setting.server.failure = ApiError("no")
        both = [setting.start(), setting.start()]
        await turns()
        setting.server.answering.set()
        for call in both:
            with pytest.raises(ApiError, match="no"):
                await call
        assert not setting.victims.is_requested(setting.victim.metadata.uid)
        setting.server.failure = None
        assert await setting.start() is DeletionResult.MADE
        assert setting.server.calls == ["patch", "delete", "patch", "delete"]

    run(main())


def test_a_request_goes_on_while_any_call_waits_for_it() -> None:
    async def main() -> None:
        setting = Setting()
        first, second = setting.start(), setting.start()
        await turns()
        first.cancel()
        await turns()
        setting.server.answering.set()
        assert await second is DeletionResult.SHARED
        assert first.cancelled()

        setting = Setting()
        first = setting.start()
        await turns()
        first.cancel()
        await turns()
        # Cancelled with its last call; another one makes it again.
        assert not setting.victims.is_requested(setting.victim.metadata.uid)
        setting.server.answering.set()
        assert await setting.start() is DeletionResult.MADE

    run(main())


def test_pods_that_were_no_victims_are_of_no_interest() -> None:
    async def main() -> None:
        setting = Setting()
        first = setting.start()
        await turns()
        setting.store.put(make_pod("other"))
        setting.store.remove("default", "other")
        assert len(setting.victims) == 1
        first.cancel()
        await turns()
        assert len(setting.victims) == 0

    run(main())
