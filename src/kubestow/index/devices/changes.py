"""Which nodes' devices changed, in the order they did.

Whoever keeps something per node remembers how far it has read, and later looks again only at the
nodes noted since.
"""

from typing import Final

NAMES_MAX: Final = 65_536  # remembered; whoever is further behind looks at all nodes again


class DeviceChanges:
    def __init__(self) -> None:
        self._names: list[str] = []
        self._first = 0

    @property
    def mark(self) -> int:
        """The end of the list: what a reader has seen when it is up to date."""
        return self._first + len(self._names)

    def note(self, node_name: str) -> None:
        if len(self._names) >= NAMES_MAX:
            self.note_all()
        self._names.append(node_name)

    def note_all(self) -> None:
        """Something changed that every node may see."""
        # No mark handed out so far reaches back to here.
        self._first = self.mark + 1
        self._names.clear()

    def since(self, mark: int) -> list[str] | None:
        """The nodes noted after the mark, some perhaps twice; None if all have to be looked at."""
        return None if mark < self._first else self._names[mark - self._first :]
