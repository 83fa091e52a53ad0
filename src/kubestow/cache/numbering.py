"""How many numbers are given out before values are renumbered.

Taint lists, resource names, label values, statuses and the like get a number at first use. In a
process that runs for months each new node or pod may bring a new value. So the values in use are
renumbered once there are many more numbers than a cluster of this size needs.
"""

from typing import Final

NUMBERED_SPARE: Final = 1024


def numbered_max(in_use: int) -> int:
    """How many numbers may be given out where `in_use` values, or that many nodes, exist."""
    return 2 * in_use + NUMBERED_SPARE
