"""Pods that fail in the same way again and again, so that a run does not wait for them to end."""

from typing import Final

from kubestow.engine.decision import Decision, FitError
from kubestow.engine.scheduler import Scheduler
from kubestow.queue import QueuedPod
from kubestow.queue.moves import Place
from kubestow.queue.queue import SchedulingQueue

# After this many attempts that fail with the same error another one is not waited for.
SAME_FAILURE_TRIES: Final = 3
_RETRIED: Final = (Place.BACKOFF, Place.ERROR_BACKOFF)


class Repetitions:
    """Follows the attempts that no event in the cluster can help: without a node, by a faulty
    plugin, or with their group."""

    # Set once it is built, with this as one of its listeners.
    scheduler: Scheduler

    def __init__(self) -> None:
        # By UID: the message, how often in turn.
        self._repeated: dict[str, tuple[str, int]] = {}

    def decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        """Note a decision; a `DecisionListener`."""
        uid, status = queued_pod.uid, decision.status
        groups = self.scheduler.cache.groups
        # A member of a group is tried again without an event, also if it fits and others do not.
        is_member = groups is not None and groups.key_of(decision.pod.pod) is not None
        if not is_member and (status is None or isinstance(status.error, FitError)):
            self._repeated.pop(uid, None)
            return
        message, count = self._repeated.get(uid, ("", 0))
        self._repeated[uid] = (decision.message, count + 1 if message == decision.message else 1)

    def count(self) -> int:
        """The number of waiting pods that failed in the same way a few times."""
        queue = self.scheduler.queue
        repeated = {
            uid for uid, (_, tries) in self._repeated.items() if tries >= SAME_FAILURE_TRIES
        }
        if not isinstance(queue, SchedulingQueue):
            return len(repeated)
        return sum(
            place in _RETRIED and queued_pod.uid in repeated
            for place, queued_pod in queue.waiting()
        )
