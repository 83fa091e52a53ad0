"""A small cluster whose scheduler reports what happens inside it, for `kubestow demo --verbose`.

Shown are the places of a pod in the queue, its state in the cache, the tree of nodes and the order
of the snapshot. The story is the same for every version (`editions.walking`): three nodes in
two zones, pods that fit, one that does not, a node on which it does, and a deletion.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Final

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import Clock
from kubestow.cluster.resources import PODS
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.choosing import rules_of
from kubestow.editions.rules import Rules
from kubestow.engine.decision import Decision
from kubestow.errors import CacheError
from kubestow.queue import Queue, QueuedPod
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.kubelets import FakeKubelets

# Called with the time, what it is about, and the text.
Say = Callable[[float, str, str], None]

NAMESPACE: Final = "default"
_CACHE_CALLS: Final = (
    "assume_pod", "forget_pod", "add_pod", "update_pod", "remove_pod",
    "expire_assumed_pods",
)  # fmt: skip
_QUEUE_CALLS: Final = (
    "add", "update", "delete", "pop_nowait", "add_unschedulable_if_not_present", "move_all",
    "flush_backoff_completed", "flush_unschedulable_leftover", "done",
)  # fmt: skip
# How long the story goes on after its last event.
_END_S: Final = 3.0


class Narrator:
    """Reports differences between the state before and after each call of cache and queue."""

    def __init__(self, clock: Clock, pods: Callable[[], Iterable[Pod]], say: Say) -> None:
        self._clock = clock
        self._pods = pods
        self._say = say
        self._places: dict[str, str] = {}
        self._states: dict[str, str] = {}
        self._bound: set[str] = set()
        self._tree = ""
        self._order = ""

    def say(self, subject: str, text: str) -> None:
        self._say(self._clock.monotonic_s(), subject, text)

    def watch_cache(self, cache: Cache) -> None:
        for name in _CACHE_CALLS:
            if hasattr(cache, name):
                _after(cache, name, lambda called: self._compare_cache(cache, called))
        if hasattr(cache, "finish_binding"):
            _after(cache, "finish_binding", lambda _: self._note_bindings(cache))
        for name in ("add_node", "update_node", "remove_node"):
            _after(cache, name, lambda _: self._compare_tree(cache))

    def watch_queue(
        self,
        queue: object,
        place_of: Callable[[Pod], str],
        counters: Callable[[], str] = lambda: "",
        calls: Iterable[str] = _QUEUE_CALLS,
    ) -> None:
        """`counters` is what the queue counts, in words."""
        for name in calls:
            if hasattr(queue, name):
                _after(queue, name, lambda called: self._compare_queue(place_of, counters, called))

    def watch_snapshot(self, snapshot: Snapshot) -> None:
        _after(snapshot, "refresh", lambda _: self._compare_order(snapshot))

    # --- differences ---

    def _compare_cache(self, cache: Cache, called: str) -> None:
        for pod in self._pods():
            name = pod.metadata.name
            state = _state_of(cache, pod)
            before = self._states.get(name, "absent")
            if state != before:
                self._states[name] = state
                self.say("cache", f"{name}: {before} -> {state} ({called})")

    def _note_bindings(self, cache: Cache) -> None:
        """Report the assumed pods whose time to live has begun."""
        for pod in self._pods():
            name = pod.metadata.name
            if name not in self._bound and cache.is_assumed(pod):
                self._bound.add(name)
                self.say("cache", f"{name}: its binding has ended, the assumption expires in 30 s")

    def _compare_tree(self, cache: Cache) -> None:
        zones: dict[str, list[str]] = {}
        for name, info in cache.nodes.items():
            if info.node is not None:
                zone = info.node.metadata.labels.get("topology.kubernetes.io/zone", "")
                zones.setdefault(zone, []).append(name)
        text = "; ".join(
            f"{zone}: {' '.join(sorted(names))}" for zone, names in sorted(zones.items())
        )
        if text != self._tree:
            self._tree = text
            self.say("tree", text)

    def _compare_order(self, snapshot: Snapshot) -> None:
        text = " ".join(snapshot.names)
        if text != self._order:
            self._order = text
            self.say("snapshot", f"visited in this order: {text}")

    def _compare_queue(
        self, place_of: Callable[[Pod], str], counters: Callable[[], str], called: str
    ) -> None:
        for pod in self._pods():
            name = pod.metadata.name
            place = place_of(pod)
            before = self._places.get(name, "none")
            if place != before:
                self._places[name] = place
                suffix = f"; {counted}" if (counted := counters()) else ""
                self.say("queue", f"{name}: {before} -> {place} ({called}{suffix})")


def _after(target: object, name: str, note: Callable[[str], None]) -> None:
    """Let `note` be called with the name after each call of that method of this object."""
    call: Callable[..., Any] = getattr(target, name)

    @wraps(call)
    def noted(*args: Any, **named: Any) -> Any:
        result = call(*args, **named)
        note(name)
        return result

    setattr(target, name, noted)


def _state_of(cache: Cache, pod: Pod) -> str:
    try:
        found = cache.pod(pod)
    except CacheError:
        return "absent"
    word = "assumed" if cache.is_assumed(pod) else "added"
    return f"{word} on {found.pod.spec.node_name}"


async def walk(
    say: Say,
    clock: Clock,
    *,
    rules: Rules | None = None,
    config: SchedulerConfig | None = None,
    gates: FeatureGates = DEFAULT_GATES,
    counters: Callable[[Queue], str] = lambda _: "",
) -> None:
    """Play the story with a scheduler that has plugins, by default that of the gates' edition.
    `counters` says what its queue counts."""
    rules = rules or rules_of(gates.edition)
    store = MemoryCluster(clock, gates=gates)
    known: dict[str, Pod] = {}

    def decided(decision: Decision, queued_pod: QueuedPod) -> None:
        if decision.is_scheduled:
            narrator.say("decision", f"{decision.pod.name} -> {decision.node_name}")
        else:
            narrator.say("decision", f"{decision.pod.name} fits nowhere")

    cluster = EmbeddedCluster(
        store,
        config or SchedulerConfig(),
        clock,
        registry=rules.registry,
        factory=rules.factory,
        gates=gates,
        listeners=[decided],
        controllers=[FakeKubelets(store, clock)],
    )
    scheduler = cluster.scheduler
    narrator = Narrator(clock, known.values, say)
    scheduler.objects.pods.subscribe(lambda old, new: remember(known, new))
    queue = scheduler.queue
    narrator.watch_cache(scheduler.cache)
    narrator.watch_queue(queue, lambda pod: _place_of(queue, pod), lambda: counters(queue))
    narrator.watch_snapshot(scheduler.snapshot)
    async with cluster.running():
        await tell(store, narrator)


def remember(known: dict[str, Pod], pod: Pod | None) -> None:
    if pod is not None:
        known[pod.metadata.name] = pod


async def tell(store: MemoryCluster, narrator: Narrator) -> None:
    """The story itself."""
    narrator.say("cluster", "three nodes in two zones")
    store.load([_node("a-0", "a"), _node("b-0", "b"), _node("a-1", "a")])
    await asyncio.sleep(1)
    narrator.say("cluster", "two small pods, and one that no node can hold")
    store.load([_pod("web-0", "1"), _pod("web-1", "1"), _pod("big-0", "6")])
    await asyncio.sleep(0.5)
    narrator.say("cluster", "a node that can hold it")
    store.load([_node("b-1", "b", cpu="8")])
    await asyncio.sleep(4)
    narrator.say("cluster", "web-0 is deleted")
    store.delete(PODS, NAMESPACE, "web-0")
    await asyncio.sleep(_END_S)


def _place_of(queue: Queue, pod: Pod) -> str:
    place = queue.place_of(pod)
    return "none" if place is None else place.value


def _node(name: str, zone: str, cpu: str = "4") -> JsonObject:
    resources = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(name: str, cpu: str) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }
