"""The condition of a group's object: whether its members were placed (spec 11 §7.6)."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Final

import msgspec

from kubestow.api.group import GroupKey
from kubestow.api.meta import Condition, object_ref
from kubestow.api.pod import first_condition
from kubestow.api.pod_group import PodGroupV1Beta1, UpstreamPodGroup
from kubestow.cache.groups import Groups
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.documents import whole_seconds_at
from kubestow.cluster.pod_status import group_status_patch
from kubestow.engine.groups.outcome import GroupOutcome
from kubestow.errors import ApiError, UnreachableError

log = logging.getLogger(__name__)

POD_GROUP_SCHEDULED: Final = "PodGroupScheduled"
# As of v1.37 (spec 11 §16).
POD_GROUP_INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
# Pauses before the patch is sent again; one try more than pauses.
RETRIES_S: Final = (0.01, 0.05, 0.25)
_RETRIED_CODES: Final = frozenset((409, 500, 503))


class ConditionWriter:
    """Writes of one group keep their order; those of different groups do not wait for each other.

    Upstream waits for the write in its scheduling loop. Here a cycle never waits, so the condition
    that is being written is remembered.
    """

    def __init__(
        self,
        groups: Groups,
        client: ClusterClient,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._groups = groups
        self._client = client
        self._clock = clock
        self._spawn = spawn
        self._waiting: dict[GroupKey, deque[tuple[UpstreamPodGroup, Condition]]] = {}
        self._last: dict[GroupKey, tuple[UpstreamPodGroup, Condition]] = {}

    @property
    def pending_count(self) -> int:
        """How many groups have a condition that is being written."""
        return len(self._last)

    def write(self, key: GroupKey, outcome: GroupOutcome) -> None:
        """Write the condition that follows from the result of a cycle, if it changes anything."""
        pod_group = self._groups.object_of(key)
        if pod_group is None:
            log.error('Failed to get PodGroup for status update: podgroup "%s" not found', key.name)
            return
        if not isinstance(pod_group, UpstreamPodGroup):
            return  # its status belongs to the controller of its API
        condition = changed(
            self._known(key, pod_group),
            condition_of(outcome, pod_group.metadata.generation, type=type_of(pod_group)),
            now=whole_seconds_at(self._clock.now_ns()),
        )
        if condition is not None:
            self.start_write(key, pod_group, condition)

    def start_write(self, key: GroupKey, pod_group: UpstreamPodGroup, condition: Condition) -> None:
        self._last[key] = pod_group, condition
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append((pod_group, condition))
            return
        self._waiting[key] = deque([(pod_group, condition)])
        self._spawn(self._write_all(key))

    def _known(self, key: GroupKey, pod_group: UpstreamPodGroup) -> Condition | None:
        last = self._last.get(key)
        if last is not None and last[0] is pod_group:
            return last[1]
        self._last.pop(key, None)
        return first_condition(pod_group.status.conditions, type_of(pod_group))

    async def _write_all(self, key: GroupKey) -> None:
        waiting = self._waiting[key]
        try:
            while waiting:
                await self._write(*waiting.popleft())
        finally:
            del self._waiting[key]
            self._last.pop(key, None)

    async def _write(self, pod_group: UpstreamPodGroup, condition: Condition) -> None:
        meta = pod_group.metadata
        patch = group_status_patch(pod_group, condition)
        for pause_s in (*RETRIES_S, None):
            try:
                await self._client.patch(
                    type(pod_group), meta.namespace, meta.name, patch, subresource="status"
                )
                return
            except ApiError as error:
                if pause_s is None or not _is_retried(error):
                    log.error("Failed to update PodGroup status %s: %s", object_ref(meta), error)
                    return
                await asyncio.sleep(pause_s)


def type_of(pod_group: UpstreamPodGroup) -> str:
    """The type of the condition that the version of the API has."""
    is_newer = isinstance(pod_group, PodGroupV1Beta1)
    return POD_GROUP_INITIALLY_SCHEDULED if is_newer else POD_GROUP_SCHEDULED


def condition_of(
    outcome: GroupOutcome, generation: int, *, type: str = POD_GROUP_SCHEDULED
) -> Condition:
    status = outcome.status
    if status is None:
        return Condition(
            type=type,
            status="True",
            reason="Scheduled",
            observed_generation=generation,
        )
    return Condition(
        type=type,
        status="False",
        reason="Unschedulable" if status.is_rejected else "SchedulerError",
        message=status.message if status.is_rejected else str(status.as_error()),
        observed_generation=generation,
    )


def changed(known: Condition | None, new: Condition, *, now: datetime) -> Condition | None:
    """The condition to write; None if that would change nothing, or take back a success."""
    if known is None:
        return msgspec.structs.replace(new, last_transition_time=now)
    if known.status != new.status:
        if known.status == "True":
            return None
        return msgspec.structs.replace(new, last_transition_time=now)
    new = msgspec.structs.replace(new, last_transition_time=known.last_transition_time)
    return None if new == known else new


def _is_retried(error: ApiError) -> bool:
    if isinstance(error, UnreachableError):
        return error.cause == "refused"
    return error.code in _RETRIED_CODES
