"""What is reused from one pod to the next: deleting this folder would cost speed and nothing else.

Pods are equal here as far as plugins read them (`framework.reuse`). What reads the spec is kept per
distinct basis, which applications share; what reads nothing but requests, per distinct requests.
Plugins that read other pods are asked about the pods they concern, in every cycle.

    Records ── one FrameRecord per profile and basis ── follows the Node objects, row by row
       │            first filter to reject a node, weighted scores, raw scores to normalise
       ├────── one Record per profile and requests ──── follows the pods as well
       │            first filter to reject a node, weighted scores
       │       └── ExtendedRecord: with what a plugin keeps itself, while that is the same
       ▼
    ReusingEvaluation   what `decide` asks for one pod: the frame, the record if there is one, and
                        the plugins that are not in them
    PassingNodes        the nodes that pass all filters, kept for pods in a row
    plan                which plugins of a profile are in a frame or record, by their declarations
    row_forms           a second form of some rules, for a single changed node as plain numbers

Where a plugin fails, the attempt is made again without any of this (`FallBackToPlain`), because
which failure counts depends on the order of all plugins.
"""
