"""Follows one scheduler: which nodes and pods changed, what was attempted, how the queue is.

    stores, queue, decisions ──marks──► cut ──► rows, past ──► collect ──► a batch for readers

Changes only mark what they concern. Rows are made of the marked nodes and pods at the next `cut`,
so a pod that changes ten times within a batch costs one row. Nothing is connected to the scheduler
before `start` and after `stop`: a scheduler without an open page does no work for it.

Everything here runs on the scheduler's loop. What leaves it (`Batch`, and `Picture` in `picture`)
is never changed afterwards, so another thread can write it as JSON.
"""

import asyncio
from collections.abc import Callable, MutableSequence
from typing import Final, NamedTuple

from kubestow.api.meta import ApiObject, object_ref
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.clock import NANOSECONDS, Clock
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.engine.decision import Decision
from kubestow.engine.observer import DecisionListener
from kubestow.engine.profile_events import ProfileEvents
from kubestow.engine.scheduler import Scheduler
from kubestow.framework.status import Code
from kubestow.queue import QueuedPod, SchedulingQueue
from kubestow.web.attempts import AttemptLog
from kubestow.web.events import PageEvents
from kubestow.web.evictions import EvictionLog
from kubestow.web.past import ROWS_MAX, Past, ReplacedRows
from kubestow.web.protocol import (
    AttemptRow,
    Batch,
    ClockState,
    Counts,
    Leader,
    NodeChanges,
    NodeRow,
    PodChanges,
    PodRow,
    Result,
    SeriesPoint,
)
from kubestow.web.rows import RowMaker, find_groupings
from kubestow.web.series import PageSeries, PluginTimes
from kubestow.web.table import PageTable
from kubestow.web.trends import TrendAnswer, TrendPoint, Trends, UseSums, trend_of
from kubestow.web.words import WordLists

# Rows that are made between two turns of the loop when a page is opened.
ROWS_PER_TURN: Final = 256
# Rows of each kind that are made in one cut, some milliseconds; what else is marked waits for the
# next one.
ROWS_PER_CUT: Final = 1_000
# Attempts of one batch; others are only counted.
BATCH_ATTEMPTS_MAX: Final = 1_000
# Changes that wait to be sent; with more, everything is started again.
UNSENT_MAX: Final = 200_000
# Numbers of nodes, also of those that are gone; with more, everything is started again.
NODE_IDS_MAX: Final = 100_000
# After this many attempts, or seconds of the loop's time, a cut is made: the past can be looked at
# in small steps, also where an hour passes in a second.
ATTEMPTS_PER_CUT: Final = 32
CUT_S: Final = 1.0

_MILLISECOND_NS: Final = NANOSECONDS // 1000

EventListener = Callable[[Pod, str, str, str], None]


class FollowedParts(NamedTuple):
    """The scheduler, and what the page cannot find there.

    listeners   the scheduler's own list of listeners
    clock       the scheduler's time
    real        real time, for limits on how long something may take
    share       how much of the time copies of decisions may take
    leader      whether this process leads
    time        how time passes
    past_rows   how many replaced rows are kept
    is_stepwise whether a cut is made after each attempt
    gates       those of the scheduler
    """

    scheduler: Scheduler
    listeners: MutableSequence[DecisionListener]
    clock: Clock
    real: Clock
    share: float = 0.02
    leader: Callable[[], Leader] = Leader
    time: Callable[[], ClockState] | None = None
    past_rows: int = ROWS_MAX
    is_stepwise: bool = False
    gates: FeatureGates = DEFAULT_GATES


