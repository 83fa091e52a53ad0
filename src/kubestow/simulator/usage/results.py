"""Use in the result of a run. Shares are of what is allocatable on a node.

CPU-seconds are those of one core. `used` CPU is what pods got: never more than a node has.
"""

import msgspec


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class SampleUsage(_Part, frozen=True, kw_only=True):
    """The use of the cluster at one time, by resource.

    p95_share, max_share   over nodes
    lost_cpu_s, memory_evictions   since the start
    """

    used: dict[str, int]
    hot_nodes: dict[str, int]
    p95_share: dict[str, float]
    max_share: dict[str, float]
    lost_cpu_s: float
    memory_evictions: int


class ResourceUsage(_Part, frozen=True, kw_only=True):
    """The use of one resource over all nodes and the whole run; a node at each time is one value of
    the percentiles."""

    resource: str
    mean_share: float
    p50_share: float
    p95_share: float
    p99_share: float
    max_share: float
    hot_node_minutes: float


class UsageFigures(_Part, frozen=True, kw_only=True):
    """The use of the whole run; `hot_share` is that from which on a node is hot."""

    every_s: float
    hot_share: float
    resources: list[ResourceUsage]
    demanded_cpu_s: float
    lost_cpu_s: float
    # Pods that kubelets evicted for memory.
    memory_evictions: int


class NodeUsageRow(_Part, frozen=True, kw_only=True):
    name: str
    mean_share: dict[str, float]
    max_share: dict[str, float]
    hot_minutes: dict[str, float]
    lost_cpu_s: float


class OwnerUsageRow(_Part, frozen=True, kw_only=True):
    """The use of all pods of one owner (`PodRow.owner`)."""

    owner: str
    # What was asked for, and what of it was lost.
    demanded_cpu_s: float
    lost_cpu_s: float
    memory_evictions: int


class RunUsage(UsageFigures, frozen=True, kw_only=True, rename="camel"):
    """The use of a run with its rows."""

    nodes: list[NodeUsageRow]
    owners: list[OwnerUsageRow]

    def figures(self) -> UsageFigures:
        names = UsageFigures.__struct_fields__
        return UsageFigures(**{name: getattr(self, name) for name in names})
