"""The equivalence cache changes no decision."""

from itertools import count
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.meta import Condition, ObjectMeta, OwnerReference
from kubestow.api.node import Node
from kubestow.api.pod import AwsElasticBlockStore, GcePersistentDisk, Pod, Volume
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.api.topology import BETA_ZONE_LABEL
from kubestow.api.workload import Service, ServiceSpec
from kubestow.editions.shared.policy import (
    Policy,
    PredicateArgument,
    PredicatePolicy,
    ServiceAffinityArgument,
    provider_policy,
)
from kubestow.editions.v1_9.engine import equivalence_cache
from kubestow.editions.v1_9.engine.algorithm import build_algorithm
from kubestow.editions.v1_9.engine.decide import DeciderV19, DecisionV19
from kubestow.editions.v1_9.engine.equivalence_cache import EquivalenceCache
from kubestow.editions.v1_9.engine.equivalence_rules import (
    SERVICE_CHANGED,
    VOLUME_CHANGED,
    node_changed,
    pod_changed,
)
from kubestow.editions.v1_9.plugins.pod import PodInfoV19
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.storage import make_claim, make_volume
from kubestow.testing.topology import make_affinity, make_pod_term
from tools.bench_v1_9 import BenchV19

ZONE = BETA_ZONE_LABEL
DEFAULT = provider_policy("DefaultProvider")
# All of the default predicates, and those that are part of others or need an argument.
POLICY = msgspec.structs.replace(
    DEFAULT,
    predicates=(
        *DEFAULT.predicates,
        *(PredicatePolicy(name=name) for name in ("PodFitsResources", "PodFitsHostPorts")),
        PredicatePolicy(
            name="SameRack",
            argument=PredicateArgument(service_affinity=ServiceAffinityArgument(labels=("rack",))),
        ),
    ),
)

_names = count()


def controlled(template: int, **fields: Any) -> Pod:
    owner = OwnerReference(kind="ReplicaSet", uid=f"rs-{template}", controller=True)
    return make_pod(f"p{next(_names)}", owner=owner, **fields)


class Twins(BenchV19):
    """A cluster with two deciders, with and without the cache; both get all events."""

    def __init__(self, policy: Policy = POLICY) -> None:
        super().__init__()
        self.kept = EquivalenceCache(self.snapshot, self.objects)
        algorithm = build_algorithm(policy)
        self.plain = DeciderV19(self.snapshot, self.cluster, algorithm)
        self.remembering = DeciderV19(
            self.snapshot, self.cluster, algorithm, equivalence_cache=self.kept
        )

    def decide(self, pod: Pod) -> DecisionV19:
        """The decision of both; they must agree."""
        self.snapshot.refresh(self.cache)
        info = PodInfoV19(pod)
        expected, found = self.plain.decide(info), self.remembering.decide(info)
        assert described(found) == described(expected)
        return found

    def place(self, pod: Pod) -> str:
        """Decide, and assume the pod on the node chosen; returns its name."""
        decision = self.decide(pod)
        if decision.is_scheduled:
            assumed = decision.pod.assigned_to(decision.node_name)
            self.cache.assume_pod(assumed)
            self.kept.drop(pod_changed(None, assumed.pod))
        return decision.node_name

    def put_node(self, node: Node) -> None:
        info = self.cache.nodes.get(node.metadata.name)
        old = None if info is None else info.node
        if old is None:
            self.cache.add_node(node)
        else:
            self.cache.update_node(old, node)
        self.kept.drop(node_changed(old, node))

    def remove_node(self, node: Node) -> None:
        self.cache.remove_node(node)
        self.kept.drop(node_changed(node, None))

    def remove_pod(self, pod: Pod) -> None:
        self.cache.remove_pod(pod)
        self.kept.drop(pod_changed(pod, None))

    def add_pod(self, pod: Pod) -> None:
        self.cache.add_pod(PodInfoV19(pod))
        self.kept.drop(pod_changed(None, pod))


def described(decision: DecisionV19) -> tuple[object, ...]:
    rows = range(len(decision.node_names))
    return (
        decision.node_name,
        decision.error,
        decision.top_nodes,
        [decision.reasons(row) for row in rows],
        [decision.errors(row) for row in rows],
    )


