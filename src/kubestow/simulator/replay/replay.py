"""Applies a recording to a scheduler, in virtual time.

Everything that came from outside comes at its recorded time: changes of objects through the same
informers' code, answers to requests, and the turn of each pod. In between, the scheduler does what
it did: bindings, retries and evictions run as tasks. Nothing depends on how fast this machine is.

A decision that differs is noted, and the recorded one is carried out: one difference must not
make all later decisions differ.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from kubestow.api.decode import decode_json
from kubestow.api.meta import ApiObject, ObjectMeta
from kubestow.api.pod import Pod
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import NANOSECONDS
from kubestow.cluster.client import EventType
from kubestow.cluster.informer import Informer
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision, Nomination
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.listeners import DecisionListener
from kubestow.engine.metrics import NO_SCHEDULER_METRICS, SchedulerMetrics
from kubestow.engine.profiles import Registry
from kubestow.engine.scheduler import Scheduler, SchedulingAttempt
from kubestow.engine.watching import ClusterWatcher
from kubestow.framework.handle import NoEvents
from kubestow.framework.status import Code, Status
from kubestow.queue import QueuedPod
from kubestow.queue.queue import SchedulingQueue
from kubestow.recording.format import (
    Answer,
    ClockSet,
    Header,
    Posted,
    Put,
    Record,
    RecordedAttempt,
    Removed,
    kind_of,
)
from kubestow.recording.recorder import attempt_of
from kubestow.simulator.replay.client import ReplayClient, RequestKey, key_of
from kubestow.simulator.replay.posts import RecordedPosts, replay_posts
from kubestow.simulator.replay.report import (
    ReplayDifference,
    ReplayReport,
    differing_fields,
    outcome_of,
)

NOT_WAITING: Final = "not waiting"
# Beside what differs: the cycle waited for an extender, and what changed meanwhile comes earlier
# in the replay.
EXTENDER: Final = "extender"


class RecordedAnswers(NamedTuple):
    """What a replay has to know before it begins: which requests are answered, and by extenders."""

    requests: Sequence[RequestKey]
    posts: Sequence[Posted]

    @classmethod
    def of(cls, records: Iterable[Record]) -> "RecordedAnswers":
        requests: list[RequestKey] = []
        posts: list[Posted] = []
        for record in records:
            match record:
                case Answer():
                    requests.append(key_of(record))
                case Posted():
                    posts.append(record)
                case _:
                    pass
        return cls(requests, posts)


class RecordedClock:
    """The recorded time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, started_ns: int) -> None:
        self._loop = loop
        self._started_ns = started_ns
        self._ahead_ns = 0
        self._last_ns = 0

    def set(self, ahead_ns: int) -> None:
        """The wall clock was set, so far ahead of the time that has passed."""
        self._ahead_ns = ahead_ns
        self._last_ns = 0

    def now_ns(self) -> int:
        now_ns = self._started_ns + self._ahead_ns + round(self._loop.time() * NANOSECONDS)
        self._last_ns = max(now_ns, self._last_ns + 1)
        return self._last_ns

    def monotonic_s(self) -> float:
        return self._loop.time()


class ReplayedEvent(NamedTuple):
    """An event for an informer."""

    type: EventType
    object: ApiObject
    resource_version: str = ""


