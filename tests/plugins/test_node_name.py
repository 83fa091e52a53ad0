"""Spec 05 §5.1: a pod that names its node runs there or nowhere."""

import pytest

from kubestow.framework.events import NODE_ADD, Action, ClusterEvent, Hint, Resource
from kubestow.framework.status import Status
from kubestow.plugins.node_name import NodeName
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot, run_filter, run_hint

OTHER_NODE = Status.unresolvable("node(s) didn't match the requested node name")


@pytest.fixture
def plugin() -> NodeName:
    return NodeName(None, make_handle())


@pytest.mark.parametrize(
    ("wanted", "rejected"),
    [
        pytest.param("", set[str](), id="1-any"),
        pytest.param("n1", {"n2"}, id="2-3-that-one"),
        pytest.param("N1", {"n1", "n2"}, id="4-case-counts"),
    ],
)
def test_the_named_node_alone_passes(plugin: NodeName, wanted: str, rejected: set[str]) -> None:
    snapshot = make_snapshot([make_node("n1"), make_node("n2")])
    assert run_filter(plugin, make_pod(node=wanted), snapshot) == dict.fromkeys(
        rejected, OTHER_NODE
    )


def test_any_new_node_wakes_the_pod(plugin: NodeName) -> None:
    assert run_hint(plugin, NODE_ADD, make_pod(node="n9"), None, make_node("n1")) is Hint.QUEUE
    labels = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
    assert run_hint(plugin, labels, make_pod(), make_node(), make_node()) is None
