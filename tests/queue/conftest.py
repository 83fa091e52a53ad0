"""A queue on a manual clock, and a recorder that can be read."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest

from kubestow.api.pod import Pod
from kubestow.framework.events import Action, ClusterEvent, HintFunction
from kubestow.framework.hints import HintRegistration
from kubestow.queue import QueuedPod, SchedulingQueue
from kubestow.testing.builders import make_pod
from kubestow.testing.clock import ManualClock

PROFILE = "default-scheduler"


class RecordingMetrics:
    """Keeps everything the queue reports."""

    def __init__(self) -> None:
        self.pending: Counter[str] = Counter()
        self.incoming_total: Counter[tuple[str, str]] = Counter()
        self.unschedulable: Counter[str] = Counter()
        self.in_flight: Counter[str] = Counter()
        self.flush_count = 0
        self.hints: list[tuple[str, str, str]] = []
        self.passes: list[tuple[str, str]] = []
        self.narrowed: list[tuple[str, bool]] = []
        self.plugin_calls: list[tuple[str, str]] = []
        self.is_sampling = False

    def pending_changed(self, queue: str, delta: int) -> None:
        self.pending[queue] += delta

    def incoming(self, queue: str, event: str, count: int = 1) -> None:
        self.incoming_total[queue, event] += count

    def unschedulable_changed(self, plugin: str, profile: str, delta: int) -> None:
        assert profile == PROFILE
        self.unschedulable[plugin] += delta

    def in_flight_changed(self, event: str, delta: int, *, flush: bool) -> None:
        self.in_flight[event] += delta
        self.flush_count += flush

    def hint_executed(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        assert duration_s >= 0
        self.hints.append((plugin, event, hint))

    def pre_enqueue_passed(self, profile: str, status: str, duration_s: float) -> None:
        assert duration_s >= 0
        self.passes.append((profile, status))

    def samples_plugins(self) -> bool:
        return self.is_sampling

    def pre_enqueue_executed(self, plugin: str, status: str, duration_s: float) -> None:
        assert duration_s >= 0
        self.plugin_calls.append((plugin, status))

    def event_narrowed(self, plugin: str, *, to_all: bool) -> None:
        self.narrowed.append((plugin, to_all))


class Bench:
    """A queue with what a test needs around it."""

    def __init__(self, clock: ManualClock, metrics: RecordingMetrics) -> None:
        self.clock = clock
        self.metrics = metrics
        self.known: dict[tuple[str, str], Pod | None] = {}

    def queue(
        self,
        *registrations: tuple[str, str, Action, HintFunction | None],
        gates: Sequence[tuple[str, Callable[[Pod], object]]] = (),
        hint_maps: Mapping[str, Sequence[HintRegistration]] | None = None,
        **options: object,
    ) -> SchedulingQueue:
        """A queue whose one profile has these (plugin, resource, action, hint) registrations."""
        if hint_maps is None:
            hint_maps = {
                PROFILE: [
                    HintRegistration(ClusterEvent(resource, action), plugin, hint)
                    for plugin, resource, action, hint in registrations
                ]
            }
        return SchedulingQueue(
            clock=self.clock,
            sort_key=lambda queued_pod: (-queued_pod.pod_info.priority, queued_pod.timestamp_ns),
            hint_maps=hint_maps,
            pod_lister=self.find_pod,
            pre_enqueue={PROFILE: gates},
            metrics=self.metrics,
            **options,
        )

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """What the API server has; by default a pod exists and is unassigned."""
        if (namespace, name) in self.known:
            return self.known[namespace, name]
        return make_pod(name, namespace=namespace)

    def fail(
        self,
        queue: SchedulingQueue,
        queued_pod: QueuedPod | None,
        *plugins: str,
        pending: Sequence[str] = (),
    ) -> None:
        """End the attempt as the failure handler does; a pending plugin is in both sets."""
        assert queued_pod is not None
        queued_pod.reject(unschedulable=(*plugins, *pending), pending=pending)
        queue.add_unschedulable_if_not_present(queued_pod)

    def park(self, queue: SchedulingQueue, pod: Pod, *plugins: str) -> QueuedPod:
        """Add, pop and reject a pod without events meanwhile."""
        queue.add(pod)
        queued_pod = queue.pop_nowait()
        assert queued_pod is not None
        assert queued_pod.pod is pod
        self.fail(queue, queued_pod, *plugins)
        return queued_pod


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000)


@pytest.fixture
def metrics() -> RecordingMetrics:
    return RecordingMetrics()


@pytest.fixture
def bench(clock: ManualClock, metrics: RecordingMetrics) -> Bench:
    return Bench(clock, metrics)
