"""Parts of the scheduler that let a replay see and order what they do."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from kubestow.api.group import GroupKey
from kubestow.api.meta import Condition
from kubestow.api.pod import Pod
from kubestow.api.pod_group import UpstreamPodGroup
from kubestow.api.pod_info import PodInfo
from kubestow.cache.trial import SnapshotTrial
from kubestow.cluster.status_writer import StatusPatch
from kubestow.engine.bind import Binder, Placement
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision, Nomination
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.failure import FailureHandler
from kubestow.engine.groups.collect import CollectedGroup, Collector
from kubestow.engine.groups.condition import ConditionWriter
from kubestow.engine.groups.cycle import GroupScheduler
from kubestow.engine.groups.outcome import GroupOutcome, MemberOutcome
from kubestow.engine.groups.placements import PlacementTrials
from kubestow.engine.groups.trial import GroupTrials
from kubestow.engine.scheduler import Scheduler
from kubestow.engine.tasks import BackgroundTasks
from kubestow.errors import ApiError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Registrations
from kubestow.framework.group_cycle import Assignments, GroupCycle, GroupPlacement
from kubestow.framework.handle import Handle
from kubestow.framework.metrics import NO_METER, CycleMeter
from kubestow.framework.placements import PlacementTotals
from kubestow.framework.profile import Profile
from kubestow.framework.status import Status
from kubestow.framework.victims import DeletionResult, delete_pod
from kubestow.queue import QueuedPod
from kubestow.simulator.conformance.runs.api import RunApi, RunClient, Turn, binding_pod
from kubestow.simulator.conformance.runs.observed import Observed


@dataclass(frozen=True)
class Hooks:
    """What the parts report to, and what orders them."""

    api: RunApi
    client: RunClient
    observed: Observed
    # Called with a pod's key between the search for a node and PostFilter.
    searched: Callable[[str], None]
    # Pod → how many of its next calls of FailReserve fail.
    failing_reserves: dict[str, int]


class RunDecider(Decider):
    hooks: Hooks

    def after_filters_failed(self, profile: Profile, decision: Decision) -> Decision:
        self.hooks.searched(decision.pod.key)
        return super().after_filters_failed(profile, decision)


class RunBinder(Binder):
    hooks: Hooks

    async def try_bind(self, placement: Placement) -> Status | None:
        binding_pod.set(placement.pod.key)
        status = await super().try_bind(placement)
        if status is not None:
            # The recording lets all writes be served before a failed pod goes back.
            await self.hooks.api.request(Turn.RETURN, placement.pod.key, (), lambda: None)
        return status


class RunFailures(FailureHandler):
    hooks: Hooks

    def handle(
        self,
        queued_pod: QueuedPod,
        status: Status,
        nomination: Nomination | None,
        meter: CycleMeter = NO_METER,
    ) -> None:
        super().handle(queued_pod, status, nomination, meter)
        self.hooks.observed.add_failure(queued_pod, status, nomination)


class RunStatusWriter:
    """Writes of a scheduling cycle are served at once, those of other tasks in their turn."""

    def __init__(self, hooks: Hooks, tasks: BackgroundTasks) -> None:
        self._hooks = hooks
        self._tasks = tasks

    def under_way(self, uid: str) -> None:
        """None: a cycle's writes have ended with it, and tasks wait for their own."""

    def start_write(self, pod: Pod, patch: StatusPatch) -> asyncio.Future[None]:
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._hooks.api.is_in_cycle:
            self._tasks.spawn(self._write(pod, patch, ended))
            return ended
        with suppress(ApiError):  # Noted with the write; the scheduler only logs it.
            self._hooks.api.patch_status(pod, patch.condition, patch.nominated_node_name)
        ended.set_result(None)
        return ended

    async def write(self, pod: Pod, patch: StatusPatch) -> None:
        await self._hooks.client.patch_pod_status(
            pod, condition=patch.condition, nominated_node_name=patch.nominated_node_name
        )

    async def _write(self, pod: Pod, patch: StatusPatch, ended: asyncio.Future[None]) -> None:
        with suppress(ApiError):  # As above.
            await self.write(pod, patch)
        ended.set_result(None)


