"""The queue's record of a pod (spec 02 §2.1).

The record is made when the pod enters the queue and lives until it is bound or deleted. The queue
writes everything except the rejectors, which the failure handler replaces by `reject` after each
attempt. Times are wall-clock nanoseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.clock import NANOSECONDS
from kubestow.framework.events import ClusterEvent

# Midnight of 1 January of year 1, before any time of the clock: a backoff that is always over.
ZERO_TIME_NS: Final = -62_135_596_800 * NANOSECONDS

# Fragments by name.
Signature = Mapping[str, object]

NO_PLUGINS: Final[frozenset[str]] = frozenset()


class QueuedPod:
    """`timestamp_ns` changes only when an attempt fails: events do not change a pod's place."""

    __slots__ = (
        "attempts",
        "backoff_expiry_ns",
        "consecutive_errors_count",
        "flush_timestamp_ns",
        "gating_events",
        "gating_plugin",
        "initial_attempt_ns",
        "pending_plugins",
        "pod_info",
        "signature",
        "timestamp_ns",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed_from_unschedulable",
    )

    def __init__(self, pod_info: PodInfo, *, timestamp_ns: int) -> None:
        self.pod_info = pod_info
        self.timestamp_ns = timestamp_ns
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors_count = 0
        self.backoff_expiry_ns: int | None = None  # None: not computed since the last attempt
        self.initial_attempt_ns: int | None = None  # None: never been in the active queue
        self.unschedulable_plugins = NO_PLUGINS
        self.pending_plugins = NO_PLUGINS
        self.gating_plugin = ""
        self.gating_events: tuple[ClusterEvent, ...] = ()
        self.was_flushed_from_unschedulable = False
        self.flush_timestamp_ns: int | None = None
        # What equal pods are found by (spec 04 §15); None: there is none.
        self.signature: Signature | None = None

    @property
    def pod(self) -> Pod:
        return self.pod_info.pod

    @property
    def uid(self) -> str:
        return self.pod_info.uid

    @property
    def key(self) -> str:
        return self.pod_info.key

    @property
    def scheduler_name(self) -> str:
        return self.pod_info.pod.spec.scheduler_name

    @property
    def title(self) -> str:
        """What it is called where pods and groups are listed together."""
        return self.key

    @property
    def entity_type(self) -> str:
        """The value of the label `type`."""
        return "pod"

    @property
    def waiting_pods(self) -> "Sequence[QueuedPod]":
        """The pods of the entry: this one alone, or the members of a group."""
        return (self,)

    @property
    def is_gated(self) -> bool:
        return self.gating_plugin != ""

    @property
    def rejectors(self) -> frozenset[str]:
        """The plugins whose events may move the pod; none means that the attempt had an error."""
        if not self.pending_plugins:
            return self.unschedulable_plugins
        return self.unschedulable_plugins | self.pending_plugins

    @property
    def has_rejectors(self) -> bool:
        return bool(self.unschedulable_plugins or self.pending_plugins)

    def reject(self, *, unschedulable: Iterable[str] = (), pending: Iterable[str] = ()) -> None:
        """Replace the rejectors of the last attempt (spec 02 §14)."""
        self.unschedulable_plugins = frozenset(unschedulable)
        self.pending_plugins = frozenset(pending)
        self.gating_plugin = ""
        self.gating_events = ()

    def copy_for_assume(self, pod_info: PodInfo) -> "QueuedPod":
        """The record of the assumed pod in its binding cycle.

        Spec 02 §2.1: the flush mark is not copied, so a pod scheduled after a leftover flush is
        never counted as such.
        """
        copy = QueuedPod(pod_info, timestamp_ns=self.timestamp_ns)
        copy.attempts = self.attempts
        copy.unschedulable_count = self.unschedulable_count
        copy.consecutive_errors_count = self.consecutive_errors_count
        copy.backoff_expiry_ns = self.backoff_expiry_ns
        copy.initial_attempt_ns = self.initial_attempt_ns
        copy.unschedulable_plugins = self.unschedulable_plugins
        copy.pending_plugins = self.pending_plugins
        copy.gating_plugin = self.gating_plugin
        copy.gating_events = self.gating_events
        copy.flush_timestamp_ns = self.flush_timestamp_ns
        copy.signature = self.signature
        return copy

    def __repr__(self) -> str:
        return f"QueuedPod({self.key!r}, uid={self.uid!r}, attempts={self.attempts})"
