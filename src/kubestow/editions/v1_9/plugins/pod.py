"""A pod as v1.9 read it (spec 05 §17.1, §18; spec 01 §16).

v1.9 had no sidecars, no overhead, no pod-level resources, no resize, no namespace selectors: newer
fields are not read. Sums are rounded per container, not once per pod.

Invariant: `PodInfoV19` is what the cache must hold wherever v1.9 rules decide, so that the
columns show v1.9's sums: init containers of placed pods do not count.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Container, Pod, PodAffinity, PodAffinityTerm, assign
from kubestow.api.pod_info import AffinityTerms, PodInfo, affinity_terms
from kubestow.api.ports import HostPort
from kubestow.api.quantity import ZERO
from kubestow.api.requests import DEFAULT_CPU, DEFAULT_MEMORY, AccountedRequest, add_requests
from kubestow.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, Resources, is_hugepage, is_native

NVIDIA_GPU: Final = "alpha.kubernetes.io/nvidia-gpu"


class PodInfoV19(PodInfo):
    """A PodInfo whose sums, ports and affinity terms are v1.9's."""

    __slots__ = ()

    @property
    def accounted(self) -> AccountedRequest:
        if self._accounted is None:
            self._accounted = _accounted(self.pod.spec.containers)
        return self._accounted

    @property
    def host_ports(self) -> tuple[HostPort, ...]:
        if self._host_ports is None:
            self._host_ports = tuple(_host_ports(self.pod.spec.containers))
        return self._host_ports

    @property
    def terms(self) -> AffinityTerms:
        if self._terms is None:
            self._terms = affinity_terms(_with_known_term_fields(self.pod))
        return self._terms

    def assigned_to(self, node_name: str) -> "PodInfoV19":
        copy = PodInfoV19(assign(self.pod, node_name))
        copy._terms = self._terms
        copy._accounted = self._accounted
        copy._host_ports = self._host_ports
        copy._pod_class = self._pod_class
        return copy


def fit_request(pod: Pod) -> Resources:
    """What must be free on a node: the sum of the containers, or a larger init container."""
    request = _sum(pod.spec.containers)
    for container in pod.spec.init_containers:
        alone = _sum((container,))
        request.milli_cpu = max(request.milli_cpu, alone.milli_cpu)
        request.memory = max(request.memory, alone.memory)
        request.ephemeral_storage = max(request.ephemeral_storage, alone.ephemeral_storage)
        for name, amount in alone.scalar.items():
            # A zero in an init container does not even make an entry.
            if amount > request.scalar.get(name, 0):
                request.scalar[name] = amount
    return request


def limits(pod: Pod) -> ResourceList:
    """The sum of the containers' limits, or those of an init container where they are higher."""
    total: ResourceList = {}
    for container in pod.spec.containers:
        add_requests(total, container.resources.limits or {})
    for container in pod.spec.init_containers:
        for name, quantity in (container.resources.limits or {}).items():
            total[name] = max(total.get(name, ZERO), quantity)
    return total


def is_best_effort(pod: Pod) -> bool:
    """Whether no container requests or limits cpu, memory or huge pages."""
    return not any(
        (name in (CPU, MEMORY) or is_hugepage(name)) and quantity > ZERO
        for container in pod.spec.containers
        for amounts in (container.resources.requests, container.resources.limits)
        for name, quantity in (amounts or {}).items()
    )


def is_counted(name: str) -> bool:
    """Whether v1.9 counts the resource besides cpu, memory and ephemeral storage."""
    return name == NVIDIA_GPU or is_hugepage(name) or not is_native(name)


def _sum(containers: Iterable[Container]) -> Resources:
    total = Resources()
    for container in containers:
        for name, quantity in (container.resources.requests or {}).items():
            if name == CPU:
                total.milli_cpu += quantity.milli_value()
            elif name == MEMORY:
                total.memory += quantity.value()
            elif name == EPHEMERAL_STORAGE:
                total.ephemeral_storage += quantity.value()
            elif is_counted(name):
                total.scalar[name] = total.scalar.get(name, 0) + quantity.value()
    return total


def _accounted(containers: Sequence[Container]) -> AccountedRequest:
    cpu = memory = 0
    for container in containers:
        requests = container.resources.requests or {}
        # Only an absent name gets its default; an explicit zero stays.
        cpu += requests.get(CPU, DEFAULT_CPU).milli_value()
        memory += requests.get(MEMORY, DEFAULT_MEMORY).value()
    return AccountedRequest(requested=_sum(containers), non_zero_cpu=cpu, non_zero_memory=memory)


def _host_ports(containers: Iterable[Container]) -> Iterable[HostPort]:
    for container in containers:
        for port in container.ports:
            if port.host_port > 0:
                yield HostPort(port.host_ip, port.protocol, port.host_port).normalized()


def _with_known_term_fields(pod: Pod) -> Pod:
    """The pod without the fields of affinity terms that are newer than v1.9."""
    affinity = pod.spec.affinity
    if affinity is None or not any(
        _has_newer_field(term)
        for part in (affinity.pod_affinity, affinity.pod_anti_affinity)
        if part is not None
        for term in (*part.required, *(entry.pod_affinity_term for entry in part.preferred))
    ):
        return pod
    affinity = msgspec.structs.replace(
        affinity,
        pod_affinity=_with_known_fields(affinity.pod_affinity),
        pod_anti_affinity=_with_known_fields(affinity.pod_anti_affinity),
    )
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=affinity))


def _has_newer_field(term: PodAffinityTerm) -> bool:
    return term.namespace_selector is not None


def _with_known_fields(part: PodAffinity | None) -> PodAffinity | None:
    if part is None:
        return None

    def known(term: PodAffinityTerm) -> PodAffinityTerm:
        return msgspec.structs.replace(term, namespace_selector=None)

    return PodAffinity(
        required=tuple(known(term) for term in part.required),
        preferred=tuple(
            msgspec.structs.replace(entry, pod_affinity_term=known(entry.pod_affinity_term))
            for entry in part.preferred
        ),
    )
