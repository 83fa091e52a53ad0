"""Plugins of users that look at one node at a time."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import decode_status
from kubestow.framework.node_plugin import NodeFilter, NodeScore
from kubestow.framework.runner import FilterError, ScoreError, run_filters, run_scores
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import nodes_of
from kubestow.testing import make_node, make_pod, make_snapshot, simulate
from kubestow.testing.profiles import make_profile


class OnlyBlue(NodeFilter, NodeScore):
    """Ten lines of a user."""

    name: ClassVar[str] = "OnlyBlue"

    def filter_node(self, pod: Pod, node: Node) -> bool | str:
        return node.metadata.labels.get("color") == "blue" or "node is not blue"

    def score_node(self, pod: Pod, node: Node) -> int:
        return len(node.metadata.name) * 10


COLORS = {"a": "blue", "bb": "red", "ccc": "blue", "dddd": ""}


def test_ten_lines_are_a_plugin() -> None:
    snapshot = make_snapshot(
        make_node(name, labels={"color": color}) for name, color in COLORS.items()
    )
    profile, pod, state = make_profile(OnlyBlue()), PodInfo(make_pod()), CycleState()
    verdicts = run_filters(profile, state, pod, nodes_of(snapshot))
    assert verdicts.failed_by.tolist() == [-1, 0, -1, 0]
    for row in (1, 3):
        status = decode_status(profile.filter[0], state, int(verdicts.codes[row]))
        assert status == Status(Code.UNSCHEDULABLE, "node is not blue", plugin="OnlyBlue")
    feasible = nodes_of(snapshot, np.flatnonzero(verdicts.failed_by < 0))
    assert run_scores(profile, state, pod, feasible).total.tolist() == [10, 30]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(True, None, id="true"),
        pytest.param(np.bool_(True), None, id="truth-out-of-an-array"),
        pytest.param(None, None, id="nothing"),
        pytest.param(False, Status.unschedulable("node(s) didn't satisfy plugin P"), id="false"),
        pytest.param(
            np.bool_(False),
            Status.unschedulable("node(s) didn't satisfy plugin P"),
            id="no-truth-out-of-an-array",
        ),
        pytest.param("", Status.unschedulable("node(s) didn't satisfy plugin P"), id="no-words"),
        pytest.param("full", Status.unschedulable("full"), id="reason"),
        pytest.param(Status.unresolvable("never"), Status.unresolvable("never"), id="status"),
    ],
)
def test_what_an_answer_means(answer: object, status: Status | None) -> None:
    class Plugin(NodeFilter):
        name: ClassVar[str] = "P"

        def filter_node(self, pod: Pod, node: Node) -> bool | str | Status | None:
            return answer  # type: ignore[return-value]

    plugin, state = Plugin(), CycleState()
    codes = plugin.filter(state, PodInfo(make_pod()), nodes_of(make_snapshot([make_node()])))
    assert (plugin.filter_status(state, int(codes[0])) if codes[0] else None) == status


def test_an_exception_for_one_node_fails_the_attempt() -> None:
    class Broken(NodeFilter):
        name: ClassVar[str] = "Broken"

        def filter_node(self, pod: Pod, node: Node) -> bool:
            raise ValueError("no idea")

    view = nodes_of(make_snapshot([make_node()]))
    with pytest.raises(FilterError) as caught:
        run_filters(make_profile(Broken()), CycleState(), PodInfo(make_pod()), view)
    text = 'running "Broken" filter plugin: ValueError: no idea (tests/framework/'
    assert caught.value.status.message.startswith(text)


@pytest.mark.parametrize("base", [NodeFilter, NodeScore])
def test_a_base_without_its_method_cannot_be_made(base: type[NodeFilter | NodeScore]) -> None:
    with pytest.raises(TypeError, match=r"filter_node|score_node"):
        base()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (42, "42"),
        (0, "0"),
        (1.0, "1.0"),
        (["a reason"], "an object of type list"),
        (Status, "the class Status"),
    ],
    ids=repr,
)
def test_any_other_answer_of_a_filter_is_an_error(answer: object, text: str) -> None:
    class Plugin(NodeFilter):
        name: ClassVar[str] = "P"

        def filter_node(self, pod: Pod, node: Node) -> bool:
            return answer  # type: ignore[return-value]

    view = nodes_of(make_snapshot([make_node("a")]))
    with pytest.raises(FilterError) as caught:
        run_filters(make_profile(Plugin()), CycleState(), PodInfo(make_pod()), view)
    assert caught.value.status.message == (
        f'running "P" filter plugin: filter_node returned {text} for node "a", expected True '
        "or None for a node that will do; else False, a reason or a Status"
    )


@pytest.mark.parametrize(
    "score", [0.7, np.float64(3), "9", None, 2**63, np.uint64(2**63)], ids=repr
)
def test_a_score_that_is_no_whole_number_is_an_error(score: object) -> None:
    class Plugin(NodeScore):
        name: ClassVar[str] = "P"

        def score_node(self, pod: Pod, node: Node) -> int:
            return score if node.metadata.name == "b" else 1  # type: ignore[return-value]

    view = nodes_of(make_snapshot([make_node("a"), make_node("b")]))
    with pytest.raises(ScoreError) as caught:
        run_scores(make_profile(Plugin()), CycleState(), PodInfo(make_pod()), view)
    assert caught.value.status.message == (
        f'running Score plugins: plugin "P" failed with: score_node returned {score!r} for node '
        '"b", expected a whole number of at most 64 bits'
    )


class PodsOfTheNode(NodeFilter, NodeScore):
    """Both methods take the pods on the node."""

    name: ClassVar[str] = "P"

    def filter_node(self, pod: Pod, node: Node, pods: Sequence[Pod]) -> bool:
        return len(pods) < 2

    def score_node(self, pod: Pod, node: Node, pods: Sequence[Pod]) -> int:
        return 10 * len(pods)


def test_a_third_parameter_gets_the_pods_on_the_node() -> None:
    placed = [make_pod(f"p{i}", node="ab"[i % 2]) for i in range(3)]
    snapshot = make_snapshot([make_node("a"), make_node("b"), make_node("c")], placed)
    profile, pod, state = make_profile(PodsOfTheNode()), PodInfo(make_pod()), CycleState()
    verdicts = run_filters(profile, state, pod, nodes_of(snapshot))
    assert verdicts.failed_by.tolist() == [0, -1, -1]
    feasible = nodes_of(snapshot, np.flatnonzero(verdicts.failed_by < 0))
    assert run_scores(profile, state, pod, feasible).total.tolist() == [10, 0]


def test_pods_that_were_placed_just_before_are_among_them() -> None:
    pods = [make_pod(f"p{i}") for i in range(5)]
    result = simulate([make_node("a"), make_node("b"), *pods], PodsOfTheNode)
    assert sorted(pod.node for pod in result.pods) == ["", "a", "a", "b", "b"]


def test_a_trial_of_preemption_is_without_the_victims() -> None:
    low = [make_pod(f"low-{i}", node="a") for i in range(2)]
    result = simulate([make_node("a"), *low, make_pod("high", priority=9)], PodsOfTheNode)
    assert len(result.evicted) == 1
    assert result.pods[0].node == "a"


def test_a_parameter_of_the_plugin_itself_is_left_alone() -> None:
    class Plugin(NodeFilter):
        name: ClassVar[str] = "P"

        def filter_node(self, pod: Pod, node: Node, limit: int = 3) -> bool:
            return limit == 3

    snapshot = make_snapshot([make_node("a")])
    verdicts = run_filters(
        make_profile(Plugin()), CycleState(), PodInfo(make_pod()), nodes_of(snapshot)
    )
    assert verdicts.failed_by.tolist() == [-1]
