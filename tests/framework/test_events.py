"""Cluster events: their names, and which registration matches which (spec 03 §11.1)."""

import pytest

from kubestow.framework.events import (
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Hint,
    Resource,
    on,
)

POD_1283 = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
POD_514 = Action.DELETE | Action.UPDATE_POD_SCALE_DOWN
NODE_17 = Action.ADD | Action.UPDATE_NODE_TAINT


def event(resource: str, action: Action) -> ClusterEvent:
    return ClusterEvent(resource, action)


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        pytest.param(
            event(Resource.POD, POD_1283),
            event(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL),
            True,
            id="one-bit-of-several",
        ),
        pytest.param(
            event(Resource.POD, POD_1283),
            event(Resource.ASSIGNED_POD, Action.UPDATE),
            False,
            id="a-general-update-is-the-larger-number",
        ),
        pytest.param(
            event(Resource.POD, Action.UPDATE),
            event(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_SCALE_DOWN),
            True,
            id="every-update-matches-one",
        ),
        pytest.param(
            event(Resource.POD, POD_514), event(Resource.POD, Action.UPDATE), False, id="514-8188"
        ),
        pytest.param(event(Resource.NODE, NODE_17), event(Resource.NODE, Action.DELETE), False),
        pytest.param(event(Resource.NODE, NODE_17), NODE_ADD, True),
        pytest.param(event(Resource.WILDCARD, Action.ALL), NODE_ADD, True, id="wildcard"),
        pytest.param(event(Resource.WILDCARD, Action.ADD), NODE_ADD, True, id="any-resource-added"),
        pytest.param(event(Resource.WILDCARD, Action.ADD), ASSIGNED_POD_DELETE, False),
        pytest.param(
            event(Resource.ASSIGNED_POD, Action.ALL),
            event(Resource.POD, Action.ADD),
            False,
            id="not-the-other-way-round",
        ),
        pytest.param(
            event(Resource.WILDCARD, Action.ALL), UNSCHEDULABLE_TIMEOUT, True, id="to-everyone"
        ),
        pytest.param(
            event(Resource.NODE, Action.ALL), UNSCHEDULABLE_TIMEOUT, False, id="other-resource"
        ),
    ],
)
def test_matching(registered: ClusterEvent, incoming: ClusterEvent, matches: bool) -> None:
    assert registered.matches(incoming) is matches


@pytest.mark.parametrize(
    ("cluster_event", "label"),
    [
        (NODE_ADD, "NodeAdd"),
        (event(Resource.NODE, Action.UPDATE_NODE_TAINT), "NodeUpdateNodeTaint"),
        (ASSIGNED_POD_DELETE, "AssignedPodDelete"),
        (event(Resource.CSI_NODE, Action.UPDATE), "storage.k8s.io/CSINodeUpdate"),
        (event(Resource.POD, POD_1283), "Pod"),
        (event(Resource.NODE, Action.ALL), "NodeAll"),
        (FORCE_ACTIVATE, "ForceActivate"),
    ],
)
def test_labels(cluster_event: ClusterEvent, label: str) -> None:
    assert cluster_event.label == label


def test_the_bits_of_all_updates_make_a_general_update() -> None:
    single = [action for action in Action if action & Action.UPDATE and action != Action.UPDATE]
    combined = Action.NONE
    for action in single:
        combined |= action
    assert combined == Action.UPDATE == 32764
    assert Action.UPDATE | Action.ADD | Action.DELETE == Action.ALL == 32767


def test_a_registration_without_a_function_is_one_with_every_event() -> None:
    registration = on(Resource.NODE, Action.ADD)
    assert registration.event == NODE_ADD
    assert registration.hint is None
    assert Hint.SKIP.value == "QueueSkip"
