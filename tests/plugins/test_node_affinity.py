"""Spec 05 §7: node selectors and node affinity, the pod's own and the profile's."""

import re

import pytest

from kubestow.api.node import Node
from kubestow.api.pod import NodeAffinity as PodNodeAffinity
from kubestow.api.pod import NodeSelector, NodeSelectorTerm, Pod
from kubestow.api.pod_info import PodInfo
from kubestow.config.plugin_args import NodeAffinityArgs
from kubestow.errors import ConfigError, PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import NODE_ADD, Action, ClusterEvent, Hint, Resource
from kubestow.framework.plugin import PreFilterResult, Restriction
from kubestow.framework.status import Status
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_affinity import NodeAffinity
from kubestow.testing import (
    make_handle,
    make_node,
    make_node_affinity,
    make_pod,
    make_snapshot,
    make_term,
    run_filter,
    run_hint,
    run_pre_filter,
    run_score,
)

MISMATCH = Status.unresolvable("node(s) didn't match Pod's node affinity/selector")
ADDED_MISMATCH = Status.unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT = Status.unresolvable("pod affinity terms conflict")
LABEL_UPDATE = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)

ZONE_A = make_term("zone In a")
DISK_SSD = make_term("disk In ssd")
POISONED = make_term("x Gt 4.5")
NO_TERMS = PodNodeAffinity(required=NodeSelector())


def make_plugin(added: PodNodeAffinity | None = None) -> NodeAffinity:
    return NodeAffinity(NodeAffinityArgs(added_affinity=added), make_handle())


def named(*names: str) -> NodeSelectorTerm:
    """One term, with one requirement per argument, each a list of names."""
    return make_term(fields=[f"metadata.name In {each}" for each in names])


def requiring(*terms: NodeSelectorTerm) -> Pod:
    return make_pod(node_affinity=make_node_affinity(*terms))


@pytest.mark.parametrize(
    ("pod", "labels", "passes"),
    [
        pytest.param(
            make_pod(node_selector={"disk": "ssd"}),
            {"disk": "ssd", "zone": "a"},
            True,
            id="1-selector",
        ),
        pytest.param(
            make_pod(node_selector={"disk": "ssd"}), {"disk": "hdd"}, False, id="1-other-value"
        ),
        pytest.param(make_pod(node_selector={"disk": "ssd"}), {}, False, id="1-no-label"),
        pytest.param(requiring(ZONE_A, make_term("gpu Exists")), {"gpu": ""}, True, id="2-or"),
        pytest.param(make_pod(node_affinity=NO_TERMS), {}, False, id="3-no-terms-match-nothing"),
        pytest.param(requiring(POISONED, ZONE_A), {"zone": "a"}, True, id="4-other-term"),
        pytest.param(requiring(POISONED, ZONE_A), {"zone": "b"}, False, id="4-poisoned"),
        pytest.param(requiring(named("n,other")), {}, False, id="6-two-values-are-poison"),
        pytest.param(
            make_pod(node_selector={"disk": "ssd"}, node_affinity=make_node_affinity(ZONE_A)),
            {"zone": "a"},
            False,
            id="selector-and-affinity",
        ),
        pytest.param(make_pod(node_selector={}), {}, True, id="empty-selector"),
    ],
)
def test_nodes_have_to_match(pod: Pod, labels: dict[str, str], passes: bool) -> None:
    snapshot = make_snapshot([make_node("n", labels=labels)])
    assert run_filter(make_plugin(), pod, snapshot) == ({} if passes else {"n": MISMATCH})


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod(), Status.skip(), id="nothing-asked"),
        pytest.param(make_pod(node_selector={}), None, id="empty-selector-does-not-skip"),
        pytest.param(make_pod(node_affinity=NO_TERMS), None, id="3-no-terms"),
        pytest.param(
            requiring(named("n1"), named("n2")), Restriction(frozenset({"n1", "n2"})), id="5-union"
        ),
        pytest.param(requiring(named("n1", "n2")), CONFLICT, id="5-conflict"),
        pytest.param(requiring(named("n1"), ZONE_A), None, id="5-a-term-without-names"),
        pytest.param(
            requiring(make_term(fields=["metadata.name NotIn n1"])), None, id="5-not-in-names-none"
        ),
        pytest.param(
            requiring(named("n1,n2")), Restriction(frozenset({"n1", "n2"})), id="6-raw-values"
        ),
        pytest.param(
            requiring(named("n1", "n2"), named("n3")), Restriction(frozenset({"n3"})), id="7-rest"
        ),
    ],
)
def test_names_restrict_the_nodes(pod: Pod, expected: PreFilterResult) -> None:
    assert run_pre_filter(make_plugin(), pod, make_snapshot()) == expected


def test_an_added_selector_keeps_the_filter_from_skipping() -> None:
    plugin = make_plugin(make_node_affinity(ZONE_A))
    assert run_pre_filter(plugin, make_pod(), make_snapshot()) is None


def test_the_added_selector_is_asked_first() -> None:
    plugin = make_plugin(make_node_affinity(ZONE_A))
    nodes = [
        make_node("both", labels={"zone": "a", "disk": "ssd"}),
        make_node("added", labels={"zone": "a"}),
        make_node("pod", labels={"disk": "ssd"}),
        make_node("none"),
    ]
    pod = make_pod(node_selector={"disk": "ssd"})
    assert run_filter(plugin, pod, make_snapshot(nodes)) == {
        "added": MISMATCH,
        "pod": ADDED_MISMATCH,
        "none": ADDED_MISMATCH,
    }


