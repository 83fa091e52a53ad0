"""Variants of the workloads in which no two measured pods are alike (spec 10 §6).

NAME             plain: the measured pods of most workloads are equal but for their names
NAME/Unlike      each measured pod has a label and an owner of its own, as the pods of
                 StatefulSets, indexed Jobs and single Jobs have
NAME/AllUnlike   in addition each asks for an amount of cpu and memory of its own
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from kubestow.api.meta import OwnerReference, ResourceList
from kubestow.api.pod import Container, Pod, PodSpec
from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import CPU, MEMORY
from kubestow.simulator.bench.workloads import Cluster, Variant, Workload

OWN_LABEL: Final = "statefulset.kubernetes.io/pod-name"

# Amounts of cpu repeat after this many pods; with memory, which never repeats, each pair is new.
_CPU_STEPS: Final = 100


def variant_of(workload: Workload, variant: Variant) -> Workload:
    """The workload with its measured pods changed."""
    change = _CHANGES.get(variant)
    if change is None:
        return workload

    def build(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
        cluster = workload.build(nodes, init_pods, measured_pods)
        measured = [change(pod, number) for number, pod in enumerate(cluster.measured)]
        return replace(cluster, measured=measured)

    return replace(workload, variant=variant, build=build)


def with_own_label(pod: Pod, number: int) -> Pod:
    meta = pod.metadata
    owner = OwnerReference(
        api_version="batch/v1",
        kind="Job",
        name=f"owner-of-{meta.name}",
        uid=f"owner-of-{meta.uid}",
        controller=True,
    )
    metadata = msgspec.structs.replace(
        meta, labels={**meta.labels, OWN_LABEL: meta.name}, owner_references=(owner,)
    )
    return msgspec.structs.replace(pod, metadata=metadata)


def with_own_amounts(pod: Pod, number: int) -> Pod:
    """A little more cpu and memory than the pod had, where it asks for them."""
    pod = with_own_label(pod, number)
    spec: PodSpec = pod.spec
    first, *others = spec.containers
    spec = msgspec.structs.replace(spec, containers=(_asking_more(first, number), *others))
    return msgspec.structs.replace(pod, spec=spec)


def _asking_more(container: Container, number: int) -> Container:
    resources = msgspec.structs.replace(
        container.resources,
        requests=_more(container.resources.requests, number),
        # A request above its limit is refused by API servers.
        limits=_more(container.resources.limits, number),
    )
    return msgspec.structs.replace(container, resources=resources)


def _more(amounts: ResourceList | None, number: int) -> ResourceList | None:
    if amounts is None:
        return None
    more = dict(amounts)
    if CPU in more:
        more[CPU] = parse_quantity(f"{more[CPU].milli_value() + number % _CPU_STEPS}m")
    if MEMORY in more:
        more[MEMORY] = parse_quantity(f"{more[MEMORY].value() // 1024 + number}Ki")
    return more


_CHANGES: Final[Mapping[Variant, Callable[[Pod, int], Pod]]] = {
    Variant.UNLIKE: with_own_label,
    Variant.ALL_UNLIKE: with_own_amounts,
}
