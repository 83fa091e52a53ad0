"""Spec 05 §5.2: cordoned nodes take only pods that tolerate it."""

import pytest

from kubestow.api.pod import Toleration
from kubestow.framework.events import NODE_ADD, Action, ClusterEvent, Hint, Resource
from kubestow.framework.status import Status
from kubestow.plugins.node_unschedulable import NodeUnschedulable
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot, run_filter, run_hint

KEY = "node.kubernetes.io/unschedulable"
TAINT_UPDATE = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
TOLERATION_UPDATE = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_TOLERATION)
TOLERATES = Toleration(key=KEY, operator="Exists")


@pytest.fixture
def plugin() -> NodeUnschedulable:
    return NodeUnschedulable(None, make_handle())


@pytest.mark.parametrize(
    ("is_cordoned", "toleration", "passes"),
    [
        pytest.param(False, None, True, id="1-open"),
        pytest.param(True, None, False, id="2-cordoned"),
        pytest.param(True, TOLERATES, True, id="3-exists"),
        pytest.param(
            True,
            Toleration(key=KEY, operator="Equal", effect="NoSchedule"),
            True,
            id="4-equal-empty",
        ),
        pytest.param(
            True,
            Toleration(key=KEY, operator="Exists", effect="NoExecute"),
            False,
            id="5-other-effect",
        ),
        pytest.param(True, Toleration(operator="Exists"), True, id="6-empty-key"),
        pytest.param(
            True, Toleration(key=KEY, operator="Equal", value="x"), False, id="7-other-value"
        ),
    ],
)
def test_cordoned_nodes(
    plugin: NodeUnschedulable, is_cordoned: bool, toleration: Toleration | None, passes: bool
) -> None:
    snapshot = make_snapshot([make_node("open"), make_node("n1", unschedulable=is_cordoned)])
    pod = make_pod(tolerations=[toleration] if toleration else [])
    rejected = {} if passes else {"n1": Status.unresolvable("node(s) were unschedulable")}
    assert run_filter(plugin, pod, snapshot) == rejected


@pytest.mark.parametrize(
    ("was", "is_now", "hint"),
    [
        pytest.param(None, False, Hint.QUEUE, id="added-open"),
        pytest.param(None, True, Hint.SKIP, id="added-cordoned"),
        pytest.param(True, False, Hint.QUEUE, id="uncordoned"),
        pytest.param(False, False, Hint.SKIP, id="was-open-already"),
        pytest.param(True, True, Hint.SKIP, id="still-cordoned"),
        pytest.param(False, True, Hint.SKIP, id="cordoned-now"),
    ],
)
def test_an_opened_node_wakes_the_pod(
    plugin: NodeUnschedulable, was: bool | None, is_now: bool, hint: Hint
) -> None:
    old = None if was is None else make_node(unschedulable=was)
    event = NODE_ADD if old is None else TAINT_UPDATE
    new = make_node(unschedulable=is_now)
    assert run_hint(plugin, event, make_pod(), old, new) is hint


def test_its_own_new_toleration_wakes_the_pod(plugin: NodeUnschedulable) -> None:
    pod = make_pod()
    uid = pod.metadata.uid
    tolerant = make_pod(uid=uid, tolerations=[TOLERATES])
    useless = make_pod(uid=uid, tolerations=[Toleration(key="other", operator="Exists")])
    stranger = make_pod(tolerations=[TOLERATES])
    assert run_hint(plugin, TOLERATION_UPDATE, pod, pod, tolerant) is Hint.QUEUE
    assert run_hint(plugin, TOLERATION_UPDATE, pod, pod, useless) is Hint.SKIP
    assert run_hint(plugin, TOLERATION_UPDATE, pod, pod, stranger) is Hint.SKIP
