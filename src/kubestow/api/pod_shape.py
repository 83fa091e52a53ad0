"""What rules about one node read of a pod: equal values are one object, and share their answers.

    frame      the spec less resources: containers, images, ports, node selector and affinity,
               tolerations, and whether the pod mounts storage
    outline    a frame with the names of the resources
    amounts    the quantities of the spec, in its order
    shape      an outline and its amounts
    requests   what the containers request of each resource: less than a shape

Pods of one controller have one shape, and so have pods of different controllers that ask for the
same. Labels, namespace and owner are in neither: which selectors match a pod is found for each pod.
Pod affinity and spread constraints are not, either: they are about other nodes as well. Plugins
declare what they read of a pod (`framework.reuse`); `full_shape` is for those that read more.
"""

from collections.abc import Hashable
from operator import attrgetter
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from kubestow.api.decode import enc_hook
from kubestow.api.owners import controller_of
from kubestow.api.pod import Container, Pod, PodSpec, ResourceRequirements, is_storage
from kubestow.api.ports import host_ports
from kubestow.api.quantity import Quantity
from kubestow.api.requests import accounted_request, accounted_sum, is_infeasible, request_lists

_ENCODER: Final = msgspec.json.Encoder(enc_hook=enc_hook)

# What no rule about one node reads. `volumes` and `affinity` are read in part.
_LEFT_OUT: Final = frozenset(
    (
        "affinity",
        "preemption_policy",
        "priority",
        "priority_class_name",
        "scheduler_name",
        "scheduling_gates",
        "scheduling_group",
        "termination_grace_period_seconds",
        "topology_spread_constraints",
        "volumes",
    )
)
_read_parts: Final = attrgetter(
    *(name for name in PodSpec.__struct_fields__ if name not in _LEFT_OUT)
)
_NO_RESOURCES: Final = ResourceRequirements()
_encode: Final = msgspec.json.encode
_nano: Final = attrgetter("nano")
# From here on the conversion of a quantity may depend on how it was written (spec 01 §1.2).
_NANO_LARGE: Final = 10**24
# Sums of a thousand smaller ones are not large, either.
_NANO_PLAIN: Final = _NANO_LARGE // 1000

Amount = int | tuple[int, int | None]


class PodFrame:
    """Interned: equal frames are one object, as long as a reference to it exists."""

    __slots__ = ("__weakref__",)

    @staticmethod
    def of(pod: Pod) -> "PodFrame":
        text = _text_without_resources(pod)
        frame = _FRAMES.get(text)
        if frame is None:
            frame = _FRAMES[text] = PodFrame()
        return frame


class PodOutline:
    """Interned as frames are. Keeps what is derived from it.

    text         what is read of the spec, without its quantities
    host_ports   the ports that a pod of this outline takes on its node
    """

    __slots__ = ("__weakref__", "_frame", "host_ports", "text")

    def __init__(self, text: bytes, pod: Pod) -> None:
        """`pod` is any pod of this outline."""
        self.text: Final = text
        self.host_ports: Final = host_ports(pod)
        self._frame: PodFrame | None = None

    @staticmethod
    def of(text: bytes, pod: Pod) -> "PodOutline":
        outline = _OUTLINES.get(text)
        if outline is None:
            outline = _OUTLINES[text] = PodOutline(text, pod)
        return outline

    def frame(self, pod: Pod) -> PodFrame:
        """The frame, made when first needed. `pod` is any pod of this outline."""
        if self._frame is None:
            self._frame = PodFrame.of(pod)
        return self._frame


