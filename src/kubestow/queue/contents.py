"""The containers of the queue, and where each pod is (spec 02 §2).

Everything here reads. What puts a pod into a container, and why, is in `queue`.
"""

from collections.abc import Callable, Iterator, Mapping

from kubestow.api.pod import Pod, key_of
from kubestow.api.pod_info import PodInfo
from kubestow.framework.plugin import SharedGatePlugin
from kubestow.queue.active import ActiveQueue, SortKeyFunction
from kubestow.queue.backoff import BackoffPolicy, BackoffQueue
from kubestow.queue.in_flight import InFlight
from kubestow.queue.interest import Interest
from kubestow.queue.metrics import ACTIVE, BACKOFF, NO_METRICS, QueueMetrics
from kubestow.queue.moves import Place
from kubestow.queue.nominator import Nominator, PodLister
from kubestow.queue.parked import ParkedPods
from kubestow.queue.protocol import QueueStatistics
from kubestow.queue.queued_pod import QueuedPod


class QueueContents:
    """What moves pods derives from it; the arguments are those of `SchedulingQueue`."""

    def __init__(
        self,
        *,
        sort_key: SortKeyFunction,
        policy: BackoffPolicy,
        interest: Interest,
        max_unschedulable_ns: int,
        pod_lister: PodLister,
        shared_gates: Mapping[str, SharedGatePlugin],
        metrics: QueueMetrics,
    ) -> None:
        self._policy = policy
        self._max_unschedulable_ns = max_unschedulable_ns
        self._active = ActiveQueue(
            sort_key=sort_key, metrics=metrics, count_changed=_pending_gauge(metrics, ACTIVE)
        )
        self._backoff = BackoffQueue(
            policy, sort_key=sort_key, count_changed=_pending_gauge(metrics, BACKOFF)
        )
        self._parked = ParkedPods(interest, metrics=metrics, shared_gates=shared_gates)
        self._in_flight = InFlight(metrics=metrics)
        self.nominator = Nominator(find=self._find_pod_info, pod_lister=pod_lister)

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(
            active=len(self._active),
            backoff=self._backoff.rejected_count,
            error_backoff=self._backoff.failed_count,
            unschedulable=self._parked.unschedulable_count,
            gated=self._parked.gated_count,
            in_flight=len(self._in_flight),
            in_flight_events=self._in_flight.event_count,
            nominated=len(self.nominator),
        )

    def pending_pods(self) -> tuple[list[Pod], str]:
        """All waiting pods, and a text with the size of each container."""
        pods = [*self.pods_in_active(), *self.pods_in_backoff(), *self.pods_in_unschedulable()]
        summary = (
            f"activeQ:{len(self._active)}; backoffQ:{len(self._backoff)}; "
            f"unschedulablePods:{len(self._parked)}"
        )
        return pods, summary

    def get_pod(self, name: str, namespace: str) -> QueuedPod | None:
        """The record of a waiting pod; None also while it is in flight."""
        key = f"{namespace}/{name}"
        return self._backoff.get(key) or self._parked.get(key) or self._active.get(key)

    def place_of(self, pod: Pod) -> Place | None:
        """Where the pod is, None if not in the queue. A container counts before in flight."""
        key = key_of(pod)
        if key in self._active:
            return Place.ACTIVE
        if key in self._backoff:
            return Place.ERROR_BACKOFF if self._backoff.has_failed(key) else Place.BACKOFF
        if (parked := self._parked.get(key)) is not None:
            return Place.GATED if parked.is_gated else Place.UNSCHEDULABLE
        return Place.IN_FLIGHT if pod.metadata.uid in self._in_flight else None

    def next_try_ns(self, pod: Pod) -> int | None:
        """When a waiting pod is tried again at the latest, by the wall clock; None if no time is
        set: it is gated, active or being tried."""
        queued_pod = self.get_pod(pod.metadata.name, pod.metadata.namespace)
        match self.place_of(pod):
            case Place.BACKOFF | Place.ERROR_BACKOFF if queued_pod is not None:
                return self._policy.expiry_ns(queued_pod)
            case Place.UNSCHEDULABLE if queued_pod is not None:
                return parked_since_ns(queued_pod) + self._max_unschedulable_ns
            case _:
                return None

    def pods_in_active(self) -> list[Pod]:
        return [queued_pod.pod for queued_pod in self._active]

    def pods_in_backoff(self) -> list[Pod]:
        """Pods that were rejected, then pods whose attempt hit an error."""
        return [queued_pod.pod for queued_pod in self._backoff]

    def pods_in_unschedulable(self) -> list[Pod]:
        """All parked pods, gated ones included."""
        return [queued_pod.pod for queued_pod in self._parked]

    def waiting(self) -> Iterator[tuple[Place, QueuedPod]]:
        """Every record and where it is; the active ones in the order in which they are popped."""
        for queued_pod in self._active.in_order():
            yield Place.ACTIVE, queued_pod
        for queued_pod in self._backoff:
            failed = self._backoff.has_failed(queued_pod.key)
            yield Place.ERROR_BACKOFF if failed else Place.BACKOFF, queued_pod
        for queued_pod in self._parked:
            yield Place.GATED if queued_pod.is_gated else Place.UNSCHEDULABLE, queued_pod

    def incomplete(self) -> Iterator[QueuedPod]:
        """Members of groups that are not known, where these are kept apart."""
        return iter(())

    def pending(self) -> Iterator[QueuedPod]:
        """Members of a group that is being tried, where these are kept apart."""
        return iter(())

    def uids_in_flight(self) -> list[str]:
        return self._in_flight.uids()

    def _find_pod_info(self, key: str) -> PodInfo | None:
        queued_pod = self._active.get(key) or self._parked.get(key) or self._backoff.get(key)
        return None if queued_pod is None else queued_pod.pod_info


def _pending_gauge(metrics: QueueMetrics, queue: str) -> Callable[[int], None] | None:
    """Reports changes of a container's size; None without a recorder."""
    if metrics is NO_METRICS:
        return None
    return lambda delta: metrics.pending_changed(queue, delta)


def parked_since_ns(queued_pod: QueuedPod) -> int:
    """When it was parked, or, if that was later, retried after a long wait."""
    flush_ns = queued_pod.flush_timestamp_ns
    return queued_pod.timestamp_ns if flush_ns is None else max(queued_pod.timestamp_ns, flush_ns)
