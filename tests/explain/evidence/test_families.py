"""The facts of every family of reasons, on small clusters."""

from collections.abc import Callable

import pytest

from kubestow.api.meta import ApiObject
from kubestow.api.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
)
from kubestow.explain.cluster import StillCluster
from kubestow.explain.evidence.registry import FAMILIES
from kubestow.explain.explanation import Explanation
from kubestow.explain.pod import explain_pod
from kubestow.explain.reason_codes import known_codes
from kubestow.testing import make_node, make_pod
from kubestow.testing.storage import FAST, make_claim, make_storage_class

MakeCluster = Callable[..., StillCluster]
ZONE = "topology.kubernetes.io/zone"
# Codes of the cycle itself, of gates and groups, and of plugins from outside.
WITHOUT_FAMILY = {
    "GroupNotFound",
    "NoNodes",
    "Other",
    "PodAffinityInvalid",
    "SchedulingGates",
    "TooFewMembers",
    "TooFewMembersFit",
}


def texts(explanation: Explanation) -> list[str]:
    return [group.evidence.text for group in explanation.reasons]


def test_every_code_of_a_default_plugin_has_evidence() -> None:
    assert known_codes() - set(FAMILIES) == WITHOUT_FAMILY
    assert set(FAMILIES) <= known_codes()


@pytest.mark.parametrize(
    ("objects", "pod", "expected"),
    [
        pytest.param(
            [make_node("a", cpu="4"), make_pod("x", cpu="1900m", node="a")],
            make_pod(cpu="3200m"),
            "needs 3.2 cpu, 2.1 of 4 free",
            id="cpu",
        ),
        pytest.param(
            [make_node("a", cpu="4"), make_node("b", cpu="2")],
            make_pod(cpu="5"),
            "needs 5 cpu, the most free is 4 (a)",
            id="cpu-of-many",
        ),
        pytest.param(
            [make_node("a", memory="1Gi")],
            make_pod(memory="1536Mi"),
            "needs 1.5Gi memory, 1Gi of 1Gi free",
            id="memory",
        ),
        pytest.param(
            [make_node("a", pods=1), make_pod("x", node="a")],
            make_pod(),
            "needs 1 pods, 0 of 1 free",
            id="pods",
        ),
        pytest.param(
            [make_node("a", taints=["team=data:NoSchedule", "x:NoExecute"])],
            make_pod(),
            "taint team=data:NoSchedule; taint x:NoExecute",
            id="taints",
        ),
        pytest.param(
            [make_node("a", unschedulable=True)],
            make_pod(),
            "cordoned (spec.unschedulable)",
            id="cordon",
        ),
        pytest.param(
            [make_node("a", labels={"disk": "hdd"}), make_node("b")],
            make_pod(node_selector={"disk": "ssd"}),
            "needs disk=ssd, has disk=hdd (a); needs disk=ssd, has no such label (b)",
            id="selector",
        ),
        pytest.param(
            [make_node("a"), make_pod("x", host_ports=[80], node="a")],
            make_pod(host_ports=[80]),
            "port 80/TCP is used by default/x",
            id="port",
        ),
    ],
)
def test_facts_say_how_much_and_which(
    make_cluster: MakeCluster, objects: list[ApiObject], pod: Pod, expected: str
) -> None:
    explanation = explain_pod(make_cluster(*objects, pod), pod)
    assert texts(explanation) == [expected]


@pytest.mark.parametrize(
    ("mode", "volume", "expected"),
    [
        ("Immediate", "", "not bound, and its class binds at once"),
        ("WaitForFirstConsumer", "pv", "names the volume pv, but no controller has bound it"),
    ],
)
def test_a_claim_that_a_controller_has_to_bind(
    make_cluster: MakeCluster, mode: str, volume: str, expected: str
) -> None:
    pod, claim = make_pod(pvcs=["c"]), make_claim(volume=volume, is_bound=False)
    cluster = make_cluster(make_node("a"), make_storage_class(FAST, mode=mode), claim, pod)
    assert texts(explain_pod(cluster, pod)) == [
        f"PersistentVolumeClaim c (class {FAST}): {expected}"
    ]


