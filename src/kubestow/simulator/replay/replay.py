"""Applies a recording to a scheduler, in virtual time.

Everything that came from outside comes at its recorded time: changes of objects through the same
informers' code, answers to requests, and the turn of each pod. In between, the scheduler does what
it did: bindings, retries and evictions run as tasks, for as many turns of the event loop as were
recorded. Nothing depends on how fast this machine is.

A decision that differs is noted, and the recorded one is carried out: one difference must not
make all later decisions differ.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
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
from kubestow.editions.choosing import rules_of
from kubestow.engine.decision import Decision, Nomination
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.engine.metrics import NO_SCHEDULER_METRICS, SchedulerMetrics
from kubestow.engine.observer import DecisionListener
from kubestow.engine.profiles import Registry
from kubestow.engine.scheduler import Attempt, PodAttempt
from kubestow.engine.watching import ClusterWatcher
from kubestow.errors import CacheCorruptedError, InputError
from kubestow.framework.handle import NoEvents
from kubestow.framework.status import Code, Status
from kubestow.queue import QueuedPod
from kubestow.queue.queue import SchedulingQueue
from kubestow.recording.format import (
    SETTLED_TURNS,
    Answer,
    ClockSet,
    CycleBegan,
    Header,
    Posted,
    Put,
    Record,
    RecordedAttempt,
    Removed,
    TurnsPassed,
    kind_of,
)
from kubestow.recording.recorder import attempt_of
from kubestow.simulator.paced_time import PacedLoop
from kubestow.simulator.replay.client import (
    RecordedPosts,
    ReplayClient,
    RequestKey,
    key_of,
    replay_posts,
)
from kubestow.simulator.replay.report import (
    ReplayDifference,
    ReplayReport,
    differing_fields,
    outcome_of,
)
from kubestow.simulator.replay.why import AttemptViews
from kubestow.simulator.virtual_time import VirtualClock, VirtualTimeLoop

NOT_WAITING: Final = "not waiting"
ENDED: Final = "ended"


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


class _Decided(NamedTuple):
    """A replayed decision; `freeze` is called within its cycle, or gives what was frozen in it."""

    attempt: RecordedAttempt
    freeze: Callable[[], FrozenDecision | None]


class _Waiting(NamedTuple):
    """An attempt that is decided, and waits until it is concluded."""

    queued_pod: QueuedPod
    attempt: Attempt


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
        views: AttemptViews | None = None,
        metrics: SchedulerMetrics = NO_SCHEDULER_METRICS,
    ) -> None:
        """`is_other`: the configuration is not the recorded one; `views` looks at attempts."""
        self.report = ReplayReport(is_other=is_other)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop | PacedLoop)
        self._loop = loop
        self.clock = VirtualClock(loop, header.started_ns)
        # The attempt that is being replayed, until its pod is decided on.
        self._recorded: RecordedAttempt | None = None
        self._views = views or AttemptViews()
        # A cycle that waited for extenders, from its beginning to its end.
        self._waiting: _Waiting | None = None
        # Members of a group that were decided on, in this order, and not compared yet.
        self._members: deque[_Decided] = deque()
        objects = ClusterObjects()
        self.client = ReplayClient(objects, answers.requests, answers_all=is_other)
        # The scheduler's own list: what is added is called with the next decision.
        self.listeners: list[DecisionListener] = [self._decided]
        rng = _generator(header)
        self.scheduler = scheduler = (
            rules_of(gates.edition)
            .factory(
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
            )
            .build()
        )
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
            await self._run(records)
        finally:
            self.scheduler.queue.close()
            timers.cancel()
            await asyncio.gather(timers, return_exceptions=True)
            await self.scheduler.tasks.drain(0)
        return self.report

    async def _run(self, records: Iterable[Record]) -> None:
        has_ended = False
        for record in records:
            if isinstance(record, TurnsPassed):
                await self._pass_turns(record)
                has_ended |= bool(self.report.ended) and record.count == SETTLED_TURNS
                continue
            self._reach(record.at_ns)
            if has_ended and isinstance(record, RecordedAttempt):
                self.report.attempts += 1
                self._note(record, (ENDED,), text="the scheduler had ended")
                break
            try:
                self._apply(record)
            except CacheCorruptedError as error:
                # A process ends then. In the few turns that takes, it may still decide on pods.
                self.report.ended = str(error)
                self.report.ended_s = self.report.duration_s
            if isinstance(record, Answer):
                await asyncio.sleep(0)  # The task that waited for it goes on at once.
        await asyncio.sleep(0)

    async def _pass_turns(self, turns: TurnsPassed) -> None:
        """Let tasks go on as far as they did: in that many turns, or all that can."""
        for _ in range(turns.count):
            await asyncio.sleep(0)
        if turns.count == SETTLED_TURNS:
            await asyncio.sleep(max(self._wait_s(turns.at_ns), 0))

    def _reach(self, at_ns: int) -> None:
        """Move the clock to this time; no task goes on."""
        wait_s = self._wait_s(at_ns)
        if wait_s > 0:
            self._loop.advance(wait_s)
        self.report.duration_s = round(at_ns / NANOSECONDS, 3)

    def _wait_s(self, at_ns: int) -> float:
        return at_ns / NANOSECONDS - self.clock.monotonic_s()

    def _apply(self, record: Record) -> None:
        match record:
            case Put():
                self._deliver(record.kind, "MODIFIED", record.text)
            case Removed() if record.text:
                self._deliver(record.kind, "DELETED", record.text)
            case Removed():
                self._vanish(record)
            case CycleBegan():
                self._begin(record)
            case RecordedAttempt():
                self._try(record)
            case Answer():
                self.client.deliver(record)
            case Posted():
                pass  # Taken by its request.
            case ClockSet():
                self.clock.set(record.ahead_ns)
            case TurnsPassed():
                pass  # They have passed.

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

    def _begin(self, began: CycleBegan) -> None:
        """Decide now: what bindings change while the cycle waits does not reach its snapshot."""
        earlier, self._waiting = self._waiting, None
        if earlier is not None and earlier.queued_pod.uid == began.uid:
            queued_pod = earlier.queued_pod  # It was set aside, and is made again.
        else:
            queued_pod = self._pop(began)
        if queued_pod is not None:
            attempt = self.scheduler.begin(queued_pod)
            if attempt is not None:
                attempt.decide()
                self._waiting = _Waiting(queued_pod, attempt)

    def _conclude_waiting(self, uid: str) -> bool:
        """Carry out what a cycle of this pod came to that waited; False if there is none."""
        waiting = self._waiting
        if waiting is None or waiting.queued_pod.uid != uid:
            return False
        self._waiting = None
        self._conclude(waiting.attempt)
        return True

    def _conclude(self, attempt: Attempt) -> None:
        """Carry out what was recorded of a pod, and what was decided on a group."""
        if isinstance(attempt, PodAttempt) and attempt.decision is not None:
            attempt.decision = self._follow(attempt.decision)
        attempt.conclude()

    def _try(self, recorded: RecordedAttempt) -> None:
        self.report.attempts += 1
        if self._members:
            # Decided on together with the member of their group that was popped.
            decided = self._members.popleft()
            if decided.attempt.uid == recorded.uid:
                self._compare(recorded, decided)
                if not self._members and self._waiting is not None:
                    self._conclude_waiting(self._waiting.queued_pod.uid)
                return
            self._members.clear()
        self._recorded = recorded
        if self._conclude_waiting(recorded.uid):
            self._recorded = None
            return
        queued_pod = self._pop(recorded)
        if queued_pod is None:
            self._note(recorded, (NOT_WAITING,), text="the pod was not waiting")
            self._recorded = None
            return
        attempt = self.scheduler.begin(queued_pod)
        if attempt is not None:
            attempt.decide()
            self._conclude(attempt)
        if self._members:
            self._compare(recorded, self._members.popleft())
        elif self._is_unused():
            self._note(recorded, (NOT_WAITING,), text="the pod was skipped")
        self._recorded = None

    def _is_unused(self) -> bool:
        """Whether no pod was decided on since `_recorded` was set."""
        return self._recorded is not None

    def _pop(self, recorded: RecordedAttempt | CycleBegan) -> QueuedPod | None:
        pod, queue = self._pod(recorded), self.scheduler.queue
        assert isinstance(queue, SchedulingQueue)
        return None if pod is None else queue.pop_member(pod)

    def _pod(self, recorded: RecordedAttempt | CycleBegan) -> Pod | None:
        namespace, _, name = recorded.pod.partition("/")
        pod = self.scheduler.objects.pods.get(namespace, name)
        return pod if pod is not None and pod.metadata.uid == recorded.uid else None

    def _decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        groups = self.scheduler.groups
        if groups is not None and groups.is_member(queued_pod):
            # It is compared after the cycle, when the decision is no longer valid.
            frozen = None if self._views.is_complete else decision.freeze()
            self._members.append(
                _Decided(attempt_of(decision, queued_pod.pod_info, 0), lambda: frozen)
            )

    def _follow(self, decision: Decision) -> Decision:
        """Compare the decision on a single pod; the recorded one is what happens next."""
        recorded, self._recorded = self._recorded, None
        assert recorded is not None
        decided = _Decided(attempt_of(decision, decision.pod, recorded.at_ns), decision.freeze)
        is_same = self._compare(recorded, decided)
        return decision if is_same else _as_recorded(decision, recorded)

    def _compare(self, recorded: RecordedAttempt, decided: "_Decided") -> bool:
        what = differing_fields(recorded, decided.attempt)
        if what:
            self._note(recorded, what, replayed=decided.attempt)
        number = self.report.attempts
        if self._views.wants(number, is_same=not what) and (frozen := decided.freeze()):
            self._views.note(number, frozen, recorded.node)
        return not what

    def _note(
        self,
        recorded: RecordedAttempt,
        what: tuple[str, ...],
        *,
        replayed: RecordedAttempt | None = None,
        text: str = "",
    ) -> None:
        difference = ReplayDifference(
            number=self.report.attempts,
            at_s=round(recorded.at_ns / NANOSECONDS, 3),
            pod=recorded.pod,
            what=what,
            recorded=outcome_of(recorded),
            replayed=text if replayed is None else outcome_of(replayed),
            recorded_node=recorded.node,
            replayed_node="" if replayed is None else replayed.node,
        )
        self.report.note(difference)


def _generator(header: Header) -> np.random.Generator:
    """In the state that it had."""
    rng = np.random.default_rng(0)
    try:
        rng.bit_generator.state = json.loads(header.chance)
    except (LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise InputError(
            "the recording is damaged: its header has no state of a random generator"
        ) from error
    return rng


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
