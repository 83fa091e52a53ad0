"""Reuse between pods of one shape changes no decision."""

from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.equivalence.sides import (
    CHANGING,
    POD_KINDS,
    Side,
    describe,
    named,
    new_node,
    new_pod,
    unlike_pod,
)

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.objects import ClusterObjects
from kubestow.framework.node_plugin import NodeFilter, NodeScore
from kubestow.framework.profile import FilterStep, ScoreStep
from kubestow.framework.reuse import ASKED, NO_REUSE, NOTHING_KNOWN, PodReads, Reads, Reuse, Rule
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.testing import make_node, make_pod

steps = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, len(POD_KINDS) - 1)),
        st.tuples(st.just("pods"), st.integers(0, len(POD_KINDS) - 1)),
        st.tuples(st.just("node"), st.integers(0, 5)),
        st.tuples(st.just("update"), st.integers(0, 5)),
        st.tuples(st.just("gone"), st.integers(0, 30)),
        st.tuples(st.just("unlike"), st.integers(0, len(POD_KINDS) - 1)),
        st.tuples(st.just("changing"), st.integers(0, len(CHANGING) - 1)),
    ),
    min_size=5,
    max_size=25,
)


@settings(deadline=None)
@given(steps=steps)
def test_decisions_equal_those_of_asking_every_plugin(steps: list[tuple[str, int]]) -> None:
    cache, objects = Cache(), ClusterObjects()
    shared = Side(reuses_answers=True, objects=objects)
    plain = Side(reuses_answers=False, objects=objects)
    nodes: dict[int, Node] = {}
    for number in range(6):
        nodes[number] = new_node(number, number)
        cache.add_node(nodes[number])
    placed: list[PodInfo] = []
    number = 0

    def try_one(kind: int, make: Callable[[int, int], PodInfo] = new_pod) -> None:
        nonlocal number
        number += 1
        pod = make(kind, number)
        ours, theirs = shared.decide(cache, pod), plain.decide(cache, pod)
        assert describe(ours) == describe(theirs)
        assert shared.decider.next_start_index == plain.decider.next_start_index
        if ours.node_name:
            assumed = pod.assigned_to(ours.node_name)
            cache.assume_pod(assumed)
            placed.append(assumed)

    for action, value in steps:
        match action:
            case "pod":
                try_one(value)
            case "pods":
                for _ in range(4):
                    try_one(value)
            case "unlike":
                for _ in range(4):
                    try_one(value, unlike_pod)
            case "changing":
                chosen = CHANGING[value].metadata
                store = objects.store(type(CHANGING[value]))
                if store.get(chosen.namespace, chosen.name) is None:
                    objects.put(CHANGING[value])
                else:
                    store.remove(chosen.namespace, chosen.name)
            case "node":
                nodes[len(nodes)] = new_node(len(nodes), value)
                cache.add_node(nodes[len(nodes) - 1])
            case "update":
                target = value % len(nodes)
                updated = new_node(target, (value + 1) % 6)
                cache.update_node(nodes[target], updated)
                nodes[target] = updated
            case _:
                if placed:
                    cache.remove_pod(placed.pop(value % len(placed)).pod)


@pytest.mark.parametrize("make", [new_pod, unlike_pod])
def test_pods_of_one_frame_ask_no_plugin_about_all_nodes_again(
    make: Callable[[int, int], PodInfo],
) -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(200):
        cache.add_node(make_node(f"node-{number}", cpu="64", memory="64Gi", pods=1000))
    fit = side.profile.plugins["NodeResourcesFit"]
    asked: list[int] = []
    plain_filter = fit.filter  # type: ignore[attr-defined]

    def counting(state: Any, pod: PodInfo, nodes: Any) -> Any:
        asked.append(len(nodes))
        return plain_filter(state, pod, nodes)

    fit.filter = counting  # type: ignore[attr-defined]
    for number in range(50):
        pod = make(1, number)
        cache.assume_pod(pod.assigned_to(side.decide(cache, pod).node_name))
    # The first two pods ask about the nodes they need, then the record about all; after that it is
    # one row at a time, by its row form. Where amounts differ, each asks about what it needs.
    assert sum(asked) <= (2 if make is new_pod else 50) * 101 + 3 * 200


