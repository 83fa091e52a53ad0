"""Which events wake pods that affinity rules rejected (spec 06 §6.2.9, spec 02 §7.3 f, g)."""

import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import InterPodAffinityArgs
from kubestow.errors import PluginError
from kubestow.framework.events import Action, ClusterEvent, Hint, Resource
from kubestow.framework.hints import build_hint_map
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.plugins.inter_pod_affinity.hints import hint_for_node, hint_for_pod
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.handles import make_handle
from kubestow.testing.topology import make_affinity, make_pod_term, make_selector

NEAR = make_pod("near", affinity=make_affinity(near=[make_pod_term("zone", "app=web")]))
NEAR_BOTH = make_pod(
    "near-both",
    affinity=make_affinity(near=[make_pod_term("zone", "app=web"), make_pod_term("host", "v=1")]),
)
APART = make_pod("apart", affinity=make_affinity(apart=[make_pod_term("zone", "app=web")]))
PLAIN = make_pod("plain", labels={"app": "web"})
BROKEN = make_pod("broken", affinity=make_affinity(near=[make_pod_term("zone", "app Bogus x")]))


def placed(name: str = "x", *, node: str = "n1", namespace: str = "default", **labels: str) -> Pod:
    return make_pod(name, uid="x", node=node, namespace=namespace, labels=labels)


def nominated(**labels: str) -> Pod:
    return make_pod("x", uid="x", nominated_node="n1", labels=labels)


def by_namespace_label(*requirements: str) -> Pod:
    term = make_pod_term("zone", "app=web", namespace_selector=make_selector(*requirements))
    return make_pod("by-namespace", affinity=make_affinity(near=[term]))


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(NEAR, NEAR, NEAR, Hint.QUEUE, id="its-own-update"),
        pytest.param(NEAR, None, placed(app="web"), Hint.QUEUE, id="add-match"),
        pytest.param(NEAR, None, nominated(app="web"), Hint.QUEUE, id="add-nominated-match"),
        pytest.param(NEAR, None, placed(app="db"), Hint.SKIP, id="add-other"),
        pytest.param(NEAR, None, placed(node="", app="web"), Hint.SKIP, id="add-unplaced"),
        pytest.param(NEAR_BOTH, None, placed(app="web"), Hint.SKIP, id="add-matches-one-of-two"),
        pytest.param(APART, None, placed(app="web"), Hint.SKIP, id="add-never-helps-apart"),
        pytest.param(NEAR, placed(app="db"), placed(app="web"), Hint.QUEUE, id="became-match"),
        pytest.param(NEAR, placed(app="web"), placed(app="web"), Hint.SKIP, id="stays-match"),
        pytest.param(NEAR, placed(app="web"), placed(app="db"), Hint.SKIP, id="match-lost"),
        pytest.param(APART, placed(app="web"), placed(app="db"), Hint.QUEUE, id="apart-lost"),
        pytest.param(APART, placed(app="db"), placed(app="web"), Hint.SKIP, id="apart-gained"),
        pytest.param(
            NEAR, placed(node="", app="db"), placed(app="web"), Hint.SKIP, id="was-unplaced"
        ),
        pytest.param(APART, placed(app="web"), None, Hint.QUEUE, id="delete-frees-apart"),
        pytest.param(APART, placed(app="db"), None, Hint.SKIP, id="delete-other"),
        pytest.param(NEAR, placed(app="web"), None, Hint.SKIP, id="delete-never-helps-near"),
        pytest.param(APART, placed(node="", app="web"), None, Hint.SKIP, id="delete-unplaced"),
        pytest.param(
            PLAIN,
            make_pod(
                "x", node="n1", affinity=make_affinity(apart=[make_pod_term("zone", "app=web")])
            ),
            None,
            Hint.QUEUE,
            id="delete-of-a-hostile-pod",
        ),
        pytest.param(
            PLAIN,
            make_pod(
                "x",
                node="n1",
                affinity=make_affinity(
                    apart=[make_pod_term("zone", "app=web"), make_pod_term("zone", "app=db")]
                ),
            ),
            None,
            Hint.SKIP,
            id="delete-of-a-pod-hostile-by-one-term-of-two",
        ),
        pytest.param(
            by_namespace_label("env=dev"),
            None,
            placed(namespace="team", app="web"),
            Hint.SKIP,
            id="namespace-selectors-are-not-looked-up",
        ),
        pytest.param(
            by_namespace_label("env NotIn prod"),
            None,
            placed(namespace="team", app="web"),
            Hint.QUEUE,
            id="namespace-selector-that-accepts-no-labels",
        ),
    ],
)
def test_hint_for_pod(pod: Pod, old: Pod | None, new: Pod | None, expected: Hint) -> None:
    assert hint_for_pod(pod, old, new) is expected


def node(**labels: str) -> Node:
    return make_node("n1", labels=labels)


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(NEAR, None, node(zone="z"), Hint.QUEUE, id="add-with-key"),
        pytest.param(NEAR, None, node(), Hint.SKIP, id="example-9-add-without-key"),
        pytest.param(NEAR_BOTH, None, node(host="h"), Hint.QUEUE, id="add-with-one-key-of-two"),
        pytest.param(APART, None, node(), Hint.QUEUE, id="example-9-add-helps-apart"),
        pytest.param(PLAIN, None, node(zone="z"), Hint.SKIP, id="no-terms-no-node-event"),
        pytest.param(NEAR, node(), node(zone="z"), Hint.QUEUE, id="near-key-appears"),
        pytest.param(NEAR, node(zone="y"), node(zone="z"), Hint.QUEUE, id="near-key-changes"),
        pytest.param(NEAR, node(zone="z"), node(), Hint.SKIP, id="near-key-disappears"),
        pytest.param(NEAR, node(zone="z"), node(zone="z", a="b"), Hint.SKIP, id="near-key-stays"),
        pytest.param(NEAR, node(), node(zone=""), Hint.QUEUE, id="near-empty-value-appears"),
        pytest.param(APART, node(zone="z"), node(), Hint.QUEUE, id="apart-key-disappears"),
        pytest.param(APART, node(zone="y"), node(zone="z"), Hint.QUEUE, id="apart-key-changes"),
        pytest.param(APART, node(), node(zone="z"), Hint.SKIP, id="apart-key-appears"),
    ],
)
def test_hint_for_node(pod: Pod, old: Node | None, new: Node, expected: Hint) -> None:
    assert hint_for_node(pod, old, new) is expected


def test_terms_that_do_not_parse_fail_so_that_the_pod_is_tried() -> None:
    with pytest.raises(PluginError, match="Bogus"):
        hint_for_pod(BROKEN, None, placed(app="web"))
    with pytest.raises(PluginError, match="Bogus"):
        hint_for_node(BROKEN, None, node())
    # Unplaced pods are sorted out before anything is parsed.
    assert hint_for_pod(BROKEN, None, placed(node="")) is Hint.SKIP


def test_preferred_terms_that_do_not_parse_do_not_matter_here() -> None:
    pod = make_pod(affinity=make_affinity(prefers=[(1, make_pod_term("zone", "app Bogus x"))]))
    assert hint_for_pod(pod, None, placed(app="web")) is Hint.SKIP


def test_registered_events() -> None:
    plugin = InterPodAffinity(InterPodAffinityArgs(), make_handle())
    registered = [entry.event for entry in build_hint_map([plugin]) if entry.hint is not None]
    assert registered == [
        ClusterEvent(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE),
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
    ]