def test_nominated_pods_are_counted_and_named(make_cluster: MakeCluster) -> None:
    first = make_pod("first", cpu="3", nominated_node="a", priority=9)
    pod = make_pod("second", cpu="2")
    explanation = explain_pod(make_cluster(make_node("a", cpu="4"), first, pod), pod)
    assert texts(explanation) == ["needs 2 cpu, 1 of 4 free (3 held for nominated pods)"]


def test_lists_are_limited_and_counted(make_cluster: MakeCluster) -> None:
    nodes = [make_node(f"n{number:03}", cpu="1") for number in range(100)]
    pod = make_pod(cpu="2")
    evidence = explain_pod(make_cluster(*nodes, pod), pod).reasons[0].evidence
    (alike,) = evidence.groups
    # All nodes have the same, of which a part was looked at.
    assert (len(alike.nodes), alike.count, evidence.examined) == (8, 64, 64)


def test_equal_labels_are_read_once_for_all_nodes(make_cluster: MakeCluster) -> None:
    nodes = [make_node(f"n{number:03}", labels={"disk": "hdd"}) for number in range(100)]
    pod = make_pod(node_selector={"disk": "ssd"})
    evidence = explain_pod(make_cluster(*nodes, pod), pod).reasons[0].evidence
    (alike,) = evidence.groups
    assert (alike.count, evidence.examined) == (100, 100)


def test_the_nearest_node_lacks_the_least(make_cluster: MakeCluster) -> None:
    nodes = [
        make_node("far", cpu="1", taints=["x:NoSchedule"]),
        make_node("tainted", cpu="16", taints=["x:NoSchedule"]),
        make_node("near", cpu="4"),
        make_node("nearer", cpu="4500m"),
    ]
    pod = make_pod(cpu="5")
    nearest = explain_pod(make_cluster(*nodes, pod), pod).nearest
    assert [each.node for each in nearest] == ["nearer", "near", "tainted", "far"]
    assert [each.distance for each in nearest] == [0.1, 0.2, 1.0, 1.8]
    assert nearest[0].text == "needs 5 cpu, 4.5 of 4.5 free"
    assert nearest[3].plugins == ("TaintToleration", "NodeResourcesFit")


def test_scores_say_what_they_are_made_of(make_cluster: MakeCluster) -> None:
    pod = make_pod(cpu="1", memory="1Gi")
    busy = make_pod("busy", cpu="2", node="a")
    cluster = make_cluster(make_node("a", cpu="4", memory="4Gi"), make_node("b"), busy, pod)
    explanation = explain_pod(cluster, pod, node="a")
    node = next(each for each in explanation.nodes if each.name == "a")
    shares = node.score_parts["NodeResourcesBalancedAllocation"]
    assert [(each.resource, each.before, each.after) for each in shares] == [
        ("cpu", 0.5, 0.75),
        ("memory", 0.0, 0.25),
    ]


def test_gates_are_named(make_cluster: MakeCluster) -> None:
    pod = make_pod(gates=["wait", "more"])
    (fact,) = explain_pod(make_cluster(make_node("a"), pod), pod).facts
    assert fact.text == "gates wait, more"


def test_terms_that_conflict_are_shown_as_they_are_written(make_cluster: MakeCluster) -> None:
    """A term with an expression that cannot be read matches nothing, and conflicts all the same."""
    fields = tuple(
        NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,))
        for name in ("a", "b")
    )
    unreadable = NodeSelectorRequirement(key="gen", operator="Gt", values=("2.5",))
    for expressions in ((), (unreadable,)):
        term = NodeSelectorTerm(match_expressions=expressions, match_fields=fields)
        required = NodeSelector(node_selector_terms=(term,))
        pod = make_pod(affinity=Affinity(node_affinity=NodeAffinity(required=required)))
        explained = explain_pod(make_cluster(make_node("a"), make_node("b"), pod), pod)
        (group,) = explained.reasons
        assert group.reason_code == "NodeAffinityConflict"
        assert [fact.wanted for fact in group.evidence.groups[0].facts] == [("a",), ("b",)]
