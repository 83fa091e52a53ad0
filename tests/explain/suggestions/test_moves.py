"""A pod is moved only if it finds another node, and the waiting pod then fits."""

from collections.abc import Callable

import msgspec
import pytest
from tests.cache.dice import Dice

from kubestow.api.meta import LabelSelector, OwnerReference
from kubestow.api.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import PodReference, Suggestion
from kubestow.explain.many import explain_many, waiting_pods
from kubestow.explain.suggestions import find_suggestions
from kubestow.explain.suggestions.evictions import MOVES_TRIED, made_again
from kubestow.testing import make_node, make_pod

HOSTNAME = "kubernetes.io/hostname"
MakeCluster = Callable[..., StillCluster]


def owner(name: str) -> OwnerReference:
    return OwnerReference(
        api_version="apps/v1", kind="ReplicaSet", name=name, uid=name, controller=True
    )


def running(name: str, cpu: str, node: str, *, owned: bool = True) -> Pod:
    of = owner(f"of-{name}") if owned else None
    return make_pod(name, cpu=cpu, node=node, owner=of, labels={"app": name})


def moves(cluster: StillCluster, pod: Pod) -> list[Suggestion]:
    return [each for each in find_suggestions(cluster, pod, limit=99) if each.kind == "MovePod"]


def test_a_pod_that_finds_another_node_is_moved(make_cluster: MakeCluster) -> None:
    pod = make_pod("w", cpu="3")
    nodes = make_node("a", cpu="4"), make_node("b", cpu="4")
    one, two = running("one", "1500m", "a"), running("two", "2500m", "b", owned=False)
    cluster = make_cluster(*nodes, one, two, pod)
    (move,) = moves(cluster, pod)
    assert move.text == (
        "move the pod default/one from a to b, which frees 1500m cpu: the pod then fits on a"
    )
    assert move.commands == (
        "kubectl cordon a",
        "kubectl delete pod -n default one",
        "kubectl wait --for=condition=PodScheduled pod -n default -l app=one --timeout=60s",
        "kubectl uncordon a",
    )
    assert move.effect == "one is deleted, and made again by its controller"
    assert move.patches == ()
    assert move.moved == PodReference(namespace="default", name="one", uid=one.metadata.uid)
    # The same pod is not suggested twice.
    kinds = [each.kind for each in find_suggestions(cluster, pod, limit=99)]
    assert "DeletePods" not in kinds


@pytest.mark.parametrize(
    ("one", "b"),
    [
        pytest.param(running("one", "1500m", "a", owned=False), "4", id="nothing-makes-it-again"),
        pytest.param(running("one", "1500m", "a"), "1", id="it-fits-nowhere-else"),
    ],
)
def test_it_is_not_moved_if(make_cluster: MakeCluster, one: Pod, b: str) -> None:
    pod = make_pod("w", cpu="3")
    cluster = make_cluster(make_node("a", cpu="4"), make_node("b", cpu=b), one, pod)
    cluster.put(running("two", b if b == "1" else "2500m", "b", owned=False))
    assert moves(cluster, pod) == []


def test_a_node_that_is_cordoned_stays_so(make_cluster: MakeCluster) -> None:
    zone = {"zone": "z"}
    apart = PodAffinityTerm(
        topology_key="zone", label_selector=LabelSelector(match_labels={"app": "one"})
    )
    affinity = Affinity(pod_anti_affinity=PodAffinity(required=(apart,)))
    pod = make_pod("w", cpu="3", affinity=affinity, node_selector=zone)
    nodes = (
        make_node("a", cpu="2", labels=zone, unschedulable=True),
        make_node("b", cpu="4", labels=zone),
        make_node("c", cpu="32", labels={"zone": "y"}),
    )
    cluster = make_cluster(*nodes, running("one", "1500m", "a"), pod)
    (move,) = moves(cluster, pod)
    assert move.commands[0] == "kubectl delete pod -n default one"
    assert not any("cordon" in each for each in move.commands)


def test_the_waiting_pod_is_not_awaited(make_cluster: MakeCluster) -> None:
    pod = make_pod("w", cpu="3", labels={"app": "one", "tier": "x"})
    one = running("one", "1500m", "a")
    cluster = make_cluster(make_node("a", cpu="4"), make_node("b", cpu="2"), one, pod)
    (move,) = moves(cluster, pod)
    assert not any("wait" in each for each in move.commands)


def test_a_pod_of_a_stateful_set_is_awaited_by_its_name(make_cluster: MakeCluster) -> None:
    pod, kind = make_pod("w", cpu="3"), "StatefulSet"
    of = OwnerReference(api_version="apps/v1", kind=kind, name="db", uid="db", controller=True)
    db = make_pod("db-0", cpu="1500m", node="a", owner=of)
    cluster = make_cluster(make_node("a", cpu="4"), make_node("b", cpu="2"), db, pod)
    (move,) = moves(cluster, pod)
    assert [each.split(" --timeout")[0] for each in move.commands[2:4]] == [
        "kubectl wait --for=create pod -n default db-0",
        "kubectl wait --for=condition=PodScheduled pod -n default db-0",
    ]


def test_a_move_helps_many_pods(make_cluster: MakeCluster) -> None:
    one, two = running("one", "1500m", "a"), running("two", "2500m", "b", owned=False)
    nodes = make_node("a", cpu="4"), make_node("b", cpu="4")
    cluster = make_cluster(*nodes, one, two, make_pod("w", cpu="3"))
    kinds = {each.kind: each for each in explain_many(cluster, waiting_pods(cluster)).remedies}
    assert kinds["MovePod"].places == 1


@pytest.mark.parametrize("seed", range(60))
def test_moves_are_those_that_trying_all_finds(make_cluster: MakeCluster, seed: int) -> None:
    dice = Dice(seed)
    names = [f"n{number}" for number in range(dice.between(2, 4))]
    pods = [
        running(f"r{number}", f"{dice.between(2, 16) * 250}m", dice.choice(names))
        for number in range(dice.between(2, MOVES_TRIED))
    ]
    pod = make_pod("w", cpu=f"{dice.between(4, 15) * 250}m")
    cluster = make_cluster(
        *(make_node(name, cpu="4", labels={HOSTNAME: name}) for name in names), *pods, pod
    )
    if cluster.decide(pod).is_scheduled:
        return
    possible = {each.metadata.name for each in pods if _can_be_moved(cluster, pod, each)}
    found = {move.text.split()[3].partition("/")[2] for move in moves(cluster, pod)}
    assert found <= possible
    assert bool(found) == bool(possible)


def _can_be_moved(cluster: StillCluster, pod: Pod, victim: Pod) -> bool:
    """Whether some other node takes it, after which the pod fits."""
    again, home = made_again(victim), victim.spec.node_name
    others = [each.metadata.name for each in cluster.objects.nodes if each.metadata.name != home]
    for name in others:
        spec = msgspec.structs.replace(again.spec, node_name=name)
        moved = msgspec.structs.replace(again, spec=spec)
        only = msgspec.structs.replace(again.spec, node_selector={HOSTNAME: name})
        there = msgspec.structs.replace(again, spec=only)
        with cluster.changed(there, removed=(victim,)):
            if not cluster.decide(there).is_scheduled:
                continue
        with cluster.changed(moved, removed=(victim,)):
            if cluster.decide(pod).is_scheduled:
                return True
    return False
