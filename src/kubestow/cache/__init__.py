"""Which pods are on which node: the live cache, and the snapshot that one cycle decides on.

The cache follows events and counts assumed pods before the API server agreed. The snapshot copies
only what changed since the last cycle, into columns whose rows are in visiting order.

Not here: where the events come from (`cluster`), what the columns are used for (`plugins`).
"""