def test_pods_that_each_name_a_node_ask_about_that_node() -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(200):
        cache.add_node(make_node(f"node-{number}"))
    plugin: Any = side.profile.plugins["NodeUnschedulable"]
    asked: list[int] = []
    plain_filter = plugin.filter

    def counting(state: Any, pod: PodInfo, nodes: Any) -> Any:
        asked.append(len(nodes))
        return plain_filter(state, pod, nodes)

    plugin.filter = counting
    for number in range(20):
        pod = PodInfo(make_pod(f"pod-{number}", affinity=named(f"node-{number}")))
        assert side.decide(cache, pod).node_name == f"node-{number}"
    assert asked == [1] * 20


@given(seed=st.integers(0, 2**32 - 1))
def test_row_forms_equal_the_array_forms(seed: int) -> None:
    """The form for one row gives the same as the array form."""
    rng = np.random.default_rng(seed)
    cache, side = Cache(), Side(reuses_answers=False)
    for number in range(5):
        cache.add_node(new_node(number, int(rng.integers(0, 6))))
    for number in range(12):
        pod = new_pod(int(rng.integers(0, len(POD_KINDS))), number)
        cache.assume_pod(pod.assigned_to(f"node-{rng.integers(0, 5)}"))
    pod = new_pod(int(rng.integers(0, len(POD_KINDS))), 100)
    decision = side.decide(cache, pod)
    state, nodes = decision.state, nodes_of(side.snapshot)
    for step in side.profile.filter_steps:
        if step.row_form is not None and step.name not in state.skip_filter:
            codes = step.plugin.filter(state, pod, nodes)
            rows = [*map(step.row_form(state), side.snapshot.node_infos)]
            assert (codes.tolist() if codes is not None else [0] * 5) == rows
    for name, plugin in side.profile.pre_score_steps:
        status = plugin.pre_score(state, pod, nodes)
        if status is not None:
            state.skip_score |= {name}
    for step in side.profile.score_steps:
        if step.row_form is not None and step.name not in state.skip_score:
            scores = np.broadcast_to(step.plugin.score(state, pod, nodes), 5)
            rows = [*map(step.row_form(state), side.snapshot.node_infos)]
            assert scores.tolist() == rows


class FilterThenScore:
    """Scores what its filter found in the same attempt, as VolumeBinding does."""

    name = "FilterThenScore"

    def filter(self, state: Any, pod: PodInfo, nodes: Any) -> None:
        state.write(self.name, 40)

    def filter_status(self, state: Any, code: int) -> Status:
        raise AssertionError("every node passes")

    def score(self, state: Any, pod: PodInfo, nodes: Any) -> int:
        return state.get(self.name) or 0


def test_parts_of_scores_include_what_the_filters_found() -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(4):
        cache.add_node(new_node(number, number))
    profile, plugin = side.profile, cast(Any, FilterThenScore())
    profile.plugins = {**profile.plugins, plugin.name: plugin}
    profile.filter_steps.append(FilterStep(len(profile.filter), plugin.name, plugin, NO_REUSE))
    profile.score_steps.append(ScoreStep(plugin.name, plugin, None, 1, NO_REUSE))
    for number in range(3):
        decision = side.decide(cache, new_pod(0, number))
        assert decision.scores is not None
        raw = {part.plugin: part.raw.tolist() for part in decision.scores.by_plugin}
        assert set(raw[plugin.name]) == {40}


class Faulty:
    """Its scores are reused, and everything but scoring all nodes fails."""

    name = "Faulty"

    def __init__(self, where: str) -> None:
        self._where = where
        self.reuse = Reuse(score=Reads.PODS, basis=self._basis)

    def score(self, state: Any, pod: PodInfo, nodes: Any) -> int:
        return 7

    def row_score(self, state: Any) -> Any:
        if self._where == "making":
            raise ValueError("no row form today")

        def score(info: Any) -> int:
            if self._where == "scoring":
                raise ValueError("no score today")
            return 101

        return score

    def _basis(self, pod: PodInfo) -> str:
        if self._where == "excepting":
            raise ValueError("no answer today")
        return ""


