"""What a scheduler knows: its decisions at once, and what can be taken back of the rest."""

from collections.abc import Callable

from kubestow.api.pod import Pod, assign
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.config.scheduler import SchedulerConfig
from kubestow.explain.cluster import StillCluster
from kubestow.simulator.replay import known
from kubestow.simulator.replay.known import KnownCluster, Queued, StepSort
from kubestow.testing import ManualClock, make_node, make_pod

A, B = make_pod("a", uid="a", cpu="1"), make_pod("b", uid="b", cpu="1")


def a_cluster(*pods: Pod) -> KnownCluster:
    clock = ManualClock()
    cluster = StillCluster(SchedulerConfig(), MemoryClient(MemoryCluster(clock)), clock)
    found = KnownCluster(cluster)
    for each in (make_node("n", cpu="1500m"), *pods):
        found.put(each, 0, is_old=True)
    return found


def decide(cluster: KnownCluster, pod: Pod, node: str = "n") -> None:
    cluster.assume(cluster.cluster.decide(pod), node, 1, Queued(pod, cluster.position))


def fits(cluster: KnownCluster, pod: Pod) -> bool:
    return cluster.cluster.decide(pod).is_scheduled


def sorts(cluster: KnownCluster) -> list[StepSort]:
    return [step.sort for step in cluster.last_steps()]


def test_a_decision_counts_until_the_binding_is_seen_and_after() -> None:
    cluster = a_cluster(A, B)
    assert fits(cluster, B)
    decide(cluster, A)
    assert not fits(cluster, B)
    cluster.put(A, 2)  # A change of the waiting pod that was written meanwhile.
    assert cluster.assumed_node(A) == "n"
    assert not fits(cluster, B)
    cluster.put(assign(A, "n"), 3)
    assert not cluster.assumed_node(A)
    assert not fits(cluster, B)
    assert sorts(cluster) == [StepSort.DECISIONS]


def test_a_binding_that_is_given_up_frees_the_node() -> None:
    cluster = a_cluster(A, B)
    decide(cluster, A)
    cluster.give_up(A, 2)
    assert fits(cluster, B)


def test_what_is_taken_back_is_there_again_afterwards() -> None:
    def changes(make: Callable[[KnownCluster], None]) -> list[bool]:
        cluster = a_cluster(assign(A, "n"), B)
        make(cluster)
        after = fits(cluster, B)
        undo = cluster.take_back(next(iter(cluster.last_steps())))
        before = fits(cluster, B)
        undo()
        assert fits(cluster, B) == after
        return [before, after]

    def recreated(cluster: KnownCluster) -> None:
        cluster.remove(A, 2)
        # Another pod of that name waits now; it is not lost.
        cluster.put(make_pod("a", uid="a2"), 2)

    assert changes(lambda cluster: cluster.remove(A, 2)) == [False, True]
    assert changes(recreated) == [False, True]
    assert changes(lambda cluster: cluster.put(make_node("m", cpu="4"), 2)) == [False, True]
    assert changes(lambda cluster: cluster.put(make_node("n", cpu="3"), 2)) == [False, True]


def test_what_does_not_matter_is_no_step() -> None:
    cluster = a_cluster(assign(A, "n"), B)
    cluster.put(B, 2)
    cluster.put(assign(A, "n"), 2)
    cluster.put(make_pod("c"), 2)
    cluster.put(make_node("n", cpu="1500m"), 2)
    assert sorts(cluster) == []
    cluster.remove(A, 2)
    decide(cluster, B)
    cluster.remove(B, 3)
    assert sorts(cluster) == [StepSort.GIVEN_UP, StepSort.DECISIONS, StepSort.PODS]


def test_only_so_many_steps_are_kept() -> None:
    cluster = a_cluster()
    for number in range(known.STEPS_MAX + 5):
        cluster.put(make_node("n", cpu=str(1 + number % 2)), 2)
    assert len(sorts(cluster)) == known.STEPS_MAX
