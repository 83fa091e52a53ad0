"""Which of several candidates is taken (spec 08 A8)."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.importance import by_importance, earliest_start_ns
from kubestow.api.pod_info import PodInfo
from kubestow.plugins.default_preemption.candidates import Candidate, Candidates
from kubestow.testing import make_pod

NOW_NS = 1_700_000_000 * 10**9


def victim(priority: int | None, hour: int | None = None) -> PodInfo:
    start = None if hour is None else datetime(2023, 1, 1, hour, tzinfo=UTC)
    return PodInfo(make_pod(priority=priority, start_time=start))


def candidates(*nodes: tuple[int, Sequence[PodInfo]]) -> Candidates:
    return Candidates.of(
        (Candidate(row, victims, violations) for row, (violations, victims) in enumerate(nodes)),
        NOW_NS,
    )


@pytest.mark.parametrize(
    ("nodes", "best"),
    [
        pytest.param([], [], id="none"),
        pytest.param([(3, [victim(9)])], [0], id="one"),
        pytest.param([(1, [victim(1)]), (0, [victim(9), victim(9)])], [1], id="violations"),
        pytest.param(
            [(0, [victim(10), victim(1)]), (0, [victim(10)])], [1], id="A11.5-priority-sum"
        ),
        pytest.param(
            [(0, [victim(5)]), (0, [victim(3), victim(3), victim(3)])],
            [1],
            id="A11.5-highest-priority",
        ),
        pytest.param([(0, [victim(5, 10)]), (0, [victim(5, 11)])], [1], id="A11.5-latest-start"),
        pytest.param([(0, [victim(5, 10)]), (0, [victim(5)])], [1], id="not-started-is-now"),
        pytest.param(
            [(0, [victim(5, 9), victim(4, 1)]), (0, [victim(5, 8), victim(4, 7)])],
            [0],
            id="only-the-highest-priority-starts-count",
        ),
        pytest.param([(0, [victim(5, 9)]), (0, [victim(5, 9)])], [0, 1], id="tied"),
        pytest.param([(0, [victim(None)]), (0, [victim(-1)])], [1], id="absent-priority-is-0"),
    ],
)
def test_best_candidates(nodes: Sequence[tuple[int, Sequence[PodInfo]]], best: list[int]) -> None:
    assert candidates(*nodes).best().tolist() == best


def test_sums_of_priorities() -> None:
    found = candidates((0, [victim(10), victim(1)]), (0, [victim(10)]))
    assert found.ranks[2].tolist() == [4294967307, 2147483658]


def test_fewer_victims_lose_where_priorities_differ_hugely() -> None:
    # 2**31 per victim is outweighed only by the extremes of an int32.
    found = candidates(
        (0, [victim(2**31 - 1), victim(2**31 - 1)]),
        (0, [victim(2**31 - 1), victim(-(2**31)), victim(-(2**31))]),
    )
    assert found.best().tolist() == [1]


def test_the_first_victim_decides_the_priority() -> None:
    # An extender may give victims in any order.
    found = candidates((0, [victim(1), victim(9)]), (0, [victim(2), victim(2)]))
    assert found.best().tolist() == [0]


def test_a_candidate_has_its_victims() -> None:
    first, second = victim(1), victim(2)
    found = candidates((0, [first]), (2, [second]))
    assert found[1] == Candidate(1, [second], 2)
    assert found.subset(found.best()).rows.tolist() == [0]


victims = st.builds(victim, st.integers(-2, 2), st.none() | st.integers(0, 3))


@given(st.lists(st.tuples(st.integers(0, 1), st.lists(victims, min_size=1, max_size=3))))
def test_best_equals_keeping_the_best_by_one_criterion_after_the_other(
    nodes: list[tuple[int, list[PodInfo]]],
) -> None:
    nodes = [(violations, by_importance(pods, NOW_NS)) for violations, pods in nodes]
    kept = list(range(len(nodes)))
    criteria = [
        lambda node: node[0],
        lambda node: node[1][0].priority,
        lambda node: sum(pod.priority + 2**31 for pod in node[1]),
        lambda node: len(node[1]),
        lambda node: -earliest_start_ns(node[1], NOW_NS),
    ]
    for criterion in criteria:
        least = min((criterion(nodes[position]) for position in kept), default=0)
        kept = [position for position in kept if criterion(nodes[position]) == least]
    assert candidates(*nodes).best().tolist() == kept
