"""Which pod is tried next, when a rejected one may be tried again, and what wakes it up.

`SchedulingQueue` is the front; the other files hold its parts. Everything that comes from plugins
(order, gates, hints) is given as functions: the queue never learns which plugin it talks to.
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
