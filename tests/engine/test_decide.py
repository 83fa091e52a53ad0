"""Which nodes a scheduling cycle filters, which it chooses, and its message if none (spec 04)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, row_numbers
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision, FitError
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import (
    Plugin,
    PostFilterResult,
    PreFilterResult,
    Restriction,
    StatusCodes,
)
from kubestow.framework.profile import Profile
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes
from kubestow.queue.nominator import Nominator
from kubestow.testing import make_node, make_pod, make_snapshot
from kubestow.testing.profiles import make_plugin, make_profile

UNSCHEDULABLE, UNRESOLVABLE = Status.unschedulable, Status.unresolvable
CPU = "Insufficient cpu"

Verdicts = Mapping[str, Status] | Callable[[str], Status | None]


def error(text: str) -> Status:
    return Status.from_error(PluginError(text))


def filtering(verdicts: Verdicts, *, name: str = "F", asked: list[str] | None = None) -> Plugin:
    """A filter that has a verdict per node name."""
    codes = StatusCodes()
    verdict_of = verdicts if callable(verdicts) else verdicts.get

    def run(state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        if asked is not None:
            asked.extend(nodes.names)
        return np.array([codes.code_of(verdict_of(node)) for node in nodes.names], np.int64)

    return make_plugin(name, filter=run, filter_status=lambda _, code: codes.status_of(code))


def restricting(*names: str, name: str = "P") -> Plugin:
    answer = Restriction(frozenset(names))
    return make_plugin(name, pre_filter=lambda *_: answer)


def scoring(scores: Mapping[str, int] | None = None, *, name: str = "S") -> Plugin:
    def run(state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        if scores is None:
            return 0
        return np.array([scores[node] for node in nodes.names], np.int64)

    return make_plugin(name, score=run)


def post_filtering(result: PostFilterResult | None, status: Status) -> Plugin:
    return make_plugin("Post", post_filter=lambda *_: (result, status))


def snapshot_of(*names: str) -> Snapshot:
    return make_snapshot([make_node(name) for name in names])


def numbered(count: int) -> Snapshot:
    return snapshot_of(*(f"n{number}" for number in range(count)))


class Cluster:
    """A snapshot, nominations, and a decider on them."""

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        nominated: Iterable[tuple[Pod, str]] = (),
        percentage: int = 0,
        start: int = 0,
    ) -> None:
        self.snapshot = snapshot
        pods = {pod.metadata.name: pod for pod, _ in nominated}
        self.nominator = Nominator(
            find=lambda key: PodInfo(pods[key.split("/")[1]]), pod_lister=lambda _, name: pods[name]
        )
        for pod, node in nominated:
            self.nominator.add(pod, override=node)
        self.decider = Decider(snapshot, self.nominator, percentage_of_nodes_to_score=percentage)
        self.decider.next_start_index = start

    @property
    def start(self) -> int:
        return self.decider.next_start_index

    def decide(self, *plugins: Plugin, pod: Pod | None = None, **options: Any) -> Decision:
        profile = make_profile(*plugins, **options)
        return self.decider.decide(profile, PodInfo(pod or make_pod("incoming")))


def names_of(decision: Decision) -> list[str]:
    return [decision.node_names[row] for row in decision.feasible.tolist()]


def rejectors(decision: Decision) -> set[str]:
    return decision.diagnosis.unschedulable_plugins


# --- §3.1, §3.3 ---


def test_3_3_3_without_nodes_no_plugin_runs() -> None:
    asked: list[str] = []
    decision = Cluster(Snapshot()).decide(filtering({}, asked=asked))
    assert decision.message == "no nodes available to schedule pods"
    assert decision.status is not None
    assert decision.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert not isinstance(decision.status.error, FitError)
    assert decision.nomination is not None
    assert decision.nomination.node_name == ""
    assert asked == []


def test_3_3_4_one_feasible_node_is_taken_without_scoring() -> None:
    scored: list[str] = []

    def score(state: CycleState, pod: PodInfo, nodes: Nodes) -> int:
        scored.extend(nodes.names)
        return 0

    never = make_plugin("S", score=score, pre_score=lambda *_: error("never asked"))
    full = {"a": UNSCHEDULABLE(CPU), "b": UNSCHEDULABLE(CPU)}
    decision = Cluster(snapshot_of("a", "b", "c")).decide(filtering(full), never)
    assert decision.is_scheduled
    assert decision.node_name == "c"
    assert (decision.evaluated_count, len(decision.feasible)) == (3, 1)
    assert decision.scores is None
    assert scored == []
    assert decision.status is None
    assert decision.message == ""


def test_3_3_5_all_feasible_nodes_are_scored() -> None:
    cluster = Cluster(snapshot_of("a", "b", "c", "d", "e"))
    decision = cluster.decide(
        filtering({"b": UNSCHEDULABLE(CPU)}), scoring({"a": 1, "c": 3, "d": 2, "e": 0})
    )
    assert decision.node_name == "c"
    assert (decision.evaluated_count, len(decision.feasible)) == (5, 4)
    assert decision.scores is not None
    assert decision.scores.total.tolist() == [1, 3, 2, 0]
    assert names_of(decision) == ["a", "c", "d", "e"]


def test_3_3_6_an_error_on_one_node_fails_the_attempt() -> None:
    post = make_plugin("Post", post_filter=lambda *_: (_ for _ in ()).throw(AssertionError))
    decision = Cluster(numbered(5)).decide(filtering({"n3": error("boom")}), scoring(), post)
    assert decision.message == 'running "F" filter plugin: boom'
    assert decision.status is not None
    assert decision.status.code is Code.ERROR
    assert decision.nomination is not None
    assert decision.nomination.node_name == ""
    assert decision.node_name == ""


def test_a_failing_score_fails_the_attempt() -> None:
    decision = Cluster(numbered(2)).decide(scoring({"n0": 101, "n1": 0}))
    assert decision.message.startswith("applying score defaultWeights on Score plugins: plugin")
    assert decision.node_name == ""
    assert decision.nomination is not None


def test_a_failing_pre_filter_fails_the_attempt() -> None:
    plugin = make_plugin("P1", pre_filter=lambda *_: Status(Code.PENDING, "later"))
    decision = Cluster(numbered(2)).decide(plugin, post_filtering(None, UNSCHEDULABLE("never")))
    assert decision.message == 'running PreFilter plugin "P1": later'
    assert decision.post_filter_status is None


# --- §4: PreFilter rejects ---


def rejecting(status: Status, name: str = "P") -> Plugin:
    return make_plugin(name, pre_filter=lambda *_: status)


def test_4_4_a_rejected_pod_fits_nowhere_and_preemption_may_use_every_node() -> None:
    cluster = Cluster(numbered(3), start=2)
    decision = cluster.decide(
        rejecting(UNSCHEDULABLE("x"), "P1"), rejecting(UNSCHEDULABLE("y"), "P3")
    )
    diagnosis = decision.diagnosis
    assert decision.message == "0/3 nodes are available: y."
    assert rejectors(decision) == {"P3"}
    assert row_numbers(diagnosis.rejected_with(Code.UNSCHEDULABLE).rows).tolist() == [0, 1, 2]
    assert diagnosis.statuses() == {}
    assert decision.evaluated_count == 0
    assert cluster.start == 2


def test_4_2_and_4_3_nodes_ruled_out_between_plugins() -> None:
    decision = Cluster(numbered(3)).decide(
        restricting("n0", name="P1"), restricting("n1", name="P2")
    )
    assert decision.message == (
        "0/3 nodes are available: node(s) didn't satisfy plugin(s) [P1 P2] simultaneously."
    )
    assert rejectors(decision) == {"P1", "P2"}


def test_4_5_the_unresolvable_plugin_alone_is_a_rejector() -> None:
    decision = Cluster(numbered(3)).decide(
        restricting("n0", name="P1"), rejecting(UNRESOLVABLE("z"), "P2")
    )
    assert rejectors(decision) == {"P2"}
    assert decision.diagnosis.absent == UNRESOLVABLE("z").with_plugin("P2")


def test_4_7_a_plugin_that_restricted_stays_a_rejector() -> None:
    decision = Cluster(numbered(3)).decide(restricting("n0"), filtering({"n0": UNSCHEDULABLE(CPU)}))
    assert rejectors(decision) == {"P", "F"}
    assert decision.diagnosis.absent == UNRESOLVABLE("node(s) didn't satisfy plugin(s) [P]")
    assert decision.message == (
        f"0/3 nodes are available: 1 {CPU}, 2 node(s) didn't satisfy plugin(s) [P]."
    )


# --- §5: the nominated node ---


def test_5_1_a_nominated_node_that_fits_is_taken_at_once() -> None:
    asked: list[str] = []
    cluster = Cluster(numbered(4), start=3)
    decision = cluster.decide(
        filtering({}, asked=asked), scoring(), pod=make_pod(nominated_node="n2")
    )
    assert decision.node_name == "n2"
    assert decision.via_nominated_node
    assert (decision.evaluated_count, len(decision.feasible)) == (1, 1)
    assert cluster.start == 3
    assert asked == ["n2"]


def test_5_2_a_nominated_node_that_does_not_fit_keeps_its_verdict() -> None:
    cluster = Cluster(numbered(4))
    decision = cluster.decide(
        filtering({"n2": UNSCHEDULABLE(CPU)}), scoring(), pod=make_pod(nominated_node="n2")
    )
    assert decision.node_name == "n0"
    assert not decision.via_nominated_node
    assert decision.diagnosis.statuses() == {"n2": UNSCHEDULABLE(CPU).with_plugin("F")}
    assert decision.evaluated_count == 4


def test_5_3_a_nominated_node_that_is_gone_is_ignored() -> None:
    decision = Cluster(numbered(2)).decide(scoring(), pod=make_pod(nominated_node="gone"))
    assert decision.node_name == "n0"


def test_5_4_the_rest_is_searched_among_the_restricted_nodes() -> None:
    decision = Cluster(numbered(3)).decide(
        restricting("n1"),
        filtering({"n2": UNRESOLVABLE("affinity")}),
        pod=make_pod(nominated_node="n2"),
    )
    assert decision.node_name == "n1"
    assert decision.diagnosis.statuses() == {"n2": UNRESOLVABLE("affinity").with_plugin("F")}


def test_5_5_a_nominated_node_may_lie_outside_the_restriction() -> None:
    decision = Cluster(numbered(3)).decide(restricting("n1"), pod=make_pod(nominated_node="n2"))
    assert decision.node_name == "n2"


def test_an_error_on_the_nominated_node_is_ignored_there() -> None:
    count = 0

    def once(node: str) -> Status | None:
        nonlocal count
        count += 1
        return error("first time") if count == 1 else None

    decision = Cluster(numbered(2)).decide(
        filtering(once), scoring(), pod=make_pod(nominated_node="n1")
    )
    assert decision.node_name == "n0"
    assert decision.diagnosis.statuses() == {}


def test_5_4_what_only_the_nominated_node_pends_on_is_not_kept() -> None:
    later = Status(Code.PENDING, "later")
    decision = Cluster(numbered(3)).decide(
        restricting("n1"),
        filtering({"n1": UNSCHEDULABLE(CPU), "n2": later}),
        pod=make_pod(nominated_node="n2"),
    )
    assert decision.diagnosis.statuses()["n2"] == later.with_plugin("F")
    assert rejectors(decision) == {"P", "F"}
    assert decision.diagnosis.pending_plugins == set()


def test_what_the_search_itself_pends_on_is_kept() -> None:
    decision = Cluster(numbered(1)).decide(filtering({"n0": Status(Code.PENDING, "later")}))
    assert decision.diagnosis.pending_plugins == {"F"}
    assert rejectors(decision) == {"F"}


# --- §6: how many and from where ---


@pytest.fixture(scope="module")
def large() -> Snapshot:
    return numbered(10_000)


@pytest.mark.parametrize(
    ("count", "percentage", "enough"),
    [
        (99, 0, 99),
        (100, 0, 100),
        (200, 0, 100),
        (250, 0, 120),
        (500, 0, 230),
        (1000, 0, 420),
        (2000, 0, 680),
        (5000, 0, 500),
        (6000, 0, 300),
        (10_000, 0, 500),
        (500, 30, 150),
        (150, 30, 100),
        (1000, 1, 100),
        (1000, 100, 1000),
    ],
)
def test_6_4_1_how_many_are_enough(
    large: Snapshot, count: int, percentage: int, enough: int
) -> None:
    candidates = restricting(*(f"n{number}" for number in range(count)))
    decision = Cluster(large, percentage=percentage).decide(candidates, filtering({}), scoring())
    assert decision.nodes_to_find == enough
    assert len(decision.feasible) == enough


@pytest.mark.parametrize(
    ("profile_percentage", "whole_percentage", "enough"),
    [(None, 30, 150), (30, 100, 150), (0, 100, 230)],
    ids=["not-set", "set", "zero-is-set-too"],
)
def test_a_profile_may_have_its_own_percentage(
    large: Snapshot, profile_percentage: int | None, whole_percentage: int, enough: int
) -> None:
    decision = Cluster(large, percentage=whole_percentage).decide(
        restricting(*(f"n{number}" for number in range(500))),
        scoring(),
        percentage_of_nodes_to_score=profile_percentage,
    )
    assert decision.nodes_to_find == enough


def test_without_score_plugins_one_node_is_enough() -> None:
    cluster = Cluster(numbered(5), start=2)
    decision = cluster.decide(filtering({"n2": UNSCHEDULABLE(CPU), "n4": UNSCHEDULABLE(CPU)}))
    assert decision.node_name == "n3"
    # The search goes on to the next node that fits; failures before it count.
    assert sorted(decision.diagnosis.statuses()) == ["n2", "n4"]
    assert cluster.start == (2 + 1 + 2) % 5


def test_6_4_2_the_start_goes_round() -> None:
    cluster = Cluster(numbered(250))
    starts: list[int] = []
    for _ in range(5):
        decision = cluster.decide(filtering({}), scoring())
        assert decision.start_index == (starts[-1] if starts else 0)
        starts.append(cluster.start)
    assert starts == [120, 240, 110, 230, 100]


def test_6_4_3_nodes_are_scored_in_order_from_the_start() -> None:
    cluster = Cluster(numbered(50), start=7)
    decision = cluster.decide(filtering({}), scoring())
    assert names_of(decision) == [f"n{number % 50}" for number in range(7, 57)]
    assert cluster.start == 7


def test_6_4_4_the_search_stops_at_the_first_node_beyond_the_limit() -> None:
    full = {f"n{number}": UNSCHEDULABLE(CPU) for number in range(10)}
    cluster = Cluster(numbered(200))
    decision = cluster.decide(filtering(full), scoring())
    assert len(decision.feasible) == 100
    assert len(decision.diagnosis.statuses()) == 10
    assert cluster.start == 110


def test_6_4_5_restricted_nodes_that_fail() -> None:
    asked: list[str] = []
    full = dict.fromkeys(("n4", "n9"), UNSCHEDULABLE(CPU))
    cluster = Cluster(numbered(300), start=7)
    decision = cluster.decide(restricting("n4", "n9"), filtering(full, asked=asked), scoring())
    assert asked == ["n9", "n4"]
    assert cluster.start == 9
    assert decision.message == (
        f"0/300 nodes are available: 2 {CPU}, 298 node(s) didn't satisfy plugin(s) [P]."
    )


def test_6_4_6_a_nominated_node_that_failed_before_counts_for_the_start() -> None:
    cluster = Cluster(numbered(300), start=100)
    decision = cluster.decide(
        filtering({"n5": UNSCHEDULABLE(CPU)}), scoring(), pod=make_pod(nominated_node="n5")
    )
    assert decision.nodes_to_find == 144
    assert names_of(decision) == [f"n{number}" for number in range(100, 244)]
    assert cluster.start == 245


def test_6_4_7_a_restriction_to_a_node_that_does_not_exist() -> None:
    asked: list[str] = []
    cluster = Cluster(numbered(4), start=3)
    decision = cluster.decide(restricting("ghost"), filtering({}, asked=asked), scoring())
    assert asked == []
    assert cluster.start == 3
    assert decision.message == ("0/4 nodes are available: 4 node(s) didn't satisfy plugin(s) [P].")


def test_6_4_8_after_an_error_the_next_search_begins_with_that_node() -> None:
    cluster = Cluster(numbered(10), start=4)
    decision = cluster.decide(filtering({"n6": error("boom")}), scoring())
    assert decision.message == 'running "F" filter plugin: boom'
    assert cluster.start == 6


def test_6_4_9_a_nominated_node_within_the_search_counts_once() -> None:
    full = dict.fromkeys(("n101", "n102"), UNSCHEDULABLE(CPU))
    cluster = Cluster(numbered(300), start=100)
    decision = cluster.decide(filtering(full), scoring(), pod=make_pod(nominated_node="n102"))
    assert sorted(decision.diagnosis.statuses()) == ["n101", "n102"]
    assert cluster.start == 100 + 144 + 2


def test_an_error_behind_the_stop_is_never_seen() -> None:
    decision = Cluster(numbered(200)).decide(filtering({"n150": error("boom")}), scoring())
    assert decision.is_scheduled
    assert decision.diagnosis.statuses() == {}


def test_without_filters_the_first_nodes_in_order_are_taken() -> None:
    cluster = Cluster(numbered(120), start=110)
    decision = cluster.decide(scoring())
    assert names_of(decision) == [f"n{number % 120}" for number in range(110, 210)]
    assert cluster.start == 90


# --- nominated pods of others (§7) ---


class Room:
    name = "Room"

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        needed = pod.accounted.requested.milli_cpu
        return (nodes.requested(0) + needed > nodes.allocatable(0)).astype(np.int64)

    def filter_status(self, state: CycleState, code: int) -> Status:
        return UNSCHEDULABLE(CPU)


@pytest.mark.parametrize(
    ("priority", "host"), [(10, "n1"), (20, "n1"), (9, "n0")], ids=["equal", "higher", "lower"]
)
def test_requests_of_a_nominated_pod_of_higher_priority_count(priority: int, host: str) -> None:
    snapshot = make_snapshot([make_node("n0", cpu="2"), make_node("n1", cpu="2")])
    nominated = make_pod("nominated", priority=priority, cpu="1")
    cluster = Cluster(snapshot, nominated=[(nominated, "n0")])
    decision = cluster.decide(Room(), scoring(), pod=make_pod(priority=10, cpu="2"))
    assert decision.node_name == host
    failed = {"n0": UNSCHEDULABLE(CPU).with_plugin("Room")} if host == "n1" else {}
    assert decision.diagnosis.statuses() == failed


def test_a_filter_that_fails_with_a_nominated_pod_fails_the_attempt() -> None:
    def add_pod(*_: object) -> Status:
        return error("lost count")

    plugin = make_plugin(
        "X", pre_filter=lambda *_: None, add_pod=add_pod, remove_pod=lambda *_: None
    )
    cluster = Cluster(numbered(4), nominated=[(make_pod("nominated", priority=1), "n2")])
    decision = cluster.decide(plugin, filtering({"n0": UNSCHEDULABLE(CPU)}), scoring())
    assert decision.message == 'running AddPod on PreFilter plugin "X": lost count'
    assert cluster.start == 2


# --- §9 ---


FULL = {"n0": UNSCHEDULABLE(CPU)}


@pytest.mark.parametrize(
    ("result", "status", "nomination", "text"),
    [
        pytest.param(
            PostFilterResult("n0"), Status(Code.SUCCESS), "n0", "", id="14.3-4-a-node-was-found"
        ),
        pytest.param(
            PostFilterResult(""), UNSCHEDULABLE("no victims"), "", " no victims", id="14.3-3-none"
        ),
        pytest.param(None, UNSCHEDULABLE("not eligible"), None, " not eligible", id="unchanged"),
        pytest.param(None, error("boom"), None, " boom", id="9-3-even-an-error-is-no-error"),
        pytest.param(None, UNRESOLVABLE("x"), None, " x", id="9-4-unresolvable"),
    ],
)
def test_what_post_filter_says_ends_in_a_rejection(
    result: PostFilterResult | None, status: Status, nomination: str | None, text: str
) -> None:
    decision = Cluster(numbered(1)).decide(filtering(FULL), post_filtering(result, status))
    assert decision.message == f"0/1 nodes are available: 1 {CPU}.{text}"
    assert decision.fit_error_text == f"0/1 nodes are available: 1 {CPU}."
    assert decision.status is not None
    assert decision.status.code is Code.UNSCHEDULABLE
    assert isinstance(decision.status.error, FitError)
    assert decision.post_filter == result
    got = decision.nomination.node_name if decision.nomination is not None else None
    assert got == nomination


def test_without_post_filter_the_nomination_is_cleared() -> None:
    decision = Cluster(numbered(1)).decide(filtering(FULL))
    assert decision.message == f"0/1 nodes are available: 1 {CPU}."
    assert decision.nomination is not None
    assert decision.nomination.node_name == ""


def test_9_6_post_filter_runs_after_a_rejection_of_pre_filter_too() -> None:
    seen: list[list[int]] = []

    def post_filter(state: CycleState, pod: PodInfo, diagnosis: Any) -> tuple[None, Status]:
        seen.append(row_numbers(diagnosis.rejected_with(Code.UNSCHEDULABLE).rows).tolist())
        return None, UNSCHEDULABLE("no help")

    decision = Cluster(numbered(3)).decide(
        rejecting(UNRESOLVABLE("never")), make_plugin("Post", post_filter=post_filter)
    )
    assert seen == [[]]
    assert decision.message == "0/3 nodes are available: never. no help"


# --- the search against a slow reading (§6.3) ---


def slow_search(
    count: int,
    verdicts: Sequence[Status | None],
    *,
    candidates: Sequence[int],
    enough: int,
    start: int,
    failed_before: int | None,
) -> tuple[list[int], dict[int, Status], str, int]:
    """Feasible rows, failures, the error and the next start: one node after the other."""
    statuses: dict[int, Status] = {}
    if failed_before is not None:
        status = verdicts[failed_before]
        assert status is not None
        statuses[failed_before] = status
    feasible: list[int] = []
    first = next((i for i, row in enumerate(candidates) if row >= start), 0)
    for row in (*candidates[first:], *candidates[:first]):
        status = verdicts[row]
        if status is not None and not status.is_rejected:
            start = (start + len(feasible) + len(statuses)) % count
            return [], statuses, status.message, start
        if status is not None:
            statuses[row] = status
        elif len(feasible) == enough:
            break
        else:
            feasible.append(row)
    return feasible, statuses, "", (start + len(feasible) + len(statuses)) % count


VERDICT = st.sampled_from(
    [None] * 6 + [UNSCHEDULABLE("u"), UNRESOLVABLE("r"), Status(Code.PENDING, "p")]
)


@given(st.data())
def test_the_search_equals_going_from_node_to_node(data: st.DataObject) -> None:
    is_large = data.draw(st.booleans(), "large")
    count = data.draw(st.integers(100, 115) if is_large else st.integers(1, 8), "nodes")
    verdicts = data.draw(st.lists(VERDICT, min_size=count, max_size=count), "verdicts")
    for row in data.draw(st.sets(st.integers(0, count - 1), max_size=2), "errors"):
        verdicts[row] = error("boom")
    start = data.draw(st.integers(0, count - 1), "start")
    candidates = sorted(
        data.draw(
            st.just(set(range(count))) | st.sets(st.integers(0, count - 1), min_size=1), "allowed"
        )
    )
    is_restricted = len(candidates) < count
    rejected = [row for row, status in enumerate(verdicts) if status and status.is_rejected]
    own = data.draw(st.none() | st.sampled_from(rejected) if rejected else st.none(), "nominated")
    nominated = data.draw(st.sets(st.integers(0, count - 1), max_size=3), "nominated to others")

    cluster = Cluster(
        numbered(count),
        nominated=[(make_pod(f"other-{row}"), f"n{row}") for row in sorted(nominated)],
        percentage=1,
        start=start,
    )
    plugins = [filtering(lambda node: verdicts[int(node[1:])])]
    if is_restricted:
        plugins.append(restricting(*(f"n{row}" for row in candidates)))
    if is_large:
        plugins.append(scoring())
    pod = make_pod(nominated_node="" if own is None else f"n{own}")
    decision = cluster.decide(*plugins, pod=pod)

    enough = min(len(candidates), 100) if is_large else 1
    feasible, statuses, message, next_start = slow_search(
        count,
        verdicts,
        candidates=candidates,
        enough=enough,
        start=start,
        failed_before=own,
    )
    assert cluster.start == next_start
    if message:
        assert decision.message == f'running "F" filter plugin: {message}'
        return
    assert decision.feasible.tolist() == feasible
    expected = {f"n{row}": status.with_plugin("F") for row, status in statuses.items()}
    assert decision.diagnosis.statuses() == expected
    assert decision.evaluated_count == len(feasible) + len(statuses)
    if not feasible:  # A pod that fits somewhere has no rejectors.
        blame = ({"P"} if is_restricted else set()) | ({"F"} if statuses else set())
        assert rejectors(decision) == blame
    if feasible and not is_large:
        assert decision.node_name == f"n{feasible[0]}"


# --- all in all ---


def test_the_start_is_one_for_all_profiles() -> None:
    cluster = Cluster(numbered(3))
    cluster.decide(filtering({}), name="first")
    assert cluster.start == 1
    decision = cluster.decide(filtering({}), name="second")
    assert decision.node_name == "n1"
    assert decision.profile_name == "second"


def test_a_decision_has_the_attempt() -> None:
    profile: Profile = make_profile(
        filtering({"n1": UNSCHEDULABLE(CPU)}), scoring({"n0": 5, "n2": 7})
    )
    cluster = Cluster(numbered(3), start=2)
    pod = PodInfo(make_pod("incoming"))
    decision = cluster.decider.decide(profile, pod)
    assert decision.pod is pod
    assert decision.node_names == ["n0", "n1", "n2"]
    assert (decision.start_index, decision.nodes_to_find) == (2, 3)
    assert names_of(decision) == ["n2", "n0"]
    assert decision.scores is not None
    (part,) = decision.scores.by_plugin
    assert (part.plugin, part.raw.tolist()) == ("S", [7, 5])
    assert decision.node_name == "n2"
    assert decision.nomination is None
    assert decision.post_filter is None
    outcome: PreFilterResult | Any = decision.pre_filter
    assert outcome.node_names is None
