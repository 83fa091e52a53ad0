"""Each check finds the fault it is there for, and passes plugins without faults."""

from typing import Any, ClassVar

import numpy as np
import pytest

from kubestow.errors import ConfigError
from kubestow.framework.events import Action, Hint, Resource, on
from kubestow.framework.node_plugin import NodeFilter, NodeScore
from kubestow.framework.reuse import Reads, Reuse
from kubestow.framework.status import Status
from kubestow.plugins.registry import REGISTRY
from kubestow.testing import ManualClock
from kubestow.testing.plugin_check import PluginReport, check_plugin
from kubestow.testing.plugin_check.answers import AGAIN, FORMS, ONE, ORDER, TYPES
from kubestow.testing.plugin_check.check import (
    EMPTY,
    IN_A_ROW,
    POST_FILTER,
    QUEUE,
    REUSE,
    SCHEDULER,
    SIGNATURES,
    TRIALS,
)
from kubestow.testing.plugin_check.generated import Generator, label_texts


class OnlyBlue(NodeFilter):
    name: ClassVar[str] = "P"
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.NODE)
    per_node: ClassVar[bool] = True

    def filter_node(self, pod: Any, node: Any) -> Any:
        return node.metadata.labels.get("color") == "blue" or "node(s) were not blue"


class Plain:
    name: ClassVar[str] = "P"
    args_type: ClassVar[None] = None

    def __init__(self, args: Any, handle: Any) -> None:
        self.args = args


class Raises(OnlyBlue):
    def filter_node(self, pod: Any, node: Any) -> Any:
        return node.metadata.labels["color"] == "blue"


class OutOfRange(Plain):
    def score(self, state: Any, pod: Any, nodes: Any) -> Any:
        return 101


class FirstOfAll(Plain):
    def score(self, state: Any, pod: Any, nodes: Any) -> Any:
        return np.append(100, np.zeros(len(nodes) - 1, np.int64))


class CountsCalls(Plain):
    calls = 0

    def score(self, state: Any, pod: Any, nodes: Any) -> Any:
        self.calls += 1
        return self.calls % 100


class OtherForm(OnlyBlue):
    def filter(self, state: Any, pod: Any, nodes: Any) -> Any:
        return np.array([0 if "color" in n.metadata.labels else 1 for n in nodes.node_objects()])

    def filter_status(self, state: Any, code: int) -> Status:
        return Status.unschedulable("node(s) were not blue")


class OtherScoreForm(NodeScore):
    name: ClassVar[str] = "P"

    def score_node(self, pod: Any, node: Any) -> int:
        return 100 if node.metadata.labels.get("disk") == "ssd" else 0

    def score(self, state: Any, pod: Any, nodes: Any) -> Any:
        return np.zeros(len(nodes), np.int64)


class NeedsNodes(Plain):
    def filter(self, state: Any, pod: Any, nodes: Any) -> Any:
        return np.full(len(nodes), int(nodes.pod_count.max() < 0), np.int64)

    def filter_status(self, state: Any, code: int) -> Status:
        return Status.unschedulable("never")


class ReadsThePodsName(OnlyBlue):
    def filter_node(self, pod: Any, node: Any) -> Any:
        return ord(pod.metadata.name[-1]) % 2 == 0 or "no"


RANK = "acme.example/rank"


class ReadsAnAnnotation(OnlyBlue):
    def filter_node(self, pod: Any, node: Any) -> Any:
        return RANK in pod.metadata.annotations or "no"


class ReadsPodsOfTheNode(Plain):
    """Declares that only the Node object is read."""

    reuse = Reuse(score=Reads.NODE)

    def score(self, state: Any, pod: Any, nodes: Any) -> Any:
        return np.minimum(nodes.pod_count, 100)


class NoParameters(Plain):
    def score(self) -> Any: ...


class Misspelt(Plain):
    def score(self, state: Any, pod: Any, nodes: Any) -> Any:
        return 0

    def normalise(self, state: Any, pod: Any, scores: Any) -> Any: ...


class WaitsInAFilter(OnlyBlue):
    async def filter(self, state: Any, pod: Any, nodes: Any) -> Any: ...


