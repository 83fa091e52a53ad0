"""What a running scheduler knows of a pod, and what is said of it."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import kubestow.explain
from kubestow.api.pod import Pod
from kubestow.config.feature_gates import parse_gates
from kubestow.editions import edition_named
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import Explanation
from kubestow.explain.history import AttemptHistory
from kubestow.explain.running import explain_running
from kubestow.explain.running_pod import find_running
from kubestow.testing import make_node, make_pod

MakeCluster = Callable[..., StillCluster]
EXPLAIN = Path(kubestow.explain.__file__).parent


def tried(cluster: StillCluster, history: AttemptHistory) -> None:
    """Try all waiting pods once, as a scheduler does."""
    scheduler = cluster.scheduler
    cluster.listeners.append(history.decided)

    async def cycles() -> None:
        while (queued_pod := scheduler.queue.pop_nowait()) is not None:
            if queued_pod.attempts > 1:
                return
            scheduler.schedule_one(queued_pod)

    asyncio.run(cycles())


def explained(cluster: StillCluster, history: AttemptHistory, name: str) -> Explanation | None:
    running = find_running(cluster.scheduler, history, "default", name, cluster.gates)
    return None if running is None else explain_running(running)


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """The calls of functions of `explain`, by file."""
    found: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, _argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(EXPLAIN):
            found[path.relative_to(EXPLAIN).as_posix()] += 1

    sys.setprofile(trace)
    try:
        yield found
    finally:
        sys.setprofile(None)


def test_attempts_run_no_code_of_explanations_until_one_is_asked_for(
    make_cluster: MakeCluster,
) -> None:
    nodes = [make_node(f"n{number}", taints=["x:NoSchedule"]) for number in range(20)]
    low = make_pod("low", cpu="8", node="free", priority=1)
    waiting = [
        make_pod("tainted", node_selector={"disk": "fast"}),
        make_pod("big", cpu="99"),
        make_pod("port", host_ports=[80], node_selector={"gold": "yes"}),
        make_pod("preempts", cpu="8", priority=9),
    ]
    cluster = make_cluster(*nodes, make_node("free", cpu="8"), low, *waiting)
    history = AttemptHistory(cluster.clock)
    with counted_calls() as calls:
        tried(cluster, history)
    assert len(history.all()) == len(waiting)
    # What keeps a copy, and the cluster of this test; no evidence, no text, no suggestion.
    assert calls.keys() == {"history.py", "cluster.py"}
    with counted_calls() as calls:
        assert explained(cluster, history, "big") is not None
    assert any(name.startswith("evidence/") for name in calls)


def test_a_pod_that_fits_at_once_costs_one_comparison(make_cluster: MakeCluster) -> None:
    pods = [make_pod(f"p{number}", cpu="1") for number in range(5)]
    cluster = make_cluster(make_node("a", cpu="9"), *pods)
    history = AttemptHistory(cluster.clock)
    with counted_calls() as calls:
        tried(cluster, history)
    assert calls["history.py"] == len(pods)
    assert history.all() == []


def test_a_pod_that_failed_says_when_it_is_tried_again(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(make_node("a", cpu="1"), make_pod("big", cpu="9"))
    history = AttemptHistory(cluster.clock)
    tried(cluster, history)
    found = explained(cluster, history, "big")
    assert found is not None
    assert found.outcome == "Unschedulable"
    assert found.attempt.place == "unschedulable"
    # Five minutes after the attempt, if no event comes before.
    assert (found.attempt.at, found.attempt.next_try) == (
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:05:00Z",
    )
    assert {plugin for event in found.waiting_for for plugin in event.plugins} == {
        "NodeResourcesFit"
    }


@pytest.mark.parametrize(
    ("version", "awaits_taints"),
    [pytest.param("v1.36", True, id="v1.36"), pytest.param("v1.37", False, id="v1.37")],
)
def test_awaited_events_are_those_of_the_queue(
    make_cluster: MakeCluster, version: str, awaits_taints: bool
) -> None:
    gates = parse_gates((), edition_named(version))
    cluster = make_cluster(
        make_node("a"), make_pod("p", node_selector={"disk": "fast"}), gates=gates, registry=None
    )
    history = AttemptHistory(cluster.clock)
    tried(cluster, history)
    found = explained(cluster, history, "p")
    assert found is not None
    actions = {event.action for event in found.waiting_for if event.resource == "Node"}
    assert ("UpdateNodeTaint" in "".join(actions)) is awaits_taints


def test_reasons_have_evidence_as_of_now(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(make_node("a", cpu="4"), make_pod("big", cpu="9"))
    history = AttemptHistory(cluster.clock)
    tried(cluster, history)
    cluster.put(make_pod("other", cpu="1", node="a"))
    cluster.refresh()
    found = explained(cluster, history, "big")
    assert found is not None
    assert found.reasons[0].evidence.text == "needs 9 cpu, 3 of 4 free"


def test_victims_have_their_priority(make_cluster: MakeCluster) -> None:
    low = make_pod("low", cpu="1", node="a", priority=3)
    cluster = make_cluster(make_node("a", cpu="1"), low, make_pod("big", cpu="1", priority=9))
    history = AttemptHistory(cluster.clock)
    tried(cluster, history)
    found = explained(cluster, history, "big")
    assert found is not None
    assert [(victim.name, victim.priority) for victim in found.victims] == [("low", 3)]


@pytest.mark.parametrize(
    ("pod", "outcome"),
    [
        pytest.param(make_pod("p", gates=["wait"]), "Gated", id="gated"),
        pytest.param(make_pod("p", scheduler_name="other"), None, id="another-scheduler"),
        pytest.param(make_pod("other"), None, id="not-known"),
        pytest.param(make_pod("p"), None, id="not-tried"),
    ],
)
def test_pods_without_an_attempt(make_cluster: MakeCluster, pod: Pod, outcome: str | None) -> None:
    cluster = make_cluster(make_node("a"), pod)
    found = explained(cluster, AttemptHistory(cluster.clock), "p")
    assert (None if found is None else found.outcome) == outcome


def test_the_attempt_of_an_earlier_pod_of_that_name_is_not_shown(
    make_cluster: MakeCluster,
) -> None:
    first, second = make_pod("p", cpu="9"), make_pod("p", cpu="9")
    cluster = make_cluster(make_node("a", cpu="1"), first)
    history = AttemptHistory(cluster.clock)
    tried(cluster, history)
    assert explained(cluster, history, "p") is not None
    cluster.put(second)
    assert explained(cluster, history, "p") is None
