"""The plugin DefaultPreemption: makes room for a pod by evicting less important ones (spec 08 A).

    eligibility ─► dry run: which nodes, which victims ─► extenders ─► pick one ─► executor evicts
                     ├── one_node        exactly, on a simulated node
                     ├── many_nodes      the same for many nodes in step
                     └── trial_records   what these two found for pods alike, as long as it holds

`filters` says what each filter looks at, `evictable` knows the pods of a node in order of
importance, `thinned` shows many nodes without them, `asking` asks filters about those, `candidates`
holds what was found and ranks it; `plugin` ties it to the framework.
"""

from kubestow.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
