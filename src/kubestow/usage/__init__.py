"""What nodes and pods really use: measurements, the store of the latest ones, and files of them.

    source (metrics.k8s.io, Prometheus, a file, a simulation)
        │ Measurement, checked where it arrives
        ▼
    UsageStore ── implements ──► UsageView ──► `Handle.usage` ──► plugins

The interface:

measurement   `Measurement`: what one node or pod used at a time (average, and p95 and peak of its
              window where these are known). `problem_of` returns why one cannot be used: negative
              or huge amounts, a name that no object has.
store         `UsageStore`: columns by node, of the latest measurement and of statistics over the
              last `HISTORY_MAX` of them (average, p95, peak, deviation); the latest measurement of
              each pod, and sums by workload. `add` takes measurements one by one; `add_nodes` a
              column of nodes measured at one time. Bounded in every direction; what is refused is
              counted by reason (`statistics().refused`).
view          `UsageView`: how a scheduler reads it. A plugin has it as `handle.usage`, None without
              a source; `SchedulerFactory(usage=...)` and `DecidingHalf(usage=...)` take it. Nothing
              of it waits or reads from outside: a source adds to the store in the background.
              `version` differs from its last value whenever a node's columns have changed,
              `pod_version` whenever those of a pod or workload have, `slot_version` whenever
              `slots_of` answers differently.
              `slots_of(names)` maps node names to positions of the columns; -1 where a node has no
              measurement. `nodes` are the columns, `age_s` follows from `nodes.time_ns`.
workload      `workload_of(pod)`: the key by which pods are siblings, "" for a pod of its own.
file_format   a file of measurements, JSON lines or CSV: `read_usage`, `UsageWriter`.

Times are nanoseconds, on the clock that the reader of the store has (`Clock.now_ns`): since 1970 in
a cluster, virtual time in a simulation. CPU is in thousandths of a core, memory in bytes.
Not here: where measurements come from (`service`, `simulator`), what is decided by them (the plugin
LoadAware).
"""

from kubestow.usage.measurement import Amounts, Measurement, problem_of
from kubestow.usage.store import UsageStatistics, UsageStore
from kubestow.usage.view import NodeUsage, PodUsage, UsageView, WorkloadUsage
from kubestow.usage.workload import workload_of

__all__ = [
    "Amounts",
    "Measurement",
    "NodeUsage",
    "PodUsage",
    "UsageStatistics",
    "UsageStore",
    "UsageView",
    "WorkloadUsage",
    "problem_of",
    "workload_of",
]