class Churn:
    """Random events, and pods of a few templates that sometimes change."""

    def __init__(self, seed: int, twins: Twins) -> None:
        self._rng = np.random.default_rng(seed)
        self._twins = twins
        for number in range(4):
            twins.put_node(self.node(f"n{number}"))

    def chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self._rng.integers(len(choices)))]

    def node(self, name: str) -> Node:
        labels = {"rack": self.pick("0", "1")}
        if self.chance(0.7):
            labels[ZONE] = self.pick("z0", "z1")
        return make_node(
            name,
            cpu=self.pick(2, 4),
            labels=labels,
            taints=["t:NoSchedule"] if self.chance(0.2) else [],
            unschedulable=self.chance(0.1),
            conditions=[
                Condition(type="MemoryPressure", status=self.pick("True", "False")),
                Condition(type="Ready", status=self.pick("True", "True", "True", "False")),
            ],
        )

    def pod(self, *, node: str = "") -> Pod:
        template = int(self._rng.integers(6))
        app = {"app": self.pick("web", "db")}
        shapes: list[dict[str, Any]] = [
            {"cpu": self.pick("500m", "1")},
            {"host_ports": [80]},
            {"affinity": make_affinity(apart=[make_pod_term("rack", "app=web")])},
            {"affinity": make_affinity(near=[make_pod_term(ZONE, "app=db")])},
            {
                "volumes": [
                    Volume(gce_persistent_disk=GcePersistentDisk(pd_name=self.pick("a", "b"))),
                    Volume(aws_elastic_block_store=AwsElasticBlockStore(volume_id="a")),
                ]
            },
            {"pvcs": [self.pick("c0", "c1")]},
        ]
        pod = controlled(template, labels=app, node=node, **shapes[template])
        if self.chance(0.1):
            metadata = msgspec.structs.replace(pod.metadata, owner_references=())
            return msgspec.structs.replace(pod, metadata=metadata)
        return pod

    def happen(self) -> None:
        """Apply one event."""
        twins = self._twins
        infos = list(twins.cache.nodes.values())
        pods = [pod.pod for info in infos for pod in info.pods]
        match int(self._rng.integers(8)):
            case 0:
                twins.put_node(self.node(f"n{int(self._rng.integers(6))}"))
            case 1:
                nodes = [info.node for info in infos if info.node is not None]
                if len(nodes) > 1:
                    twins.remove_node(self.pick(*nodes))
            case 2 | 3 if pods:
                twins.remove_pod(self.pick(*pods))
            case 4:
                twins.add_pod(self.pod(node=f"n{int(self._rng.integers(6))}"))
            case 5:
                self._change_service()
            case 6:
                self._change_claim()
            case _:
                twins.place(self.pod())

    def _change_service(self) -> None:
        twins, store = self._twins, self._twins.objects.services
        service = Service(
            metadata=ObjectMeta(name="s", namespace="default"),
            spec=ServiceSpec(selector={"app": self.pick("web", "db")}),
        )
        old = store.remove("default", "s") if self.chance(0.3) else store.put(service)
        new = store.get("default", "s")
        if old is not None or new is not None:
            twins.kept.drop(SERVICE_CHANGED)

    def _change_claim(self) -> None:
        twins, objects = self._twins, self._twins.objects
        name = self.pick("c0", "c1")
        claim = make_claim(name, volume=self.pick("", "pv"))
        metadata = msgspec.structs.replace(claim.metadata, uid=f"uid-{name}")
        new: PersistentVolumeClaim = msgspec.structs.replace(claim, metadata=metadata)
        objects.persistent_volume_claims.put(new)
        twins.kept.drop(VOLUME_CHANGED)
        objects.persistent_volumes.put(make_volume("pv", labels={ZONE: self.pick("z0", "z0__z1")}))
        twins.kept.drop(VOLUME_CHANGED)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_decision_is_the_same_with_the_cache_and_without(seed: int) -> None:
    twins = Twins()
    churn = Churn(seed, twins)
    for _ in range(40):
        churn.happen()
        twins.place(churn.pod())


def test_the_cache_is_used() -> None:
    twins = Twins()
    for number in range(3):
        twins.put_node(make_node(f"n{number}"))
    twins.place(controlled(1, cpu="1"))
    before = twins.kept.statistics()
    twins.place(controlled(1, cpu="1"))
    after = twins.kept.statistics()
    assert before.hits == 0
    assert after.hits > after.misses - before.misses > 0


def test_the_most_recently_used_classes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalence_cache, "CLASSES_MAX", 2)
    twins = Twins()
    twins.put_node(make_node("n1"))

    def misses(template: int) -> int:
        before = twins.kept.statistics().misses
        twins.decide(controlled(template))
        return twins.kept.statistics().misses - before

    asked = misses(0)
    assert asked > 0
    assert [misses(template) for template in (0, 1, 0, 2, 0, 1)] == [0, asked, 0, asked, 0, asked]


def test_after_assuming_only_what_reads_pods_is_asked_again_on_that_node() -> None:
    policy = Policy(predicates=tuple(map(named, ("GeneralPredicates", "PodToleratesNodeTaints"))))
    twins = Twins(policy)
    for number in range(3):
        twins.put_node(make_node(f"n{number}"))
    twins.place(controlled(1, cpu="1"))
    before = twins.kept.statistics()
    twins.place(controlled(1, cpu="1"))
    # Three predicates with the mandatory one, three nodes; GeneralPredicates again on one of them.
    assert twins.kept.statistics().misses - before.misses == 1
    assert twins.kept.statistics().hits - before.hits == 8


def named(name: str) -> PredicatePolicy:
    return PredicatePolicy(name=name)


def test_a_pod_without_controller_is_never_cached() -> None:
    twins = Twins()
    twins.put_node(make_node())
    for _ in range(2):
        twins.place(make_pod(f"p{next(_names)}"))
    assert twins.kept.statistics().hits == twins.kept.statistics().misses == 0


def test_a_pod_with_a_missing_claim_is_not_cached() -> None:
    twins = Twins()
    twins.put_node(make_node())
    twins.place(controlled(1, pvcs=["missing"]))
    assert twins.kept.statistics().misses == 0


def test_verdicts_follow_rows_that_move() -> None:
    twins = Twins(Policy(predicates=(named("PodToleratesNodeTaints"),)))
    twins.put_node(make_node("a", taints=["t:NoSchedule"]))
    twins.put_node(make_node("b"))
    twins.decide(controlled(1))
    first = next(iter(twins.cache.nodes.values())).node
    assert first is not None
    twins.remove_node(first)
    twins.put_node(make_node("c", taints=["t:NoSchedule"]))
    assert twins.decide(controlled(1)).node_name == "b"


def test_an_added_pod_drops_inter_pod_affinity() -> None:
    twins = Twins()
    twins.put_node(make_node("n", labels={"rack": "0"}))
    apart = make_affinity(apart=[make_pod_term("rack", "app=web")])
    twins.place(controlled(1, labels={"app": "web"}, affinity=apart))
    second = twins.decide(controlled(1, labels={"app": "web"}, affinity=apart))
    assert second.is_fit_error