@pytest.mark.parametrize("where", ["making", "scoring", "range", "excepting"])
def test_a_plugin_that_fails_at_reuse_is_asked_plainly(where: str) -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(4):
        cache.add_node(new_node(number, number))
    profile = side.profile
    faulty: Any = Faulty(where)
    profile.plugins = {**profile.plugins, Faulty.name: faulty}
    profile.score_steps.append(
        ScoreStep(Faulty.name, faulty, None, 1, faulty.reuse, faulty.row_score)
    )
    for number in range(4):
        pod = new_pod(0, number)
        decision = side.decide(cache, pod)
        assert decision.scores is not None
        parts = {part.plugin: part.raw.tolist() for part in decision.scores.by_plugin}
        assert set(parts[Faulty.name]) == {7}
        total = sum(part.normalized * part.weight for part in decision.scores.by_plugin)
        assert decision.scores.total.tolist() == np.asarray(total).tolist()
        cache.assume_pod(pod.assigned_to(decision.node_name))


class Passing(Rule):
    def passes_all(self) -> bool:
        return True


class KnownToPass:
    """A filter that is asked for each pod, and may say that it is known to pass every node."""

    name = "KnownToPass"

    def __init__(self, answer: bool | Exception) -> None:
        self._answer = answer
        self.asked_count = 0
        self.reuse = Reuse(filter=Reads.PODS, basis=lambda pod: ASKED)

    def filter(self, state: Any, pod: PodInfo, nodes: Any) -> None:
        self.asked_count += 1

    def filter_status(self, state: Any, code: int) -> Status:
        raise AssertionError(code)

    def filter_rule(self, state: Any, pod: PodInfo) -> Rule:
        if isinstance(self._answer, Exception):
            raise self._answer
        return Passing() if self._answer else NOTHING_KNOWN


@pytest.mark.parametrize(
    ("answer", "is_asked"),
    [
        pytest.param(True, False, id="passes"),
        pytest.param(False, True, id="unknown"),
        pytest.param(ValueError("no answer today"), True, id="fails"),
    ],
)
def test_a_filter_known_to_pass_every_node_is_not_asked(
    answer: bool | Exception, is_asked: bool
) -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(4):
        cache.add_node(new_node(number, number))
    profile, plugin = side.profile, cast(Any, KnownToPass(answer))
    profile.plugins = {**profile.plugins, plugin.name: plugin}
    index = len(profile.filter)
    profile.filter_steps.append(
        FilterStep(index, plugin.name, plugin, plugin.reuse, plugin.filter_rule)
    )
    side.decide(cache, new_pod(0, 0))
    side.decide(cache, new_pod(0, 1))
    before = plugin.asked_count
    assert side.decide(cache, new_pod(0, 2)).is_scheduled
    assert (plugin.asked_count > before) is is_asked


class ScoresZero:
    """A score that is asked for each pod, unless it is known to be 0 everywhere."""

    name = "ScoresZero"

    def __init__(self, is_zero: bool) -> None:
        self.asked_count = 0
        self.reuse = Reuse(score=Reads.PODS, basis=lambda pod: ASKED)
        self.final_scores = (lambda *_: 0) if is_zero else None

    def score(self, state: Any, pod: PodInfo, nodes: Any) -> int:
        self.asked_count += 1
        return 0


@pytest.mark.parametrize("is_zero", [True, False])
def test_a_score_known_to_be_zero_is_not_asked(is_zero: bool) -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(4):
        cache.add_node(new_node(number, number))
    profile, plugin = side.profile, cast(Any, ScoresZero(is_zero))
    profile.plugins = {**profile.plugins, plugin.name: plugin}
    profile.score_steps.append(
        ScoreStep(plugin.name, plugin, None, 1, plugin.reuse, plugin.final_scores)
    )
    side.decide(cache, new_pod(0, 0))
    side.decide(cache, new_pod(0, 1))
    before = plugin.asked_count
    assert side.decide(cache, new_pod(0, 2)).is_scheduled
    assert (plugin.asked_count > before) is not is_zero


