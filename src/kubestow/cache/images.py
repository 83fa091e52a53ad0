"""Which images are on which nodes, cluster-wide (spec 01 §10, spec 03 §4.3)."""

from kubestow.api.node import Node


class ImageRecord:
    """One image name: its size as first reported, and the nodes that have it."""

    __slots__ = ("nodes", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.nodes: set[str] = set()


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

    def register(self, node: Node) -> dict[str, ImageRecord]:
        """Count the node's images; returns the node's own table of shared records."""
        states: dict[str, ImageRecord] = {}
        for image in node.status.images:
            for name in image.names:
                record = self._records.get(name)
                if record is None:
                    record = self._records[name] = ImageRecord(image.size_bytes)
                record.nodes.add(node.metadata.name)
                states[name] = record
        if states:
            self.version += 1
        return states

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
