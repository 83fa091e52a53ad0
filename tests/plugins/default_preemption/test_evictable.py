"""Which pods may be evicted from a node, and in which order they are reprieved."""

import gc
import weakref
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import compress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.disruption import BudgetTable
from kubestow.api.meta import LabelSelector, ObjectMeta
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.workload import PodDisruptionBudget, PodDisruptionBudgetSpec
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.plugins.default_preemption import evictable
from kubestow.plugins.default_preemption.evictable import (
    NOT_STARTED,
    PRIORITY,
    START,
    PodSlots,
    RankedPods,
)
from kubestow.testing import make_node, make_pod, make_snapshot

NOW_S = 1_700_000_000
NOW_NS = NOW_S * 10**9


def started(name: str, priority: int, seconds_ago: int | None, node: str = "n1") -> Pod:
    start = None if seconds_ago is None else datetime.fromtimestamp(NOW_S - seconds_ago, UTC)
    return make_pod(name, node=node, priority=priority, start_time=start, labels={"app": name})


def ranked(pods: Sequence[Pod]) -> RankedPods:
    return make_snapshot([make_node("n1")], pods).derived(RankedPods)


def evictable_names(slots: PodSlots, position: int) -> list[str]:
    exists: list[bool] = slots.exists[:, position].tolist()
    return [pod.name for pod in compress(slots.pods[position], exists)]


def below(
    ranked: RankedPods, priority: int, budgets: BudgetTable | None, now_ns: int, row: int = 0
) -> list[str]:
    return evictable_names(ranked.reprieved(np.array([row]), priority, budgets, now_ns), 0)


PODS = [
    started("late", 1, 10),
    started("high", 9, 500),
    started("unstarted", 1, None),
    started("early", 1, 100),
    started("low", 0, 900),
]


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        pytest.param(10, ["high", "early", "late", "unstarted", "low"], id="all"),
        pytest.param(9, ["early", "late", "unstarted", "low"], id="equal-stays"),
        pytest.param(1, ["low"], id="some"),
        pytest.param(0, [], id="none"),
    ],
)
def test_pods_below_a_priority_by_importance(priority: int, expected: list[str]) -> None:
    assert below(ranked(PODS), priority, None, NOW_NS) == expected


def test_answers_do_not_depend_on_earlier_questions() -> None:
    kept = ranked(PODS)
    for priority in (9, 1, 9, 10):
        fresh = below(ranked(PODS), priority, None, NOW_NS)
        assert below(kept, priority, None, NOW_NS) == fresh


def test_an_unstarted_pod_comes_before_one_that_starts_in_the_future() -> None:
    kept = ranked([started("future", 1, -100), started("unstarted", 1, None)])
    assert below(kept, 5, None, NOW_NS) == ["unstarted", "future"]
    later_ns = NOW_NS + 200 * 10**9
    assert below(kept, 5, None, later_ns) == ["future", "unstarted"]
    # Equal times leave the order of the node.
    assert below(kept, 5, None, NOW_NS + 100 * 10**9) == ["future", "unstarted"]


def budget_of(app: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=app, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": app})),
    )


def test_pods_that_violate_a_budget_are_spared_first() -> None:
    found = ranked(PODS).reprieved(np.array([0]), 9, BudgetTable([budget_of("low")]), NOW_NS)
    assert evictable_names(found, 0) == ["low", "early", "late", "unstarted"]
    # The first slot is that of a pod of the same priority.
    assert found.exists[:, 0].tolist() == [False, True, True, True, True]
    assert found.is_violating is not None
    assert found.is_violating[:, 0].tolist() == [False, True, False, False, False]
    assert found.values[:, PRIORITY, 0].tolist() == [0, 0, 1, 1, 1]
    assert found.values[4, START, 0] == NOT_STARTED


