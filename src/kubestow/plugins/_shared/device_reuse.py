"""Reuse of answers about resources, except for pods with resources that devices serve."""

from kubestow.api.pod_info import PodInfo
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.index.devices.classes import DeviceClassMap


def unless_served_by_devices(
    classes: DeviceClassMap | None, filter: Reads | None, score: Reads | None
) -> Reuse:
    """Pods that devices serve are left out: free devices do not depend on one node alone.

    No map of device classes means that devices serve no extended resources.
    """
    if classes is None:
        return Reuse(filter=filter, score=score, pod=PodReads.REQUESTS)

    def is_served(pod: PodInfo) -> bool:
        return not classes.is_empty and any(
            classes.class_of(name) is not None for name in pod.accounted.requested.scalar
        )

    return Reuse(
        filter=filter,
        score=score,
        pod=PodReads.REQUESTS,
        unless=is_served,
        version=classes.read_version,
    )
