"""The plugin DefaultPreemption: makes room for a pod by evicting less important ones (spec 08 A).

    eligibility ─► dry run: which nodes, which victims ─► extenders ─► pick one ─► executor evicts
                     ├── one_node        exactly, on a simulated node
                     ├── many_nodes      the same for many nodes in step
                     ├── by_numbers      the same for one node that changed, without a copy of it
                     └── trial_records   results of these, reused for pods of the same shape
                         trial_record    those of one shape

`filters`: what each filter reads. `evictable`: the pods of a node in order of importance.
`reduced_nodes`: a view of many nodes without these pods. `filter_runner`: filters on that view.
`candidates`: the results and their order. `plugin`: what the framework calls. Texts: why a node is
of no use in `dry_run`, why a pod may not preempt in `eligibility`, for groups in `group_victims`.
"""

from kubestow.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
