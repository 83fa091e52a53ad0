"""What is derived from the snapshot and kept up to date with it.

    follow             the one reader of changes: base of everything that follows a snapshot
    nodes, bare_nodes  views on some rows: what a plugin gets to see
    tracked            arrays over the rows, computed again for changed rows only; label columns
    node_match, taint_match, distinct, selector_patterns   selectors and taints over all nodes
    held               which nodes hold a thing: a disk, a volume
    topology           pods and terms counted per node and domain
    devices            published, claimed and allocated devices, derived from the stores

What belongs to a snapshot hangs on it: `snapshot.derived(TopologyCounts)`. Nothing here decides.
Not here: what a cycle finds out about a pod and reuses for equal ones (`engine.equivalence`).
"""