class CountsCalls(NodeFilter, NodeScore):
    """A user's plugin that records the nodes it is called for."""

    name = "CountsCalls"
    asked: ClassVar[list[str]] = []

    def filter_node(self, pod: Pod, node: Node) -> bool | str:
        self.asked.append(node.metadata.name)
        return not node.metadata.labels.get("disk") or "node has a disk"

    def score_node(self, pod: Pod, node: Node) -> int:
        self.asked.append(node.metadata.name)
        return int(node.metadata.name.rpartition("-")[2])


class ReusedCalls(CountsCalls):
    reuse = Reuse(filter=Reads.NODE, score=Reads.NODE)
    per_node = True


def calls_per_pod(plugin: type[CountsCalls]) -> list[int]:
    """How often the plugin is asked for each of four equal pods."""
    cache, side = Cache(), Side(reuses_answers=True, extra=[plugin])
    plain = Side(reuses_answers=False, extra=[plugin])
    for number in range(6):
        # Variants 1, 3 and 5 have a disk; the last is cordoned as well.
        cache.add_node(new_node(number, number))
    counts: list[int] = []
    for number in range(4):
        pod = new_pod(0, number)
        plugin.asked.clear()
        decision = side.decide(cache, pod)
        counts.append(len(plugin.asked))
        assert describe(decision) == describe(plain.decide(cache, pod))
        cache.assume_pod(pod.assigned_to(decision.node_name))
    return counts


def test_a_plugin_for_one_node_is_asked_in_every_cycle_about_remaining_nodes() -> None:
    # Five nodes are not cordoned, three of them pass and are scored.
    assert calls_per_pod(CountsCalls) == [5 + 3] * 4


def test_a_plugin_for_one_node_can_opt_in_to_reuse() -> None:
    # In a small cluster all nodes are asked about for the first pod, once.
    assert calls_per_pod(ReusedCalls) == [6 + 6, 0, 0, 0]


def test_without_row_forms_decisions_are_the_same() -> None:
    """`row_forms` change the speed only."""
    cache, with_forms, without = Cache(), Side(reuses_answers=True), Side(reuses_answers=True)
    profile = without.profile
    profile.filter_steps = [step._replace(row_form=None) for step in profile.filter_steps]
    profile.score_steps = [step._replace(row_form=None) for step in profile.score_steps]
    for number in range(6):
        cache.add_node(new_node(number, number))
    for number in range(40):
        pod = new_pod(number % len(POD_KINDS), number)
        decision = with_forms.decide(cache, pod)
        assert describe(decision) == describe(without.decide(cache, pod))
        if decision.node_name:
            cache.assume_pod(pod.assigned_to(decision.node_name))


class PrefersLabelled:
    """100 for every node while no node has the label; then only for nodes that have it."""

    name = "PrefersLabelled"
    args_type = None
    reuse = Reuse(score=Reads.NODE)

    def __init__(self, args: object, handle: object) -> None:
        pass

    def score(self, state: Any, pod: PodInfo, nodes: Any) -> Any:
        return (nodes.label_ids("preferred") != 0).astype(np.int64)

    def normalize(self, state: Any, pod: PodInfo, scores: Any) -> Any:
        return 100 * scores if scores.any() else np.full(len(scores), 100)


class FailsOnce:
    """Fails at the first call about a single node after it was told to."""

    name = "FailsOnce"
    args_type = None
    reuse = Reuse(score=Reads.PODS)
    fails: ClassVar[bool] = False

    def __init__(self, args: object, handle: object) -> None:
        pass

    def score(self, state: Any, pod: PodInfo, nodes: Any) -> int:
        if FailsOnce.fails and len(nodes) == 1:
            FailsOnce.fails = False
            raise ValueError("fails once")
        return 1


