"""What is reused between equal pods: deleting this folder would cost speed and nothing else.

Pods are equal here when they have one shape (`api.pod_shape`). For each shape there is a record of
verdicts and scores of every node, of the plugins that allow it (`framework.reuse`); the others are
asked in every cycle.

    Records ── one Record per profile and shape ── follows the snapshot, row by row
       │            │
       │            ├─ fixed     read from Node objects: recomputed when a Node changes
       │            ├─ local     read from pods as well: recomputed when anything on the node does
       │            └─ varying   raw scores, normalised over the feasible nodes of each attempt
       ▼
    ReusingEvaluation   what `decide` asks for one pod: the record, and the plugins not in it
    plan                which plugins of a profile are in a record, by their declarations
    row_forms           second forms of some rules for a single changed node, as plain numbers

Where a plugin fails, the attempt is made again without any of this (`FallBackToPlain`), because
which failure counts depends on the order of all plugins.
"""
