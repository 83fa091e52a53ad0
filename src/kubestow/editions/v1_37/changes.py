"""What an upgrade from v1.36 to v1.37 notices without touching a gate (spec 12 §1), as data.

Each row names the parts of this edition that make it, as modules below `kubestow.editions.v1_37`;
a row that only a gate's default makes names the gate.
"""

from typing import Final, NamedTuple


class Change(NamedTuple):
    """One row of the table.

    number, section   of the specification
    subject           what a user sees
    parts             modules of this edition
    gates             gates whose default differs
    is_ordinary       it differs on an ordinary cluster, not only in rare cases
    """

    number: int
    section: str
    subject: str
    parts: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    is_ordinary: bool = False


CHANGES: Final = (
    Change(
        1,
        "5.1",
        "texts of pods that wait, and of preemptors",
        ("plugins.dynamic_resources", "plugins.default_preemption"),
        is_ordinary=True,
    ),
    Change(
        2,
        "7.3",
        "pods with volumes to provision prefer nodes with more free storage",
        gates=("StorageCapacityScoring",),
        is_ordinary=True,
    ),
    Change(
        3,
        "7.4",
        "nodes without the CSI driver of a volume are rejected, if the driver asks for it",
        ("plugins.node_volume_limits",),
        gates=("VolumeLimitScaling",),
    ),
    Change(
        4,
        "10.1",
        "DeviceTaintRules act",
        ("plugins.dynamic_resources",),
        gates=("DRADeviceTaintRules",),
        is_ordinary=True,
    ),
    Change(
        5,
        "3.2",
        "changes of taints wake fewer pods",
        ("engine.factory",),
        is_ordinary=True,
    ),
    Change(6, "6", "pods that are resized take less", ("api.requests",), is_ordinary=True),
    Change(7, "5.2", "a binding is tried up to four times", ("plugins.default_binder",), (), True),
    Change(8, "7.2", "image volumes count in ImageLocality", ("plugins.image_locality",)),
    Change(
        9,
        "8.1",
        "namespace selectors of NotIn and DoesNotExist alone match fewer namespaces",
        ("plugins.inter_pod_affinity",),
    ),
    Change(10, "9.1", "the second budget of a pod is charged less", ("api.disruption",)),
    Change(11, "4.1", "nominations of gated pods hold their resources", ("queue.pod_queue",)),
    Change(
        12,
        "3.4",
        "pods with several anti-affinity terms are woken by any of them",
        ("plugins.inter_pod_affinity",),
    ),
    Change(
        13,
        "9.3",
        "a preemptor is tried at once when its last victim was not bound yet",
        ("plugins.default_preemption",),
    ),
    Change(14, "5.3", "batching scores the node of the pod before again"),
    Change(15, "10.2", "devices are allocated by other rules", ("plugins.dynamic_resources",)),
    Change(16, "19", "names, labels and families of metrics", is_ordinary=True),
    Change(
        17,
        "20.2",
        "the API server completes pod-level resources and keeps claim statuses",
        gates=("PodLevelResourcesFixDefaulting",),
        is_ordinary=True,
    ),
    Change(18, "2", "gates that are gone end the start", is_ordinary=True),
)
