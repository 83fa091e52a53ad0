"""How the answers of several plugins combine at each extension point (spec 04 §2.2, §4 to §11)."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED, Diagnosis
from kubestow.framework.metrics import NoMeter
from kubestow.framework.plugin import (
    Plugin,
    PostFilterResult,
    PreFilterResult,
    Restriction,
    StatusCodes,
)
from kubestow.framework.profile import Profile
from kubestow.framework.runner import (
    FilterError,
    PermitOutcome,
    PreFilterOutcome,
    ScoreError,
    Scores,
    run_add_pod,
    run_filters,
    run_filters_on_one,
    run_filters_with_nominated,
    run_permit,
    run_post_filter,
    run_pre_filter,
    run_remove_pod,
    run_reserve,
    run_scores,
    run_unreserve,
)
from kubestow.framework.status import Code, Status
from kubestow.framework.waiting import PERMIT_WAIT_S_MAX
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of
from kubestow.testing import make_node, make_pod, make_snapshot
from kubestow.testing.profiles import make_plugin, make_profile

Answer = Any  # what a plugin under test is to answer, or to raise
POD = PodInfo(make_pod("incoming"))
UNSCHEDULABLE, UNRESOLVABLE = Status.unschedulable, Status.unresolvable


def pending(reason: str) -> Status:
    return Status(Code.PENDING, reason)


def error(text: str) -> Status:
    return Status.from_error(PluginError(text))


def give(answer: Answer) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def snapshot_of(*names: str) -> Snapshot:
    return make_snapshot([make_node(name) for name in names])


# --- PreFilter (§4) ---


def pre_filter_plugins(*answers: PreFilterResult | Exception, calls: list[str]) -> list[Plugin]:
    def plugin(name: str, answer: Answer) -> Plugin:
        def pre_filter(state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
            calls.append(name)
            return give(answer)

        return make_plugin(name, pre_filter=pre_filter)

    return [plugin(f"P{number}", answer) for number, answer in enumerate(answers, 1)]


def pre_filter(
    *answers: PreFilterResult | Exception,
) -> tuple[PreFilterOutcome, CycleState, list[str]]:
    calls: list[str] = []
    state = CycleState()
    profile = make_profile(*pre_filter_plugins(*answers, calls=calls))
    outcome = run_pre_filter(profile, state, POD, nodes_of(snapshot_of("a", "b", "c")))
    return outcome, state, calls


def only(*names: str) -> Restriction:
    return Restriction(frozenset(names))


def test_4_1_restrictions_intersect() -> None:
    outcome, _, _ = pre_filter(only("a", "b"), only("b", "c"), None)
    assert outcome == PreFilterOutcome(frozenset({"b"}), None, ("P1", "P2"))


def test_4_2_an_empty_intersection_stops() -> None:
    outcome, _, calls = pre_filter(only("a"), only("b"), None)
    text = "node(s) didn't satisfy plugin(s) [P1 P2] simultaneously"
    assert outcome.status == UNRESOLVABLE(text)
    assert outcome.status is not None
    assert outcome.status.plugin == ""
    assert outcome.restricting == ("P1", "P2")
    assert calls == ["P1", "P2"]


def test_4_3_an_empty_set_of_one_plugin() -> None:
    outcome, _, _ = pre_filter(None, only())
    assert outcome.status == UNRESOLVABLE("node(s) didn't satisfy plugin P2")
    assert outcome.restricting == ("P2",)


def test_4_4_a_rejection_lets_the_others_run_and_the_last_one_counts() -> None:
    outcome, state, calls = pre_filter(UNSCHEDULABLE("x"), Status.skip(), UNSCHEDULABLE("y"))
    assert outcome.status == UNSCHEDULABLE("y").with_plugin("P3")
    assert state.skip_filter == {"P2"}
    assert calls == ["P1", "P2", "P3"]


def test_4_5_an_unresolvable_rejection_stops_and_drops_the_restrictions() -> None:
    outcome, _, calls = pre_filter(only("a"), UNSCHEDULABLE("x"), UNRESOLVABLE("z"), None)
    assert outcome == PreFilterOutcome(None, UNRESOLVABLE("z").with_plugin("P3"), ())
    assert calls == ["P1", "P2", "P3"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(pending("p"), "p", id="4-6-pending"),
        pytest.param(error("boom"), "boom", id="error"),
        pytest.param(PluginError("raised"), "raised", id="exception"),
        pytest.param(Status.wait("w"), "%!w(<nil>)", id="wait-has-no-error-behind-it"),
    ],
)
def test_everything_else_fails_the_attempt(answer: Answer, text: str) -> None:
    outcome, _, calls = pre_filter(answer, None)
    assert outcome.status is not None
    assert outcome.status.code is Code.ERROR
    assert outcome.status.message == f'running PreFilter plugin "P1": {text}'
    assert outcome.status.plugin == "P1"
    assert calls == ["P1"]


def test_a_restriction_beside_a_plain_rejection_is_reported_with_it() -> None:
    outcome, _, _ = pre_filter(only("a"), UNSCHEDULABLE("x"))
    assert outcome == PreFilterOutcome(
        frozenset({"a"}), UNSCHEDULABLE("x").with_plugin("P2"), ("P1",)
    )


def test_skips_are_kept_even_if_a_later_plugin_stops() -> None:
    _, state, _ = pre_filter(Status.skip(), UNRESOLVABLE("z"))
    assert state.skip_filter == {"P1"}


def test_without_plugins_all_nodes_are_left() -> None:
    assert pre_filter()[0] == PreFilterOutcome(None, None, ())


# --- Filter ---


def filter_plugin(
    name: str,
    verdicts: Mapping[str, Status] | None,
    *,
    asked: list[tuple[str, list[str]]] | None = None,
    each_node: bool = False,
) -> Plugin:
    """Rejects the nodes named; None is the short answer that every node passes."""
    codes = StatusCodes()

    def run(state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        if asked is not None:
            asked.append((name, nodes.names))
        if verdicts is None:
            return None
        return np.array([codes.code_of(verdicts.get(node)) for node in nodes.names], np.int64)

    def words(state: CycleState, code: int) -> Status:
        return codes.status_of(code)

    return make_plugin(name, filter=run, filter_status=words, per_node=each_node)


def test_the_first_filter_that_rejects_a_node_decides() -> None:
    profile = make_profile(
        filter_plugin("F0", {"b": UNSCHEDULABLE("b0")}),
        filter_plugin("F1", None),
        filter_plugin("F2", {"b": UNRESOLVABLE("b2"), "c": UNSCHEDULABLE("c2")}),
    )
    view = nodes_of(snapshot_of("a", "b", "c"))
    verdicts = run_filters(profile, CycleState(), POD, view)
    assert verdicts.failed_by.tolist() == [PASSED, 0, 2]
    assert profile.filter[2].filter_status(CycleState(), int(verdicts.codes[2])) == (
        UNSCHEDULABLE("c2")
    )


def test_skipped_filters_do_not_run() -> None:
    asked: list[tuple[str, list[str]]] = []
    profile = make_profile(filter_plugin("F0", {"a": UNSCHEDULABLE("x")}, asked=asked))
    state = CycleState()
    state.skip_filter = frozenset({"F0"})
    verdicts = run_filters(profile, state, POD, nodes_of(snapshot_of("a")))
    assert verdicts.failed_by.tolist() == [PASSED]
    assert asked == []


def test_a_filter_that_goes_node_by_node_is_asked_about_the_rest_only() -> None:
    asked: list[tuple[str, list[str]]] = []
    profile = make_profile(
        filter_plugin("Slow", {"d": UNSCHEDULABLE("d")}, asked=asked, each_node=True),
        filter_plugin("Cheap", {"a": UNSCHEDULABLE("a")}, asked=asked),
        filter_plugin("Dear2", {"c": UNSCHEDULABLE("c")}, asked=asked, each_node=True),
        filter_plugin("Cheap2", {}, asked=asked),
    )
    rows = np.array([3, 2, 1, 0], np.intp)
    verdicts = run_filters(
        profile, CycleState(), POD, nodes_of(snapshot_of("a", "b", "c", "d"), rows)
    )
    assert asked == [
        ("Slow", ["d", "c", "b", "a"]),
        ("Cheap", ["d", "c", "b", "a"]),
        ("Dear2", ["c", "b"]),
        ("Cheap2", ["d", "c", "b", "a"]),
    ]
    assert verdicts.failed_by.tolist() == [0, 2, PASSED, 1]


def test_no_plugin_is_asked_when_no_node_is_left() -> None:
    asked: list[tuple[str, list[str]]] = []
    profile = make_profile(
        filter_plugin("F0", {"a": UNSCHEDULABLE("x")}),
        filter_plugin("F1", {}, asked=asked),
    )
    run_filters(profile, CycleState(), POD, nodes_of(snapshot_of("a")))
    assert asked == []


def test_a_failure_on_a_node_another_filter_rejected_does_not_count() -> None:
    profile = make_profile(
        filter_plugin("F0", {"a": UNSCHEDULABLE("x")}),
        filter_plugin("F1", {"a": error("boom")}),
    )
    verdicts = run_filters(profile, CycleState(), POD, nodes_of(snapshot_of("a", "b")))
    assert verdicts.failed_by.tolist() == [0, PASSED]
    assert verdicts.codes[0] > 0


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(PluginError("boom"), "boom", id="exception"),
        pytest.param(
            np.zeros(3, np.int64),
            'plugin "F" returned codes of shape (3,), expected int64 of shape (2,): '
            "one entry per node asked about",
            id="shape",
        ),
        pytest.param(
            np.zeros((2, 2), np.int64),
            'plugin "F" returned codes of shape (2, 2), expected int64 of shape (2,): '
            "one entry per node asked about",
            id="dimensions",
        ),
        pytest.param(
            [0, 0],
            'plugin "F" returned an object of type list, expected int64 of shape (2,): '
            "one entry per node asked about",
            id="no-array",
        ),
        pytest.param(
            np.zeros(2),
            'plugin "F" returned codes of type float64, expected int64 of shape (2,): '
            "one entry per node asked about",
            id="fractions",
        ),
    ],
)
def test_a_filter_that_breaks_fails_the_attempt(answer: Answer, text: str) -> None:
    plugin = make_plugin("F", filter=lambda *_: give(answer), filter_status=lambda *_: None)
    view = nodes_of(snapshot_of("a", "b"))
    with pytest.raises(FilterError) as caught:
        run_filters(make_profile(plugin), CycleState(), POD, view)
    status = caught.value.status
    assert (status.code, status.plugin) == (Code.ERROR, "F")
    assert status.message == f'running "F" filter plugin: {text}'


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        pytest.param(UNSCHEDULABLE("x"), UNSCHEDULABLE("x").with_plugin("F"), id="unschedulable"),
        pytest.param(UNRESOLVABLE("x"), UNRESOLVABLE("x").with_plugin("F"), id="unresolvable"),
        pytest.param(pending("x"), pending("x").with_plugin("F"), id="pending-is-a-rejection"),
        pytest.param(
            error("x"), error('running "F" filter plugin: x').with_plugin("F"), id="error"
        ),
        pytest.param(
            Status.wait("x"),
            error('running "F" filter plugin: %!w(<nil>)').with_plugin("F"),
            id="wait",
        ),
        pytest.param(
            Status.skip(),
            error('running "F" filter plugin: %!w(<nil>)').with_plugin("F"),
            id="skip",
        ),
    ],
)
def test_what_the_codes_of_filter_mean(verdict: Status, expected: Status) -> None:
    profile = make_profile(filter_plugin("F", {"a": verdict}))
    view = nodes_of(snapshot_of("a"))
    assert run_filters_on_one(profile, CycleState(), POD, view) == expected


def test_a_broken_filter_on_one_node_is_a_status() -> None:
    plugin = make_plugin(
        "F", filter=lambda *_: give(PluginError("disk")), filter_status=lambda *_: None
    )
    status = run_filters_on_one(make_profile(plugin), CycleState(), POD, nodes_of(snapshot_of("a")))
    assert status == error('running "F" filter plugin: disk').with_plugin("F")


# --- Filter with nominated pods (§7) ---


class Room:
    """Fits where the cpu is free, and where the required neighbour is."""

    name = "Room"

    def __init__(self, neighbour: str = "") -> None:
        self.neighbour = neighbour
        self.runs = 0
        self.events: list[tuple[str, str, int]] = []

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, row: int) -> Status | None:
        self.events.append(("add", added.name, row))
        state.read("near").names.append(added.name)
        return None

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, row: int
    ) -> Status | None:
        self.events.append(("remove", removed.name, row))
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        self.runs += 1
        needed = pod.accounted.requested.milli_cpu
        codes = np.where(nodes.requested(0) + needed > nodes.allocatable(0), 1, 0)
        if self.neighbour and self.neighbour not in state.read("near").names:
            codes[:] = 2
        return codes.astype(np.int64)

    def filter_status(self, state: CycleState, code: int) -> Status:
        return UNSCHEDULABLE({1: "Insufficient cpu", 2: "no pod near"}[code])


class Near:
    def __init__(self, names: list[str]) -> None:
        self.names = names

    def clone(self) -> "Near":
        return Near(list(self.names))


def with_nominated(
    nominated: Pod | None, *, neighbour: str = "", own_nomination: bool = False
) -> tuple[Status | None, Room]:
    """A pod of priority 10 that requests 2 cpus on a node with 2."""
    plugin, state = Room(neighbour), CycleState()
    state.write("near", Near([]))
    pod = PodInfo(make_pod("P", uid="P", priority=10, cpu="2"))
    node = SimulatedNode(make_snapshot([make_node("n", cpu="2")]), 0)
    others = [pod] if own_nomination else [PodInfo(nominated)] if nominated else []
    status = run_filters_with_nominated(make_profile(plugin), state, pod, node, others)
    assert state.read("near").names == []  # nothing of the simulation is left
    assert node.pod_count.tolist() == [0]
    return status, plugin


def test_7_1_a_pod_of_equal_priority_takes_its_room() -> None:
    status, plugin = with_nominated(make_pod("Q", priority=10, cpu="1"))
    assert status == UNSCHEDULABLE("Insufficient cpu").with_plugin("Room")
    assert plugin.runs == 1


def test_7_2_a_pod_of_lower_priority_does_not() -> None:
    assert with_nominated(make_pod("Q", priority=5, cpu="1"))[0] is None


def test_7_3_its_own_nomination_does_not_count() -> None:
    status, plugin = with_nominated(None, own_nomination=True)
    assert status is None
    assert (plugin.runs, plugin.events) == (1, [])


def test_7_4_it_must_fit_without_the_others_too() -> None:
    status, plugin = with_nominated(make_pod("Q", priority=20), neighbour="Q")
    assert status == UNSCHEDULABLE("no pod near").with_plugin("Room")
    assert plugin.runs == 2


def test_7_5_both_ways_is_two_runs() -> None:
    status, plugin = with_nominated(make_pod("Q", priority=10))
    assert status is None
    assert plugin.runs == 2
    assert plugin.events == [("add", "Q", 0)]


def test_no_priority_is_zero() -> None:
    plugin, state = Room(), CycleState()
    state.write("near", Near([]))
    node = SimulatedNode(make_snapshot([make_node("n", cpu="2")]), 0)
    pod, other = PodInfo(make_pod("P", cpu="2")), PodInfo(make_pod("Q", cpu="1"))
    assert run_filters_with_nominated(make_profile(plugin), state, pod, node, [other]) is not None


def test_a_plugin_that_cannot_count_a_nominated_pod_fails_the_attempt() -> None:
    plugin = make_plugin(
        "X",
        pre_filter=lambda *_: None,
        add_pod=lambda *_: error("lost count"),
        remove_pod=lambda *_: give(PluginError("lost it")),
    )
    profile, state = make_profile(plugin), CycleState()
    node = SimulatedNode(snapshot_of("n"), 0)
    other = PodInfo(make_pod("Q"))
    text = 'running AddPod on PreFilter plugin "X": lost count'
    status = run_filters_with_nominated(profile, state, POD, node, [other])
    assert status == error(text).with_plugin("X")
    removed = run_remove_pod(profile, state, POD, other, 0)
    text = 'running RemovePod on PreFilter plugin "X": lost it'
    assert removed == error(text).with_plugin("X")


def test_a_plugin_that_skipped_gets_no_added_or_removed_pods() -> None:
    plugin = Room()
    profile, state = make_profile(plugin), CycleState()
    state.skip_filter = frozenset({"Room"})
    assert run_add_pod(profile, state, POD, POD, 0) is None
    assert run_remove_pod(profile, state, POD, POD, 0) is None
    assert plugin.events == []


# --- PostFilter (§9) ---


def post_filter(
    *answers: tuple[PostFilterResult | None, Status] | Exception,
) -> tuple[PostFilterResult | None, Status, list[str]]:
    calls: list[str] = []

    def plugin(name: str, answer: Answer) -> Plugin:
        def run(*_: object) -> Any:
            calls.append(name)
            return give(answer)

        return make_plugin(name, post_filter=run)

    profile = make_profile(*map(plugin, "ABC", answers))
    result, status = run_post_filter(profile, CycleState(), POD, Diagnosis(()))
    return result, status, calls


CLEARED, ON_N1 = PostFilterResult(""), PostFilterResult("n1")


@pytest.mark.parametrize(
    ("answers", "result", "code", "message", "calls"),
    [
        pytest.param(
            [(None, UNSCHEDULABLE("a")), (CLEARED, UNSCHEDULABLE("b"))],
            CLEARED,
            Code.UNSCHEDULABLE,
            "a, b",
            "AB",
            id="9-1-reasons-add-up",
        ),
        pytest.param(
            [(ON_N1, Status(Code.SUCCESS)), (None, UNSCHEDULABLE("b"))],
            ON_N1,
            Code.SUCCESS,
            "",
            "A",
            id="9-2-success-ends-it",
        ),
        pytest.param(
            [(ON_N1, error("boom")), (None, UNSCHEDULABLE("b"))],
            None,
            Code.ERROR,
            "boom",
            "A",
            id="9-3-error-ends-it",
        ),
        pytest.param(
            [(None, Status(Code.ERROR, "boom"))],
            None,
            Code.ERROR,
            "boom",
            "A",
            id="9-3-an-error-given-as-a-reason-is-reported-once",
        ),
        pytest.param(
            [PluginError("raised")], None, Code.ERROR, "raised", "A", id="exception-is-an-error"
        ),
        pytest.param(
            [(None, UNRESOLVABLE("x")), (None, UNSCHEDULABLE("b"))],
            None,
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "x",
            "A",
            id="9-4-unresolvable-ends-it",
        ),
        pytest.param(
            [(ON_N1, UNSCHEDULABLE("a")), (None, UNSCHEDULABLE("b"))],
            ON_N1,
            Code.UNSCHEDULABLE,
            "a, b",
            "AB",
            id="9-5-a-nomination-stays",
        ),
        pytest.param(
            [(ON_N1, pending("a")), (CLEARED, UNSCHEDULABLE("b"))],
            CLEARED,
            Code.UNSCHEDULABLE,
            "a, b",
            "AB",
            id="the-last-nomination-counts",
        ),
        pytest.param([], None, Code.UNSCHEDULABLE, "", "", id="no-plugins"),
    ],
)
def test_post_filter(
    answers: list[Answer], result: PostFilterResult | None, code: Code, message: str, calls: str
) -> None:
    got, status, called = post_filter(*answers)
    assert got == result
    assert (status.code, status.message) == (code, message)
    assert called == list(calls)


def test_the_first_plugin_that_could_not_help_is_named() -> None:
    _, status, _ = post_filter((None, UNSCHEDULABLE("a")), (None, UNSCHEDULABLE("b")))
    assert status.plugin == "A"


def test_post_filter_can_be_skipped_as_a_whole() -> None:
    state = CycleState()
    state.skip_post_filter = True
    profile = make_profile(make_plugin("A", post_filter=lambda *_: give(AssertionError())))
    result, status = run_post_filter(profile, state, POD, Diagnosis(()))
    assert result is None
    assert status == UNSCHEDULABLE("All PostFilter plugins are skipped")


# --- Score (§8) ---


def scoring(
    name: str,
    answer: Answer,
    *,
    normalize: Callable[[IntArray], Answer] | None = None,
    pre_score: Answer = None,
) -> Plugin:
    def run(state: CycleState, pod: PodInfo, nodes: Nodes) -> Any:
        return np.array(answer, np.int64) if isinstance(answer, list) else give(answer)

    methods: dict[str, Callable[..., Any]] = {
        "score": run,
        "pre_score": lambda *_: give(pre_score),
    }
    if normalize is not None:
        methods["normalize"] = lambda state, pod, scores: give(normalize(scores))
    return make_plugin(name, **methods)


def scored(*plugins: Plugin, weights: Mapping[str, int] | None = None) -> Scores:
    view = nodes_of(snapshot_of("n1", "n2"))
    return run_scores(make_profile(*plugins, weights=weights), CycleState(), POD, view)


def score_error(*plugins: Plugin) -> str:
    with pytest.raises(ScoreError) as caught:
        scored(*plugins)
    assert caught.value.status.code is Code.ERROR
    return caught.value.status.message


def test_8_5_3_totals_are_weighted_sums() -> None:
    scores = scored(scoring("A", [100, 0]), scoring("B", [50, 80]), weights={"A": 3, "B": 1})
    assert scores.total.tolist() == [350, 80]
    assert [(part.plugin, part.weight) for part in scores.by_plugin] == [("A", 3), ("B", 1)]


def test_raw_and_normalized_scores_are_both_kept() -> None:
    scores = scored(scoring("A", [10, 20], normalize=lambda raw: raw * 5))
    (part,) = scores.by_plugin
    assert (part.raw.tolist(), part.normalized.tolist()) == ([10, 20], [50, 100])
    assert scores.total.tolist() == [50, 100]


@pytest.mark.parametrize("constant", [7, np.int64(7)], ids=["int", "numpy"])
def test_one_number_is_the_score_of_all_nodes(constant: object) -> None:
    assert scored(scoring("A", constant), weights={"A": 2}).total.tolist() == [14, 14]


def test_a_plugin_that_skips_does_not_score() -> None:
    scores = scored(scoring("A", [1, 2], pre_score=Status.skip()), scoring("B", [3, 4]))
    assert scores.total.tolist() == [3, 4]
    assert [part.plugin for part in scores.by_plugin] == ["B"]


def test_without_score_plugins_all_totals_are_zero() -> None:
    assert scored(scoring("A", [1, 2], pre_score=Status.skip())).total.tolist() == [0, 0]


INVALID = (
    'applying score defaultWeights on Score plugins: plugin "{}" returns an invalid score {}, '
    "it should in the range of [0, 100] after normalizing"
)


@pytest.mark.parametrize(
    ("plugins", "text"),
    [
        pytest.param([scoring("A", [0, 101])], INVALID.format("A", 101), id="8.5-5-too-high"),
        pytest.param([scoring("A", [-1, 0])], INVALID.format("A", -1), id="8.5-6-too-low"),
        pytest.param(
            [scoring("A", [500, 1000], normalize=lambda raw: raw)],
            INVALID.format("A", 500),
            id="checked-after-normalizing",
        ),
        pytest.param(
            [scoring("A", [0, 101]), scoring("B", [-5, 0])],
            INVALID.format("B", -5),
            id="the-first-node-out-of-range-is-reported",
        ),
        pytest.param(
            [scoring("A", PluginError("boom"))],
            'running Score plugins: plugin "A" failed with: boom',
            id="score-raises",
        ),
        pytest.param(
            [scoring("A", [1, 2], normalize=lambda _: PluginError("boom"))],
            'running Normalize on Score plugins: plugin "A" failed with: boom',
            id="normalize-raises",
        ),
        pytest.param(
            [
                scoring("A", [101, 1]),
                scoring("B", [1, 2], normalize=lambda _: PluginError("later")),
                scoring("C", PluginError("first of all")),
            ],
            'running Score plugins: plugin "C" failed with: first of all',
            id="all-score-before-the-first-normalizes",
        ),
        pytest.param(
            [
                scoring("A", [101, 1]),
                scoring("B", [1, 2], normalize=lambda _: PluginError("boom")),
            ],
            'running Normalize on Score plugins: plugin "B" failed with: boom',
            id="all-normalize-before-ranges-are-checked",
        ),
        pytest.param(
            [scoring("A", [1, 2], pre_score=error("boom"))],
            'running PreScore plugin "A": boom',
            id="pre-score-fails",
        ),
        pytest.param(
            [scoring("A", [1, 2], pre_score=UNSCHEDULABLE("no"))],
            'running PreScore plugin "A": no',
            id="pre-score-cannot-reject",
        ),
        pytest.param(
            [scoring("A", [1, 2, 3])],
            'running Score plugins: plugin "A" failed with: plugin "A" returned scores of shape '
            "(3,), expected int64 of shape (2,): one entry per node asked about",
            id="shape",
        ),
        pytest.param(
            [scoring("A", np.array([0.5, 1]))],
            'running Score plugins: plugin "A" failed with: plugin "A" returned scores of type '
            "float64, expected int64 of shape (2,): one entry per node asked about",
            id="fractions",
        ),
        pytest.param(
            [scoring("A", [1, 2], normalize=lambda raw: raw[:1])],
            'running Normalize on Score plugins: plugin "A" failed with: plugin "A" returned '
            "scores of shape (1,), expected int64 of shape (2,): one entry per node asked about",
            id="normalize-loses-a-node",
        ),
    ],
)
def test_scoring_fails_with_the_words_of_the_specification(
    plugins: list[Plugin], text: str
) -> None:
    assert score_error(*plugins) == text


# --- Reserve (§10) ---


def reserving(*answers: Answer) -> tuple[Profile, list[str]]:
    calls: list[str] = []

    def plugin(name: str, answer: Answer) -> Plugin:
        def reserve(state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
            calls.append(f"reserve {name}")
            return give(answer)

        def unreserve(state: CycleState, pod: PodInfo, node_name: str) -> None:
            calls.append(f"unreserve {name}")
            if name == "R2":
                raise ValueError("a fault on the way back must not stop the others")

        return make_plugin(name, reserve=reserve, unreserve=unreserve)

    plugins = (plugin(f"R{number}", answer) for number, answer in enumerate(answers, 1))
    return make_profile(*plugins), calls


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            error("db"),
            error('running Reserve plugin "R2": db').with_plugin("R2"),
            id="10-1-error",
        ),
        pytest.param(
            PluginError("db"),
            error('running Reserve plugin "R2": db').with_plugin("R2"),
            id="10-1-exception",
        ),
        pytest.param(UNSCHEDULABLE("full"), UNSCHEDULABLE("full").with_plugin("R2"), id="10-2"),
        pytest.param(UNRESOLVABLE("no"), UNRESOLVABLE("no").with_plugin("R2"), id="10-3"),
        pytest.param(
            Status.wait("w"),
            error('running Reserve plugin "R2": %!w(<nil>)').with_plugin("R2"),
            id="wait-is-an-error",
        ),
    ],
)
def test_the_first_reserve_that_fails_stops(answer: Answer, expected: Status) -> None:
    profile, calls = reserving(None, answer, None)
    assert run_reserve(profile, CycleState(), POD, "n1") == expected
    assert calls == ["reserve R1", "reserve R2"]


def test_unreserve_undoes_all_in_reverse_also_what_never_ran() -> None:
    profile, calls = reserving(None, UNSCHEDULABLE("full"), None)
    run_unreserve(profile, CycleState(), POD, "n1")
    assert calls == ["unreserve R3", "unreserve R2", "unreserve R1"]


def test_all_reserve_in_order() -> None:
    profile, calls = reserving(None, Status(Code.SUCCESS), None)
    assert run_reserve(profile, CycleState(), POD, "n1") is None
    assert calls == ["reserve R1", "reserve R2", "reserve R3"]


class SampledMeter(NoMeter):
    is_sampled = True


@pytest.mark.parametrize(
    ("meter", "expected"),
    [
        pytest.param(NoMeter(), ["reserve R2"], id="not-called"),
        pytest.param(SampledMeter(), ["reserve R1", "reserve R2"], id="calls-are-measured"),
    ],
)
def test_a_pod_that_prefilter_left_out_is_not_reserved_where_a_plugin_says_so(
    meter: NoMeter, expected: list[str]
) -> None:
    calls: list[str] = []
    profile = make_profile(
        *(
            make_plugin(
                name,
                reserve=lambda *_, name=name: calls.append(f"reserve {name}"),
                unreserve=lambda *_: None,
                reserves_filtered=name == "R1",
            )
            for name in ("R1", "R2")
        )
    )
    state = CycleState()
    state.skip_filter = frozenset(("R1", "R2"))
    state.meter = meter
    assert run_reserve(profile, state, POD, "n1") is None
    assert calls == expected


# --- Permit (§11) ---


def permit(*answers: Answer) -> tuple[PermitOutcome, list[str]]:
    calls: list[str] = []

    def plugin(name: str, answer: Answer) -> Plugin:
        def run(state: CycleState, pod: PodInfo, node_name: str) -> Any:
            calls.append(name)
            return give(answer)

        return make_plugin(name, permit=run)

    profile = make_profile(*map(plugin, "ABC", answers))
    return run_permit(profile, CycleState(), POD, "n1", PERMIT_WAIT_S_MAX), calls


ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


def test_11_1_waiting_times_are_kept_by_plugin_and_cut() -> None:
    outcome, _ = permit((Status.wait("a"), 10.0), (None, 0.0), (Status.wait("c"), 1200.0))
    assert outcome.timeouts_s == {"A": 10.0, "C": 900.0}
    assert outcome.status == Status.wait("c", ASKED_TO_WAIT).with_plugin("C")


def test_11_2_a_rejection_beats_waiting() -> None:
    outcome, calls = permit((Status.wait(), 10.0), (UNSCHEDULABLE("quota"), 0.0), (None, 0.0))
    assert outcome == PermitOutcome(UNSCHEDULABLE("quota").with_plugin("B"), {})
    assert calls == ["A", "B"]


def test_11_6_pending_is_a_rejection() -> None:
    outcome, _ = permit((pending("p"), 0.0))
    assert outcome == PermitOutcome(pending("p").with_plugin("A"), {})


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param((error("boom"), 0.0), "boom", id="error"),
        pytest.param(PluginError("raised"), "raised", id="exception"),
        pytest.param((Status.skip(), 0.0), "%!w(<nil>)", id="skip"),
    ],
)
def test_other_answers_of_permit_are_errors(answer: Answer, text: str) -> None:
    outcome, calls = permit((Status.wait(), 5.0), answer, (None, 0.0))
    expected = error(f'running Permit plugin "B": {text}').with_plugin("B")
    assert outcome == PermitOutcome(expected, {})
    assert calls == ["A", "B"]


def test_permitted_by_all() -> None:
    assert permit((None, 0.0), (Status(Code.SUCCESS), 3.0))[0] == PermitOutcome(None, {})
