"""Variants of the workloads in which no two measured pods are alike (spec 10, calm figures).

NAME/Unlike      each measured pod has a label and an owner of its own, as the pods of
                 StatefulSets, indexed Jobs and single Jobs have
NAME/AllUnlike   in addition each asks for an amount of cpu and memory of its own
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from kubestow.api.meta import OwnerReference, ResourceList
from kubestow.api.pod import Container, Pod, PodSpec
from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import CPU, MEMORY
from kubestow.simulator.bench.workloads import WORKLOADS, Cluster, Workload

UNLIKE: Final = "Unlike"
ALL_UNLIKE: Final = "AllUnlike"
OWN_LABEL: Final = "statefulset.kubernetes.io/pod-name"

# Amounts of cpu repeat after this many pods; with memory, which never repeats, each pair is new.
_CPU_STEPS: Final = 100


def _variant(workload: Workload, suffix: str, change: Callable[[Pod, int], Pod]) -> Workload:
    def build(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
        cluster = workload.build(nodes, init_pods, measured_pods)
        measured = [change(pod, number) for number, pod in enumerate(cluster.measured)]
        return replace(cluster, measured=measured)

    return replace(workload, name=f"{workload.name}/{suffix}", build=build)


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
    amounts: ResourceList = {**(container.resources.requests or {})}
    if CPU in amounts:
        milli = amounts[CPU].milli_value() + number % _CPU_STEPS
        amounts[CPU] = parse_quantity(f"{milli}m")
    if MEMORY in amounts:
        amounts[MEMORY] = parse_quantity(f"{amounts[MEMORY].value() // 1024 + number}Ki")
    resources = msgspec.structs.replace(container.resources, requests=amounts)
    return msgspec.structs.replace(container, resources=resources)


ALL_WORKLOADS: Final = (
    *WORKLOADS,
    *(_variant(one, UNLIKE, with_own_label) for one in WORKLOADS),
    *(_variant(one, ALL_UNLIKE, with_own_amounts) for one in WORKLOADS),
)


def plain_name(name: str) -> str:
    """The name of the workload of which this is a variant, or its own."""
    base, _, suffix = name.rpartition("/")
    return base if suffix in (UNLIKE, ALL_UNLIKE) else name
