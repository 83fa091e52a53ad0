"""Numbers that the help of commands shows, apart from the code that uses them.

The help is printed without loading a simulator.
"""

from typing import Final

# Virtual seconds after which a simulation ends.
LIMIT_S: Final = 600.0
# How many nodes a served cluster has, and can have.
NODE_COUNT: Final = 10
NODES_PER_CLUSTER: Final = 10_000
# How long a node may be silent before it counts as lost.
NODE_GRACE_S: Final = 50.0
# What the recording of a served cluster takes at most, both files together.
RECORD_SIZE_MIB: Final = 512
