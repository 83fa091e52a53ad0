"""Which events wake pods that spread constraints rejected (spec 06 §6.3.9, spec 02 §7.3 d, e)."""

from collections.abc import Mapping, Sequence

import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod, Toleration
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.errors import PluginError
from kubestow.framework.events import Action, ClusterEvent, Hint, Resource
from kubestow.framework.hints import build_hint_map
from kubestow.plugins.pod_topology_spread import PodTopologySpread
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.handles import make_handle
from kubestow.testing.plugin_runs import run_hint
from kubestow.testing.topology import make_spread

POD_ADD = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
SPREAD = make_spread("zone", "app=web")
WAITING = make_pod("waiting", uid="w", spread=[SPREAD])
WAITING_TAINTS = make_pod(
    "taints", uid="w", spread=[make_spread("zone", "app=web", taints_policy="Honor")]
)
SOFT = make_pod("soft", uid="w", spread=[make_spread("zone", "app=web", hard=False)])
TWO_KEYS = make_pod("two", uid="w", spread=[SPREAD, make_spread("rack", "tier=fe")])
TOLERATES = (Toleration(operator="Exists"),)


def other(
    *, node: str = "n1", namespace: str = "default", nominated: str = "", **labels: str
) -> Pod:
    return make_pod(
        "x", uid="x", node=node, namespace=namespace, nominated_node=nominated, labels=labels
    )


def itself(tolerations: Sequence[Toleration] = (), labels: Mapping[str, str] | None = None) -> Pod:
    return make_pod("waiting", uid="w", tolerations=tolerations, labels=labels)


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(WAITING, None, other(app="web"), Hint.QUEUE, id="add-match"),
        pytest.param(WAITING, None, other(app="db"), Hint.SKIP, id="add-other"),
        pytest.param(WAITING, None, other(node="", app="web"), Hint.SKIP, id="add-unplaced"),
        pytest.param(
            WAITING, None, other(node="", nominated="n1", app="web"), Hint.QUEUE, id="add-nominated"
        ),
        pytest.param(
            WAITING, None, other(namespace="far", app="web"), Hint.SKIP, id="add-other-namespace"
        ),
        pytest.param(WAITING, other(app="web"), None, Hint.QUEUE, id="delete-match"),
        pytest.param(WAITING, other(app="db"), None, Hint.SKIP, id="delete-other"),
        pytest.param(TWO_KEYS, other(tier="fe"), None, Hint.QUEUE, id="delete-match-of-one"),
        pytest.param(SOFT, None, other(app="web"), Hint.SKIP, id="soft-constraints-do-not-count"),
        pytest.param(WAITING, other(app="db"), other(app="web"), Hint.QUEUE, id="becomes-match"),
        pytest.param(WAITING, other(app="web"), other(app="db"), Hint.QUEUE, id="match-lost"),
        pytest.param(WAITING, other(app="web"), other(app="web"), Hint.SKIP, id="same-labels"),
        pytest.param(
            WAITING, other(app="web"), other(app="web", v="2"), Hint.SKIP, id="stays-match"
        ),
        pytest.param(
            WAITING, other(node="", app="db"), other(app="web"), Hint.SKIP, id="was-unplaced"
        ),
        pytest.param(
            WAITING_TAINTS, itself(), itself(TOLERATES), Hint.QUEUE, id="own-tolerations-honored"
        ),
        pytest.param(WAITING, itself(), itself(TOLERATES), Hint.SKIP, id="own-tolerations-ignored"),
        pytest.param(WAITING, itself(), itself(labels={"app": "web"}), Hint.QUEUE, id="own-labels"),
        pytest.param(
            WAITING_TAINTS,
            other(),
            make_pod("x", uid="x", node="n1", tolerations=TOLERATES),
            Hint.SKIP,
            id="tolerations-of-others",
        ),
    ],
)
def test_hint_for_pod(pod: Pod, old: Pod | None, new: Pod | None, expected: Hint) -> None:
    assert run_hint(plugin(), POD_ADD, pod, old, new) is expected


def node(*taints: str, **labels: str) -> Node:
    return make_node("n1", labels=labels, taints=taints)


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(WAITING, None, node(zone="z"), Hint.QUEUE, id="add-with-key"),
        pytest.param(WAITING, None, node(), Hint.SKIP, id="add-without-key"),
        pytest.param(TWO_KEYS, None, node(zone="z"), Hint.SKIP, id="add-with-one-key-of-two"),
        pytest.param(SOFT, None, node(), Hint.QUEUE, id="example-8-no-hard-constraints"),
        pytest.param(WAITING, node(zone="z"), None, Hint.QUEUE, id="delete-with-key"),
        pytest.param(WAITING, node(), None, Hint.SKIP, id="delete-without-key"),
        pytest.param(WAITING, node(), node(zone="z"), Hint.QUEUE, id="key-appears"),
        pytest.param(WAITING, node(zone="z"), node(), Hint.QUEUE, id="key-disappears"),
        pytest.param(WAITING, node(zone="y"), node(zone="z"), Hint.QUEUE, id="key-changes"),
        pytest.param(WAITING, node(zone="z"), node(zone="z", a="b"), Hint.SKIP, id="others-change"),
        pytest.param(
            WAITING, node(zone="z"), node("a:NoSchedule", zone="z"), Hint.QUEUE, id="taints-change"
        ),
        pytest.param(WAITING, node(), node("a:NoSchedule"), Hint.SKIP, id="taints-without-key"),
    ],
)
def test_hint_for_node(pod: Pod, old: Node | None, new: Node | None, expected: Hint) -> None:
    assert run_hint(plugin(), NODE_ADD, pod, old, new) is expected


def test_constraints_that_do_not_parse_fail_so_that_the_pod_is_tried() -> None:
    broken = make_pod(spread=[make_spread("zone", "app Bogus x")])
    with pytest.raises(PluginError, match="Bogus"):
        run_hint(plugin(), POD_ADD, broken, None, other(app="web"))
    assert run_hint(plugin(), POD_ADD, broken, None, other(node="")) is Hint.SKIP


def test_registered_events() -> None:
    assert [entry.event for entry in build_hint_map([plugin()])] == [
        ClusterEvent(
            Resource.POD,
            Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE,
        ),
        ClusterEvent(
            Resource.NODE,
            Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT,
        ),
    ]


def plugin() -> PodTopologySpread:
    return PodTopologySpread(PodTopologySpreadArgs(), make_handle())
