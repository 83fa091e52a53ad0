"""How many numbers are given before they are given anew.

Taint lists, resource names, label values, statuses and the like get a number at first sight. Nodes
and pods come and go for as long as the process runs, and each may bring a value of its own. So the
numbers are given anew, to the values in use, once there are many more than a cluster of this size
needs.
"""

from typing import Final

NUMBERED_SPARE: Final = 1024


def numbered_max(in_use: int) -> int:
    """How many numbers may be given where so many are in use, or there are so many nodes."""
    return 2 * in_use + NUMBERED_SPARE
