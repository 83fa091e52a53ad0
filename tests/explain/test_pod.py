"""What is said about pods in every state that a pod can be in."""

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest
from msgspec import UNSET

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import PluginError
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import Explanation, NodeExplanation
from kubestow.explain.pod import explain_pod
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.plugins.registry import REGISTRY
from kubestow.testing import (
    make_node,
    make_node_affinity,
    make_pod,
    make_pod_group,
    make_term,
)

MakeCluster = Callable[..., StillCluster]
DELETED = datetime(2026, 1, 1, tzinfo=UTC)
GANGS = FeatureGates({"GenericWorkload": True, "GangScheduling": True})


def node_of(explanation: Explanation, name: str) -> NodeExplanation:
    return next(node for node in explanation.nodes if node.name == name)


# --- outcomes ---


@pytest.mark.parametrize(
    ("pod", "outcome", "node", "summary"),
    [
        pytest.param(
            make_pod(cpu="1"), "Scheduled", "b", '"b" is the only node found that fits', id="fits"
        ),
        pytest.param(
            make_pod(cpu="9"), "Unschedulable", "", "fits none of 2 nodes", id="fits-nowhere"
        ),
        pytest.param(
            make_pod(gates=["wait"]),
            "Gated",
            "",
            "SchedulingGates holds it back: waiting for scheduling gates: [wait]",
            id="gated",
        ),
        pytest.param(
            make_pod(scheduler_name="other"),
            "Excluded",
            "",
            'no profile has the pod\'s schedulerName "other"; there is "default-scheduler"',
            id="another-scheduler",
        ),
        pytest.param(
            make_pod(deleted=DELETED),
            "Excluded",
            "",
            "the pod is being deleted; it is not scheduled any more",
            id="being-deleted",
        ),
        pytest.param(
            make_pod(phase="Succeeded", node="b"),
            "Excluded",
            "b",
            "the pod has ended (Succeeded); it needs no node",
            id="ended",
        ),
        pytest.param(
            make_pod(cpu="1", node="b"),
            "Bound",
            "b",
            'runs on "b"; it would be placed there again',
            id="placed",
        ),
        pytest.param(
            make_pod(cpu="1", node="a"),
            "Bound",
            "a",
            'runs on "a"; now it would be placed on "b"',
            id="placed-elsewhere",
        ),
        pytest.param(
            make_pod(cpu="9", node="b"),
            "Bound",
            "b",
            'runs on "b"; now it would not fit',
            id="placed-though-too-large",
        ),
        pytest.param(
            make_pod(cpu="1", node="c"),
            "Bound",
            "c",
            'names the node "c", which does not exist, so it does not run; now it would be placed '
            'on "b"',
            id="on-no-node",
        ),
    ],
)
def test_every_outcome_is_said(
    make_cluster: MakeCluster, pod: Pod, outcome: str, node: str, summary: str
) -> None:
    cluster = make_cluster(make_node("a", cpu="500m"), make_node("b", cpu="2"), pod)
    for _ in range(2):  # The cluster is as before afterwards.
        explanation = explain_pod(cluster, pod)
        assert explanation.outcome == outcome
        assert explanation.node == node
        assert explanation.summary == summary


def test_the_message_of_a_gated_pod_is_that_of_the_api_server(make_cluster: MakeCluster) -> None:
    pod = make_pod(gates=["wait"])
    explanation = explain_pod(make_cluster(make_node("a"), pod), pod)
    assert explanation.message == "Scheduling is blocked due to non-empty scheduling gates"
    assert [event.action for event in explanation.waiting_for] == [
        "UpdatePodSchedulingGatesEliminated"
    ]


def test_a_placed_pod_may_only_be_located(make_cluster: MakeCluster) -> None:
    pod = make_pod(node="a")
    cluster = make_cluster(make_node("a"), pod)
    explanation = explain_pod(cluster, pod, is_as_of_now=False)
    assert (explanation.outcome, explanation.node, explanation.nodes) == ("Bound", "a", ())


# --- a pod that fits ---


def test_the_choice_names_what_made_the_difference(make_cluster: MakeCluster) -> None:
    pod = make_pod(cpu="1")
    busy = make_pod("busy", cpu="6", node="a")
    cluster = make_cluster(make_node("a", cpu="8"), make_node("b", cpu="8"), busy, pod)
    explanation = explain_pod(cluster, pod)
    first, second = explanation.nodes
    choice = explanation.choice
    assert (first.name, second.name, choice.next_node) == ("b", "a", "a")
    assert choice.margin == first.total - second.total > 0
    assert sum(each.difference for each in choice.differences) == choice.margin
    assert choice.differences[0].plugin == "NodeResourcesFit"
    assert choice.tie_break == "None"
    for node in explanation.nodes:
        assert sum(score.weighted for score in node.scores.values()) == node.total
        assert all(
            score.weighted == score.normalized * score.weight for score in node.scores.values()
        )


