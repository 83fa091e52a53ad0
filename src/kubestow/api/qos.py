"""The quality-of-service class of a pod (spec 01 §13.6).

No v1.36 decision reads it; the v1.9 predicate for memory pressure and reports do.
"""

from typing import Final

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Pod
from kubestow.api.quantity import ZERO
from kubestow.api.requests import add_requests
from kubestow.api.resources import CPU, MEMORY

BEST_EFFORT: Final = "BestEffort"
BURSTABLE: Final = "Burstable"
GUARANTEED: Final = "Guaranteed"


def qos_class(pod: Pod, *, use_pod_level: bool = True) -> str:
    """The class in the pod's status, or else the one that follows from its resources."""
    if pod.status.qos_class:
        return pod.status.qos_class
    if use_pod_level and pod.spec.resources is not None:
        requests = _counted(pod.spec.resources.requests)
        limits = _counted(pod.spec.resources.limits)
        has_limits = not pod.spec.resources.limits or len(limits) == 2
        return _classify(requests, limits, has_limits=has_limits)
    return _class_of_containers(pod)


def _class_of_containers(pod: Pod) -> str:
    requests: ResourceList = {}
    limits: ResourceList = {}
    has_limits = True
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        add_requests(requests, _counted(container.resources.requests))
        container_limits = _counted(container.resources.limits)
        add_requests(limits, container_limits)
        has_limits = has_limits and len(container_limits) == 2
    return _classify(requests, limits, has_limits=has_limits)


def _classify(requests: ResourceList, limits: ResourceList, *, has_limits: bool) -> str:
    """`has_limits`: every part that must have both limits has them."""
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if has_limits and requests == limits else BURSTABLE


def _counted(resource_list: ResourceList | None) -> ResourceList:
    """Only cpu and memory count, and only above zero."""
    found = resource_list or {}
    return {name: found[name] for name in (CPU, MEMORY) if found.get(name, ZERO) > ZERO}
