"""Pods that fail in the same way again and again, so that a run does not wait for them to end."""

from typing import Final

from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import NODES, PODS
from kubestow.engine.decision import Decision, FitError
from kubestow.engine.scheduler import Scheduler
from kubestow.queue import QueuedPod
from kubestow.queue.moves import Place
from kubestow.queue.queue import SchedulingQueue

# After this many attempts that fail with the same error another one is not waited for.
SAME_FAILURE_TRIES: Final = 3
# The latest resource versions of pods and of nodes.
_Versions = tuple[int, int]
_RETRIED: Final = (Place.BACKOFF, Place.ERROR_BACKOFF)


class Repetitions:
    """Follows the attempts that no event in the cluster can help: without a node, by a faulty
    plugin, or with their group."""

    # Set once it is built, with this as one of its listeners.
    scheduler: Scheduler

    def __init__(self, store: MemoryCluster) -> None:
        self._store = store
        # By UID: the message and the cluster it is about, how often in turn.
        self._repeated: dict[str, tuple[str, _Versions, int]] = {}

    def decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        """Note a decision; a `DecisionListener`."""
        uid, status = queued_pod.uid, decision.status
        groups = self.scheduler.cache.groups
        # A member of a group is tried again without an event, also if it fits and others do not.
        is_member = groups is not None and groups.key_of(decision.pod.pod) is not None
        if not is_member and (status is None or isinstance(status.error, FitError)):
            self._repeated.pop(uid, None)
            return
        failure = decision.message, self._versions()
        *last, count = self._repeated.get(uid, ("", (0, 0), 0))
        self._repeated[uid] = (*failure, count + 1 if tuple(last) == failure else 1)

    def count(self) -> int:
        """The number of entries of the queue that failed in the same way a few times.

        Only tries since the last change of a pod or a node count: after it they may differ. The
        first failure is such a change as well, since it is written to the status of the pod.
        """
        queue, versions = self.scheduler.queue, self._versions()
        repeated = {
            uid
            for uid, (_, seen, tries) in self._repeated.items()
            if seen == versions and tries >= SAME_FAILURE_TRIES
        }
        if not isinstance(queue, SchedulingQueue):
            return len(repeated)
        return sum(
            # A group is one entry, also if only one of its members was tried.
            place in _RETRIED and any(each.uid in repeated for each in entry.waiting_pods)
            for place, entry in queue.waiting()
        )

    def _versions(self) -> _Versions:
        return self._store.version_of(PODS), self._store.version_of(NODES)
