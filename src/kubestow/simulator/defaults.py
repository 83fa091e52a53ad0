"""Numbers that the help of commands shows, apart from the code that uses them.

The help is printed without loading a simulator.
"""

from typing import Final

# Virtual seconds after which a simulation ends.
LIMIT_S: Final = 600.0
# How many nodes a served cluster has, and any cluster that is made of shapes can have.
NODE_COUNT: Final = 10
NODES_PER_CLUSTER: Final = 200_000
SEEDS_PER_COMPARISON: Final = 100_000  # of one comparison
LARGEST_SEED: Final = 10**15
# How long a node may be silent before it counts as lost.
NODE_GRACE_S: Final = 50.0
# What the recording of a served cluster takes at most, both files together.
RECORD_SIZE_MIB: Final = 512