class Replay:
    """Made inside a virtual-time loop; then `run` it once."""

    def __init__(
        self,
        header: Header,
        config: SchedulerConfig,
        gates: FeatureGates,
        registry: Registry,
        answers: "RecordedAnswers",
        *,
        is_other: bool = False,
        metrics: SchedulerMetrics = NO_SCHEDULER_METRICS,
    ) -> None:
        """`is_other`: the configuration is not the recorded one."""
        self.report = ReplayReport(is_other=is_other)
        self.clock = RecordedClock(asyncio.get_running_loop(), header.started_ns)
        # The attempt that is being replayed, until its pod is decided on.
        self._recorded: RecordedAttempt | None = None
        # Members of a group that were decided on, in this order, and not compared yet.
        self._members: deque[RecordedAttempt] = deque()
        objects = ClusterObjects()
        self.client = ReplayClient(objects, answers.requests, answers_all=is_other)
        # The scheduler's own list: what is added is called with the next decision.
        self.listeners: list[DecisionListener] = [self._decided]
        rng = np.random.default_rng(0)
        rng.bit_generator.state = json.loads(header.chance)
        scheduler = _FollowingFactory(
            config=config,
            client=self.client,
            objects=objects,
            events=lambda _: NoEvents(),
            clock=self.clock,
            registry=registry,
            gates=gates,
            extenders_in_thread=False,
            leaves_to_chance=header.leaves_to_chance,
            rng=rng,
            listeners=self.listeners,
            metrics=metrics,
        ).build()
        assert isinstance(scheduler, _FollowingScheduler)
        self.scheduler = scheduler
        scheduler.follow = self._follow
        if scheduler.extenders is not None:
            replay_posts(scheduler.extenders, RecordedPosts(answers.posts))
        scheduler.decider.next_start_index = header.start_index
        watcher = ClusterWatcher(self.client, scheduler, self.clock, np.random.default_rng(0))
        self._informers: dict[type[ApiObject], Informer[Any]] = {
            informer.cls: informer for informer in watcher.informers
        }

    async def run(self, records: Iterable[Record]) -> ReplayReport:
        timers = asyncio.create_task(self.scheduler.queue.run_timers())
        try:
            for record in records:
                await self._reach(record.at_ns)
                self._apply(record)
            await asyncio.sleep(0)
        finally:
            self.scheduler.queue.close()
            timers.cancel()
            await asyncio.gather(timers, return_exceptions=True)
            await self.scheduler.tasks.drain(0)
        return self.report

    async def _reach(self, at_ns: int) -> None:
        """Wait for this time; tasks that can go on before it do."""
        wait_s = at_ns / NANOSECONDS - self.clock.monotonic_s()
        await asyncio.sleep(max(wait_s, 0))
        self.report.duration_s = round(at_ns / NANOSECONDS, 3)

    def _apply(self, record: Record) -> None:
        match record:
            case Put():
                self._deliver(record.kind, "MODIFIED", record.text)
            case Removed() if record.text:
                self._deliver(record.kind, "DELETED", record.text)
            case Removed():
                self._vanish(record)
            case RecordedAttempt():
                self._try(record)
            case Answer():
                self.client.deliver(record)
            case Posted():
                pass  # Taken by its request.
            case ClockSet():
                self.clock.set(record.ahead_ns)

    # --- changes ---

    def _deliver(self, kind: str, event: EventType, text: bytes) -> None:
        informer = self._informer(kind)
        if informer is not None:
            informer.deliver([ReplayedEvent(event, decode_json(informer.cls, text))])

    def _vanish(self, record: Removed) -> None:
        informer = self._informer(record.kind)
        if informer is not None:
            gone = ApiObject(metadata=ObjectMeta(namespace=record.namespace, name=record.name))
            informer.deliver([ReplayedEvent("VANISHED", gone)])

    def _informer(self, kind: str) -> Informer[Any] | None:
        """None for a kind that this scheduler does not read."""
        self.report.changes += 1
        cls = kind_of(kind)
        return None if cls is None else self._informers.get(cls)

    # --- attempts ---

    def _try(self, recorded: RecordedAttempt) -> None:
        self.report.attempts += 1
        if self._members:
            # Decided on together with the member of their group that was popped.
            replayed = self._members.popleft()
            if replayed.uid == recorded.uid:
                self._compare(recorded, replayed)
                return
            self._members.clear()
        queued_pod = self._pop(recorded)
        if queued_pod is None:
            self._note(recorded, (NOT_WAITING,), "the pod was not waiting")
            return
        self._recorded = recorded
        self.scheduler.schedule(queued_pod)
        if self._members:
            self._compare(recorded, self._members.popleft())
        elif self._is_unused():
            self._note(recorded, (NOT_WAITING,), "the pod was skipped")
        self._recorded = None

    def _is_unused(self) -> bool:
        """Whether no pod was decided on since `_recorded` was set."""
        return self._recorded is not None

    def _pop(self, recorded: RecordedAttempt) -> QueuedPod | None:
        pod, queue = self._pod(recorded), self.scheduler.queue
        assert isinstance(queue, SchedulingQueue)
        return None if pod is None else queue.pop_member(pod)

    def _pod(self, recorded: RecordedAttempt) -> Pod | None:
        namespace, _, name = recorded.pod.partition("/")
        pod = self.scheduler.objects.pods.get(namespace, name)
        return pod if pod is not None and pod.metadata.uid == recorded.uid else None

    def _decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        groups = self.scheduler.groups
        if groups is not None and groups.is_member(queued_pod):
            self._members.append(attempt_of(decision, 0))

    def _follow(self, decision: Decision) -> Decision:
        """Compare the decision on a single pod; the recorded one is what happens next."""
        recorded, self._recorded = self._recorded, None
        assert recorded is not None
        is_same = self._compare(recorded, attempt_of(decision, recorded.at_ns))
        return decision if is_same else _as_recorded(decision, recorded)

    def _compare(self, recorded: RecordedAttempt, replayed: RecordedAttempt) -> bool:
        what = differing_fields(recorded, replayed)
        if what and self._waits_for_extenders(recorded):
            what += (EXTENDER,)
        if what:
            self._note(recorded, what, outcome_of(replayed))
        return not what

    def _waits_for_extenders(self, recorded: RecordedAttempt) -> bool:
        """Bindings that ended while the cycle waited for an extender may be why it differs."""
        extenders, pod = self.scheduler.extenders, self._pod(recorded)
        return extenders is not None and pod is not None and extenders.is_interested(pod)

    def _note(self, recorded: RecordedAttempt, what: tuple[str, ...], replayed: str) -> None:
        difference = ReplayDifference(
            at_s=round(recorded.at_ns / NANOSECONDS, 3),
            pod=recorded.pod,
            what=what,
            recorded=outcome_of(recorded),
            replayed=replayed,
        )
        self.report.note(difference)


def _as_recorded(decision: Decision, recorded: RecordedAttempt) -> Decision:
    if recorded.node:
        decision.status, decision.nomination = None, None
        decision.node_name = recorded.node
        return decision
    decision.node_name = ""
    nomination = None if recorded.nominated is None else Nomination(recorded.nominated)
    if decision.status is None:
        return decision.fail(Status(Code.UNSCHEDULABLE, recorded.message), nomination)
    return decision.fail(decision.status, nomination)


@dataclass(kw_only=True, eq=False)
class _FollowingScheduler(Scheduler):
    """Decides as always, then does what `follow` returns."""

    follow: Callable[[Decision], Decision] = field(default=lambda decision: decision)

    def conclude(self, attempt: SchedulingAttempt, decision: Decision) -> Decision:
        return super().conclude(attempt, self.follow(decision))


class _FollowingFactory(SchedulerFactory):
    scheduler_type = _FollowingScheduler
