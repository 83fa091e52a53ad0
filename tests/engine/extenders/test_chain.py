"""How extenders take part in a decision (spec 04 §13.3 to §13.6, §8.4)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.config.extenders import ExtenderConfig, in_call_order
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision
from kubestow.engine.extenders import Extender, ExtenderChain, FilterAnswer, HostScore
from kubestow.errors import ExtenderError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.extender import MetaVictims, Victims
from kubestow.framework.plugin import Plugin
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes
from kubestow.queue.nominator import Nominator
from kubestow.testing import make_node, make_pod, make_snapshot
from kubestow.testing.profiles import make_plugin, make_profile

Answer = FilterAnswer | Exception | Callable[[Sequence[str]], FilterAnswer]


class Fake:
    """An extender in the same process, with the verbs that are given."""

    def __init__(
        self,
        name: str = "http://e/s",
        *,
        filter: Answer | None = None,
        scores: Mapping[str, int] | Sequence[tuple[str, int]] | Exception | None = None,
        bind: Exception | bool | None = None,
        weight: int = 0,
        is_ignorable: bool = False,
        is_interested: bool = True,
    ) -> None:
        self.name = name
        self.weight = weight
        self.is_ignorable = is_ignorable
        self.has_filter_verb = filter is not None
        self.has_prioritize_verb = scores is not None
        self.has_bind_verb = bind is not None
        self.has_preempt_verb = False
        self.asked: list[list[str]] = []
        self.bound: list[str] = []
        self._filter, self._scores, self._bind = filter, scores, bind
        self._is_interested = is_interested

    def is_interested(self, pod: Pod) -> bool:
        return self._is_interested

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterAnswer:
        names = [node.metadata.name for node in nodes]
        self.asked.append(names)
        if isinstance(self._filter, Exception):
            raise self._filter
        assert self._filter is not None
        return self._filter if isinstance(self._filter, FilterAnswer) else self._filter(names)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[HostScore]:
        if isinstance(self._scores, Exception):
            raise self._scores
        assert self._scores is not None
        scores = self._scores
        pairs = scores.items() if isinstance(scores, Mapping) else scores
        return [HostScore(*pair) for pair in pairs]

    def bind(self, pod: Pod, node_name: str) -> None:
        if isinstance(self._bind, Exception):
            raise self._bind
        self.bound.append(node_name)

    def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, MetaVictims]:
        raise NotImplementedError


def scoring(scores: Mapping[str, int]) -> Plugin:
    def run(state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        return np.array([scores[name] for name in nodes.names], np.int64)

    return make_plugin("S", score=run)


def make_chain(*extenders: Extender, seed: int = 0) -> ExtenderChain:
    return ExtenderChain(extenders, rng=np.random.default_rng(seed))


def decide(
    *extenders: Extender,
    nodes: Iterable[str] = "abc",
    plugins: Iterable[Plugin] = (),
    pod: Pod | None = None,
    seed: int = 0,
) -> Decision:
    decider = Decider(
        make_snapshot([make_node(name) for name in nodes]),
        Nominator(find=lambda _: None, pod_lister=lambda *_: None),
        extenders=make_chain(*extenders, seed=seed),
    )
    profile = make_profile(*plugins)
    return decider.decide(profile, PodInfo(pod or make_pod("incoming")))


def feasible(decision: Decision) -> list[str]:
    return [decision.node_names[row] for row in decision.feasible.tolist()]


def statuses(decision: Decision) -> dict[str, tuple[Code, str]]:
    found = decision.diagnosis.statuses()
    return {name: (status.code, status.message) for name, status in found.items()}


U, UAU = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE


# --- filter ---


def test_13_6_1_the_order_of_the_answer_counts() -> None:
    decision = decide(Fake(filter=FilterAnswer(["c", "a"], failed={"b": "no gpu"})))
    assert feasible(decision) == ["c", "a"]
    assert statuses(decision) == {"b": (U, "no gpu")}
    assert decision.diagnosis.unschedulable_plugins == {"Extender"}
    assert decision.evaluated_count == 3


def test_13_6_2_unresolvable_takes_precedence_over_failed() -> None:
    answer = FilterAnswer(["a"], failed={"b": "x"}, unresolvable={"b": "y"})
    decision = decide(Fake(filter=answer))
    assert statuses(decision) == {"b": (UAU, "y")}
    assert decision.node_name == "a"
    assert decision.evaluated_count == 2


def test_13_6_3_no_node_left_and_no_reason_given() -> None:
    decision = decide(Fake(filter=FilterAnswer([])))
    assert decision.message == "0/3 nodes are available:"
    assert statuses(decision) == {}
    assert decision.diagnosis.unschedulable_plugins == {"Extender"}


def test_13_6_4_an_error_fails_the_attempt() -> None:
    text = "failed filter with extender at URL http://e:80/s/filter, code 500"
    decision = decide(Fake(filter=ExtenderError(text)))
    assert decision.status is not None
    assert (decision.status.code, decision.message) == (Code.ERROR, text)
    assert not decision.is_scheduled


def test_13_6_7_ignorable_extenders_are_called_last() -> None:
    configs = [
        ExtenderConfig(url_prefix=name, ignorable=name in ("E1", "E3"))
        for name in ("E1", "E2", "E3", "E4")
    ]
    assert [config.url_prefix for config in in_call_order(configs)] == ["E2", "E4", "E1", "E3"]


def test_an_ignorable_extender_may_fail() -> None:
    failing = Fake(filter=RuntimeError("any fault at all"), is_ignorable=True)
    decision = decide(failing, Fake(filter=FilterAnswer(["b"])))
    assert decision.node_name == "b"


def test_each_extender_sees_what_the_last_left() -> None:
    first = Fake(filter=FilterAnswer(["c", "b"]))
    second = Fake(filter=FilterAnswer([], failed={"b": "full", "c": "full"}))
    third = Fake(filter=FilterAnswer(["a"]))
    decision = decide(first, second, third)
    assert (first.asked, second.asked, third.asked) == ([["a", "b", "c"]], [["c", "b"]], [])
    assert decision.message == "0/3 nodes are available: 2 full."


def test_an_extender_without_interest_or_verb_is_not_asked() -> None:
    indifferent = Fake(filter=FilterAnswer([]), is_interested=False)
    decision = decide(indifferent, Fake())
    assert indifferent.asked == []
    assert len(feasible(decision)) == 3
    assert decision.diagnosis.unschedulable_plugins == set()


@pytest.mark.parametrize("is_ignorable", [False, True])
@pytest.mark.parametrize("has_objects", [False, True])
def test_a_node_that_was_not_sent_is_an_error(is_ignorable: bool, has_objects: bool) -> None:
    answer = FilterAnswer(["a", "ghost"], has_objects)
    decision = decide(Fake(filter=answer, is_ignorable=is_ignorable))
    if is_ignorable:
        assert feasible(decision) == ["a", "b", "c"]
    else:
        assert decision.message == (
            'extender "http://e/s" claims a filtered node "ghost" which is not found in the input '
            "node list"
        )


def test_reasons_replace_those_of_plugins() -> None:
    plugin = make_plugin(
        "F",
        filter=lambda state, pod, nodes: np.array([n == "a" for n in nodes.names], np.int64),
        filter_status=lambda state, code: Status.unschedulable("by plugin"),
    )
    answer = FilterAnswer([], failed={"a": "by extender", "b": "full", "unknown": "?"})
    decision = decide(Fake(filter=answer), plugins=[plugin])
    assert decision.message == "0/3 nodes are available: 1 by extender, 1 full."
    # The plugins that rejected a node stay rejectors.
    assert decision.diagnosis.unschedulable_plugins == {"F", "Extender"}
    assert decision.evaluated_count == 2


def test_nodes_sent_as_objects_are_scored_without_their_pods() -> None:
    seen: list[int] = []

    def score(state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        seen.extend(nodes.pod_count.tolist())
        seen.extend(len(info.pods) for info in nodes.infos())
        return np.zeros(len(nodes), np.int64)

    snapshot = make_snapshot(
        [make_node("a"), make_node("b")], [make_pod("x", node="a"), make_pod("y", node="b")]
    )
    nominator = Nominator(find=lambda _: None, pod_lister=lambda *_: None)
    profile = make_profile(make_plugin("S", score=score))
    for has_objects in (True, False):
        chain = make_chain(Fake(filter=FilterAnswer(["a", "b"], has_objects)))
        Decider(snapshot, nominator, extenders=chain).decide(profile, PodInfo(make_pod("p")))
    assert seen == [0, 0, 0, 0, 1, 1, 1, 1]


# --- the nominated node ---


def test_a_nominated_node_has_to_pass_extenders() -> None:
    asked: list[list[str]] = []

    def answer(names: Sequence[str]) -> FilterAnswer:
        asked.append(list(names))
        return FilterAnswer([name for name in names if name != "b"], failed={"b": "no"})

    decision = decide(Fake(filter=answer), pod=make_pod("p", nominated_node="b"))
    assert asked == [["b"], ["a", "b", "c"]]
    assert feasible(decision) == ["a", "c"]
    assert not decision.via_nominated_node
    kept = decide(Fake(filter=answer), pod=make_pod("p", nominated_node="c"))
    assert (kept.node_name, kept.via_nominated_node) == ("c", True)
    assert kept.diagnosis.unschedulable_plugins == set()


def test_an_error_about_the_nominated_node_only_makes_the_search_go_on() -> None:
    def answer(names: Sequence[str]) -> FilterAnswer:
        if len(names) == 1:
            raise ExtenderError("busy")
        return FilterAnswer(names)

    decision = decide(Fake(filter=answer), pod=make_pod("p", nominated_node="b"))
    assert decision.is_scheduled
    assert not decision.via_nominated_node


# --- prioritize ---


def totals(decision: Decision) -> dict[str, int]:
    assert decision.scores is not None
    return dict(zip(feasible(decision), decision.scores.total.tolist(), strict=True))


def test_13_6_5_a_score_counts_ten_times_its_weight() -> None:
    decision = decide(Fake(scores={"a": 7}, weight=3))
    assert totals(decision) == {"a": 210, "b": 0, "c": 0}


def test_8_5_4_scores_of_extenders_come_on_top() -> None:
    plugin = scoring({"a": 80, "b": 40})
    decision = decide(Fake(scores={"a": 1, "b": 10}, weight=2), nodes="ab", plugins=[plugin])
    assert totals(decision) == {"a": 100, "b": 240}
    assert decision.node_name == "b"


def test_entries_add_up_and_unknown_hosts_do_not_matter() -> None:
    scores = [("a", 1), ("ghost", 9), ("a", 2)]
    decision = decide(Fake(scores=scores, weight=1), Fake(scores={"b": -1}, weight=1))
    assert totals(decision) == {"a": 30, "b": -10, "c": 0}


def test_an_extender_that_fails_to_score_adds_nothing() -> None:
    decision = decide(Fake(scores=RuntimeError("any"), weight=1), Fake(scores={"c": 1}, weight=1))
    assert totals(decision) == {"a": 0, "b": 0, "c": 10}
    assert decision.node_name == "c"


def test_one_feasible_node_is_not_scored() -> None:
    decision = decide(Fake(filter=FilterAnswer(["b"]), scores=RuntimeError("asked"), weight=1))
    assert decision.node_name == "b"
    assert decision.scores is None


# --- ties (§8.4) ---


def winners(*extenders: Extender, nodes: str = "abc") -> Counter[str]:
    return Counter(decide(*extenders, nodes=nodes, seed=seed).node_name for seed in range(60))


def test_ties_between_named_nodes_are_broken_at_random() -> None:
    found = winners(Fake(scores={"a": 0, "b": 0, "c": 0}, weight=1))
    assert set(found) == {"a", "b", "c"}


def test_a_named_node_goes_before_one_that_is_not() -> None:
    assert winners(Fake(scores={"c": 0}, weight=1)) == {"c": 60}


def test_an_extender_without_the_verb_names_all_nodes() -> None:
    assert set(winners(Fake(filter=lambda names: FilterAnswer(names)))) == {"a", "b", "c"}


def test_without_interest_or_answer_the_order_decides() -> None:
    assert winners(Fake(is_interested=False)) == {"a": 60}
    assert winners(Fake(scores=RuntimeError("any"), weight=1)) == {"a": 60}


def test_the_same_seed_gives_the_same_choice() -> None:
    nodes = [f"n{number}" for number in range(50)]
    chosen = {decide(Fake(), nodes=nodes, seed=7).node_name for _ in range(3)}
    assert len(chosen) == 1


# --- how many nodes are enough (§6.2) ---


@pytest.mark.parametrize(
    ("extender", "expected"),
    [
        pytest.param(Fake(), 1, id="neither-filter-nor-score"),
        pytest.param(Fake(filter=lambda names: FilterAnswer(names)), 3, id="filter"),
        pytest.param(Fake(scores={}, weight=1), 3, id="score"),
    ],
)
def test_an_extender_that_chooses_sees_all_nodes(extender: Fake, expected: int) -> None:
    assert decide(extender).nodes_to_find == expected


# --- bind ---


def bind(*extenders: Extender) -> bool:
    async def at_once(call: Callable[[], None]) -> None:
        call()

    chain = ExtenderChain(extenders, rng=np.random.default_rng(0), run_blocking=at_once)
    return asyncio.run(chain.bind(make_pod("p"), "a"))


def test_the_first_interested_binder_binds() -> None:
    others: list[Any] = [Fake(), Fake(bind=True, is_interested=False)]
    binder, late = Fake(bind=True), Fake(bind=True)
    assert bind(*others, binder, late)
    assert (binder.bound, late.bound) == (["a"], [])


def test_without_a_binder_the_plugins_bind() -> None:
    assert not bind(Fake())
    assert not bind(Fake(bind=ExtenderError("no"), is_ignorable=True))


def test_the_failure_of_a_binder_that_is_not_ignorable_fails_the_binding() -> None:
    with pytest.raises(ExtenderError, match="no"):
        bind(Fake(bind=ExtenderError("no")), Fake(bind=True))


def test_a_binding_waits_beside_the_loop() -> None:
    binder = Fake(bind=True)
    assert asyncio.run(make_chain(binder).bind(make_pod("p"), "a"))
    assert binder.bound == ["a"]
