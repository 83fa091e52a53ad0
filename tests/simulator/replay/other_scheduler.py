"""A cluster that another scheduler schedules, as `kubestow record` sees it.

The scheduler decides on pods one after the other by the rules of a configuration, and knows its own
decisions at once. Bindings and conditions are written later, some much later than others, and what
is written is seen later still, by the scheduler and by the recorder.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from kubestow.api.decode import encode_json
from kubestow.api.meta import ApiObject, Condition, LabelSelector
from kubestow.api.node import Node
from kubestow.api.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    assign,
    is_assigned,
)
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.explain.cluster import StillCluster
from kubestow.recording.format import Put, Record, Removed
from kubestow.testing import ManualClock, make_node, make_node_affinity, make_pod, make_term

BACKOFF_S = 1.0
ZONES = 3
# By then all nodes are known.
BEGIN_S = 20.0


@dataclass(kw_only=True)
class Delays:
    """Seconds, at most: until a decision is written, and until what is written is seen."""

    binding: float = 0.15
    slow_binding: float = 1.5
    seeing: float = 0.1
    recording: float = 0.05


class OtherScheduler:
    """`wrong_every` n: each n-th pod goes to a node that fits, but is not the best."""

    def __init__(
        self,
        config: SchedulerConfig,
        *,
        seed: int,
        delays: Delays | None = None,
        wrong_every: int = 0,
    ) -> None:
        self.records: list[Record] = []
        self.wrong: list[str] = []
        self._rng = np.random.default_rng(seed)
        self._delays = delays or Delays()
        self._wrong_every = wrong_every
        clock = ManualClock()
        self._cluster = StillCluster(config, MemoryClient(MemoryCluster(clock)), clock)
        self._stored: dict[tuple[type[ApiObject], str], ApiObject] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = self._version = self._start_index = self._decisions = 0
        self._now = 0.0
        # When the last change of a kind was seen: a stream keeps its order.
        self._seen: dict[tuple[str, type[ApiObject]], float] = {}
        self._assumed: dict[str, str] = {}
        self._queue: list[tuple[int, int, str]] = []
        self._failed: set[str] = set()
        self._is_deciding = False

    # --- what happens ---

    def at(self, seconds: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (seconds, self._count, action))

    def run(self) -> list[Record]:
        while self._events:
            self._now, _, action = heapq.heappop(self._events)
            action()
        self.records.sort(key=lambda record: record.at_ns)
        return self.records

    def write(self, new: ApiObject) -> None:
        self._version += 1
        metadata = msgspec.structs.replace(new.metadata, resource_version=str(self._version))
        new = msgspec.structs.replace(new, metadata=metadata)
        self._stored[type(new), new.metadata.name] = new
        at_s = self._when("record", type(new), self._delays.recording)
        self.records.append(Put(round(at_s * 1e9), type(new).__name__, encode_json(new)))
        self.at(self._when("see", type(new), self._delays.seeing), lambda: self._see(new))

    def delete(self, cls: type[ApiObject], name: str) -> None:
        old = self._stored.pop((cls, name), None)
        if old is None:
            return
        self._version += 1
        metadata = msgspec.structs.replace(old.metadata, resource_version=str(self._version))
        old = msgspec.structs.replace(old, metadata=metadata)
        at_ns = round(self._when("record", cls, self._delays.recording) * 1e9)
        namespace = old.metadata.namespace
        self.records.append(Removed(at_ns, cls.__name__, namespace, name, encode_json(old)))
        self.at(self._when("see", cls, self._delays.seeing), lambda: self._see_end(old))

    def pods_with_a_node(self) -> list[str]:
        return [
            name
            for (cls, name), pod in self._stored.items()
            if cls is Pod and isinstance(pod, Pod) and is_assigned(pod)
        ]

    def _when(self, stream: str, cls: type[ApiObject], delay: float) -> float:
        key = stream, cls
        at_s = max(self._seen.get(key, 0.0), self._now + self._rng.uniform(0, delay))
        self._seen[key] = at_s
        return at_s

    # --- what the scheduler sees ---

    def _see(self, new: ApiObject) -> None:
        if isinstance(new, Pod):
            node = self._assumed.get(new.metadata.uid, "")
            if is_assigned(new):
                self._assumed.pop(new.metadata.uid, None)
            elif node:
                new = assign(new, node)
            elif self._cluster.find(new) is None and not new.spec.scheduling_gates:
                self._enqueue(new)
            self._cluster.put(new)
            return
        self._cluster.put(new)
        self._retry()

    def _see_end(self, old: ApiObject) -> None:
        self._cluster.remove(old)
        self._retry()

    def _enqueue(self, pod: Pod) -> None:
        self._count += 1
        entry = -(pod.spec.priority or 0), self._count, pod.metadata.name
        heapq.heappush(self._queue, entry)
        if not self._is_deciding:
            self._is_deciding = True
            self.at(self._now, self._decide_next)

    def _retry(self) -> None:
        for name in self._failed:
            self.at(self._now + BACKOFF_S, lambda name=name: self._enqueue_again(name))
        self._failed.clear()

    def _enqueue_again(self, name: str) -> None:
        pod = self._cluster.objects.pods.get("default", name)
        if pod is not None and not is_assigned(pod):
            self._enqueue(pod)

    # --- what it decides ---

    def _decide_next(self) -> None:
        if not self._queue:
            self._is_deciding = False
            return
        _, _, name = heapq.heappop(self._queue)
        pod = self._cluster.objects.pods.get("default", name)
        if pod is not None and not is_assigned(pod):
            self._decide(pod)
        self.at(self._now + self._rng.uniform(0.001, 0.01), self._decide_next)

    def _decide(self, pod: Pod) -> None:
        decision = self._cluster.decide(pod, start_index=self._start_index)
        self._start_index = self._cluster.scheduler.decider.next_start_index
        if not decision.is_scheduled:
            self._fail(pod, decision)
            return
        self._decisions += 1
        node = self._chosen(decision)
        self._assumed[pod.metadata.uid] = node
        self._cluster.assume(decision, node)
        is_slow = self._rng.random() < 0.05
        delay = self._delays.slow_binding if is_slow else self._delays.binding
        name = pod.metadata.name
        self.at(self._now + self._rng.uniform(0.002, delay), lambda: self._bind(name, node))

    def _chosen(self, decision: Decision) -> str:
        """One of the best at random, or, if it is time for that, one that is not."""
        if decision.scores is None:
            return decision.node_name
        totals, rows = decision.scores.total, decision.feasible
        wanted = totals == totals.max()
        if self._wrong_every and self._decisions % self._wrong_every == 0:
            worse = totals <= np.median(totals)
            if not (worse & wanted).any():
                wanted = worse
                self.wrong.append(f"default/{decision.pod.pod.metadata.name}")
        return decision.node_names[int(self._rng.choice(rows[wanted]))]

    def _fail(self, pod: Pod, decision: Decision) -> None:
        self._failed.add(pod.metadata.name)
        condition = Condition(
            type="PodScheduled", status="False", reason="Unschedulable", message=decision.message
        )
        nominated = pod.status.nominated_node_name
        if decision.nomination is not None:
            nominated = decision.nomination.node_name
        status = msgspec.structs.replace(
            pod.status, conditions=(condition,), nominated_node_name=nominated
        )
        failed = msgspec.structs.replace(pod, status=status)
        self._cluster.put(failed)
        name = pod.metadata.name
        at_s = self._now + self._rng.uniform(0.002, self._delays.binding)
        self.at(at_s, lambda: self._write_status(name, failed))
        for victim in decision.freeze().victims:
            self.at(at_s, lambda key=victim.key: self.delete(Pod, key.partition("/")[2]))

    def _bind(self, name: str, node: str) -> None:
        pod = self._stored.get((Pod, name))
        if isinstance(pod, Pod):
            self.write(assign(pod, node))

    def _write_status(self, name: str, failed: Pod) -> None:
        pod = self._stored.get((Pod, name))
        if isinstance(pod, Pod) and not is_assigned(pod) and pod.status != failed.status:
            self.write(msgspec.structs.replace(pod, status=failed.status))


def a_busy_time(
    config: SchedulerConfig,
    *,
    seed: int,
    nodes: int = 40,
    pods: int = 200,
    rate: float = 60,
    delays: Delays | None = None,
    wrong_every: int = 0,
) -> OtherScheduler:
    """Pods of several kinds come, some are deleted, a node is cordoned and one is added."""
    rng = np.random.default_rng(seed)
    other = OtherScheduler(config, seed=seed, delays=delays, wrong_every=wrong_every)
    made = [a_node(index, rng) for index in range(nodes)]
    for node in made:
        other.at(0, lambda node=node: other.write(node))
    for number in range(pods):
        other.at(BEGIN_S + number / rate, lambda number=number: other.write(a_pod(number, rng)))

    def delete_some() -> None:
        placed = other.pods_with_a_node()
        for name in rng.choice(placed, min(len(placed), 5), replace=False):
            other.delete(Pod, str(name))

    for part in (1, 2, 3):
        other.at(BEGIN_S + part * pods / rate / 4, delete_some)
    cordoned = msgspec.structs.replace(
        made[1], spec=msgspec.structs.replace(made[1].spec, unschedulable=True)
    )
    other.at(BEGIN_S + pods / rate / 2, lambda: other.write(cordoned))
    other.at(BEGIN_S + pods / rate / 2, lambda: other.write(a_node(nodes, rng)))
    other.run()
    return other


def a_node(index: int, rng: np.random.Generator) -> Node:
    name, cpu = f"n{index:03}", int(rng.choice([4, 8, 16]))
    return make_node(
        name,
        cpu=f"{cpu * 1000 - int(rng.integers(80)) * 10}m",
        memory=f"{cpu * 4096 - int(rng.integers(2048))}Mi",
        zone=f"z{index % ZONES}",
        labels={"disk": ("ssd", "hdd")[index % 2], "kubernetes.io/hostname": name},
    )


def a_pod(number: int, rng: np.random.Generator) -> Pod:
    app = f"a{int(rng.integers(8))}"
    selector = LabelSelector(match_labels={"app": app})
    name, cpu, memory = (
        f"p{number:04}",
        int(rng.integers(10, 150)) * 10,
        int(rng.integers(64, 3000)),
    )
    amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    match number % 7:
        case 1:
            return a_plain_pod(name, app, amounts, node_selector={"disk": "ssd"})
        case 2:
            term = make_term(f"topology.kubernetes.io/zone In z{int(rng.integers(ZONES))}")
            preferred = make_node_affinity(preferred=[(int(rng.integers(1, 100)), term)])
            return a_plain_pod(name, app, amounts, node_affinity=preferred)
        case 3:
            away = PodAffinityTerm(label_selector=selector, topology_key="kubernetes.io/hostname")
            affinity = Affinity(pod_anti_affinity=PodAffinity(required=(away,)))
            return a_plain_pod(name, app, amounts, affinity=affinity)
        case 4 | 5:
            spread = TopologySpreadConstraint(
                max_skew=1,
                topology_key="topology.kubernetes.io/zone",
                when_unsatisfiable="DoNotSchedule" if number % 2 else "ScheduleAnyway",
                label_selector=selector,
            )
            return a_plain_pod(name, app, amounts, spread=[spread])
        case 6:
            return a_plain_pod(name, app, amounts, priority=int(rng.integers(3)) * 100)
        case _:
            return a_plain_pod(name, app, amounts)


def a_plain_pod(name: str, app: str, amounts: dict[str, str], **other: Any) -> Pod:
    return make_pod(name, uid=name, labels={"app": app}, requests=amounts, **other)
