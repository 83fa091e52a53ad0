"""The condition of a group: when it changes, and how it is written (spec 11 §7.6)."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kubestow.api.group import GroupKey
from kubestow.api.meta import Condition
from kubestow.api.pod_group import PodGroup, PodGroupStatus
from kubestow.cache.groups import Groups
from kubestow.cache.objects import ObjectStore
from kubestow.cluster.pod_status import group_status_patch
from kubestow.engine.groups.condition import POD_GROUP_SCHEDULED, ConditionWriter, changed
from kubestow.engine.groups.outcome import GROUP_UNSCHEDULABLE, GroupOutcome
from kubestow.engine.tasks import BackgroundTasks
from kubestow.errors import ApiError, ConflictError
from kubestow.framework.status import Status
from kubestow.simulator.virtual_time import VirtualClock
from kubestow.testing import make_pod_group, run_in_virtual_time

KEY = GroupKey("default", "g")
EARLIER, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
PLACED = GroupOutcome((), None)
MISFIT = GroupOutcome((), GROUP_UNSCHEDULABLE)
FAILED = GroupOutcome((), Status.from_error(ApiError("boom")))


def condition(status: str, message: str = "", generation: int = 1) -> Condition:
    return Condition(
        type=POD_GROUP_SCHEDULED,
        status=status,
        message=message,
        observed_generation=generation,
        last_transition_time=EARLIER,
    )


@pytest.mark.parametrize(
    ("known", "new", "written_at"),
    [
        pytest.param(None, condition("False"), NOW, id="first"),
        pytest.param(condition("False"), condition("True"), NOW, id="placed"),
        pytest.param(condition("True"), condition("False"), None, id="never-back"),
        pytest.param(condition("False"), condition("False"), None, id="the-same"),
        pytest.param(condition("False"), condition("False", "other"), EARLIER, id="message"),
        pytest.param(condition("True"), condition("True", "", 2), EARLIER, id="generation"),
    ],
)
def test_when_a_condition_is_written(
    known: Condition | None, new: Condition, written_at: datetime | None
) -> None:
    found = changed(known, new, now=NOW)
    assert (None if found is None else found.last_transition_time) == written_at


class FakeClient:
    def __init__(self, *errors: ApiError) -> None:
        self.errors = list(errors)
        self.patches: list[Any] = []

    async def patch(self, cls: Any, namespace: str, name: str, patch: Any, **_: Any) -> None:
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        self.patches.append(patch["status"]["conditions"][0])


class Writing:
    def __init__(self, *errors: ApiError) -> None:
        self.store = ObjectStore[PodGroup]()
        self.store.put(make_pod_group("g", min_count=2))
        self.client = FakeClient(*errors)
        clock = VirtualClock(asyncio.get_running_loop())
        self.tasks = BackgroundTasks(clock)
        self.writer = ConditionWriter(
            Groups(self.store),
            self.client,  # type: ignore[arg-type]
            clock,
            self.tasks.spawn,
        )

    async def end(self) -> list[tuple[str, str]]:
        assert await self.tasks.drain(10)
        return [(patch["status"], patch["reason"]) for patch in self.client.patches]


def test_writes_of_a_group_keep_their_order() -> None:
    async def test() -> None:
        writing = Writing()
        for outcome in (MISFIT, MISFIT, FAILED, PLACED, MISFIT):
            writing.writer.write(KEY, outcome)
        assert await writing.end() == [
            ("False", "Unschedulable"),
            ("False", "SchedulerError"),
            ("True", "Scheduled"),
        ]

    run_in_virtual_time(test())


def test_a_conflict_is_tried_again_and_a_refusal_is_not() -> None:
    async def test() -> None:
        writing = Writing(ConflictError("changed"), ApiError("busy", code=503))
        writing.writer.write(KEY, PLACED)
        assert await writing.end() == [("True", "Scheduled")]
        writing = Writing(ApiError("no", code=403))
        writing.writer.write(KEY, PLACED)
        assert await writing.end() == []

    run_in_virtual_time(test())


def test_nothing_is_kept_after_writing() -> None:
    async def test() -> None:
        writing = Writing()
        writing.writer.write(KEY, PLACED)
        assert writing.writer.pending_count == 1
        await writing.end()
        assert writing.writer.pending_count == 0
        writing.writer.write(GroupKey("default", "gone"), PLACED)
        assert writing.writer.pending_count == 0

    run_in_virtual_time(test())


def test_the_patch_names_only_what_differs() -> None:
    old = condition("False", "why")
    group = msgspec.structs.replace(make_pod_group("g"), status=PodGroupStatus(conditions=(old,)))
    new = msgspec.structs.replace(old, message="")
    assert group_status_patch(group, old) == {}
    assert group_status_patch(group, new)["status"]["conditions"] == [
        {"type": POD_GROUP_SCHEDULED, "message": ""}
    ]
