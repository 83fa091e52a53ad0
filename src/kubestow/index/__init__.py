"""What is derived from the snapshot and kept up to date with it.

    follow             the one reader of changes: base of everything that follows a snapshot
    nodes, bare_nodes  views on some rows: what a plugin reads
    tracked            arrays over the rows, computed again for changed rows only; label columns
    node_match, taint_match, distinct, selector_patterns   selectors and taints over all nodes
    present            which label keys the nodes have
    held               which nodes hold an item: a disk, a volume
    image_rows         which nodes have an image
    topology           pods and terms counted per node and domain
    devices            published, claimed and allocated devices, derived from the stores

What belongs to a snapshot is stored with it: `snapshot.derived(TopologyCounts)`. Not here: what a
cycle computes for a pod and reuses for pods of the same shape (`engine.equivalence`).
"""
