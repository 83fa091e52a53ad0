"""Spec 05 §8.7 and spec 02 §7.3: which events may give room."""

import pytest

from kubestow.api.device import DeviceClass, DeviceClassSpec
from kubestow.api.meta import ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.plugin_args import NodeResourcesFitArgs
from kubestow.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    Action,
    ClusterEvent,
    Hint,
    Resource,
)
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing import make_handle, make_node, make_pod, run_hint

FOO = "example.com/foo"
SCALE_DOWN = ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)
ALLOCATABLE = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE)
CLASS_ADD = ClusterEvent(Resource.DEVICE_CLASS, Action.ADD)
CLASS_UPDATE = ClusterEvent(Resource.DEVICE_CLASS, Action.UPDATE)


def make_class(resource: str | None, name: str = "c") -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name), spec=DeviceClassSpec(extended_resource_name=resource)
    )


def make_plugin(*classes: DeviceClass, gates: dict[str, bool] | None = None) -> NodeResourcesFit:
    objects = ClusterObjects()
    for each in classes:
        objects.device_classes.put(each)
    # Ignored resources play no part in hints.
    args = NodeResourcesFitArgs(ignored_resource_groups=("example.com",))
    return NodeResourcesFit(args, make_handle(objects=objects, feature_gates=FeatureGates(gates)))


@pytest.mark.parametrize(
    ("deleted", "hint"),
    [
        pytest.param(make_pod(node="n1"), Hint.QUEUE, id="placed"),
        pytest.param(make_pod(nominated_node="n1"), Hint.QUEUE, id="nominated"),
        pytest.param(make_pod(), Hint.SKIP, id="unplaced"),
    ],
)
def test_a_deleted_pod_gives_room_where_it_had_some(deleted: Pod, hint: Hint) -> None:
    assert run_hint(make_plugin(), ASSIGNED_POD_DELETE, make_pod(cpu="1"), deleted, None) is hint


@pytest.mark.parametrize(
    ("wanted", "node", "before", "after", "hint"),
    [
        pytest.param({"cpu": "1"}, "n1", {"cpu": "2"}, {"cpu": "1"}, Hint.QUEUE, id="cpu-fell"),
        pytest.param(
            {"memory": "1Gi"}, "n1", {"cpu": "2"}, {"cpu": "1"}, Hint.SKIP, id="H6-other-resource"
        ),
        pytest.param({"cpu": "1"}, "", {"cpu": "2"}, {"cpu": "1"}, Hint.SKIP, id="not-placed"),
        pytest.param({FOO: "1"}, "n1", {FOO: "2"}, {FOO: "1"}, Hint.QUEUE, id="scalar-fell"),
        pytest.param({FOO: "0"}, "n1", {FOO: "2"}, {FOO: "1"}, Hint.SKIP, id="asks-for-zero"),
        pytest.param(
            {"storage": "1"}, "n1", {"storage": "2"}, {"storage": "1"}, Hint.SKIP, id="not-counted"
        ),
        pytest.param(
            {"ephemeral-storage": "1"},
            "n1",
            {"ephemeral-storage": "2"},
            {},
            Hint.QUEUE,
            id="gone-altogether",
        ),
    ],
)
def test_a_smaller_pod_gives_room_of_what_is_needed(
    wanted: dict[str, str], node: str, before: dict[str, str], after: dict[str, str], hint: Hint
) -> None:
    old, new = make_pod(node=node, requests=before), make_pod(node=node, requests=after)
    assert run_hint(make_plugin(), SCALE_DOWN, make_pod(requests=wanted), old, new) is hint


def test_its_own_smaller_request_wakes_the_pod() -> None:
    pod = make_pod(memory="1Gi")
    new = make_pod(uid=pod.metadata.uid, cpu="1")
    assert run_hint(make_plugin(), SCALE_DOWN, pod, pod, new) is Hint.QUEUE


TWO_CPUS, NOTHING = make_pod(cpu="2"), make_pod()
WANTS_FOO = make_pod(requests={FOO: 1})


