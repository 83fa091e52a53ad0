"""What extenders may do to candidates (spec 08 A7)."""

from collections.abc import Callable, Mapping

import pytest

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import KubestowError
from kubestow.framework.extender import MetaVictims, Victims
from kubestow.plugins.default_preemption.candidates import Candidate, Candidates
from kubestow.plugins.default_preemption.extenders import ask_extenders
from kubestow.testing import make_node, make_pod, make_snapshot

Answer = Callable[[Mapping[str, Victims]], Mapping[str, MetaVictims]]


def unchanged(victims: Mapping[str, Victims]) -> Mapping[str, MetaVictims]:
    return {
        name: MetaVictims([pod.metadata.uid for pod in of_node.pods], of_node.violation_count)
        for name, of_node in victims.items()
    }


class FakeExtender:
    name = "http://ext"

    def __init__(
        self,
        answer: Answer = unchanged,
        *,
        is_ignorable: bool = False,
        has_preempt_verb: bool = True,
        interested: bool = True,
    ) -> None:
        self.is_ignorable = is_ignorable
        self.has_preempt_verb = has_preempt_verb
        self._answer = answer
        self._interested = interested
        self.asked: list[Mapping[str, Victims]] = []

    def is_interested(self, pod: Pod) -> bool:
        return self._interested

    def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, MetaVictims]:
        self.asked.append(victims)
        return self._answer(victims)


def small_snapshot() -> Snapshot:
    return make_snapshot(
        [make_node("n1"), make_node("n2")],
        [
            make_pod("a", uid="a", node="n1", priority=1),
            make_pod("b", uid="b", node="n1", priority=2),
            make_pod("c", uid="c", node="n2", priority=3),
        ],
    )


def ask(*extenders: FakeExtender) -> list[tuple[str, list[str], int]]:
    snapshot = small_snapshot()
    on_first, on_second = (info.pods for info in snapshot.node_infos)
    candidates = Candidates.of(
        [Candidate(0, [on_first[1]], 1), Candidate(1, [on_second[0]], 0)], now_ns=0
    )
    found = ask_extenders(extenders, PodInfo(make_pod(priority=9)), candidates, snapshot, 0)
    return [
        (snapshot.names[each.row], [pod.name for pod in each.victims], each.violation_count)
        for each in (found[position] for position in range(len(found)))
    ]


UNCHANGED = [("n1", ["b"], 1), ("n2", ["c"], 0)]


def broken(victims: Mapping[str, Victims]) -> Mapping[str, MetaVictims]:
    raise ConnectionError("refused")


@pytest.mark.parametrize(
    "extender",
    [
        pytest.param(FakeExtender(), id="unchanged"),
        pytest.param(FakeExtender(broken, has_preempt_verb=False), id="no-verb"),
        pytest.param(FakeExtender(broken, interested=False), id="not-interested"),
        pytest.param(FakeExtender(broken, is_ignorable=True), id="ignorable-failure"),
        pytest.param(
            FakeExtender(lambda victims: {"n1": MetaVictims(["x"], 0)}, is_ignorable=True),
            id="ignorable-nonsense",
        ),
    ],
)
def test_candidates_stay(extender: FakeExtender) -> None:
    assert ask(extender) == UNCHANGED


def test_the_answer_replaces_the_candidates() -> None:
    first = FakeExtender(lambda victims: {"n1": MetaVictims(["a", "b"], 2)})
    second = FakeExtender()
    assert ask(first, second) == [("n1", ["a", "b"], 2)]
    (asked,) = second.asked
    assert [pod.metadata.name for pod in asked["n1"].pods] == ["a", "b"]
    assert asked["n1"].violation_count == 2


def test_nothing_left_ends_the_round() -> None:
    second = FakeExtender()
    assert ask(FakeExtender(lambda victims: {}), second) == []
    assert second.asked == []


def test_a_node_without_victims_is_dropped_if_the_extender_is_ignorable() -> None:
    answer: Answer = lambda victims: {**unchanged(victims), "n1": MetaVictims([], 0)}  # noqa: E731 -- a row of a table
    assert ask(FakeExtender(answer, is_ignorable=True)) == [("n2", ["c"], 0)]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(
            lambda victims: {"n1": MetaVictims([], 0)},
            'expected at least one victim pod on node "n1"',
            id="no-victims",
        ),
        pytest.param(
            lambda victims: {"n1": MetaVictims(["c"], 0)},
            "extender: http://ext claims to preempt pod (UID: &{c}) on node: n1, "
            "but the pod is not found on that node",
            id="unknown-pod",
        ),
        pytest.param(
            lambda victims: {"n9": MetaVictims(["c"], 0)},
            'nodeinfo not found for node name "n9"',
            id="unknown-node",
        ),
    ],
)
def test_what_a_needed_extender_does_wrong_is_raised(answer: Answer, text: str) -> None:
    with pytest.raises(KubestowError) as caught:
        ask(FakeExtender(answer))
    assert str(caught.value) == text


def test_failure_of_a_needed_extender_is_raised() -> None:
    with pytest.raises(ConnectionError, match="refused"):
        ask(FakeExtender(broken))
