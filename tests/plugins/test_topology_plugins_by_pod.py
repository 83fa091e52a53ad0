"""InterPodAffinity and PodTopologySpread agree with a reading of spec 06 that walks over every pod.

The reading below knows no arrays, no classes of pods and no memory: for each incoming pod it looks
at every pod on every node, one rule after the other. The plugins are asked in a cluster that
changes between the questions: what they keep from one cycle to the next must never show.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import parse_label_selector
from kubestow.api.meta import LabelSelector, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.node_selector import RequiredNodeAffinity
from kubestow.api.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubestow.api.pod_info import PodInfo
from kubestow.api.taints import TolerationTable, first_untolerated
from kubestow.api.topology import HOSTNAME_LABEL, ZONE_LABEL
from kubestow.api.workload import Namespace, Service, ServiceSpec
from kubestow.arrays import IntArray
from kubestow.cache.cache import Cache
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import InterPodAffinityArgs, PodTopologySpreadArgs
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Code
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.plugins.pod_topology_spread import PodTopologySpread
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.handles import make_handle
from kubestow.testing.topology import make_affinity, make_pod_term, make_selector, make_spread

LEAVING = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = (HOSTNAME_LABEL, ZONE_LABEL, "rack")
NAMESPACES = ("default", "default", "default", "team", "ghost")
WITH_OBJECT = ("default", "team")

# --- the reading of the specification ---------------------------------------------------------


class Running(NamedTuple):
    """A node and the pods on it."""

    node: Node
    pods: Sequence[Pod]


class World(NamedTuple):
    nodes: Sequence[Running]
    namespaces: Mapping[str, Mapping[str, str]]  # name -> labels, where there is an object
    services: Sequence[Service]


Pairs = Counter[tuple[str, str]]


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    return parse_label_selector(selector).matches(labels)


def meant(term: PodAffinityTerm, owner: Pod, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
    """Spec 06 §6.2.2: whether the owner's term matches the pod."""
    namespaces = set(term.namespaces)
    if not namespaces and term.namespace_selector is None:
        namespaces = {owner.metadata.namespace}
    return (
        pod.metadata.namespace in namespaces or selects(term.namespace_selector, namespace_labels)
    ) and selects(term.label_selector, pod.metadata.labels)


def unrolled(term: PodAffinityTerm, owner: Pod, world: World) -> PodAffinityTerm:
    """Spec 06 §6.2.3: the term with the names of matching namespaces added to its own."""
    if term.namespace_selector is None:
        return msgspec.structs.replace(
            term, namespaces=term.namespaces or (owner.metadata.namespace,)
        )
    if term.namespace_selector == LabelSelector():
        return term
    names = [
        name
        for name, labels in world.namespaces.items()
        if selects(term.namespace_selector, labels)
    ]
    return msgspec.structs.replace(term, namespaces=(*term.namespaces, *names))