@pytest.mark.parametrize(
    ("pod", "old", "new", "hint"),
    [
        pytest.param(TWO_CPUS, make_node(cpu=1), make_node(cpu=4), Hint.QUEUE, id="H1-grew"),
        pytest.param(TWO_CPUS, make_node(cpu=4), make_node(cpu=3), Hint.SKIP, id="H1-shrank"),
        pytest.param(
            TWO_CPUS,
            make_node(cpu=4, memory="1Gi"),
            make_node(cpu=4, memory="2Gi"),
            Hint.SKIP,
            id="H1-not-requested",
        ),
        pytest.param(NOTHING, make_node(pods=110), make_node(pods=200), Hint.QUEUE, id="H2-pods"),
        pytest.param(NOTHING, make_node(cpu=1), make_node(cpu=4), Hint.SKIP, id="no-requests"),
        pytest.param(TWO_CPUS, make_node(cpu=0), make_node(cpu=1), Hint.SKIP, id="still-too-small"),
        pytest.param(TWO_CPUS, None, make_node(cpu=2), Hint.QUEUE, id="added-fits"),
        pytest.param(TWO_CPUS, None, make_node(cpu=1), Hint.SKIP, id="added-too-small"),
        pytest.param(NOTHING, None, make_node(pods=0), Hint.SKIP, id="added-without-room"),
        pytest.param(WANTS_FOO, None, make_node(), Hint.SKIP, id="ignore-lists-do-not-count"),
        pytest.param(
            WANTS_FOO,
            make_node(allocatable={FOO: 1}),
            make_node(allocatable={FOO: 2}),
            Hint.QUEUE,
            id="scalar-grew",
        ),
    ],
)
def test_a_node_with_more_to_offer_wakes_the_pod(
    pod: Pod, old: Node | None, new: Node, hint: Hint
) -> None:
    event = NODE_ADD if old is None else ALLOCATABLE
    assert run_hint(make_plugin(), event, pod, old, new) is hint


def test_a_node_on_which_devices_serve_the_pod_wakes_it() -> None:
    plugin = make_plugin(make_class(FOO))
    assert run_hint(plugin, NODE_ADD, WANTS_FOO, None, make_node()) is Hint.QUEUE
    old, new = make_node(cpu=1), make_node(cpu=2)
    assert run_hint(plugin, ALLOCATABLE, WANTS_FOO, old, new) is Hint.QUEUE


BY_CLASS_NAME = make_pod(requests={"deviceclass.resource.kubernetes.io/c": 1})


@pytest.mark.parametrize(
    ("pod", "old", "new", "hint"),
    [
        pytest.param(WANTS_FOO, None, make_class(FOO), Hint.QUEUE, id="added"),
        pytest.param(WANTS_FOO, None, make_class(None), Hint.SKIP, id="added-without-name"),
        pytest.param(WANTS_FOO, None, make_class("example.com/bar"), Hint.SKIP, id="added-other"),
        pytest.param(WANTS_FOO, make_class(None), make_class(FOO), Hint.QUEUE, id="named-now"),
        pytest.param(WANTS_FOO, make_class(FOO), make_class(FOO), Hint.SKIP, id="unchanged"),
        pytest.param(
            BY_CLASS_NAME, make_class(None), make_class(""), Hint.SKIP, id="none-is-empty"
        ),
        pytest.param(BY_CLASS_NAME, None, make_class(None), Hint.QUEUE, id="added-by-class-name"),
        pytest.param(
            BY_CLASS_NAME, make_class(None), make_class(FOO), Hint.SKIP, id="updated-by-class-name"
        ),
    ],
)
def test_a_device_class_that_serves_the_pod_wakes_it(
    pod: Pod, old: DeviceClass | None, new: DeviceClass, hint: Hint
) -> None:
    event = CLASS_ADD if old is None else CLASS_UPDATE
    assert run_hint(make_plugin(), event, pod, old, new) is hint


def test_without_its_gate_device_classes_are_no_event() -> None:
    plugin = make_plugin(gates={"DRAExtendedResource": False})
    assert run_hint(plugin, CLASS_ADD, WANTS_FOO, None, make_class(FOO)) is None
