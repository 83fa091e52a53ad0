"""Orders the active queue: higher priority first, then who has waited longer (spec 05 §3)."""

from typing import ClassVar

from kubestow.framework.handle import Handle
from kubestow.framework.plugin import QueueEntry


class PrioritySort:
    name: ClassVar[str] = "PrioritySort"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def sort_key(self, priority: int, timestamp_ns: int) -> tuple[int, int]:
        """A key that orders as `less` does, for heaps that compare keys."""
        return -priority, timestamp_ns

    def less(self, first: QueueEntry, second: QueueEntry) -> bool:
        return self.sort_key(first.pod_info.priority, first.timestamp_ns) < self.sort_key(
            second.pod_info.priority, second.timestamp_ns
        )