class SlowAffinity:
    """Spec 06 §6.2, one pod at a time."""

    def __init__(self, world: World, pod: Pod, *, hard_weight: int, ignores_existing: bool) -> None:
        self.world, self.pod = world, pod
        self.hard_weight, self.ignores_existing = hard_weight, ignores_existing
        affinity = pod.spec.affinity or Affinity()
        near = affinity.pod_affinity or PodAffinity()
        apart = affinity.pod_anti_affinity or PodAffinity()
        self.near = [unrolled(term, pod, world) for term in near.required]
        self.apart = [unrolled(term, pod, world) for term in apart.required]
        self.prefers = [self.weighted(entry, 1) for entry in near.preferred]
        self.avoids = [self.weighted(entry, -1) for entry in apart.preferred]
        self.namespace_labels = world.namespaces.get(pod.metadata.namespace, {})
        self.existing, self.affinity, self.anti = Pairs(), Pairs(), Pairs()

    def weighted(self, entry: WeightedPodAffinityTerm, sign: int) -> tuple[PodAffinityTerm, int]:
        return unrolled(entry.pod_affinity_term, self.pod, self.world), sign * entry.weight

    def pre_filter(self) -> bool:
        """Whether the plugin takes part."""
        for node, pods in self.world.nodes:
            for pod in pods:
                self.count(node, pod, 1)
        return bool(self.existing or self.near or self.apart)

    def count(self, node: Node, pod: Pod, sign: int) -> None:
        labels = node.metadata.labels
        for term in required_anti_affinity(pod):
            if meant(term, pod, self.pod, self.namespace_labels) and term.topology_key in labels:
                bump(self.existing, (term.topology_key, labels[term.topology_key]), sign)
        if self.matches_all_near(pod):
            for term in self.near:
                if term.topology_key in labels:
                    bump(self.affinity, (term.topology_key, labels[term.topology_key]), sign)
        for term in self.apart:
            if meant(term, self.pod, pod, {}) and term.topology_key in labels:
                bump(self.anti, (term.topology_key, labels[term.topology_key]), sign)

    def matches_all_near(self, pod: Pod) -> bool:
        return bool(self.near) and all(meant(term, self.pod, pod, {}) for term in self.near)

    def filter(self, node: Node) -> int:
        labels = node.metadata.labels
        is_missing = False
        for term in self.near:
            if term.topology_key not in labels:
                return 1
            if self.affinity[term.topology_key, labels[term.topology_key]] <= 0:
                is_missing = True
        if is_missing and not (not self.affinity and self.matches_all_near(self.pod)):
            return 1
        for term in self.apart:
            value = labels.get(term.topology_key)
            if value is not None and self.anti[term.topology_key, value] > 0:
                return 2
        return 3 if any(self.existing[pair] > 0 for pair in labels.items()) else 0

    def raw_scores(self, feasible: Iterable[Node]) -> list[int] | None:
        has_preferred = bool(self.prefers or self.avoids)
        if self.ignores_existing and not has_preferred:
            return None
        scores: dict[tuple[str, str], int] = {}
        for node, pods in self.world.nodes:
            for pod in pods:
                for term, amount in self.amounts(pod):
                    value = node.metadata.labels.get(term.topology_key)
                    if value is not None:
                        pair = term.topology_key, value
                        scores[pair] = scores.get(pair, 0) + amount
        if not scores:
            return None
        return [
            sum(scores.get(pair, 0) for pair in node.metadata.labels.items()) for node in feasible
        ]

    def amounts(self, pod: Pod) -> Iterable[tuple[PodAffinityTerm, int]]:
        for term, amount in (*self.prefers, *self.avoids):
            if meant(term, self.pod, pod, {}):
                yield term, amount
        affinity = pod.spec.affinity or Affinity()
        near = affinity.pod_affinity or PodAffinity()
        apart = affinity.pod_anti_affinity or PodAffinity()
        theirs = [(entry.pod_affinity_term, entry.weight) for entry in near.preferred]
        theirs += [(entry.pod_affinity_term, -entry.weight) for entry in apart.preferred]
        if self.hard_weight > 0:
            theirs += [(term, self.hard_weight) for term in near.required]
        for term, amount in theirs:
            if meant(term, pod, self.pod, self.namespace_labels):
                yield term, amount

    @staticmethod
    def normalize(raw: Sequence[int]) -> list[int]:
        lowest, highest = min(raw), max(raw)
        if highest == lowest:
            return [0] * len(raw)
        return [int(100.0 * (float(s - lowest) / float(highest - lowest))) for s in raw]


