"""For plugins that are to be fast: what may be reused from pod to pod, and what follows changes.

`docs/guides/write-a-plugin.md` explains it from its fifth section on. A plugin that imports nothing
of this is asked in every cycle, which is always right.
"""

from kubestow.framework.reuse import (
    ASKED,
    Concern,
    PodReads,
    Reads,
    Reuse,
    RowAnswers,
    RowCodes,
    Rule,
    VersionedBasis,
)
from kubestow.index.follow import Follower
from kubestow.index.held import NodesByItem

__all__ = [
    "ASKED",
    "Concern",
    "Follower",
    "NodesByItem",
    "PodReads",
    "Reads",
    "Reuse",
    "RowAnswers",
    "RowCodes",
    "Rule",
    "VersionedBasis",
]
