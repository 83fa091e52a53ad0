"""What of a pod the answers of several plugins depend on (`framework.reuse`)."""

from collections.abc import Hashable
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from kubestow.api.pod_info import PodInfo
from kubestow.framework.reuse import ASKED, Basis, PodReads, Reads, Reuse
from kubestow.index.devices.classes import DeviceClassMap

named_node: Final[Basis] = attrgetter("pod.spec.node_name")
host_ports: Final[Basis] = attrgetter("host_ports")
tolerations: Final[Basis] = attrgetter("pod.spec.tolerations")


def node_affinity(pod: PodInfo) -> bytes | None:
    """As a text, which is compared faster than its parts."""
    spec = pod.pod.spec
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    if affinity is None and spec.node_selector is None:
        return None
    return msgspec.json.encode((spec.node_selector, affinity))


def volumes(pod: PodInfo) -> Hashable:
    """Pods whose volumes are of no storage differ in whether they have some."""
    given = pod.pod.spec.volumes
    return ASKED if given and pod.mounts_storage() else bool(given)


def unless_served_by_devices(
    classes: DeviceClassMap | None, filter: Reads | None, score: Reads | None
) -> Reuse:
    """Reuse of answers about resources, except for pods with resources that devices serve: free
    devices do not depend on one node alone.

    No map of device classes means that devices serve no extended resources.
    """
    if classes is None:
        return Reuse(filter=filter, score=score, pod=PodReads.REQUESTS)
    return Reuse(
        filter=filter,
        score=score,
        pod=PodReads.REQUESTS,
        basis=_ServedByDevices(classes),
        version=classes.read_version,
    )


class _ServedByDevices(NamedTuple):
    """A basis; equal for plugins that read the same classes, so that it is asked for once."""

    classes: DeviceClassMap

    def __call__(self, pod: PodInfo) -> Hashable:
        names, classes = pod.accounted.requested.scalar, self.classes
        if not names or classes.is_empty:
            return None
        is_served = any(classes.class_of(name) is not None for name in names)
        return ASKED if is_served else None