def test_a_record_that_failed_to_catch_up_is_not_used_again() -> None:
    cache = Cache()
    extra = [PrefersLabelled, FailsOnce]
    reusing, plain = Side(reuses_answers=True, extra=extra), Side(reuses_answers=False, extra=extra)
    nodes = [make_node(f"node-{number}", cpu="64", pods=1000) for number in range(6)]
    for node in nodes:
        cache.add_node(node)
    for number in range(3):
        assert describe(reusing.decide(cache, new_pod(0, number))) == describe(
            plain.decide(cache, new_pod(0, number))
        )
    labelled = make_node("node-2", cpu="64", pods=1000, labels={"preferred": "yes"})
    cache.update_node(nodes[2], labelled)
    FailsOnce.fails = True
    reusing.decide(cache, new_pod(0, 3))
    assert not FailsOnce.fails
    plain.decide(cache, new_pod(0, 3))
    pod = new_pod(0, 4)
    assert describe(reusing.decide(cache, pod)) == describe(plain.decide(cache, pod))


class Quick:
    """Passes all nodes, and scores them by their position: plainly, or in one call."""

    name = "Quick"
    args_type = None

    def __init__(self, args: object, handle: object) -> None:
        self.calls: list[str] = []
        self.fails = False
        self.skips = False
        self.reuse = Reuse(filter=Reads.PODS, score=Reads.PODS, pod=PodReads.CLUSTER)

    def pre_filter(self, state: Any, pod: PodInfo, nodes: Nodes) -> None:
        self.calls.append("pre_filter")

    def filter(self, state: Any, pod: PodInfo, nodes: Nodes) -> None:
        self.calls.append("filter")

    def filter_status(self, state: Any, code: int) -> Status:
        raise AssertionError("it rejects no node")

    def pre_score(self, state: Any, pod: PodInfo, nodes: Nodes) -> Status | None:
        self.calls.append("pre_score")
        return Status(Code.SKIP) if self.skips else None

    def score(self, state: Any, pod: PodInfo, nodes: Nodes) -> Any:
        self.calls.append("score")
        return np.arange(len(nodes)) + 5

    def normalize(self, state: Any, pod: PodInfo, scores: Any) -> Any:
        self.calls.append("normalize")
        return scores - 5

    def filter_rule(self, state: Any, pod: PodInfo) -> Rule:
        self.calls.append("passes")
        return Passing()

    def final_scores(self, state: Any, pod: PodInfo, nodes: Nodes) -> Any:
        self.calls.append("final_scores")
        if self.fails:
            raise ValueError("not today")
        return None if self.skips else np.arange(len(nodes))


@pytest.mark.parametrize("fails", [False, True])
def test_a_plugin_is_asked_in_fewer_calls_where_it_declares_them(fails: bool) -> None:
    cache = Cache()
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", cpu="64", pods=1000))
    reusing = Side(reuses_answers=True, extra=[Quick])
    plain = Side(reuses_answers=False, extra=[Quick])
    for number in range(3):
        pod = new_pod(0, number)
        assert describe(reusing.decide(cache, pod)) == describe(plain.decide(cache, pod))
    quick: Any = reusing.profile.plugins[Quick.name]
    quick.calls.clear()
    quick.fails = fails
    decision = reusing.decide(cache, new_pod(0, 3))
    calls = list(quick.calls)
    assert describe(decision) == describe(plain.decide(cache, new_pod(0, 3)))
    asked_plainly = ["pre_filter", "filter", "pre_score", "score", "normalize"]
    assert calls == ["pre_filter", "passes", "final_scores", *(asked_plainly if fails else [])]


def test_a_plugin_that_gives_no_final_scores_counts_as_skipped() -> None:
    cache = Cache()
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", cpu="64", pods=1000))
    sides = [Side(reuses_answers=reuses, extra=[Quick]) for reuses in (True, False)]
    for side in sides:
        quick: Any = side.profile.plugins[Quick.name]
        quick.skips = True
    for number in range(3):
        pod = new_pod(0, number)
        found, expected = (describe(side.decide(cache, pod)) for side in sides)
        assert found == expected
        assert Quick.name in found[-1]