class PageFollower:
    def __init__(self, parts: FollowedParts) -> None:
        assert isinstance(parts.scheduler.queue, SchedulingQueue)
        self.parts = parts
        self.scheduler = parts.scheduler
        self._queue = parts.scheduler.queue
        self.is_started = False
        self.seq = 0
        # Grows when everything is started again.
        self.resets = 0
        self._changed = asyncio.Event()
        self._unsubscribe: list[Callable[[], None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._begin_again()

    # --- start and stop ---

    async def start(self) -> None:
        """Connect to the scheduler and make all rows; the loop runs in between."""
        assert not self.is_started
        self.is_started = True
        self._begin_again()
        objects = self.scheduler.objects
        self._unsubscribe = [
            objects.pods.subscribe(self._pod_changed),
            objects.nodes.subscribe(self._node_changed),
        ]
        self._queue.on_moved = self._mark_pod
        self._follow_events(self._event_recorded)
        self.parts.listeners.append(self._decided)
        await self._make_all()

    def stop(self) -> None:
        """Disconnect; the scheduler does no more work for the page."""
        self.is_started = False
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe = []
        self._queue.on_moved = None
        self._follow_events(None)
        self.parts.listeners.remove(self._decided)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._begin_again()

    def _begin_again(self) -> None:
        """Forget all rows, words and what was."""
        groupings, excluded = find_groupings(self.scheduler.objects.nodes)
        self.words = WordLists(groupings)
        self.rows = RowMaker(self.scheduler, self.words, excluded)
        self.table = PageTable()
        self.past = Past(self.now_ms(), self.parts.past_rows)
        self.series = PageSeries(self._second_ended)
        self.trends = Trends()
        self.use = UseSums(groupings)
        self._evicted_count = 0
        self.plugin_times = PluginTimes()
        self.attempts = AttemptLog(self.parts.real, share=self.parts.share)
        self.events = PageEvents()
        self.evictions = EvictionLog()
        self._marked_nodes: set[str] = set()
        self._marked_pods: set[str] = set()
        self._raw_attempts: list[_RawAttempt] = []
        self._new_attempts: list[AttemptRow] = []
        self._is_cut_due = False
        self._failure: Exception | None = None
        self._last_leader: Leader | None = None
        self._last_counts: Counts | None = None

    async def _make_all(self) -> None:
        """Make the rows of all that is there now; what changes meanwhile stays marked."""
        objects = self.scheduler.objects
        keys = [object_ref(pod.metadata) for pod in objects.pods.list()]
        for begin in range(0, len(keys), ROWS_PER_TURN):
            self._marked_pods.update(keys[begin : begin + ROWS_PER_TURN])
            self._cut_pods(ROWS_PER_TURN)
            await asyncio.sleep(0)
        # After the pods, each of which has marked its node.
        self._marked_nodes.clear()
        names = [node.metadata.name for node in objects.nodes.list()]
        for begin in range(0, len(names), ROWS_PER_TURN):
            self._marked_nodes.update(names[begin : begin + ROWS_PER_TURN])
            self._cut_nodes(ROWS_PER_TURN)
            await asyncio.sleep(0)
        # What was there at the beginning is no change.
        self.past = Past(self.now_ms(), self.parts.past_rows)
        self.table.take_new()
        self.words.take_new()

    # --- marks ---

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        self.evictions.pod_changed(old, new, self.now_ms())
        self._mark_pod(_key(old, new))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        self._marked_nodes.add(_key(old, new))
        self._marked()

    def _mark_pod(self, key: str) -> None:
        self._marked_pods.add(key)
        self._marked()

    def _follow_events(self, listener: EventListener | None) -> None:
        for sink in self.scheduler.events.values():
            if isinstance(sink, ProfileEvents):
                sink.on_recorded = listener

    def _event_recorded(self, pod: Pod, type: str, reason: str, note: str) -> None:
        key = object_ref(pod.metadata)
        self.events.add(key, type=type, reason=reason, note=note, time_ms=self.now_ms())

    def _marked(self) -> None:
        self._changed.set()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CUT_S, self._cut_in_time)

    def _cut_in_time(self) -> None:
        self._timer = None
        self._cut_safely()

    def _cut_safely(self) -> None:
        """Within a cycle or a timer: an error ends the page at its next batch, nothing else."""
        try:
            self.cut()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._changed.set()

    def _decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        """Called within the cycle, which must not fail because of the page."""
        if self.parts.is_stepwise:
            # The attempt before has ended, also where many are made in one turn of the loop.
            self._cut_safely()
        try:
            self._note(decision, queued_pod)
        except Exception as error:
            self._fail(error)

    def _note(self, decision: Decision, queued_pod: QueuedPod) -> None:
        """Take what is valid only within the cycle."""
        at_ns = self.parts.clock.now_ns()
        attempt_id = self.attempts.next_id()
        timings = decision.state.meter.timings
        self.plugin_times.add(timings)
        status, nomination = decision.status, decision.nomination
        result: Result = "scheduled"
        if status is not None:
            result = "error" if status.code is Code.ERROR else "unschedulable"
        self._raw_attempts.append(
            _RawAttempt(
                id=attempt_id,
                at_ns=at_ns,
                pod=queued_pod.key,
                node=decision.node_name if status is None else "",
                result=result,
                message=decision.message,
                duration_s=sum(each.duration_s for each in timings if not each.plugin),
                nominated="" if nomination is None else nomination.node_name,
                victims=len(decision.post_filter.victims) if decision.post_filter else 0,
                owner=self.rows.owner(queued_pod.pod),
            )
        )
        self.attempts.copy(attempt_id, decision, queued_pod, at_ns)
        # It is placed, or goes back to the queue, after this call.
        self._mark_pod(queued_pod.key)
        is_due = self.parts.is_stepwise or len(self._raw_attempts) >= ATTEMPTS_PER_CUT
        if is_due and not self._is_cut_due:
            self._is_cut_due = True
            # After the cycle: the pod is on its node then, or back in the queue.
            asyncio.get_running_loop().call_soon(self._cut_safely)

    def touch(self) -> None:
        """Something changed that is no row: how time passes, or who leads."""
        self._changed.set()

    # --- reading ---

    async def wait_changed(self) -> None:
        await self._changed.wait()

    def now_ms(self) -> int:
        return self.parts.clock.now_ns() // _MILLISECOND_NS

    def clock_state(self) -> ClockState:
        if self.parts.time is not None:
            return self.parts.time()
        return ClockState(time=self.now_ms())

    def counts(self) -> Counts:
        attempts = self.attempts
        return Counts(
            attempts=attempts.count,
            attempts_dropped=attempts.dropped,
            skipped=attempts.skipped,
            resets=self.resets,
        )

    def cut(self) -> None:
        """Make the rows of all that is marked, and keep what they replace."""
        self._is_cut_due = False
        if not self.is_started:
            return
        time_ms = self.now_ms()
        self._take_attempts()
        pods_before = self._cut_pods(ROWS_PER_CUT)
        nodes_before = self._cut_nodes(ROWS_PER_CUT)
        if self._marked_pods or self._marked_nodes:
            self._changed.set()
        if pods_before or nodes_before:
            self.past.add(ReplacedRows(time_ms, self.attempts.count, nodes_before, pods_before))
        has_changes = bool(pods_before or nodes_before)
        self.series.depth(time_ms, self.table.places(), has_changes=has_changes)

    async def collect(self) -> Batch | int:
        """All that has changed since the last batch, or the number of a batch that is not sent:
        everything was started again, and the state has to be fetched."""
        self._changed.clear()
        if self._failure is not None:
            raise self._failure
        self.cut()
        self.seq += 1
        if self._is_too_much():
            await self._start_again()
            return self.seq
        new = self.table.take_new()
        nodes = NodeChanges(set=new.nodes, gone=new.gone_nodes)
        pods = PodChanges(set=new.pods, gone=new.gone_pods)
        leader, counts = self.parts.leader(), self.counts()
        batch = Batch(
            seq=self.seq,
            clock=self.clock_state(),
            words=self.words.take_new(),
            nodes=nodes if nodes != NodeChanges() else None,
            pods=pods if pods != PodChanges() else None,
            queue=new.queue,
            attempts=tuple(self._new_attempts[-BATCH_ATTEMPTS_MAX:]),
            series=tuple(self.series.take_new()),
            plugin_times=self.plugin_times.take_new(),
            leader=leader if leader != self._last_leader else None,
            counts=counts if counts != self._last_counts else None,
        )
        self._new_attempts = []
        self._last_leader, self._last_counts = leader, counts
        return batch

    # --- parts of a cut ---

    def _take_attempts(self) -> None:
        raw, self._raw_attempts = self._raw_attempts, []
        for each in raw:
            time_ms, duration_ms = each.at_ns // _MILLISECOND_NS, round(each.duration_s * 1000, 3)
            row = AttemptRow(
                id=each.id,
                time=time_ms,
                pod=each.pod,
                node=each.node,
                result=each.result,
                reason=self.words.reason(each.message),
                duration_ms=duration_ms,
                nominated=each.nominated,
                victims=each.victims,
                owner=each.owner,
            )
            self.attempts.add(row)
            self._new_attempts.append(row)
            self.series.attempt(time_ms, each.result, duration_ms)
            self._evicted_count += each.victims
        del self._new_attempts[:-BATCH_ATTEMPTS_MAX]

    def _cut_pods(self, limit: int) -> dict[str, PodRow | None]:
        """Rows of marked pods; what was there before. Marks the nodes that they concern."""
        before: dict[str, PodRow | None] = {}
        for key in _take(self._marked_pods, limit):
            namespace, _, name = key.partition("/")
            pod = self.scheduler.objects.pods.get(namespace, name)
            row = None if pod is None else self.rows.pod_row(pod)
            old = self.table.pods.get(key)
            if old == row:
                continue
            before[key] = old
            for each in (old, row):
                if each is not None and each.node >= 0:
                    self._marked_nodes.add(self.rows.node_name(each.node))
            self.table.set_pod(key, row)
        return before

    def _cut_nodes(self, limit: int) -> dict[int, NodeRow | None]:
        before: dict[int, NodeRow | None] = {}
        for name in _take(self._marked_nodes, limit):
            node = self.scheduler.objects.nodes.get(name)
            row = None if node is None else self.rows.node_row(node)
            node_id = self.rows.node_id(name)
            old = self.table.nodes.get(node_id)
            if old != row:
                before[node_id] = old
                self.table.set_node(node_id, row)
                self.use.replace(old, row)
        return before

    # --- over time ---

    def trends_between(self, begin_ms: int, end_ms: int) -> TrendAnswer:
        """What happened in that time, the current second as far as it is."""
        self.cut()
        current = self.series.current()
        if current is not None:
            self.trends.add(self._trend(current))
        return self.trends.between(begin_ms, end_ms, self.use.groups())

    def _second_ended(self, second: SeriesPoint) -> None:
        self.trends.add(self._trend(second))
        self._evicted_count = 0

    def _trend(self, second: SeriesPoint) -> TrendPoint:
        causes = self.table.queue().rejectors
        return trend_of(second, self._evicted_count, causes, self.use.shares())

    # --- limits ---

    def _is_too_much(self) -> bool:
        return (
            self.words.is_full
            or self.rows.node_id_count > NODE_IDS_MAX
            or self.table.unsent_count > UNSENT_MAX
        )

    async def _start_again(self) -> None:
        self.resets += 1
        self.stop()
        await self.start()


class _RawAttempt(NamedTuple):
    id: int
    at_ns: int
    pod: str
    node: str
    result: Result
    message: str
    duration_s: float
    nominated: str
    victims: int
    owner: int


def _take(marked: set[str], limit: int) -> list[str]:
    """Take out all of them, or some."""
    if len(marked) <= limit:
        taken = list(marked)
        marked.clear()
        return taken
    return [marked.pop() for _ in range(limit)]


def _key(old: ApiObject | None, new: ApiObject | None) -> str:
    changed = new if new is not None else old
    assert changed is not None
    return object_ref(changed.metadata)
