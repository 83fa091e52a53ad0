"""Which images are on which nodes, cluster-wide (spec 01 §10, spec 03 §4.3)."""

import msgspec

from kubestow.api.node import Node


class ImageState(msgspec.Struct, frozen=True, eq=False):
    """An image as a snapshot has it. Compared by identity: all rows that were copied while neither
    number changed have the same object."""

    name: str
    size: int
    node_count: int


class ImageRecord:
    """One image name: its size as first reported, and the nodes that have it."""

    __slots__ = ("_state", "nodes", "size")

    def __init__(self, name: str, size: int) -> None:
        self.size = size
        self.nodes: set[str] = set()
        self._state = ImageState(name, size, 0)

    def state(self) -> ImageState:
        """The numbers as of now; the same object until the number of nodes changes."""
        state = self._state
        if state.node_count != len(self.nodes):
            state = self._state = ImageState(state.name, self.size, len(self.nodes))
        return state


class ImageStates:
    """All image names of the cluster.

    The size of a record is the one the first node reported; later nodes do not change it while the
    record exists. `version` grows whenever any record changes: a row of the snapshot is frozen
    again only if it has grown.
    """

    def __init__(self) -> None:
        self._records: dict[str, ImageRecord] = {}
        self.version = 0

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def register(self, node: Node) -> tuple[ImageRecord, ...]:
        """Count the node's images; returns their records, each once."""
        found: dict[str, ImageRecord] = {}
        for image in node.status.images:
            for name in image.names:
                record = self._records.get(name)
                if record is None:
                    record = self._records[name] = ImageRecord(name, image.size_bytes)
                record.nodes.add(node.metadata.name)
                found[name] = record
        if found:
            self.version += 1
        return tuple(found.values())

    def unregister(self, node: Node) -> None:
        for image in node.status.images:
            for name in image.names:
                record = self._records.get(name)
                if record is None:
                    continue
                record.nodes.discard(node.metadata.name)
                if not record.nodes:
                    del self._records[name]
                self.version += 1
