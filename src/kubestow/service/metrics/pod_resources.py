"""Requests and limits of all pods, for `/metrics/resources` (spec 09 §8.3).

The text is made from the pods on each request, in pieces, so that a cluster of 100,000 pods does
not block the event loop.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Pod, is_terminal
from kubestow.api.quantity import ZERO
from kubestow.api.requests import (
    add_requests,
    is_pod_level_name,
    is_sidecar,
    pod_requests,
    raise_to,
)
from kubestow.api.resources import CPU, MEMORY, is_attachable_volume, is_hugepage
from kubestow.service.metrics.instruments import escaped, go_float

REQUEST: Final = "kube_pod_resource_request"
LIMIT: Final = "kube_pod_resource_limit"
PODS_PER_PIECE: Final = 200

_HELP: Final = {
    REQUEST: "Requests of the pods, by resource. What a scheduler reads.",
    LIMIT: "Limits of the pods, by resource. What a pod may use at most, and a kubelet enforces.",
}
_BYTES: Final = (MEMORY, "storage", "ephemeral-storage")
_NANO: Final = 1_000_000_000


def pod_resource_texts(pods: Iterable[Pod]) -> Iterator[str]:
    """The whole text in pieces."""
    counted = [pod for pod in pods if not (pod.spec.node_name and is_terminal(pod))]
    families: tuple[tuple[str, Callable[[Pod], ResourceList]], ...] = (
        (LIMIT, pod_limits),
        (REQUEST, spec_requests),
    )
    for name, amounts_of in families:
        yield f"# HELP {name} [STABLE] {_HELP[name]}\n# TYPE {name} gauge\n"
        remaining = iter(counted)
        while piece := list(islice(remaining, PODS_PER_PIECE)):
            yield "".join(_lines(name, pod, amounts_of(pod)) for pod in piece)


def spec_requests(pod: Pod) -> ResourceList:
    """The pod's requests without those in its status."""
    return pod_requests(pod, use_status=False, use_pod_level=True)


def pod_limits(pod: Pod) -> ResourceList:
    """The pod's effective limits: combined as requests are; overhead is added where limited."""
    total: ResourceList = {}
    for container in pod.spec.containers:
        add_requests(total, container.resources.limits or {})
    sidecars: ResourceList = {}
    peak: ResourceList = {}
    for container in pod.spec.init_containers:
        limits = container.resources.limits or {}
        if is_sidecar(container):
            add_requests(total, limits)
            add_requests(sidecars, limits)
            during = {name: sidecars[name] for name in limits}
        else:
            during = dict(limits)
            add_requests(during, {name: sidecars[name] for name in limits if name in sidecars})
        # Only names of this container: for all others the peak has the sidecars' limit.
        raise_to(peak, during)
    raise_to(total, peak)
    of_pod = (pod.spec.resources and pod.spec.resources.limits) or {}
    total |= {name: of_pod[name] for name in of_pod if is_pod_level_name(name)}
    for name, quantity in (pod.spec.overhead or {}).items():
        limit = total.get(name, ZERO)
        if limit.nano:
            total[name] = limit + quantity
    return total


def unit_of(resource: str) -> str:
    if resource == CPU:
        return "cores"
    if resource in _BYTES or is_hugepage(resource):
        return "bytes"
    return "integer" if is_attachable_volume(resource) else ""


def _lines(name: str, pod: Pod, amounts: ResourceList) -> str:
    if not amounts:
        return ""
    metadata, spec = pod.metadata, pod.spec
    priority = "" if spec.priority is None else str(spec.priority)
    before = (
        f'{name}{{namespace="{metadata.namespace}",node="{spec.node_name}",pod="{metadata.name}",'
        f'priority="{priority}",resource="'
    )
    scheduler = escaped(spec.scheduler_name)
    return "".join(
        f'{before}{resource}",scheduler="{scheduler}",unit="{unit_of(resource)}"}} '
        f"{go_float(quantity.nano / _NANO)}\n"
        for resource, quantity in amounts.items()
        if quantity.nano
    )
