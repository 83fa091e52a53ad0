"""Pods with equal specs share a shape: a result computed for one of them holds for all.

A shape is everything of a pod that a rule about one node may read: namespace, labels, owner, and
the spec less what differs between pods of one controller (names, volumes that name their own
claim). Plugins that read claims or the pod's own history may still decide differently for two pods
of one shape; those declare it (`framework.reuse`).
"""

from typing import Final
from weakref import WeakValueDictionary

import msgspec

from kubestow.api.decode import enc_hook
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, is_storage

_ENCODER: Final = msgspec.json.Encoder(enc_hook=enc_hook)
# Weak: where every pod has its own labels, shapes have no bound.
_SHAPES: Final[WeakValueDictionary[tuple[object, ...], "PodShape"]] = WeakValueDictionary()


class PodShape:
    """Interned: equal shapes are one object, as long as a reference to it exists."""

    __slots__ = ("__weakref__", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        """`size_bytes`: of the spec, as JSON."""
        self.size_bytes: Final = size_bytes

    @staticmethod
    def of(pod: Pod) -> "PodShape":
        key = _key(pod)
        shape = _SHAPES.get(key)
        if shape is None:
            shape = _SHAPES[key] = PodShape(len(key[0]))
        return shape


def _key(pod: Pod) -> tuple[bytes, *tuple[object, ...]]:
    meta, spec, status = pod.metadata, pod.spec, pod.status
    owner = controller_of(pod)
    # Image volumes are the only ones read without a claim or a disk. Which claims and disks a pod
    # uses differs within one controller; that it uses some does not (last entry).
    volumes = tuple(volume for volume in spec.volumes if volume.image is not None)
    bare = spec
    if spec.volumes != volumes or spec.priority is not None or spec.node_name:
        bare = msgspec.structs.replace(spec, volumes=volumes, priority=None, node_name="")
    resized = None
    if status.container_statuses or status.init_container_statuses or status.resources:
        # Requests of a pod that is being resized are read from its status (spec 01 §3.3).
        resized = _ENCODER.encode(
            (
                status.container_statuses,
                status.init_container_statuses,
                status.resources,
                status.allocated_resources,
                status.conditions,
            )
        )
    return (
        _ENCODER.encode(bare),
        meta.namespace,
        frozenset(meta.labels.items()),
        None if owner is None else (owner.api_version, owner.kind, owner.name),
        spec.node_name,
        resized,
        any(map(is_storage, spec.volumes)),
    )
