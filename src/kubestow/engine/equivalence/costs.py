"""What it costs to ask the plugins of a record, and to have a record instead.

Measured, in units of what one more node costs where many are asked about. Only their ratios matter,
and only for speed: what is decided is the same.
"""

from typing import Final, NamedTuple


class Costs(NamedTuple):
    """Each is so much in any case, and so much for a node.

    ask, ask_node         to ask about some nodes
    build, build_node     to make a record of all nodes
    follow, follow_node   to bring it up to date with many changes
    change                to bring it up to date with one of a few changes
    """

    ask: int
    ask_node: float
    build: int
    build_node: float
    follow: int
    follow_node: float
    change: int

    def asking(self, nodes: int) -> int:
        return int(self.ask + self.ask_node * nodes)

    def building(self, nodes: int) -> int:
        return int(self.build + self.build_node * nodes)

    def following(self, changes: int) -> int:
        if changes <= CHANGES_FEW:
            return self.change * changes
        return int(self.follow + self.follow_node * changes)


# Up to this many changed rows of a record are computed one by one.
CHANGES_FEW: Final = 8

# The plugins read numbers alone, of one node as well as of many. To ask costs less where every node
# is known to fit, and more where few do: this is in between.
BY_NUMBERS: Final = Costs(4_000, 1.0, 7_500, 0.6, 4_200, 1.2, 340)
# Some plugins are only asked about many nodes: what these do for each may take long.
BY_NODES: Final = Costs(1_000, 1.0, 0, 1.0, 0, 1.0, 1)