def test_ties_are_broken_in_the_order_of_the_search(make_cluster: MakeCluster) -> None:
    pod = make_pod(cpu="1")
    cluster = make_cluster(*(make_node(name, cpu="8") for name in "abc"), pod)
    choice = explain_pod(cluster, pod).choice
    assert (choice.tied_count, choice.tie_break, choice.margin) == (3, "SearchOrder", 0)


def test_one_other_node_is_not_called_nodes(make_cluster: MakeCluster) -> None:
    pod = make_pod(cpu="1")
    for names, others in (("ab", "1 other node has"), ("abc", "2 other nodes have")):
        cluster = make_cluster(*(make_node(name, cpu="8") for name in names), pod)
        assert explain_pod(cluster, pod).summary.endswith(f"has the best total, as {others}")


def test_nodes_beyond_enough_are_not_looked_at(make_cluster: MakeCluster) -> None:
    pod = make_pod(cpu="1")
    cluster = make_cluster(*(make_node(f"n{number:03}") for number in range(250)), pod)
    explanation = explain_pod(cluster, pod)
    unseen = [node for node in explanation.nodes if node.verdict == "NotLookedAt"]
    assert explanation.search.end == "EnoughFound"
    assert (explanation.search.wanted, len(unseen)) == (120, 130)
    assert {node.reason_codes for node in unseen} == {("EnoughFound",)}


def test_nodes_that_pre_filter_left_out_say_so(make_cluster: MakeCluster) -> None:
    affinity = make_node_affinity(make_term(fields=["metadata.name In b"]))
    pod = make_pod(node_affinity=affinity)
    cluster = make_cluster(*(make_node(name) for name in "abc"), pod)
    explanation = explain_pod(cluster, pod)
    left_out = node_of(explanation, "a")
    assert (left_out.verdict, left_out.plugin) == ("NotLookedAt", "NodeAffinity")
    assert left_out.reason_codes == ("RestrictedByPreFilter",)
    assert explanation.search.end == "PreFilterRestricted"


def test_a_nominated_node_that_fits_ends_the_search(make_cluster: MakeCluster) -> None:
    pod = make_pod(cpu="1", nominated_node="b")
    cluster = make_cluster(make_node("a"), make_node("b"), pod)
    explanation = explain_pod(cluster, pod)
    assert (explanation.node, explanation.search.end) == ("b", "NominatedNode")
    assert node_of(explanation, "a").reason_codes == ("NominatedNodeFits",)


# --- a pod that fits nowhere ---


def test_reasons_are_grouped_and_coded(make_cluster: MakeCluster) -> None:
    pod = make_pod(cpu="3", memory="3Gi")
    nodes = [
        make_node("a", cpu="1", memory="1Gi"),
        make_node("b", cpu="1", memory="8Gi"),
        make_node("c", cpu="8", memory="8Gi", taints=["x:NoSchedule"]),
    ]
    explanation = explain_pod(make_cluster(*nodes, pod), pod)
    assert [(each.count, each.reason_code, each.nodes) for each in explanation.reasons] == [
        (2, "InsufficientCPU", ("a", "b")),
        (1, "InsufficientMemory", ("a",)),
        (1, "TaintNotTolerated", ("c",)),
    ]
    assert explanation.message.startswith("0/3 nodes are available: 1 Insufficient memory, ")
    plugins = {plugin for event in explanation.waiting_for for plugin in event.plugins}
    assert plugins == {"NodeResourcesFit", "TaintToleration"}


@pytest.mark.parametrize(
    ("pod", "result", "victims", "nodes"),
    [
        pytest.param(make_pod(cpu="2", priority=9), "Nominated", ["low"], (0, 1), id="evicts"),
        pytest.param(make_pod(cpu="2", priority=1), "NoCandidates", [], (0, 1), id="no-lower"),
        pytest.param(
            make_pod(cpu="2", priority=9, preemption_policy="Never"),
            "NotEligible",
            [],
            (0, 1),
            id="never",
        ),
        pytest.param(make_pod(cpu="9", priority=9), "NoCandidates", [], (1, 0), id="hopeless"),
    ],
)
def test_preemption_is_tried_without_effect(
    make_cluster: MakeCluster, pod: Pod, result: str, victims: list[str], nodes: tuple[int, int]
) -> None:
    low = make_pod("low", cpu="1", node="a", priority=1)
    cluster = make_cluster(make_node("a", cpu="2"), low, pod)
    for _ in range(2):
        explanation = explain_pod(cluster, pod)
        assert explanation.preemption.result == result
        assert [victim.name for victim in explanation.victims] == victims
    counts = explanation.preemption.hopeless_nodes, explanation.preemption.possible_nodes
    assert counts == nodes


def test_without_post_filter_there_is_no_preemption(make_cluster: MakeCluster) -> None:
    pod = make_pod(cpu="9")
    no_post_filter = PluginSet(disabled=(PluginRef("*"),))
    profile = ProfileConfig(plugins=Plugins(post_filter=no_post_filter))
    config = SchedulerConfig(profiles=(profile,))
    explanation = explain_pod(make_cluster(make_node("a", cpu="1"), pod, config=config), pod)
    assert explanation.preemption.result == "Disabled"