class NoOrder(Plain):
    def less(self, first: Any, second: Any) -> Any:
        return True


class WrongHint(OnlyBlue):
    def events(self) -> Any:
        return [on(Resource.NODE, Action.ADD, lambda pod, old, new: True)]


class CountsApps(Plain):
    """At most one pod of an app in all nodes together. The state follows removed pods only."""

    def pre_filter(self, state: Any, pod: Any, nodes: Any) -> Any:
        running = [other for info in nodes.infos() for other in info.pods]
        state.write("P", Count(sum("app" in other.pod.metadata.labels for other in running)))

    def remove_pod(self, state: Any, pod: Any, removed: Any, row: int) -> Any:
        state.read("P")[0] -= "app" in removed.pod.metadata.labels

    def add_pod(self, state: Any, pod: Any, added: Any, row: int) -> Any: ...

    def filter(self, state: Any, pod: Any, nodes: Any) -> Any:
        return np.full(len(nodes), state.read("P")[0], np.int64)

    def filter_status(self, state: Any, code: int) -> Status:
        return Status.unschedulable(f"{code} pods of an app")


class Count(list[int]):
    def __init__(self, count: int) -> None:
        super().__init__([count])

    def clone(self) -> "Count":
        return Count(self[0])


class IgnoresRemovedPods(CountsApps):
    def remove_pod(self, state: Any, pod: Any, removed: Any, row: int) -> Any: ...


class FollowsPods(CountsApps):
    """Without fault."""

    def add_pod(self, state: Any, pod: Any, added: Any, row: int) -> Any:
        state.read("P")[0] += "app" in added.pod.metadata.labels


class WrongPostFilter(Plain):
    def post_filter(self, state: Any, pod: Any, diagnosis: Any) -> Any:
        return None


class WrongTimeout(Plain):
    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        return Status.wait(), "5s"


class BothForms(OnlyBlue):
    """Without fault: the same in two ways, and a hint."""

    def filter(self, state: Any, pod: Any, nodes: Any) -> Any:
        colors = [node.metadata.labels.get("color") for node in nodes.node_objects()]
        return np.array([color != "blue" for color in colors], np.int64)

    def filter_status(self, state: Any, code: int) -> Status:
        return Status.unschedulable("node(s) were not blue")

    def events(self) -> Any:
        return [on(Resource.NODE, Action.ADD, lambda pod, old, new: Hint.QUEUE)]


class ScoresWhatItAccepts(Plain):
    """Without fault: scores of nodes that it rejects itself would be below 0."""

    def filter(self, state: Any, pod: Any, nodes: Any) -> Any:
        return (nodes.pod_count > 0).astype(np.int64)

    def filter_status(self, state: Any, code: int) -> Status:
        return Status.unschedulable("node(s) had pods")

    def score(self, state: Any, pod: Any, nodes: Any) -> Any:
        return -nodes.pod_count


class Replaces(Plain):
    """Without fault: orders the queue."""

    def less(self, first: Any, second: Any) -> Any:
        return first.timestamp_ns > second.timestamp_ns


class TwoOfATeam(NodeFilter):
    """Without fault: counts the pods that the node has, also those that are not bound yet."""

    name: ClassVar[str] = "P"

    def filter_node(self, pod: Any, node: Any, pods: Any) -> Any:
        team = pod.metadata.labels.get("team")
        return sum(one.metadata.labels.get("team") == team for one in pods) < 2


class TwoOfATeamInTheStore(NodeFilter):
    name: ClassVar[str] = "P"

    def __init__(self, args: Any, handle: Any) -> None:
        self._pods = handle.objects.pods

    def filter_node(self, pod: Any, node: Any) -> Any:
        team = pod.metadata.labels.get("team")
        there = [one for one in self._pods.list() if one.spec.node_name == node.metadata.name]
        return sum(one.metadata.labels.get("team") == team for one in there) < 2


class NoEvents(OnlyBlue):
    def events(self) -> Any:
        return [Resource.NODE]


def report_on(plugin: type, args: object = None) -> PluginReport:
    return check_plugin(f"{__name__}:{plugin.__name__}", args, ManualClock())


