"""A search that takes the next passing nodes from a list finds what a search node by node finds."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.equivalence.sides import NoNominations, Side

from kubestow.api.meta import LabelSelector
from kubestow.api.pod import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kubestow.api.pod_info import PodInfo
from kubestow.api.topology import HOSTNAME_LABEL, ZONE_LABEL
from kubestow.arrays import Rows, row_numbers
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision
from kubestow.engine.equivalence import passing_nodes
from kubestow.engine.equivalence.passing_nodes import PassingBook, PassingNodes
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.runner import Verdicts
from kubestow.testing import make_node, make_pod

FAILED_CODE = -1


class Given:
    """An attempt whose verdicts are given: the filter that rejects each node, and its code."""

    def __init__(self, verdicts: list[int]) -> None:
        self.failed_by = verdicts
        self.codes = [0 if index == PASSED else 1 for index in verdicts]
        self.asked_count = 0

    def put(self, row: int, failed_by: int, code: int = 1) -> None:
        self.failed_by[row], self.codes[row] = failed_by, 0 if failed_by == PASSED else code

    def verdicts(self, rows: Rows) -> Verdicts:
        self.asked_count += 1
        return Verdicts(np.array(self.failed_by, np.int8)[rows], np.array(self.codes)[rows])

    def first_failure(self, row: int) -> tuple[int, int]:
        return self.failed_by[row], self.codes[row]


def snapshot_of(count: int) -> tuple[Snapshot, Cache]:
    cache, snapshot = Cache(), Snapshot()
    for number in range(count):
        cache.add_node(make_node(f"node-{number}"))
    snapshot.refresh(cache)
    return snapshot, cache


def searched(failed_by: list[int], first: int, wanted: int) -> tuple[list[int], int, Counter[int]]:
    """What a search node by node comes to: it ends at the first node that fits beyond `wanted`."""
    found: list[int] = []
    rejected: Counter[int] = Counter()
    for step in range(len(failed_by)):
        row = (first + step) % len(failed_by)
        if failed_by[row] != PASSED:
            rejected[failed_by[row]] += 1
        elif len(found) == wanted:
            return found, step, rejected
        else:
            found.append(row)
    return found, len(failed_by), rejected


verdict = st.sampled_from([PASSED, PASSED, PASSED, 2, 7])


@given(data=st.data())
def test_rows_are_taken_in_visiting_order(data: st.DataObject) -> None:
    verdicts = data.draw(st.lists(verdict, min_size=1, max_size=12))
    snapshot, _ = snapshot_of(len(verdicts))
    attempt = Given(verdicts)
    nodes = PassingNodes(snapshot, attempt)
    for _ in range(data.draw(st.integers(0, 4))):
        # More than a few changed rows are read together.
        for row in data.draw(st.lists(st.integers(0, len(verdicts) - 1), max_size=40)):
            attempt.put(row, data.draw(verdict))
            snapshot.log.note_pods(row)
        nodes.refresh(attempt)
        if not nodes.is_usable:
            continue
        first, wanted = data.draw(st.integers(0, len(verdicts) - 1)), data.draw(st.integers(1, 12))
        found, evaluated, rejected = searched(verdicts, first, wanted)
        rows, count = nodes.take(first, wanted)
        assert (row_numbers(rows).tolist(), count) == (found, evaluated)
        counts = nodes.rejected_counts(first, evaluated, len(found))
        assert Counter(dict(counts)) == rejected


def test_taken_rows_stay_as_they_are_when_the_list_changes() -> None:
    snapshot, _ = snapshot_of(6)
    attempt = Given([PASSED, 2, PASSED, PASSED, PASSED, PASSED])
    nodes = PassingNodes(snapshot, attempt)
    taken, _ = nodes.take(0, 3)
    attempt.put(0, 2)
    snapshot.log.note_pods(0)
    nodes.refresh(attempt)
    assert row_numbers(taken).tolist() == [0, 2, 3]
    assert row_numbers(nodes.take(0, 3)[0]).tolist() == [2, 3, 4]


@pytest.mark.parametrize("change_count", [1, 40])
def test_a_list_is_not_used_where_a_filter_fails_on_a_node(change_count: int) -> None:
    """The search ends there, so it has to look at node after node."""
    snapshot, _ = snapshot_of(9)
    attempt, book = Given([PASSED] * 9), PassingBook()
    book.find("basis", snapshot, attempt)
    book.searched(9)
    assert book.find("basis", snapshot, attempt) is not None
    attempt.put(0, 2, FAILED_CODE)
    for change in range(change_count):
        snapshot.log.note_pods(change % 9)
    assert book.find("basis", snapshot, attempt) is None


def test_a_list_is_made_when_searches_have_cost_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing_nodes, "_SEARCH_OVERHEAD_ROWS", 2)
    snapshot, _ = snapshot_of(10)
    attempt, book = Given([PASSED] * 10), PassingBook()
    for evaluated in (4, 1, 2):
        assert book.find("basis", snapshot, attempt) is None
        book.searched(evaluated)
    assert book.find("basis", snapshot, attempt) is not None
    # Another basis has to pay by itself, in attempts that need not follow each other.
    for evaluated in (4, 4):
        assert book.find("other", snapshot, attempt) is None
        book.searched(evaluated)
        assert book.find("basis", snapshot, attempt) is not None
    assert book.find("other", snapshot, attempt) is not None


def test_the_lists_used_last_are_kept() -> None:
    snapshot, _ = snapshot_of(3)
    attempt, book = Given([PASSED] * 3), PassingBook()

    def is_kept(basis: int) -> bool:
        return book.find(basis, snapshot, attempt) is not None

    for basis in range(passing_nodes.BASES_MAX + 1):
        is_kept(basis)
        book.searched(3)
        assert is_kept(basis)
    assert is_kept(1)
    assert not is_kept(0)


# --- with the plugins ---


def term(key: str) -> PodAffinity:
    selector = LabelSelector(match_labels={"app": "web"})
    return PodAffinity(required=(PodAffinityTerm(topology_key=key, label_selector=selector),))


def spread(key: str, **other: Any) -> list[TopologySpreadConstraint]:
    return [
        TopologySpreadConstraint(
            max_skew=1,
            topology_key=key,
            when_unsatisfiable="DoNotSchedule",
            label_selector=LabelSelector(match_labels={"app": "web"}),
            **other,
        )
    ]


CASES: dict[str, dict[str, Any]] = {
    "apart on hosts": {"affinity": Affinity(pod_anti_affinity=term(HOSTNAME_LABEL))},
    "apart in zones": {"affinity": Affinity(pod_anti_affinity=term(ZONE_LABEL))},
    "near in zones": {"affinity": Affinity(pod_affinity=term(ZONE_LABEL))},
    "near on hosts": {"affinity": Affinity(pod_affinity=term(HOSTNAME_LABEL))},
    "selected by others": {},
    "spread over hosts": {"spread": spread(HOSTNAME_LABEL, node_taints_policy="Honor")},
    "spread over few hosts": {
        "spread": spread(HOSTNAME_LABEL, node_taints_policy="Honor"),
        "node_selector": {"disk": "hdd"},
    },
    "spread over zones": {"spread": spread(ZONE_LABEL)},
    "spread over both": {"spread": spread(ZONE_LABEL) + spread(HOSTNAME_LABEL)},
    "on some nodes": {"node_selector": {"disk": "ssd"}},
    "too large for some": {"cpu": "3"},
}

NODE_COUNT = 130  # More than a search looks for.


def cluster() -> Cache:
    cache = Cache()
    for number in range(NODE_COUNT):
        node = make_node(
            f"node-{number}",
            cpu=str(1 + number % 4),
            zone=f"zone-{number % 3}" if number % 11 else None,
            labels={HOSTNAME_LABEL: f"node-{number}", "disk": "ssd" if number % 5 else "hdd"},
            taints=["kept=for:NoSchedule"] if number % 13 == 0 else [],
        )
        cache.add_node(node)
    for number in range(5):
        # Unlike the others it is not counted among the web pods.
        affinity = Affinity(pod_anti_affinity=term(HOSTNAME_LABEL))
        owner = make_pod(f"owner-{number}", node=f"node-{number * 7}", affinity=affinity)
        cache.add_pod(PodInfo(owner))
    return cache


def described(decision: Decision) -> dict[str, object]:
    return {
        "node": decision.node_name,
        "feasible": decision.feasible.tolist(),
        "evaluated": decision.evaluated_count,
        "counts": {key: count for key, count in decision.rejected_counts().items() if count},
        "message": decision.message,
        "rejected": [
            (status.message, rows.tolist()) for status, rows in decision.diagnosis.rows_by_status()
        ],
        "counts in the diagnosis": dict(decision.diagnosis.rejected_counts()),
        "total": None if decision.scores is None else decision.scores.total.tolist(),
    }


@pytest.mark.parametrize("percentage", [0, 100])
@pytest.mark.parametrize("name", CASES)
def test_decisions_equal_those_of_asking_every_plugin(
    name: str, percentage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = cluster()
    sides = [Side(reuses_answers=reuses) for reuses in (True, False)]
    for side, reuses in zip(sides, (True, False), strict=True):
        side.decider = Decider(
            side.snapshot,
            NoNominations(),
            reuses_answers=reuses,
            percentage_of_nodes_to_score=percentage,
        )
    taken = _counted_takes(monkeypatch)
    placed: list[PodInfo] = []
    labels = {HOSTNAME_LABEL: "late", "disk": "ssd"}
    late = make_node("late", cpu="4", zone="zone-1", labels=labels)
    for number in range(60):
        given: dict[str, Any] = {"cpu": "100m", "labels": {"app": "web"}, **CASES[name]}
        pod = PodInfo(make_pod(f"pod-{number}", **given))
        ours, theirs = [side.decide(cache, pod) for side in sides]
        assert described(ours) == described(theirs), number
        assert sides[0].decider.next_start_index == sides[1].decider.next_start_index
        if number == 3:
            # Until then pods were only tried, and all are the first. This one has no terms.
            cache.add_pod(PodInfo(make_pod("other", node="node-1", labels={"app": "web"})))
        if ours.node_name and number > 3:
            placed.append(pod.assigned_to(ours.node_name))
            cache.assume_pod(placed[-1])
        if number % 10 == 9 and placed:
            cache.remove_pod(placed.pop(number % len(placed)).pod)
        if number == 50:
            # The next one is the first again.
            for each in placed:
                cache.remove_pod(each.pod)
            placed.clear()
        if number == 40:
            cache.add_node(late)
    assert taken() >= 10


def _counted_takes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often rows were taken from a list."""
    calls: list[int] = []
    take = PassingNodes.take

    def counting(self: PassingNodes, first: int, wanted: int) -> Any:
        calls.append(wanted)
        return take(self, first, wanted)

    monkeypatch.setattr(PassingNodes, "take", counting)
    return lambda: len(calls)