class SlowSpread:
    """Spec 06 §6.3, one pod at a time."""

    def __init__(self, world: World, pod: Pod, *, is_system: bool) -> None:
        self.world, self.pod, self.is_system = world, pod, is_system
        self.required = RequiredNodeAffinity.of(pod)

    def constraints(self, action: str) -> list[TopologySpreadConstraint]:
        own = self.pod.spec.topology_spread_constraints
        if own:
            return [each for each in own if each.when_unsatisfiable == action]
        labels: dict[str, str] = {}
        for service in self.world.services:
            selector = service.spec.selector
            is_here = service.metadata.namespace == self.pod.metadata.namespace
            if is_here and selector and selector.items() <= self.pod.metadata.labels.items():
                labels |= selector
        if not labels or action != "ScheduleAnyway" or not self.is_system:
            return []
        selector = LabelSelector(match_labels=labels)
        return [
            make_spread(HOSTNAME_LABEL, selector=selector, max_skew=3, hard=False),
            make_spread(ZONE_LABEL, selector=selector, max_skew=5, hard=False),
        ]

    def includes(self, constraint: TopologySpreadConstraint, node: Node) -> bool:
        labels, name = node.metadata.labels, node.metadata.name
        if constraint.node_affinity_policy != "Ignore" and not self.required.matches(labels, name):
            return False
        return constraint.node_taints_policy != "Honor" or (
            first_untolerated(node.spec.taints, TolerationTable(self.pod.spec.tolerations)) is None
        )

    def pod_count(self, constraint: TopologySpreadConstraint, pods: Iterable[Pod]) -> int:
        selector = parse_label_selector(constraint.label_selector)
        if selector.is_empty:
            return 0
        return sum(
            pod.metadata.namespace == self.pod.metadata.namespace
            and pod.metadata.deletion_timestamp is None
            and selector.matches(pod.metadata.labels)
            for pod in pods
        )

    def pre_filter(self) -> bool:
        """Whether the plugin takes part."""
        self.hard = self.constraints("DoNotSchedule")
        self.match: list[dict[str, int]] = [{} for _ in self.hard]
        for node, pods in self.world.nodes:
            if not has_keys(node, self.hard):
                continue
            for constraint, match in zip(self.hard, self.match, strict=True):
                if self.includes(constraint, node):
                    value = node.metadata.labels[constraint.topology_key]
                    match[value] = match.get(value, 0) + self.pod_count(constraint, pods)
        return bool(self.hard)

    def count(self, node: Node, pod: Pod, sign: int) -> None:
        if pod.metadata.namespace != self.pod.metadata.namespace or not has_keys(node, self.hard):
            return
        for constraint, match in zip(self.hard, self.match, strict=True):
            is_meant = selects(constraint.label_selector, pod.metadata.labels)
            if is_meant and self.includes(constraint, node):
                match[node.metadata.labels[constraint.topology_key]] += sign

    def filter(self, node: Node) -> int:
        for constraint, match in zip(self.hard, self.match, strict=True):
            value = node.metadata.labels.get(constraint.topology_key)
            if value is None:
                return 2
            lowest = 0 if len(match) < (constraint.min_domains or 1) else min(match.values())
            itself = selects(constraint.label_selector, self.pod.metadata.labels)
            if match.get(value, 0) + itself - lowest > constraint.max_skew:
                return 1
        return 0

    def raw_scores(self, feasible: Sequence[Running]) -> list[int] | None:
        soft = self.constraints("ScheduleAnyway")
        if not self.world.nodes or not soft:
            return None
        needs_all = bool(self.pod.spec.topology_spread_constraints) or not self.is_system
        self.ignored = [needs_all and not has_keys(node, soft) for node, _ in feasible]
        scored = [running for running, skip in zip(feasible, self.ignored, strict=True) if not skip]
        counts: list[dict[str, int]] = []
        weights: list[float] = []
        for constraint in soft:
            key = constraint.topology_key
            count = {node.metadata.labels.get(key, ""): 0 for node, _ in scored}
            for node, pods in self.world.nodes:
                value = node.metadata.labels.get(key, "")
                if needs_all and not has_keys(node, soft):
                    continue
                if self.includes(constraint, node) and value in count:
                    count[value] += self.pod_count(constraint, pods)
            counts.append(count)
            size = len(scored) if key == HOSTNAME_LABEL else len(count)
            weights.append(math.log(size + 2))
        return [
            0 if skip else self.raw_score(running, soft, counts, weights)
            for running, skip in zip(feasible, self.ignored, strict=True)
        ]

    def raw_score(
        self,
        running: Running,
        soft: Sequence[TopologySpreadConstraint],
        counts: Sequence[Mapping[str, int]],
        weights: Sequence[float],
    ) -> int:
        score = 0.0
        for constraint, count, weight in zip(soft, counts, weights, strict=True):
            value = running.node.metadata.labels.get(constraint.topology_key)
            if value is None:
                continue
            if constraint.topology_key == HOSTNAME_LABEL:
                pods = self.pod_count(constraint, running.pods)
            else:
                pods = count[value]
            score += float(pods) * weight + float(constraint.max_skew - 1)
        return int(Decimal(score).quantize(Decimal(1), ROUND_HALF_UP))

    def normalize(self, raw: Sequence[int]) -> list[int]:
        scored = [score for score, skip in zip(raw, self.ignored, strict=True) if not skip]
        highest, lowest = max([0, *scored]), min(scored, default=0)
        return [
            0 if skip else 100 if highest == 0 else 100 * (highest + lowest - score) // highest
            for score, skip in zip(raw, self.ignored, strict=True)
        ]


def required_anti_affinity(pod: Pod) -> Sequence[PodAffinityTerm]:
    affinity = pod.spec.affinity
    apart = None if affinity is None else affinity.pod_anti_affinity
    return () if apart is None else apart.required