def test_an_added_selector_without_terms_matches_no_node() -> None:
    rejected = run_filter(make_plugin(NO_TERMS), make_pod(), make_snapshot([make_node("n")]))
    assert rejected == {"n": ADDED_MISMATCH}


SCORED_NODES = [
    make_node("n1", labels={"zone": "a"}),
    make_node("n2", labels={"zone": "a", "disk": "ssd"}),
    make_node("n3"),
    make_node("n4", labels={"disk": "ssd"}),
]
PREFERRING = make_pod(node_affinity=make_node_affinity(preferred=[(20, ZONE_A), (30, DISK_SSD)]))


@pytest.mark.parametrize(
    ("pod", "added", "raw", "normalized"),
    [
        pytest.param(PREFERRING, None, [20, 50, 0, 30], [40, 100, 0, 60], id="8-weights"),
        pytest.param(
            PREFERRING,
            make_node_affinity(preferred=[(10, ZONE_A)]),
            [30, 60, 0, 30],
            [50, 100, 0, 50],
            id="8-added",
        ),
        pytest.param(make_pod(), None, None, None, id="nothing-preferred-skips"),
        pytest.param(
            make_pod(node_affinity=make_node_affinity(preferred=[])),
            None,
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            id="empty-list-does-not-skip",
        ),
        pytest.param(
            make_pod(node_affinity=make_node_affinity(preferred=[(0, POISONED), (5, ZONE_A)])),
            None,
            [5, 5, 0, 0],
            [100, 100, 0, 0],
            id="weight-0-is-not-parsed",
        ),
    ],
)
def test_preferred_terms_score(
    pod: Pod,
    added: PodNodeAffinity | None,
    raw: list[int] | None,
    normalized: list[int] | None,
) -> None:
    plugin, snapshot = make_plugin(added), make_snapshot(SCORED_NODES)
    assert run_score(plugin, pod, snapshot, normalize=False) == raw
    assert run_score(plugin, pod, snapshot) == normalized


def test_score_does_without_pre_score() -> None:
    nodes = nodes_of(make_snapshot(SCORED_NODES))
    scores = make_plugin().score(CycleState(), PodInfo(PREFERRING), nodes)
    assert scores.tolist() == [20, 50, 0, 30]


def test_a_preferred_term_that_does_not_parse_fails_the_pod() -> None:
    pod = make_pod(node_affinity=make_node_affinity(preferred=[(1, make_term("x Gt abc"))]))
    text = (
        '[0].matchExpressions[0].values[0]: Invalid value: "abc": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    )
    with pytest.raises(PluginError, match=re.escape(text)):
        run_score(make_plugin(), pod, make_snapshot([make_node()]))


@pytest.mark.parametrize(
    ("added", "prefix"),
    [
        pytest.param(
            make_node_affinity(POISONED),
            "parsing addedAffinity.requiredDuringSchedulingIgnoredDuringExecution: "
            "nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value",
            id="required",
        ),
        pytest.param(
            make_node_affinity(preferred=[(1, POISONED)]),
            "parsing addedAffinity.preferredDuringSchedulingIgnoredDuringExecution: "
            "[0].matchExpressions[0].values[0]: Invalid value",
            id="preferred",
        ),
    ],
)
def test_added_terms_have_to_parse(added: PodNodeAffinity, prefix: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(prefix)):
        make_plugin(added)


WANTS_A = requiring(ZONE_A)
IN_A, IN_B = make_node(labels={"zone": "a"}), make_node(labels={"zone": "b"})


@pytest.mark.parametrize(
    ("old", "new", "added", "hint"),
    [
        pytest.param(None, IN_A, None, Hint.QUEUE, id="added-match"),
        pytest.param(None, IN_B, None, Hint.SKIP, id="added-mismatch"),
        pytest.param(IN_B, IN_A, None, Hint.QUEUE, id="matches-now"),
        pytest.param(IN_A, IN_A, None, Hint.SKIP, id="matched-before"),
        pytest.param(IN_A, IN_B, None, Hint.SKIP, id="matches-no-more"),
        pytest.param(IN_B, IN_A, make_node_affinity(DISK_SSD), Hint.SKIP, id="profile-rejects"),
    ],
)
def test_a_node_that_matches_now_wakes_the_pod(
    old: Node | None, new: Node, added: PodNodeAffinity | None, hint: Hint
) -> None:
    event = NODE_ADD if old is None else LABEL_UPDATE
    assert run_hint(make_plugin(added), event, WANTS_A, old, new) is hint


def test_the_profile_is_not_asked_about_the_old_node() -> None:
    plugin = make_plugin(make_node_affinity(DISK_SSD))
    old = make_node(labels={"zone": "a"})
    new = make_node(labels={"zone": "a", "disk": "ssd"})
    assert run_hint(plugin, LABEL_UPDATE, WANTS_A, old, new) is Hint.SKIP


def test_a_term_that_does_not_parse_is_an_error_to_the_hint() -> None:
    # The queue reads an error as Queue.
    with pytest.raises(PluginError):
        run_hint(make_plugin(), NODE_ADD, requiring(POISONED), None, IN_A)