class PodShape:
    """Interned as frames are. Keeps what is derived from it.

    accounted    what a pod of this shape takes from its node (spec 01 §3.2, view A)
    is_plain     whether the numbers in `accounted` are those of the other views as well
    requests     equal for shapes whose pods request the same of every resource
    """

    __slots__ = (
        "__weakref__",
        "accounted",
        "amounts",
        "is_plain",
        "outline",
        "requests",
    )

    def __init__(self, outline: PodOutline, amounts: tuple[Amount, ...], pod: Pod) -> None:
        """`pod` is any pod of this shape."""
        self.outline: Final = outline
        self.amounts: Final = amounts
        lists = request_lists(pod)
        self.accounted: Final = accounted_request(pod) if lists is None else accounted_sum(lists)
        # Views differ in how they treat amounts below zero, and in the order of their sums, on
        # which the conversion of large ones may depend.
        self.is_plain: Final = lists is not None and all(
            [type(amount) is int and 0 <= amount < _NANO_PLAIN for amount in amounts]
        )
        # Init containers, overhead and statuses count in other ways: such a shape is alone.
        self.requests: Final[Hashable] = (
            (outline, amounts)
            if lists is None
            else tuple(
                [frozenset(zip(each, map(_amount, each.values()), strict=True)) for each in lists]
            )
        )

    @staticmethod
    def of(pod: Pod) -> "PodShape":
        text, quantities = _text_and_quantities(pod)
        key = text, tuple(map(_nano, quantities))
        shape = _SHAPES.get(key)
        if shape is None and max(key[1], default=0) >= _NANO_LARGE:
            key = text, tuple(map(_amount, quantities))
            shape = _SHAPES.get(key)
        if shape is None:
            outline, amounts = PodOutline.of(text, pod), key[1]
            shape = _SHAPES[outline.text, amounts] = PodShape(outline, amounts, pod)
        return shape


# Weak: where every pod asks for another amount, shapes have no bound.
_FRAMES: Final[WeakValueDictionary[bytes, PodFrame]] = WeakValueDictionary()
_OUTLINES: Final[WeakValueDictionary[bytes, PodOutline]] = WeakValueDictionary()
_SHAPES: Final[WeakValueDictionary[tuple[bytes, tuple[Amount, ...]], PodShape]] = (
    WeakValueDictionary()
)


def _text_and_quantities(pod: Pod) -> tuple[bytes, list[Quantity]]:
    """What is read of the pod without its quantities, and these in their order."""
    status = pod.status
    quantities: list[Quantity] = []
    # Quantities are all that needs a hook here. `append` takes one out and leaves a null.
    text = _encode(_parts(pod.spec), enc_hook=quantities.append)
    if (
        status.container_statuses
        or status.init_container_statuses
        or status.resources
        or (status.conditions and is_infeasible(status))
    ):
        # Requests of a pod that is being resized are read from its status (spec 01 §3.3).
        text += _ENCODER.encode(
            (
                status.container_statuses,
                status.init_container_statuses,
                status.resources,
                status.allocated_resources,
                status.conditions,
            )
        )
    return text, quantities


def _text_without_resources(pod: Pod) -> bytes:
    """What rules read that are not about resources."""
    spec = pod.spec
    bare = msgspec.structs.replace(
        spec,
        containers=_without_resources(spec.containers),
        init_containers=_without_resources(spec.init_containers),
        overhead=None,
        resources=None,
    )
    return _encode(_parts(bare))


def _without_resources(containers: tuple[Container, ...]) -> tuple[Container, ...]:
    return tuple([msgspec.structs.replace(each, resources=_NO_RESOURCES) for each in containers])


def _parts(spec: PodSpec) -> tuple[object, ...]:
    """What is read of a spec."""
    node_affinity = spec.affinity and spec.affinity.node_affinity
    volumes: object = ()
    if spec.volumes:
        # Image volumes are the only ones read without a claim or a disk. Which claims and disks a
        # pod uses differs within one controller; that it uses some does not.
        images = [volume.image for volume in spec.volumes if volume.image is not None]
        volumes = images, any(map(is_storage, spec.volumes))
    return (*_read_parts(spec), node_affinity, volumes)


def _amount(quantity: Quantity) -> Amount:
    nano = quantity.nano
    return nano if nano < _NANO_LARGE else (nano, quantity.small_scale)


def full_shape(pod: Pod, shape: PodShape) -> tuple[object, ...]:
    """Everything of a pod but what differs between the pods of one controller: its name, its
    claims, its priority. If it is equal for two pods, no rule about one node distinguishes them."""
    meta, spec = pod.metadata, pod.spec
    owner = controller_of(pod)
    return (
        shape,
        meta.namespace,
        frozenset(meta.labels.items()),
        None if owner is None else (owner.api_version, owner.kind, owner.name),
        _ENCODER.encode(
            msgspec.structs.replace(
                spec, volumes=(), priority=None, containers=(), init_containers=()
            )
        ),
    )
