"""The rows of all nodes and pods, which of them were not sent yet, and counts over them."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubestow.web.protocol import NO_PLACE, NO_WORD, PLACES, NodeRow, PodRow, QueueState

REJECTORS_SHOWN: Final = 20


class NewRows(NamedTuple):
    nodes: tuple[NodeRow, ...]
    gone_nodes: tuple[int, ...]
    pods: tuple[PodRow, ...]
    gone_pods: tuple[str, ...]
    # None if it has not changed.
    queue: QueueState | None


class PageTable:
    def __init__(self) -> None:
        self.nodes: dict[int, NodeRow] = {}
        self.pods: dict[str, PodRow] = {}
        self._waiting = WaitingCounts()
        self._unsent_nodes: set[int] = set()
        self._unsent_pods: set[str] = set()
        self._sent_queue: QueueState | None = None

    @property
    def unsent_count(self) -> int:
        return len(self._unsent_nodes) + len(self._unsent_pods)

    def places(self) -> tuple[int, ...]:
        return self._waiting.places()

    def queue(self) -> QueueState:
        return self._waiting.state()

    def set_node(self, node_id: int, row: NodeRow | None) -> None:
        self._unsent_nodes.add(node_id)
        if row is None:
            self.nodes.pop(node_id, None)
        else:
            self.nodes[node_id] = row

    def set_pod(self, key: str, row: PodRow | None) -> None:
        self._unsent_pods.add(key)
        old = self.pods.pop(key, None) if row is None else self.pods.get(key)
        if old is not None:
            self._waiting.add(old, -1)
        if row is not None:
            self._waiting.add(row, 1)
            self.pods[key] = row

    def take_new(self) -> NewRows:
        """What changed since the last call."""
        queue = self.queue()
        is_queue_new = queue != self._sent_queue
        self._sent_queue = queue
        new = NewRows(
            nodes=tuple(self.nodes[each] for each in self._unsent_nodes if each in self.nodes),
            gone_nodes=tuple(each for each in self._unsent_nodes if each not in self.nodes),
            pods=tuple(self.pods[key] for key in self._unsent_pods if key in self.pods),
            gone_pods=tuple(key for key in self._unsent_pods if key not in self.pods),
            queue=queue if is_queue_new else None,
        )
        self._unsent_nodes = set()
        self._unsent_pods = set()
        return new


class WaitingCounts:
    """How many pods are at each place, and which plugins rejected how many of them."""

    def __init__(self) -> None:
        self._places = [0] * len(PLACES)
        self._rejectors: dict[int, int] = {}

    @classmethod
    def of(cls, rows: Iterable[PodRow]) -> "WaitingCounts":
        counts = cls()
        for row in rows:
            counts.add(row, 1)
        return counts

    def add(self, row: PodRow, sign: int) -> None:
        if row.place == NO_PLACE:
            return
        self._places[row.place] += sign
        if row.rejectors != NO_WORD:
            count = self._rejectors.get(row.rejectors, 0) + sign
            if count:
                self._rejectors[row.rejectors] = count
            else:
                del self._rejectors[row.rejectors]

    def places(self) -> tuple[int, ...]:
        return tuple(self._places)

    def state(self) -> QueueState:
        frequent = sorted(self._rejectors.items(), key=lambda item: (-item[1], item[0]))
        return QueueState(places=self.places(), rejectors=tuple(frequent[:REJECTORS_SHOWN]))