def has_keys(node: Node, constraints: Iterable[TopologySpreadConstraint]) -> bool:
    return all(constraint.topology_key in node.metadata.labels for constraint in constraints)


def bump(pairs: Pairs, pair: tuple[str, str], amount: int) -> None:
    pairs[pair] += amount
    if pairs[pair] == 0:
        del pairs[pair]


# --- clusters that change -----------------------------------------------------------------------

labels = st.fixed_dictionaries(
    {}, optional={"app": st.sampled_from("ab"), "tier": st.sampled_from("xy")}
)
selectors = st.sampled_from(
    [
        None,
        make_selector(),
        make_selector("app=a"),
        make_selector("app=b", "tier=x"),
        make_selector("app In a,b"),
        make_selector("app NotIn a"),
        make_selector("tier Exists"),
        make_selector("tier DoesNotExist"),
    ]
)
namespace_selectors = st.sampled_from(
    [
        None,
        None,
        make_selector(),
        make_selector("env=dev"),
        make_selector("env NotIn dev"),
        make_selector("env DoesNotExist"),
    ]
)
terms = st.builds(
    make_pod_term,
    st.sampled_from(KEYS),
    selector=selectors,
    namespaces=st.sampled_from([(), (), ("team",), ("default", "ghost")]),
    namespace_selector=namespace_selectors,
)
weighted_terms = st.tuples(st.sampled_from([1, 7, 7, 100]), terms)
affinities = st.builds(
    make_affinity,
    near=st.lists(terms, max_size=2),
    apart=st.lists(terms, max_size=2),
    prefers=st.lists(weighted_terms, max_size=2),
    avoids=st.lists(weighted_terms, max_size=2),
)
spreads = st.builds(
    make_spread,
    st.sampled_from(KEYS),
    selector=selectors,
    max_skew=st.integers(1, 3),
    hard=st.booleans(),
    min_domains=st.sampled_from([None, None, 1, 3]),
    affinity_policy=st.sampled_from([None, "Honor", "Ignore"]),
    taints_policy=st.sampled_from([None, "Honor", "Ignore"]),
)
pods = st.builds(
    make_pod,
    namespace=st.sampled_from(NAMESPACES),
    labels=labels,
    affinity=st.none() | affinities,
    spread=st.lists(spreads, max_size=3),
    node_selector=st.sampled_from([None, None, {"pool": "p"}]),
    tolerations=st.sampled_from([(), (Toleration(operator="Exists"),)]),
    deleted=st.sampled_from([None, None, LEAVING]),
)
node_labels = st.fixed_dictionaries(
    {},
    optional={
        HOSTNAME_LABEL: st.sampled_from(["h1", "h2", "h3", "h4"]),
        ZONE_LABEL: st.sampled_from(["z1", "z2", ""]),
        "rack": st.sampled_from(["r1", "r2"]),
        "pool": st.just("p"),
    },
)
taints = st.sampled_from([(), (), ("x=y:NoSchedule",), ("x=y:PreferNoSchedule",)])
node_names = st.sampled_from(["n1", "n2", "n3", "n4", "n5"])