class RunVictims:
    """Each preemptor deletes its victims by itself, as recorded."""

    def __init__(self, hooks: Hooks) -> None:
        self._client = hooks.client

    async def delete(self, victim: Pod, condition: Condition | None) -> DeletionResult:
        return await delete_pod(self._client, victim, condition)

    def is_sent(self, victim: Pod) -> bool:
        """False: no event is delivered before the answer."""
        return False

    def is_requested(self, uid: str) -> bool:
        """False: preemptors read this from the pod, which is up to date."""
        return False


class RunGroupTrials(GroupTrials):
    """Notes the answers of Permit; simulations of a preemption are not compared."""

    hooks: Hooks

    def try_member(
        self, profile: Profile, queued_pod: QueuedPod, cycle: GroupCycle, trial: SnapshotTrial
    ) -> MemberOutcome:
        outcome = super().try_member(profile, queued_pod, cycle, trial)
        if cycle.runs_post_filter:
            self.hooks.observed.add_to_attempt(outcome)
        return outcome

    def repeat(
        self,
        profile: Profile,
        queued_pod: QueuedPod,
        misfit: MemberOutcome | None,
        cycle: GroupCycle,
    ) -> MemberOutcome | None:
        outcome = super().repeat(profile, queued_pod, misfit, cycle)
        if outcome is not None and cycle.runs_post_filter:
            self.hooks.observed.add_to_attempt(outcome)
        return outcome


class RunPlacementTrials(PlacementTrials):
    hooks: Hooks

    def generate(
        self, collected: CollectedGroup, cycle: GroupCycle
    ) -> Sequence[GroupPlacement] | Status:
        placements = super().generate(collected, cycle)
        if cycle.runs_post_filter:
            self.hooks.observed.add_placements(placements, self.node_names)
        return placements

    def try_placement(
        self, collected: CollectedGroup, cycle: GroupCycle, placement: GroupPlacement
    ) -> GroupOutcome:
        self.hooks.observed.placement = placement.name
        try:
            return super().try_placement(collected, cycle, placement)
        finally:
            self.hooks.observed.placement = None

    def score(
        self, collected: CollectedGroup, cycle: GroupCycle, candidates: Sequence[Assignments]
    ) -> PlacementTotals:
        totals = super().score(collected, cycle, candidates)
        if cycle.runs_post_filter:
            self.hooks.observed.add_scores(candidates, totals)
        return totals


class RunConditionWriter(ConditionWriter):
    """Written in the scheduling cycle, so served at once."""

    hooks: Hooks

    def start_write(self, key: GroupKey, pod_group: UpstreamPodGroup, condition: Condition) -> None:
        with suppress(ApiError):  # Noted with the write; the scheduler only logs it.
            self.hooks.api.patch_group_status(pod_group, condition)


class RunCollector(Collector):
    hooks: Hooks

    def siblings(self, popped: QueuedPod, key: GroupKey) -> list[QueuedPod] | None:
        found = super().siblings(popped, key)
        if found is not None:
            self.hooks.observed.group = str(key), [queued_pod.key for queued_pod in found]
        return found


class RunGroups(GroupScheduler):
    def connect(self, hooks: Hooks) -> None:
        for part in (self.collector, self.trials, self.placements, self.conditions):
            if part is not None:
                assert isinstance(
                    part, RunCollector | RunGroupTrials | RunPlacementTrials | RunConditionWriter
                )
                part.hooks = hooks


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


@dataclass(kw_only=True)
class RunFactory(SchedulerFactory):
    binder_type = RunBinder
    collector_type = RunCollector
    condition_writer_type = RunConditionWriter
    decider_type = RunDecider
    failures_type = RunFailures
    group_trials_type = RunGroupTrials
    groups_type = RunGroups
    placement_trials_type = RunPlacementTrials

    hooks: Hooks

    def build(self) -> Scheduler:
        scheduler = super().build()
        for part in (scheduler.binder, scheduler.decider, scheduler.failures):
            assert isinstance(part, RunBinder | RunDecider | RunFailures)
            part.hooks = self.hooks
        if scheduler.groups is not None:
            assert isinstance(scheduler.groups, RunGroups)
            scheduler.groups.connect(self.hooks)
        for profile in scheduler.profiles.values():
            plugin = profile.plugins.get(FailReserve.name)
            if isinstance(plugin, FailReserve):
                plugin.failing = self.hooks.failing_reserves
        return scheduler

    def make_status_writer(self, tasks: BackgroundTasks) -> RunStatusWriter:
        return RunStatusWriter(self.hooks, tasks)

    def make_victims(self) -> RunVictims:
        return RunVictims(self.hooks)
