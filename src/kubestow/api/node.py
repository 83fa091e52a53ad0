"""The Node."""

from datetime import datetime

import msgspec

from kubestow.api.meta import ApiObject, Condition, Object, ResourceList


class Taint(Object, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class ContainerImage(Object, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class PodPreemptionPolicy(Object, frozen=True, kw_only=True):
    """v1.37: who keeps pods of this node from being evicted for a resize (spec 12 §11)."""

    disable_resize_preemption: tuple[str, ...] = ()


class NodeSpec(Object, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(name="providerID", default="")
    pod_preemption_policy: PodPreemptionPolicy | None = None


class NodeStatus(Object, frozen=True, kw_only=True):
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(ApiObject, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