class ChangingCluster:
    """A cluster whose changes are drawn one by one. Its pods are copies of a few."""

    def __init__(self, draw: Any) -> None:
        self.cache, self.snapshot, self.objects = Cache(), Snapshot(), ClusterObjects()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.kinds = draw(st.lists(pods, min_size=2, max_size=5))
        for name, these_labels in draw(
            st.dictionaries(node_names, node_labels, min_size=2)
        ).items():
            self.nodes[name] = make_node(name, labels=these_labels)
            self.cache.add_node(self.nodes[name])
        for name in draw(st.lists(node_names, min_size=4, max_size=12)):
            self.add_pod(draw, name)

    def change(self, draw: Any) -> None:
        changes = [self.put_node, self.put_node, self.add_pod, self.add_pod, self.add_pod]
        changes += [self.put_namespace, self.put_service]
        if self.nodes:
            changes.append(self.remove_node)
        if self.pods:
            changes += [self.remove_pod, self.remove_pod, self.change_pod]
        draw(st.sampled_from(changes))(draw)

    def put_node(self, draw: Any) -> None:
        name = draw(node_names)
        node = make_node(name, labels=draw(node_labels), taints=draw(taints))
        if name in self.nodes:
            self.cache.update_node(self.nodes[name], node)
        else:
            self.cache.add_node(node)
        self.nodes[name] = node

    def remove_node(self, draw: Any) -> None:
        node = self.nodes.pop(draw(st.sampled_from(sorted(self.nodes))))
        self.cache.remove_node(node)

    def add_pod(self, draw: Any, node_name: str | None = None) -> None:
        kind = draw(st.sampled_from(self.kinds))
        metadata = msgspec.structs.replace(kind.metadata, uid=make_pod().metadata.uid)
        # Also onto nodes that are not there, or not there yet.
        pod = PodInfo(msgspec.structs.replace(kind, metadata=metadata)).assigned_to(
            node_name or draw(node_names)
        )
        self.pods[pod.uid] = pod.pod
        if draw(st.booleans()):
            self.cache.add_pod(pod)
        else:
            self.cache.assume_pod(pod)

    def remove_pod(self, draw: Any) -> None:
        self.cache.remove_pod(self.pods.pop(draw(st.sampled_from(list(self.pods)))))

    def change_pod(self, draw: Any) -> None:
        old = self.pods[draw(st.sampled_from(list(self.pods)))]
        if self.cache.is_assumed(old):
            self.cache.add_pod(PodInfo(old))
        metadata = msgspec.structs.replace(
            old.metadata,
            labels=draw(labels),
            deletion_timestamp=draw(st.sampled_from([old.metadata.deletion_timestamp, LEAVING])),
        )
        new = msgspec.structs.replace(old, metadata=metadata)
        self.cache.update_pod(old, PodInfo(new))
        self.pods[new.metadata.uid] = new

    def put_namespace(self, draw: Any) -> None:
        name = draw(st.sampled_from(WITH_OBJECT))
        environment = draw(st.sampled_from([None, {}, {"env": "dev"}, {"env": "prod"}]))
        if environment is None:
            self.objects.namespaces.remove(name)
        else:
            self.objects.put(Namespace(metadata=ObjectMeta(name=name, labels=environment)))

    def put_service(self, draw: Any) -> None:
        metadata = ObjectMeta(
            name=draw(st.sampled_from("st")), namespace=draw(st.sampled_from(NAMESPACES))
        )
        selector = draw(st.none() | labels)
        self.objects.put(Service(metadata=metadata, spec=ServiceSpec(selector=selector)))

    def world(self) -> World:
        """Everything as it is now, without looking at anything the plugins keep."""
        return World(
            nodes=[
                Running(
                    self.nodes[name],
                    [pod for pod in self.pods.values() if pod.spec.node_name == name],
                )
                for name in self.snapshot.names
            ],
            namespaces={
                namespace.metadata.name: namespace.metadata.labels
                for namespace in self.objects.namespaces.list()
            },
            services=self.objects.services.list(),
        )


@pytest.mark.slow
@given(data=st.data())
def test_a_cluster_that_changes_between_cycles(data: st.DataObject) -> None:
    cluster = ChangingCluster(data.draw)
    handle = make_handle(cluster.snapshot, objects=cluster.objects)
    hard_weight = data.draw(st.sampled_from([0, 1, 5]))
    ignores_existing = data.draw(st.booleans())
    is_system = data.draw(st.booleans())
    affinity = InterPodAffinity(
        InterPodAffinityArgs(
            hard_pod_affinity_weight=hard_weight,
            ignore_preferred_terms_of_existing_pods=ignores_existing,
        ),
        handle,
    )
    spread = PodTopologySpread(
        PodTopologySpreadArgs(defaulting_type="System" if is_system else "List"), handle
    )
    for _ in range(data.draw(st.integers(1, 4))):
        # Several refreshes may pass before the plugins read again, more than a log keeps.
        for _ in range(data.draw(st.sampled_from([1, 1, 2, 12]))):
            for _ in range(data.draw(st.integers(1, 6))):
                cluster.change(data.draw)
            cluster.snapshot.refresh(cluster.cache)
        pod = data.draw(st.sampled_from(cluster.kinds))
        world = cluster.world()
        slow_affinity = SlowAffinity(
            world, pod, hard_weight=hard_weight, ignores_existing=ignores_existing
        )
        check(data, cluster, affinity, slow_affinity, world)
        check(data, cluster, spread, SlowSpread(world, pod, is_system=is_system), world)


