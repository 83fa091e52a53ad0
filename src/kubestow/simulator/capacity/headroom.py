"""How much room each pool of nodes has, by placing copies of a pod in one pool after the other.

A pool is the set of nodes with the same value of a label. The copies get a node affinity to the
pool besides their own. Each pool is filled in a cluster of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.resources import CPU, MEMORY
from kubestow.cache.node_info import NodeInfo
from kubestow.cluster.documents import objects_in, replaced_at, value_at
from kubestow.errors import InputError
from kubestow.simulator.capacity.amounts import free, total
from kubestow.simulator.capacity.copies import CopyTemplate
from kubestow.simulator.capacity.fit import COPIES_MAX, Fit, Limit, fit_template
from kubestow.simulator.capacity.measured import NodeUse
from kubestow.simulator.capacity.placing import PlacingCluster, PlacingSetup
from kubestow.simulator.virtual_time import run_in_virtual_time

# Labels by which providers name their pools; the first that a node has is used.
POOL_LABELS: Final = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
UNIT: Final = {CPU: "1", MEMORY: "1Gi"}  # of the pod that is placed if none is given
_TERMS: Final = (
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)
_CONDITION_TAINT: Final = "node.kubernetes.io/"


class PoolUse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the measured nodes of a pool use, each by its 95th percentile, and what of their
    allocatable is then idle; both are sums."""

    measured_nodes: int
    cpu_milli: int
    memory_bytes: int
    idle_cpu_milli: int
    idle_memory_bytes: int


class PoolRoom(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One pool; `name` is empty for nodes without the label. What is free is a sum over nodes."""

    name: str
    nodes: int
    free_cpu_milli: int
    free_memory_bytes: int
    free_pods: int
    # How many copies fit in this pool alone, and why no more.
    copies: int
    limited_by: list[Limit]
    # What nodes really use, where that is given.
    in_use: PoolUse | UnsetType = UNSET


class Headroom(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`label` is empty if no node has a label of pools: all are one pool then."""

    label: str
    pods_per_copy: int
    pools: list[PoolRoom]


def headroom(
    cluster: Sequence[Document],
    copies: Sequence[Document] | None = None,
    setup: PlacingSetup | None = None,
    *,
    label: str = "",
    copies_max: int = COPIES_MAX,
    in_use: Mapping[str, NodeUse] | None = None,
) -> Headroom:
    """The room of every pool for copies, by default for pods of 1 cpu and 1Gi that tolerate the
    taints of the pools; raises InputError and PluginError. `in_use` is what nodes really use, by
    name: it is reported beside what is requested, which alone decides on what fits."""

    setup = setup or PlacingSetup()
    infos = run_in_virtual_time(_infos(cluster, setup))
    key = label or _label_of(infos)
    given = copies if copies is not None else [_unit(infos)]
    pools = _pools(infos, key)
    found: list[PoolRoom] = []
    for name in sorted(pools):
        template = _within(given, key, name)
        fitting = fit_template(cluster, template, setup, copies_max=copies_max)
        room = _room(name, pools[name], fitting)
        if in_use is not None:
            room = msgspec.structs.replace(room, in_use=_pool_use(pools[name], in_use))
        found.append(room)
    return Headroom(label=key, pods_per_copy=CopyTemplate(given).pod_count, pools=found)


async def _infos(cluster: Sequence[Document], setup: PlacingSetup) -> list[NodeInfo]:
    """The nodes once the pods that wait are placed."""
    async with PlacingCluster(cluster, setup).running() as placing:
        return list(placing.snapshot().node_infos)


def _label_of(infos: Iterable[NodeInfo]) -> str:
    labels = {key for info in infos if info.node for key in info.node.metadata.labels}
    return next((key for key in POOL_LABELS if key in labels), "")


def _pools(infos: Iterable[NodeInfo], label: str) -> dict[str, list[NodeInfo]]:
    pools: dict[str, list[NodeInfo]] = {}
    for info in infos:
        if info.node is not None:
            pools.setdefault(info.node.metadata.labels.get(label, ""), []).append(info)
    if label and list(pools) == [""]:
        raise InputError(f'no node has the label "{label}"')
    return pools


def _room(name: str, infos: Sequence[NodeInfo], found: Fit) -> PoolRoom:
    cpu, memory, _, pods = total(map(free, infos)).tolist()
    return PoolRoom(
        name=name,
        nodes=len(infos),
        free_cpu_milli=cpu,
        free_memory_bytes=memory,
        free_pods=pods,
        copies=found.copies,
        limited_by=found.limited_by,
    )


def _pool_use(infos: Sequence[NodeInfo], in_use: Mapping[str, NodeUse]) -> PoolUse:
    found = [(info.allocatable, in_use[info.name]) for info in infos if info.name in in_use]
    return PoolUse(
        measured_nodes=len(found),
        cpu_milli=sum(used.cpu_milli for _, used in found),
        memory_bytes=sum(used.memory_bytes for _, used in found),
        idle_cpu_milli=sum(max(has.milli_cpu - used.cpu_milli, 0) for has, used in found),
        idle_memory_bytes=sum(max(has.memory - used.memory_bytes, 0) for has, used in found),
    )


def _unit(infos: Iterable[NodeInfo]) -> Document:
    taints = {taint.key for info in infos if info.node for taint in info.node.spec.taints}
    tolerations = [
        {"key": key, "operator": "Exists"}
        for key in sorted(taints)
        if not key.startswith(_CONDITION_TAINT)
    ]
    container = {"name": "unit", "image": "unit", "resources": {"requests": UNIT}}
    raw: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "unit"},
        "spec": {"containers": [container], "tolerations": tolerations},
    }
    return Document(raw, "the pod of 1 cpu and 1Gi")


def _within(documents: Sequence[Document], label: str, pool: str) -> CopyTemplate:
    """The copies, only on nodes of the pool."""
    if not label:
        return CopyTemplate(documents)
    rule: JsonObject = {"key": label, "operator": "DoesNotExist"}
    if pool:
        rule = {"key": label, "operator": "In", "values": [pool]}
    return CopyTemplate(documents, on_pod=lambda pod: _restricted(pod, rule))


def _restricted(pod: JsonObject, rule: JsonObject) -> JsonObject:
    terms = objects_in(value_at(pod, *_TERMS)) or [{}]
    narrowed = [
        {**term, "matchExpressions": [*objects_in(term.get("matchExpressions")), rule]}
        for term in terms
    ]
    return replaced_at(pod, _TERMS, narrowed)
