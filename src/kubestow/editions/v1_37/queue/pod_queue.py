"""The queue of v1.37 for pods that are tried one by one (spec 12 §4)."""

from kubestow.api.pod import Pod, key_of
from kubestow.editions.v1_37.queue.narrowing import Narrowings
from kubestow.framework.events import ClusterEvent
from kubestow.queue.protocol import PreCheck
from kubestow.queue.queue import SchedulingQueue


class PodQueueV137(SchedulingQueue):
    """`narrowings` say which pods an event concerns; None without the gate for it."""

    narrowings: Narrowings | None = None

    def move_all(
        self, event: ClusterEvent, old: object, new: object, pre_check: PreCheck | None = None
    ) -> None:
        if self.narrowings is not None and pre_check is None:
            pre_check = self.narrowings.concerned_by(event, old, new)
        super().move_all(event, old, new, pre_check)

    def add(self, pod: Pod) -> None:
        """Add a new pod. Its nomination counts also if a gate refuses it (§4.1)."""
        self.nominator.add(pod)
        super().add(pod)

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted or bound; it is no longer counted as rejected (§4.4)."""
        key = key_of(pod)
        queued_pod = self._active.get(key) or self._backoff.get(key)
        super().delete(pod)
        if queued_pod is not None:
            self._count_rejectors(queued_pod, -1)

    def pending_pods(self) -> tuple[list[Pod], str]:
        pods, summary = super().pending_pods()
        return pods, summary.replace("unschedulablePods:", "unschedulableEntities:")
