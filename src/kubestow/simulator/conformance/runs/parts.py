"""Parts of the scheduler that let a replay see and order what they do."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar

from kubestow.api.group import GroupKey, TreeNode
from kubestow.api.meta import Condition
from kubestow.api.pod import Pod
from kubestow.api.pod_group import UpstreamPodGroup
from kubestow.api.pod_info import PodInfo
from kubestow.cache.groups import Groups
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.status_writer import StatusPatch
from kubestow.engine.decision import Decision, Nomination
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.groups.condition import ConditionWriter
from kubestow.engine.groups.outcome import GroupOutcome
from kubestow.engine.observer import Observer
from kubestow.engine.tasks import BackgroundTasks
from kubestow.errors import ApiError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Registrations
from kubestow.framework.group_cycle import Assignments, GroupPlacement
from kubestow.framework.handle import Handle
from kubestow.framework.placements import PlacementTotals
from kubestow.framework.status import Status
from kubestow.framework.victims import DeletionResult, delete_pod
from kubestow.queue import QueuedPod
from kubestow.simulator.conformance.runs.api import RunApi, Turn, binding_pod
from kubestow.simulator.conformance.runs.observed import Observed


class RunObserver(Observer):
    """Notes what the recording notes, and lets happen then what happened there."""

    def __init__(
        self, api: RunApi, observed: Observed, after_search: Callable[[str], None]
    ) -> None:
        """`after_search` is called with a pod's key when the search for its node has ended."""
        self._api = api
        self._observed = observed
        self._after_search = after_search

    def searched(self, decision: Decision) -> None:
        # If a node fits, the recording went on only after the scores.
        if not decision.feasible_count:
            self._after_search(decision.pod.key)

    def decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        self._observed.add_attempt(queued_pod.key, decision)
        if decision.is_scheduled:
            self._after_search(queued_pod.key)

    def submitted(self, queued_pod: QueuedPod, node_name: str) -> None:
        binding_pod.set(queued_pod.key)

    async def binding_failed(self, queued_pod: QueuedPod, status: Status) -> None:
        """The recording lets all writes be served before a failed pod goes back."""
        await self._api.request(Turn.RETURN, queued_pod.key, (), lambda: None)

    def failed(self, queued_pod: QueuedPod, status: Status, nomination: Nomination | None) -> None:
        self._observed.add_failure(queued_pod, status, nomination)

    def collected(self, key: GroupKey, queued_pods: Sequence[QueuedPod]) -> None:
        self._observed.group = str(key), [queued_pod.key for queued_pod in queued_pods]
        self._observed.keys = {queued_pod.uid: queued_pod.key for queued_pod in queued_pods}

    def placements_generated(
        self,
        placements: Sequence[GroupPlacement] | Status,
        node_names: Sequence[str],
        part: TreeNode | None = None,
    ) -> None:
        self._observed.add_placements(placements, node_names, part)

    def placement_asked(
        self, node: TreeNode, scheduled_count: int, remaining_count: int, answer: Status | None
    ) -> None:
        self._observed.add_question(node, scheduled_count, remaining_count, answer)

    def group_post_filtered(self, status: Status, nominations: Mapping[str, str]) -> None:
        self._observed.add_group_post_filter(status, nominations)

    def group_tried(self, outcome: GroupOutcome, placement: GroupPlacement | None) -> None:
        self._observed.complete_attempts(outcome, placement)

    def placements_scored(
        self,
        candidates: Sequence[Assignments],
        totals: PlacementTotals,
        part: TreeNode | None = None,
    ) -> None:
        self._observed.add_scores(candidates, totals, part)


class RunStatusWriter:
    """Writes of a scheduling cycle are served at once, those of other tasks in their turn."""

    def __init__(self, api: RunApi, client: ClusterClient, tasks: BackgroundTasks) -> None:
        self._api = api
        self._client = client
        self._tasks = tasks

    def under_way(self, uid: str) -> None:
        """None: a cycle's writes have ended with it, and tasks wait for their own."""

    def start_write(self, pod: Pod, patch: StatusPatch) -> asyncio.Future[None]:
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._api.is_in_cycle:
            self._tasks.spawn(self._write(pod, patch, ended))
            return ended
        with suppress(ApiError):  # Noted with the write; the scheduler only logs it.
            self._api.patch_status(pod, patch.condition, patch.nominated_node_name)
        ended.set_result(None)
        return ended

    async def write(self, pod: Pod, patch: StatusPatch) -> None:
        await self._client.patch_pod_status(
            pod, condition=patch.condition, nominated_node_name=patch.nominated_node_name
        )

    async def _write(self, pod: Pod, patch: StatusPatch, ended: asyncio.Future[None]) -> None:
        with suppress(ApiError):  # As above.
            await self.write(pod, patch)
        ended.set_result(None)


class RunVictims:
    """Each preemptor deletes its victims by itself, as recorded."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    async def delete(self, victim: Pod, condition: Condition | None) -> DeletionResult:
        return await delete_pod(self._client, victim, condition)

    def is_sent(self, victim: Pod) -> bool:
        """False: no event is delivered before the answer."""
        return False

    def is_requested(self, uid: str) -> bool:
        """False: preemptors read this from the pod, which is up to date."""
        return False


class RunConditionWriter(ConditionWriter):
    """Written in the scheduling cycle, so served at once."""

    api: RunApi

    def start_write(self, key: GroupKey, pod_group: UpstreamPodGroup, condition: Condition) -> None:
        with suppress(ApiError):  # Noted with the write; the scheduler only logs it.
            self.api.patch_group_status(pod_group, condition)


class FailReserve:
    """The recorder's plugin that rejects a pod when it is reserved."""

    name: ClassVar[str] = "FailReserve"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self.failing: dict[str, int] = {}

    def events(self) -> Registrations:
        return ()

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        # Never in the trial of a group.
        if state.group_cycle is not None or self.failing.get(pod.key, 0) <= 0:
            return None
        self.failing[pod.key] -= 1
        return Status.unschedulable("held back by the scenario")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...


class RunParts(SchedulerFactory):
    """Writes are served by `api`, in the order of the recording."""

    api: RunApi

    def make_status_writer(self, tasks: BackgroundTasks) -> RunStatusWriter:
        return RunStatusWriter(self.api, self.client, tasks)

    def make_condition_writer(self, groups: Groups, tasks: BackgroundTasks) -> RunConditionWriter:
        writer = RunConditionWriter(groups, self.client, self.clock, tasks.spawn)
        writer.api = self.api
        return writer

    def make_victims(self) -> RunVictims:
        return RunVictims(self.client)


def run_factory(factory: type[SchedulerFactory]) -> type[RunParts]:
    """The factory of an edition, with the parts of a replay; `api` is set on what it makes."""

    class RunFactory(RunParts, factory):
        pass

    return RunFactory