def check(
    data: st.DataObject,
    cluster: ChangingCluster,
    plugin: InterPodAffinity | PodTopologySpread,
    slow: SlowAffinity | SlowSpread,
    world: World,
) -> None:
    state, pod, snapshot = CycleState(), PodInfo(slow.pod), cluster.snapshot
    answer = plugin.pre_filter(state, pod, nodes_of(snapshot))
    if slow.pre_filter():
        assert answer is None
        expected = [slow.filter(node) for node, _ in world.nodes]
        assert codes(plugin, state, pod, nodes_of(snapshot)) == expected
        if world.nodes:
            check_some_rows(data, plugin, state, pod, snapshot, expected)
            check_copied_states(data, plugin, slow, state, pod, cluster, world)
            # Thinking of pods has changed nothing for others.
            assert codes(plugin, state, pod, nodes_of(snapshot)) == expected
    else:
        assert getattr(answer, "code", None) is Code.SKIP
    if world.nodes:
        check_scores(data, plugin, slow, pod, snapshot, world)


def check_some_rows(
    data: st.DataObject,
    plugin: InterPodAffinity | PodTopologySpread,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    expected: Sequence[int],
) -> None:
    rows = data.draw(st.permutations(range(len(expected))))
    some = rows[: data.draw(st.integers(1, len(rows)))]
    found = codes(plugin, state, pod, nodes_of(snapshot, np.array(some)))
    assert found == [expected[row] for row in some]
    half = slice(len(rows) // 2, None)
    assert codes(plugin, state, pod, nodes_of(snapshot, half)) == expected[half]


def check_copied_states(
    data: st.DataObject,
    plugin: InterPodAffinity | PodTopologySpread,
    slow: SlowAffinity | SlowSpread,
    state: CycleState,
    pod: PodInfo,
    cluster: ChangingCluster,
    world: World,
) -> None:
    """Pods of one node come and go in a copy of the state."""
    snapshot, kinds = cluster.snapshot, cluster.kinds
    row = data.draw(st.integers(0, len(world.nodes) - 1))
    node, there = world.nodes[row]
    copied_state, simulated = state.clone(), SimulatedNode(snapshot, row)
    gone: list[Pod] = []
    there = list(there)
    for _ in range(data.draw(st.integers(0, 4))):
        kind = data.draw(st.sampled_from(["remove", "bring back", "add"]))
        if kind == "remove" and there:
            moved = there.pop(data.draw(st.integers(0, len(there) - 1)))
            gone.append(moved)
            plugin.remove_pod(copied_state, pod, PodInfo(moved), row)
            slow.count(node, moved, -1)
        elif kind != "remove":
            is_back = kind == "bring back" and gone
            moved = gone.pop() if is_back else data.draw(st.sampled_from(kinds))
            there.append(moved)
            plugin.add_pod(copied_state, pod, PodInfo(moved), row)
            slow.count(node, moved, 1)
        copied_state = copied_state.clone()
        assert codes(plugin, copied_state, pod, simulated) == [slow.filter(node)]
        # Other nodes of the same domains see the change as well.
        assert codes(plugin, copied_state, pod, nodes_of(snapshot)) == [
            slow.filter(other) for other, _ in world.nodes
        ]


def check_scores(
    data: st.DataObject,
    plugin: InterPodAffinity | PodTopologySpread,
    slow: SlowAffinity | SlowSpread,
    pod: PodInfo,
    snapshot: Snapshot,
    world: World,
) -> None:
    count = len(world.nodes)
    rows = data.draw(
        st.just(list(range(count))) | st.lists(st.integers(0, count - 1), min_size=1, unique=True)
    )
    feasible = [world.nodes[row] for row in rows]
    nodes = nodes_of(snapshot) if len(rows) == count else nodes_of(snapshot, np.array(rows))
    if len(rows) == count:
        feasible = list(world.nodes)
    state = CycleState()
    status = plugin.pre_score(state, pod, nodes)
    if isinstance(slow, SlowAffinity):
        expected = slow.raw_scores(node for node, _ in feasible)
    else:
        expected = slow.raw_scores(feasible)
    if expected is None:
        assert status is not None
        assert status.code is Code.SKIP
        return
    assert status is None
    raw = plugin.score(state, pod, nodes)
    assert raw.tolist() == expected
    assert plugin.normalize(state, pod, raw).tolist() == slow.normalize(expected)


def codes(
    plugin: InterPodAffinity | PodTopologySpread, state: CycleState, pod: PodInfo, nodes: Nodes
) -> list[int]:
    found: IntArray | None = plugin.filter(state, pod, nodes)
    return [0] * len(nodes) if found is None else found.tolist()