def test_a_cluster_without_nodes(make_cluster: MakeCluster) -> None:
    pod = make_pod()
    explanation = explain_pod(make_cluster(pod), pod)
    assert explanation.outcome == "Unschedulable"
    assert explanation.message == "no nodes available to schedule pods"
    assert explanation.summary == "there are no nodes"
    # No PostFilter plugin was asked, which does not mean that there is none.
    assert explanation.preemption is UNSET


# --- one node ---


def test_every_filter_is_asked_about_one_node(make_cluster: MakeCluster) -> None:
    pod = make_pod(cpu="4", node_selector={"disk": "ssd"})
    bad = make_node("bad", cpu="1", taints=["x:NoSchedule"], unschedulable=True)
    explanation = explain_pod(make_cluster(bad, make_node("b"), pod), pod, node="bad")
    node = node_of(explanation, "bad")
    rejecting = {answer.plugin for answer in node.filters if answer.verdict == "Rejected"}
    assert rejecting == {"NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit"}
    assert node.plugin == "NodeUnschedulable"
    assert [answer.plugin for answer in node.filters][:3] == [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
    ]


@pytest.mark.parametrize(
    ("priority", "verdict"),
    [pytest.param(5, "Passed", id="more-important"), pytest.param(1, "Rejected", id="equal")],
)
def test_pods_nominated_to_the_node_count(
    make_cluster: MakeCluster, priority: int, verdict: str
) -> None:
    pod = make_pod(cpu="2", priority=priority)
    nominated = make_pod("first", cpu="2", priority=1, nominated_node="a")
    explanation = explain_pod(make_cluster(make_node("a", cpu="3"), nominated, pod), pod, node="a")
    node = node_of(explanation, "a")
    answers = {answer.plugin: answer.verdict for answer in node.filters}
    assert answers["NodeResourcesFit"] == verdict
    assert node.verdict == ("Feasible" if verdict == "Passed" else "Rejected")


# --- groups ---


@pytest.mark.parametrize(
    ("cpu", "outcomes", "node", "message", "summary"),
    [
        pytest.param("1", ["Scheduled"] * 2, "a", "", "", id="fits"),
        pytest.param(
            "2",
            ["Unschedulable"] * 2,
            "",
            "pod group is unschedulable",
            'fits "a", but its group waits: 1 of its members fit, 2 are needed',
            id="one-too-many",
        ),
    ],
)
def test_a_member_is_explained_with_its_group(
    make_cluster: MakeCluster,
    cpu: str,
    outcomes: list[str],
    node: str,
    message: str,
    summary: str,
) -> None:
    members = [make_pod(name, cpu=cpu, group="gang") for name in ("m1", "m2")]
    group = make_pod_group("gang", min_count=2)
    cluster = make_cluster(make_node("a", cpu="3"), group, *members, gates=GANGS)
    for _ in range(2):
        explanation = explain_pod(cluster, members[0])
        shown = explanation.group
        assert [member.outcome for member in shown.members] == outcomes
        assert (shown.min_count, shown.message) == (2, message)
        assert (explanation.outcome, explanation.node) == (outcomes[0], node)
        assert explanation.message.startswith(message)
        assert summary in explanation.summary


def test_too_few_members_are_gated(make_cluster: MakeCluster) -> None:
    pod = make_pod("m1", group="gang")
    cluster = make_cluster(make_node("a"), make_pod_group("gang", min_count=2), pod, gates=GANGS)
    explanation = explain_pod(cluster, pod)
    assert explanation.outcome == "Gated"
    assert "waiting for minCount pods" in explanation.summary


# --- an attempt that fails ---


class Failing:
    """Cannot say anything about node b."""

    name = "Failing"
    args_type = None

    def __init__(self, args: object, handle: Handle) -> None: ...

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        return np.array([-1 if name == "b" else 0 for name in nodes.names], np.int64)

    def filter_status(self, state: CycleState, code: int) -> Status:
        return Status.from_error(PluginError("broken"))


def test_the_node_that_ends_an_attempt_has_the_error(make_cluster: MakeCluster) -> None:
    enabled = PluginSet(enabled=(PluginRef("Failing"),))
    config = SchedulerConfig(profiles=(ProfileConfig(plugins=Plugins(filter=enabled)),))
    pod = make_pod()
    cluster = make_cluster(
        *map(make_node, "abc"), pod, config=config, registry={**REGISTRY, "Failing": Failing}
    )
    explanation = explain_pod(cluster, pod)
    assert explanation.outcome == "Error"
    assert "broken" in explanation.message
    assert [node.verdict for node in explanation.nodes] == ["Feasible", "Error", "NotLookedAt"]
    failed = node_of(explanation, "b")
    assert (failed.plugin, failed.code) == ("Failing", "Error")
    assert node_of(explanation, "c").reason_codes == ("AttemptFailed",)
    assert explanation.search.end == "Error"
