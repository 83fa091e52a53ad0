"""Which pod is tried next, and when and after which events a rejected one is tried again.

`SchedulingQueue` is the entry; the other files hold its parts. Plugins pass their order, gates and
hints as functions: the queue does not depend on any plugin.
"""

from kubestow.queue.metrics import NO_METRICS, QueueMetrics
from kubestow.queue.moves import Place
from kubestow.queue.protocol import Queue, QueueStatistics
from kubestow.queue.queue import SchedulingQueue
from kubestow.queue.queued_pod import QueuedPod

__all__ = [
    "NO_METRICS",
    "Place",
    "Queue",
    "QueueMetrics",
    "QueueStatistics",
    "QueuedPod",
    "SchedulingQueue",
]