@pytest.mark.parametrize(
    ("plugin", "check", "text"),
    [
        (Raises, TYPES, "KeyError: 'color' (tests/testing/plugin_check/test_check.py:"),
        (OutOfRange, TYPES, "scores from 101 to 101, expected 0 to 100"),
        (FirstOfAll, ONE, "raw differ: 0 or 100 for node node-"),
        (FirstOfAll, ORDER, "raw differ: "),
        (CountsCalls, AGAIN, "raw differ: 1 or 2 for node node-0"),
        (OtherForm, FORMS, "verdicts differ: "),
        (OtherScoreForm, FORMS, "scores differ: "),
        (NeedsNodes, EMPTY, "ValueError: zero-size array"),
        (TwoOfATeamInTheStore, IN_A_ROW, "not by handle.objects.pods"),
        (ReadsThePodsName, REUSE, "with reused answers"),
        (ReadsAnAnnotation, REUSE, "with reused answers"),
        (ReadsPodsOfTheNode, REUSE, "with reused answers"),
        (NoParameters, SIGNATURES, "score is called with (state, pod, nodes): too many"),
        (Misspelt, SIGNATURES, '"normalise" is never called; is "normalize" meant?'),
        (WaitsInAFilter, SIGNATURES, "filter is declared with async def"),
        (NoOrder, QUEUE, 'plugin "P" returned True from less both ways'),
        (WrongHint, QUEUE, 'plugin "P" returned True from a hint'),
        (CountsApps, TRIALS, "after the pod was added again"),
        (IgnoresRemovedPods, TRIALS, "in a cluster without the pod"),
        (WrongPostFilter, POST_FILTER, 'plugin "P" returned None from post_filter'),
        (WrongTimeout, SCHEDULER, "returned '5s' from permit as the timeout"),
    ],
)
def test_a_fault_is_found(plugin: type, check: str, text: str) -> None:
    report = report_on(plugin)
    assert report.has_failed
    failed = {one.check: one.detail for one in report.findings if one.result == "failed"}
    assert text in failed[check]
    assert not report.durations or check in (IN_A_ROW, REUSE, SCHEDULER)


@pytest.mark.slow
@pytest.mark.parametrize(
    "plugin", [OnlyBlue, BothForms, Replaces, FollowsPods, ScoresWhatItAccepts, TwoOfATeam]
)
def test_plugins_without_fault_pass(plugin: type) -> None:
    report = report_on(plugin)
    assert not report.has_failed
    assert {one.method for one in report.durations} == {"filter", "score"} & {*report.methods}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["TaintToleration", "NodeResourcesFit", "InterPodAffinity"])
def test_plugins_of_our_own_pass(name: str) -> None:
    assert name in REGISTRY
    assert not check_plugin(name, None, ManualClock()).has_failed


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Nothing", 'has no "Nothing"'),
        ("Plain", "the class has no method of an extension point"),
        ("NoEvents", "registering events of plugin \"P\": found 'Node', expected registrations"),
    ],
)
def test_what_no_scheduler_starts_with_is_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        check_plugin(f"{__name__}:{name}", None, ManualClock())


def test_keys_that_are_used_as_numbers_have_numbers() -> None:
    assert all(value.isdigit() for value in label_texts(Watts(), None)["watts"])


class Watts(OnlyBlue):
    def filter_node(self, pod: Any, node: Any) -> Any:
        return int(node.metadata.labels.get("watts", "0")) > 1 or "watts-are-few"


def test_labels_are_those_that_the_module_names() -> None:
    texts = label_texts(OnlyBlue(), {"key": "rack"})
    assert "blue" in texts["color"]
    assert "rack" in texts
    generator = Generator(0, texts)
    nodes = [generator.node(number) for number in range(9)]
    assert any("color" in node.metadata.labels for node in nodes)


def test_constants_are_keys_of_annotations_and_extended_resources() -> None:
    generator = Generator(0, label_texts(ReadsAnAnnotation(), None))
    nodes = [generator.node(number) for number in range(9)]
    pods = [generator.pod(number) for number in range(9)]
    assert 0 < sum(RANK in node.status.allocatable for node in nodes) < 9
    assert 0 < sum(RANK in pod.metadata.annotations for pod in pods) < 9
