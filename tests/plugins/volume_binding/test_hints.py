"""Spec 07 §2.10: which events may help a pod that VolumeBinding rejected."""

import pytest

from kubestow.api.pod import CsiEphemeral, Volume
from kubestow.framework.events import NODE_ADD, Action, ClusterEvent, Hint, Resource
from kubestow.plugins.volume_binding import VolumeBinding
from kubestow.testing import make_handle, make_node, make_pod, run_hint
from kubestow.testing.storage import (
    make_capacity,
    make_claim,
    make_csi_driver,
    make_csi_node,
    make_ephemeral_volume,
    make_storage_class,
    make_volume,
)

POD = make_pod(
    "p",
    pvcs=["c"],
    volumes=[make_ephemeral_volume("v"), Volume(name="w", csi=CsiEphemeral(driver="d"))],
)


def added(resource: str) -> ClusterEvent:
    return ClusterEvent(resource, Action.ADD)


def updated(resource: str) -> ClusterEvent:
    return ClusterEvent(resource, Action.UPDATE)


CLASS, CLAIM, VOLUME = (
    Resource.STORAGE_CLASS,
    Resource.PERSISTENT_VOLUME_CLAIM,
    Resource.PERSISTENT_VOLUME,
)
LABELS = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
TAINTS = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)


@pytest.mark.parametrize(
    ("event", "old", "new", "hint"),
    [
        pytest.param(added(CLASS), None, make_storage_class(), Hint.QUEUE, id="class"),
        pytest.param(
            updated(CLASS),
            make_storage_class(),
            make_storage_class(topologies=[{"zone": ["a"]}]),
            Hint.QUEUE,
            id="class-topologies",
        ),
        pytest.param(
            updated(CLASS),
            make_storage_class(topologies=[{"zone": ["a"]}]),
            make_storage_class(topologies=[{"zone": ["a"]}], policy="Retain"),
            Hint.SKIP,
            id="class-other",
        ),
        pytest.param(added(CLAIM), None, make_claim("c"), Hint.QUEUE, id="claim"),
        pytest.param(
            updated(CLAIM), make_claim("p-v"), make_claim("p-v"), Hint.QUEUE, id="ephemeral-claim"
        ),
        pytest.param(added(CLAIM), None, make_claim("d"), Hint.SKIP, id="other-claim"),
        pytest.param(
            added(CLAIM), None, make_claim("c", namespace="x"), Hint.SKIP, id="other-namespace"
        ),
        pytest.param(added(VOLUME), None, make_volume(), Hint.QUEUE, id="volume"),
        pytest.param(updated(VOLUME), make_volume(), make_volume(), Hint.QUEUE, id="volume-update"),
        pytest.param(NODE_ADD, None, make_node(), Hint.QUEUE, id="node"),
        pytest.param(LABELS, make_node(), make_node(), Hint.QUEUE, id="node-labels"),
        pytest.param(TAINTS, make_node(), make_node(), None, id="node-taints-not-registered"),
        pytest.param(added(Resource.CSI_NODE), None, make_csi_node("n"), Hint.QUEUE, id="csi-node"),
        pytest.param(
            updated(Resource.CSI_NODE),
            make_csi_node("n"),
            make_csi_node("n", migrated="kubernetes.io/aws-ebs"),
            Hint.QUEUE,
            id="csi-node-migrated",
        ),
        pytest.param(
            updated(Resource.CSI_NODE),
            make_csi_node("n", {"d": 1}),
            make_csi_node("n", {"d": 2}),
            Hint.SKIP,
            id="csi-node-other",
        ),
        pytest.param(
            updated(Resource.CSI_DRIVER),
            make_csi_driver("d", capacity=True),
            make_csi_driver("d"),
            Hint.QUEUE,
            id="driver-no-longer-limits",
        ),
        pytest.param(
            updated(Resource.CSI_DRIVER),
            make_csi_driver("d"),
            make_csi_driver("d", capacity=True),
            Hint.SKIP,
            id="driver-limits-now",
        ),
        pytest.param(
            updated(Resource.CSI_DRIVER),
            make_csi_driver("e", capacity=True),
            make_csi_driver("e"),
            Hint.SKIP,
            id="other-driver",
        ),
        pytest.param(
            added(Resource.CSI_STORAGE_CAPACITY), None, make_capacity(), Hint.QUEUE, id="capacity"
        ),
        pytest.param(
            updated(Resource.CSI_STORAGE_CAPACITY),
            make_capacity(size="1Gi"),
            make_capacity(size="2Gi"),
            Hint.QUEUE,
            id="capacity-grew",
        ),
        pytest.param(
            updated(Resource.CSI_STORAGE_CAPACITY),
            make_capacity(),
            make_capacity(size="0"),
            Hint.QUEUE,
            id="capacity-appeared",
        ),
        pytest.param(
            updated(Resource.CSI_STORAGE_CAPACITY),
            make_capacity(size="1Gi"),
            make_capacity(),
            Hint.SKIP,
            id="capacity-vanished",
        ),
        pytest.param(
            updated(Resource.CSI_STORAGE_CAPACITY),
            make_capacity(size="1Gi", maximum="1Gi"),
            make_capacity(size="9Gi", maximum="1Gi"),
            Hint.SKIP,
            id="maximum-unchanged",
        ),
        pytest.param(
            updated(Resource.CSI_STORAGE_CAPACITY),
            make_capacity(size="1500m"),
            make_capacity(size="1800m"),
            Hint.SKIP,
            id="capacity-same-integer",
        ),
    ],
)
def test_hints(event: ClusterEvent, old: object, new: object, hint: Hint | None) -> None:
    plugin = VolumeBinding(None, make_handle())
    assert run_hint(plugin, event, POD, old, new) is hint
