"""What rules about one node read of a pod: equal values are one object, and share their answers.

    frame      the spec less amounts of resources: containers, images, ports, node selector and
               affinity, tolerations, and whether the pod mounts storage
    amounts    the quantities of the spec, in its order
    shape      both together
    requests   what the containers request of each resource: less than a shape

Pods of one controller have one shape, and so have pods of different controllers that ask for the
same. Labels, namespace and owner are in neither: which selectors match a pod is found for each pod.
Pod affinity and spread constraints are not, either: they are about other nodes as well. Plugins
declare what they read of a pod (`framework.reuse`); `full_shape` is for those that read more.
"""

import threading
from collections.abc import Hashable
from operator import attrgetter
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from kubestow.api.decode import enc_hook
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, PodSpec, is_storage
from kubestow.api.ports import HostPort, host_ports
from kubestow.api.quantity import Quantity
from kubestow.api.requests import AccountedRequest, accounted_request, request_lists

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
# From here on the conversion of a quantity may depend on how it was written (spec 01 §1.2).
_NANO_LARGE: Final = 10**24

Amount = int | tuple[int, int | None]


class PodFrame:
    """Interned: equal frames are one object, as long as a reference to it exists."""

    __slots__ = ("__weakref__", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        """`size_bytes`: of its text."""
        self.size_bytes: Final = size_bytes


class PodShape:
    """Interned in the same way. Keeps what is derived from it."""

    __slots__ = ("__weakref__", "_accounted", "_host_ports", "_requests", "amounts", "frame")

    def __init__(self, frame: PodFrame, amounts: tuple[Amount, ...]) -> None:
        self.frame: Final = frame
        self.amounts: Final = amounts
        self._accounted: AccountedRequest | None = None
        self._host_ports: tuple[HostPort, ...] | None = None
        self._requests: Hashable = None

    @staticmethod
    def of(pod: Pod) -> "PodShape":
        text, amounts = _frame_and_amounts(pod)
        shape = _SHAPES.get((text, amounts))
        if shape is None:
            frame = _FRAMES.get(text)
            if frame is None:
                frame = _FRAMES[text] = PodFrame(len(text))
            shape = _SHAPES[text, amounts] = PodShape(frame, amounts)
        return shape

    def accounted(self, pod: Pod) -> AccountedRequest:
        """What a pod of this shape takes from its node (spec 01 §3.2, view A)."""
        if self._accounted is None:
            self._accounted = accounted_request(pod)
        return self._accounted

    def host_ports(self, pod: Pod) -> tuple[HostPort, ...]:
        if self._host_ports is None:
            self._host_ports = host_ports(pod)
        return self._host_ports

    def requests(self, pod: Pod) -> Hashable:
        """Equal for shapes whose pods request the same of every resource.

        `pod` is any pod of this shape.
        """
        if self._requests is None:
            lists = request_lists(pod)
            # Init containers, overhead and statuses count in other ways: such a shape is alone.
            self._requests = (
                (self.frame, self.amounts)
                if lists is None
                else tuple(
                    [
                        frozenset([(name, _amount(given)) for name, given in requests.items()])
                        for requests in lists
                    ]
                )
            )
        return self._requests


# Weak: where every pod asks for another amount, shapes have no bound.
_FRAMES: Final[WeakValueDictionary[bytes, PodFrame]] = WeakValueDictionary()
_SHAPES: Final[WeakValueDictionary[tuple[bytes, tuple[Amount, ...]], PodShape]] = (
    WeakValueDictionary()
)


class _SplitEncoder(threading.local):
    """Encodes a value without its quantities, and gives these in their order; one per thread."""

    def __init__(self) -> None:
        self._amounts: list[Amount] = []
        self._encode = msgspec.json.Encoder(enc_hook=self._take_out).encode

    def __call__(self, value: object) -> tuple[bytes, tuple[Amount, ...]]:
        self._amounts.clear()
        return self._encode(value), tuple(self._amounts)

    def _take_out(self, value: object) -> object:
        if isinstance(value, Quantity):
            nano = value.nano
            self._amounts.append(nano if nano < _NANO_LARGE else _amount(value))
            return nano != 0  # Some rules read whether a resource is requested at all.
        return enc_hook(value)


def _amount(quantity: Quantity) -> Amount:
    nano = quantity.nano
    return nano if nano < _NANO_LARGE else (nano, quantity.small_scale)


_split: Final = _SplitEncoder()


def _frame_and_amounts(pod: Pod) -> tuple[bytes, tuple[Amount, ...]]:
    spec, status = pod.spec, pod.status
    node_affinity = spec.affinity and spec.affinity.node_affinity
    volumes: object = ()
    if spec.volumes:
        # Image volumes are the only ones read without a claim or a disk. Which claims and disks a
        # pod uses differs within one controller; that it uses some does not.
        images = [volume for volume in spec.volumes if volume.image is not None]
        volumes = images, any(map(is_storage, spec.volumes))
    text, amounts = _split((*_read_parts(spec), node_affinity, volumes))
    if status.container_statuses or status.init_container_statuses or status.resources:
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
    return text, amounts


def full_shape(pod: Pod, shape: PodShape) -> tuple[object, ...]:
    """Everything of a pod but what differs between the pods of one controller: its name, its
    claims, its priority. Equal for two pods means that no rule about one node tells them apart."""
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