def test_sums_of_lower_pods() -> None:
    snapshot = make_snapshot(
        [make_node("n1"), make_node("n2")],
        [
            make_pod("a", node="n1", priority=1, cpu="1", memory="1Ki", requests={"x/gpu": 2}),
            make_pod("b", node="n1", priority=5, cpu="2"),
            make_pod("c", node="n1", priority=2, requests={"ephemeral-storage": 7, "x/gpu": 1}),
        ],
    )
    slots = snapshot.derived(RankedPods).below(np.arange(2), 5)
    assert slots.values[:, :4].sum(axis=0).tolist() == [[2, 0], [1000, 0], [1024, 0], [7, 0]]
    assert slots.scalar_amounts("x/gpu").sum(axis=0).tolist() == [3, 0]


def assert_same(found: PodSlots, expected: PodSlots) -> None:
    count = len(found.rows)
    for position in range(count):
        assert evictable_names(found, position) == evictable_names(expected, position)
    assert found.values.tolist() == expected.values.tolist()
    assert found.exists.tolist() == expected.exists.tolist()
    assert (found.is_violating is None) == (expected.is_violating is None)
    if found.is_violating is not None and expected.is_violating is not None:
        assert found.is_violating.tolist() == expected.is_violating.tolist()


@given(st.data())
def test_what_is_kept_follows_the_nodes(data: st.DataObject) -> None:
    """Pods come and go between searches, on nodes that were ranked before or were not."""
    cache, snapshot = Cache(), Snapshot()
    for number in range(3):
        cache.add_node(make_node(f"n{number}"))
    placed: list[Pod] = []
    kept: RankedPods | None = None
    tables = [None, BudgetTable([budget_of("p1")]), BudgetTable([budget_of("p2"), budget_of("p3")])]
    for step in range(data.draw(st.integers(1, 12))):
        if placed and data.draw(st.booleans(), label="a pod goes"):
            cache.remove_pod(placed.pop(data.draw(st.integers(0, len(placed) - 1))))
        else:
            start = data.draw(st.none() | st.integers(-3, 3), label="seconds ago")
            name = f"n{data.draw(st.integers(0, 2), label='node')}"
            placed.append(started(f"p{step}", data.draw(st.integers(0, 3)), start, name))
            cache.add_pod(PodInfo(placed[-1]))
        if data.draw(st.booleans(), label="a node comes"):
            cache.add_node(make_node(f"more-{step}"))
        snapshot.refresh(cache)
        kept = kept or snapshot.derived(RankedPods)
        rows = np.array(data.draw(st.permutations(range(len(snapshot))))[:2])
        priority = data.draw(st.integers(0, 4), label="priority")
        budgets = data.draw(st.sampled_from(tables), label="budgets")
        found = kept.reprieved(rows, priority, budgets, NOW_NS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(evictable, "FEW", 0)  # All are ranked together.
            assert_same(found, RankedPods(snapshot).reprieved(rows, priority, budgets, NOW_NS))
            assert kept.until_ns(rows).tolist() == RankedPods(snapshot).until_ns(rows).tolist()


def test_evicted_pods_are_not_kept_in_memory() -> None:
    """A node that no search reaches again would keep the pods it once had."""
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(make_node("n1"))
    pod = started("gone", 1, None)
    cache.add_pod(PodInfo(pod))
    cache.add_node(make_node("n2"))
    snapshot.refresh(cache)
    kept = snapshot.derived(RankedPods)
    assert [pod.name for pod in kept.below(np.arange(2), 5).pods[0]] == ["gone"]
    cache.remove_pod(pod)
    snapshot.refresh(cache)
    kept.below(np.array([1]), 5)
    infos = [one for one in gc.get_objects() if isinstance(one, PodInfo)]
    assert "gone" not in [info.name for info in infos]


def test_what_is_kept_does_not_keep_the_budgets() -> None:
    kept, budgets = ranked(PODS), BudgetTable([budget_of("low")])
    assert below(kept, 9, budgets, NOW_NS)[0] == "low"
    table = weakref.ref(budgets)
    del budgets
    assert table() is None
