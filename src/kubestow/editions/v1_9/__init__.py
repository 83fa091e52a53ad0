"""v1.9: a scheduler of predicates and priorities, with a FIFO and retries by time.

It has no plugins, so nothing of the core's cycle is used; cache, snapshot and stores are.
"""

from typing import Final

from kubestow.editions.edition import Edition, Gate, Stage, Version

EQUIVALENCE_CACHE: Final = "EnableEquivalenceClassCache"

EDITION: Final = Edition(
    version=Version.V1_9,
    # Gates of the time that change nothing about placing pods are refused: they would have no
    # effect.
    gates={EQUIVALENCE_CACHE: Gate(Stage.ALPHA, default=False)},
    has_plugins=False,
)
