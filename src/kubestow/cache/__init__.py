"""Which pods sit where: the live cache and the frozen picture one cycle decides on.

The cache follows events and counts assumed pods before the API server agreed. The snapshot copies
only what changed since the last cycle, into columns whose rows stand in visiting order.

Not here: where the events come from (`cluster`), what is made of the columns (`plugins`).
"""
