"""Orders the active queue: higher priority first, then longer waiting time (spec 05 §3)."""

from typing import ClassVar

from kubestow.framework.handle import Handle
from kubestow.framework.plugin import QueueEntry


class PrioritySort:
    name: ClassVar[str] = "PrioritySort"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def less(self, first: QueueEntry, second: QueueEntry) -> bool:
        return self.sort_key(first) < self.sort_key(second)

    def sort_key(self, entry: QueueEntry, /) -> tuple[int, int]:
        """A key that orders as `less` does, for heaps that compare keys."""
        return -entry.pod_info.priority, entry.timestamp_ns
