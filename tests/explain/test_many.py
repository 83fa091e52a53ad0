"""Many waiting pods: grouped by cause, and by the change that places most of them together."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import ObjectMeta, OwnerReference
from kubestow.api.pod import Pod
from kubestow.api.workload import ReplicaSet
from kubestow.explain.cluster import StillCluster
from kubestow.explain.history import AttemptHistory
from kubestow.explain.many import explain_many, waiting_pods
from kubestow.explain.many_text import many_lines
from kubestow.explain.running_many import explain_kept
from kubestow.explain.running_pod import kept_attempts
from kubestow.explain.together import placed_together
from kubestow.testing import make_node, make_pod

MakeCluster = Callable[..., StillCluster]


def replicas(count: int, name: str = "web", **more: Any) -> list[Pod]:
    owner = OwnerReference(
        api_version="apps/v1", kind="ReplicaSet", name=f"{name}-1", uid=name, controller=True
    )
    return [
        make_pod(f"{name}-{number}", labels={"app": name}, owner=owner, **more)
        for number in range(count)
    ]


def replica_set(name: str) -> ReplicaSet:
    of = OwnerReference(api_version="apps/v1", kind="Deployment", name=name, controller=True)
    metadata = ObjectMeta(name=f"{name}-1", namespace="default", owner_references=(of,))
    return ReplicaSet(metadata=metadata)


def test_pods_are_placed_together_and_nothing_stays(make_cluster: MakeCluster) -> None:
    pods = replicas(5, cpu="2")
    cluster = make_cluster(make_node("a", cpu="4"), make_node("b", cpu="2"), *pods)
    for _ in range(2):
        with placed_together(cluster, pods) as together:
            assert sorted(together.nodes.values()) == ["a", "a", "b"]
            assert len(together.waiting) == 2
        assert all(not info.pods for info in cluster.refresh().node_infos)


def test_pods_that_others_attract_are_tried_again(make_cluster: MakeCluster) -> None:
    """The important pod has to be beside the other one, which is placed after it."""
    from kubestow.api.meta import LabelSelector
    from kubestow.api.pod import Affinity, PodAffinity, PodAffinityTerm

    term = PodAffinityTerm(
        topology_key="zone", label_selector=LabelSelector(match_labels={"app": "db"})
    )
    affinity = Affinity(pod_affinity=PodAffinity(required=(term,)))
    first = make_pod("first", priority=9, affinity=affinity)
    second = make_pod("second", labels={"app": "db"})
    cluster = make_cluster(make_node("a", labels={"zone": "x"}), first, second)
    with placed_together(cluster, [first, second]) as together:
        assert together.nodes == {"default/second": "a", "default/first": "a"}


def test_causes_are_counted_with_their_owners(make_cluster: MakeCluster) -> None:
    large, picky = replicas(3, "large", cpu="9"), replicas(2, "picky", node_selector={"x": "y"})
    fitting = make_pod("fits", cpu="1")
    cluster = make_cluster(make_node("a", cpu="4"), replica_set("large"), *large, *picky, fitting)
    found = explain_many(cluster, waiting_pods(cluster))
    assert (found.waiting, found.fitting) == (6, 1)
    assert [(each.count, each.reason_codes) for each in found.causes] == [
        (3, ("InsufficientCPU",)),
        (2, ("NodeAffinityMismatch",)),
    ]
    assert found.causes[0].evidence == ("1 node: needs 9 cpu, 3 of 4 free",)
    (owner,) = found.causes[0].owners
    assert (owner.owner, owner.count) == ("Deployment default/large", 3)


def test_the_change_that_places_most_pods_comes_first(make_cluster: MakeCluster) -> None:
    """Without its taint the node has room for three of four; lower requests place one class."""
    pods = [*replicas(3, "web", cpu="2"), *replicas(1, "huge", cpu="7")]
    cluster = make_cluster(make_node("a", cpu="6", taints=["x:NoSchedule"]), *pods)
    found = explain_many(cluster, waiting_pods(cluster))
    first = found.remedies[0]
    assert (first.places, first.of) == (3, 4)
    assert first.commands
    assert all(each.places <= 3 for each in found.remedies)
    assert all(
        one.places >= other.places
        for one, other in zip(found.remedies, found.remedies[1:], strict=False)
    )


def test_no_pod_that_waits_itself_is_to_be_deleted(make_cluster: MakeCluster) -> None:
    """In its place the other one would wait."""
    pods = [make_pod("first", cpu="3"), make_pod("second", cpu="3")]
    cluster = make_cluster(make_node("a", cpu="4"), *pods)
    found = explain_many(cluster, waiting_pods(cluster))
    assert found.fitting == 1
    assert found.remedies
    assert "DeletePods" not in {each.kind for each in found.remedies}


def test_pods_that_fit_already_are_placed_again_with_a_change(make_cluster: MakeCluster) -> None:
    """Once `old` is gone, `web` goes to its node, and `db` still finds no room there."""
    nodes = make_node("a", cpu="8", labels={"disk": "ssd"}), make_node("b", cpu="4")
    old = make_pod("old", cpu="8", node="a")
    web, db = make_pod("web", cpu="3"), make_pod("db", cpu="6", node_selector={"disk": "ssd"})
    cluster = make_cluster(*nodes, old, web, db)
    with cluster.changed(removed=(old,)), placed_together(cluster, [web, db]) as together:
        assert together.nodes == {"default/web": "a"}
    found = explain_many(cluster, waiting_pods(cluster))
    assert found.fitting == 1
    assert not any("delete" in each.text for each in found.remedies)


def test_other_pods_that_wait_take_their_room_first(make_cluster: MakeCluster) -> None:
    important, asked = make_pod("other", cpu="4", priority=9), make_pod("asked", cpu="2")
    cluster = make_cluster(make_node("a", cpu="4"), important, asked)
    found = explain_many(cluster, [asked])
    assert (found.waiting, found.fitting) == (1, 0)
    assert found.causes[0].evidence == ("1 node: needs 2 cpu, 0 of 4 free",)


def test_texts(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(make_node("a", cpu="4"), replica_set("web"), *replicas(3, cpu="9"))
    lines = many_lines(explain_many(cluster, waiting_pods(cluster)))
    assert lines[:5] == [
        "3 of 3 waiting pods fit nowhere",
        "",
        "Why they wait",
        "  3 pods: Insufficient cpu",
        "    1 node: needs 9 cpu, 4 of 4 free",
    ]
    assert "    of Deployment default/web (3)" in lines
    assert many_lines(explain_many(cluster, [])) == ["no pod waits"]


def test_kept_attempts_of_a_running_scheduler_are_grouped(make_cluster: MakeCluster) -> None:
    pods = [*replicas(2, cpu="9"), make_pod("other", namespace="b", node_selector={"x": "y"})]
    cluster = make_cluster(make_node("a", cpu="4"), *pods)
    history = AttemptHistory(cluster.clock)
    for pod in pods:
        history._keep(cluster.decide(pod).freeze(), 2)
    found = explain_kept(kept_attempts(cluster.scheduler, history, ""))
    assert [(each.count, each.text) for each in found.causes] == [
        (2, "Insufficient cpu"),
        (1, "node(s) didn't match Pod's node affinity/selector"),
    ]
    assert explain_kept(kept_attempts(cluster.scheduler, history, "b")).waiting == 1


@pytest.mark.parametrize("count", [0, 1])
def test_gated_pods_have_their_gate_as_cause(make_cluster: MakeCluster, count: int) -> None:
    pods = [make_pod(f"p{number}", gates=["wait"]) for number in range(count)]
    cluster = make_cluster(make_node("a"), *pods)
    found = explain_many(cluster, waiting_pods(cluster))
    assert [each.reason_codes for each in found.causes] == [("SchedulingGates",)] * count


def test_one_more_node_is_tried_beside_smaller_changes(make_cluster: MakeCluster) -> None:
    full = make_pod("full", cpu="4", node="a")
    closed = make_node("c", cpu="4", taints=["x:NoSchedule"], unschedulable=True)
    nodes = make_node("a", cpu="4"), make_node("b", cpu="4", taints=["x:NoSchedule"]), closed
    cluster = make_cluster(*nodes, full, *replicas(9, cpu="1"))
    found = {
        each.kind: each.places for each in explain_many(cluster, waiting_pods(cluster)).remedies
    }
    assert found["AddNode"] == 4
    # Smaller changes that place as many come before it.
    assert list(found)[-1] == "AddNode"
    assert len(found) > 3


def test_amounts_that_differ_are_those_of_most_pods(make_cluster: MakeCluster) -> None:
    """The pods of a cause wait for the same reason, and need different amounts."""
    counts = {"9": 2, "10": 3, "11": 1, "12": 1}
    pods = [pod for cpu, count in counts.items() for pod in replicas(count, f"of{cpu}", cpu=cpu)]
    cluster = make_cluster(make_node("a", cpu="4"), *pods)
    (cause,) = explain_many(cluster, waiting_pods(cluster), has_remedies=False).causes
    assert (cause.text, cause.count) == ("Insufficient cpu", 7)
    assert cause.evidence == (
        "3 pods, 1 node: needs 10 cpu, 4 of 4 free",
        "2 pods, 1 node: needs 9 cpu, 4 of 4 free",
        "1 pod, 1 node: needs 11 cpu, 4 of 4 free",
        "1 pod: other amounts",
    )


def test_a_reason_is_named_once(make_cluster: MakeCluster) -> None:
    """Evicting pods may help on one of the nodes, and cannot on the other."""
    full, waiting = make_pod("full", cpu="4", node="a"), make_pod("waits", cpu="3", priority=1)
    cluster = make_cluster(make_node("a", cpu="4"), make_node("b", cpu="2"), full, waiting)
    (cause,) = explain_many(cluster, [waiting], has_remedies=False).causes
    assert cause.text == "Insufficient cpu"
    assert cause.reasons == ("Insufficient cpu", "Insufficient cpu")
    history = AttemptHistory(cluster.clock)
    history._keep(cluster.decide(waiting).freeze(), 2)
    (kept,) = explain_kept(kept_attempts(cluster.scheduler, history, "")).causes
    assert kept.text == "Insufficient cpu"


def test_without_nodes_that_is_the_cause(make_cluster: MakeCluster) -> None:
    pod = make_pod("p")
    cluster = make_cluster(pod)
    found = explain_many(cluster, [pod])
    assert found.summary == "1 of 1 waiting pod fits nowhere"
    history = AttemptHistory(cluster.clock)
    history._keep(cluster.decide(pod).freeze(), 2)
    for each in (found, explain_kept(kept_attempts(cluster.scheduler, history, ""))):
        (cause,) = each.causes
        assert cause.text == "no nodes available to schedule pods"
        assert cause.reason_codes == ("NoNodes",)
        assert cause.evidence == ()


def test_a_change_of_pods_without_an_owner_says_how_many_it_is_made_to(
    make_cluster: MakeCluster,
) -> None:
    pods = [make_pod(f"p{number}", cpu="9") for number in range(3)]
    nodes = [make_node(name, cpu="4") for name in "abc"]
    cluster = make_cluster(*nodes, *pods)
    first = explain_many(cluster, pods).remedies[0]
    assert first.text.startswith("Pod default/p0 and 2 pods like it: lower the cpu request")
    assert (first.places, first.of) == (3, 3)


def test_pods_that_evict_others_are_said_to(make_cluster: MakeCluster) -> None:
    """They fit nowhere as the cluster is; the scheduler makes room for them."""
    full, urgent = make_pod("full", cpu="4", node="a"), make_pod("urgent", cpu="3", priority=9)
    cluster = make_cluster(make_node("a", cpu="4"), full, urgent)
    (cause,) = explain_many(cluster, [urgent], has_remedies=False).causes
    assert cause.evidence == (
        "1 node: needs 3 cpu, 0 of 4 free",
        'evicting 1 pod from "a" makes one fit',
    )
