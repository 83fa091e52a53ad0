"""Spec 05 §11: nodes must declare the features a pod cannot do without."""

import pytest

from kubestow.api.pod import Container, ContainerRestartRule, Pod
from kubestow.api.pod_info import PodInfo
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import (
    NODE_ADD,
    UNSCHEDULABLE_POD_UPDATE,
    Action,
    ClusterEvent,
    Hint,
    Resource,
)
from kubestow.framework.status import Status
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_declared_features import NodeDeclaredFeatures
from kubestow.testing import (
    make_handle,
    make_node,
    make_pod,
    make_snapshot,
    run_filter,
    run_hint,
    run_pre_filter,
)

LACKING = Status.unresolvable("node(s) didn't match Pod's required features")
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
RESTART_ALL = "RestartAllContainersOnContainerExits"
DECLARED_UPDATE = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE)

RESTARTING = Container(restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),))
IN_USER_NAMESPACE = make_pod(host_network=True, host_users=False)
DEMANDING = make_pod(host_network=True, host_users=False, containers=[RESTARTING])


@pytest.fixture
def plugin() -> NodeDeclaredFeatures:
    return NodeDeclaredFeatures(None, make_handle())


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(), id="1-plain"),
        pytest.param(make_pod(host_network=True), id="2-host-users-not-said"),
    ],
)
def test_a_pod_without_requirement_skips(plugin: NodeDeclaredFeatures, pod: Pod) -> None:
    assert run_pre_filter(plugin, pod, make_snapshot()) == Status.skip()


@pytest.mark.parametrize(
    ("pod", "declared", "passes"),
    [
        pytest.param(IN_USER_NAMESPACE, [], False, id="3-none"),
        pytest.param(IN_USER_NAMESPACE, [USER_NAMESPACES], True, id="4-that-one"),
        pytest.param(IN_USER_NAMESPACE, ["Foo", USER_NAMESPACES], True, id="5-unknown-beside"),
        pytest.param(DEMANDING, [USER_NAMESPACES], False, id="6-one-of-two"),
        pytest.param(DEMANDING, [RESTART_ALL, USER_NAMESPACES], True, id="both"),
        pytest.param(make_pod(init_containers=[RESTARTING]), [], False, id="init-containers-count"),
    ],
)
def test_nodes_must_declare_what_the_pod_needs(
    plugin: NodeDeclaredFeatures, pod: Pod, declared: list[str], passes: bool
) -> None:
    snapshot = make_snapshot([make_node("n1", declared_features=declared)])
    assert run_filter(plugin, pod, snapshot) == ({} if passes else {"n1": LACKING})


def test_filter_needs_pre_filter(plugin: NodeDeclaredFeatures) -> None:
    text = 'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
    with pytest.raises(PluginError, match=text):
        plugin.filter(CycleState(), PodInfo(DEMANDING), nodes_of(make_snapshot()))


def test_without_its_gate_the_plugin_asks_for_nothing() -> None:
    gates = FeatureGates({"NodeDeclaredFeatures": False})
    plugin = NodeDeclaredFeatures(None, make_handle(feature_gates=gates))
    assert run_pre_filter(plugin, DEMANDING, make_snapshot()) == Status.skip()


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        pytest.param(None, [], Hint.QUEUE, id="added"),
        pytest.param([], [], Hint.SKIP, id="unchanged"),
        pytest.param([], ["Foo"], Hint.QUEUE, id="any-change-will-do"),
    ],
)
def test_a_changed_list_wakes_the_pod(
    plugin: NodeDeclaredFeatures, before: list[str] | None, after: list[str], hint: Hint
) -> None:
    old = None if before is None else make_node(declared_features=before)
    event = NODE_ADD if old is None else DECLARED_UPDATE
    new = make_node(declared_features=after)
    assert run_hint(plugin, event, DEMANDING, old, new) is hint


def test_its_own_changed_requirements_wake_the_pod(plugin: NodeDeclaredFeatures) -> None:
    uid = DEMANDING.metadata.uid
    relaxed = make_pod(uid=uid)
    assert run_hint(plugin, UNSCHEDULABLE_POD_UPDATE, DEMANDING, DEMANDING, relaxed) is Hint.QUEUE
    same = make_pod(uid=uid, host_network=True, host_users=False, containers=[RESTARTING])
    assert run_hint(plugin, UNSCHEDULABLE_POD_UPDATE, DEMANDING, DEMANDING, same) is Hint.SKIP
    stranger = make_pod()
    assert run_hint(plugin, UNSCHEDULABLE_POD_UPDATE, DEMANDING, DEMANDING, stranger) is Hint.SKIP
