"""Who takes part in the cycle of a group (spec 11 §5.2, §7.1)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from kubestow.api.group import GroupKey
from kubestow.api.pod import Pod
from kubestow.cache.groups import Groups
from kubestow.engine.decision import CLEAR_NOMINATION
from kubestow.engine.failure import FailureHandler
from kubestow.engine.observer import Observer, callers
from kubestow.errors import PluginError
from kubestow.framework.profile import Profile
from kubestow.framework.status import SUCCESS, Status
from kubestow.queue import QueuedPod

log = logging.getLogger(__name__)


class CollectedGroup(NamedTuple):
    """The members that are tried together, in the order in which they are tried."""

    key: GroupKey
    profile: Profile
    queued_pods: Sequence[QueuedPod]


class MemberQueue(Protocol):
    """What is needed of the queue."""

    def pop_member(self, pod: Pod) -> QueuedPod | None: ...

    def done(self, uid: str) -> None: ...


class Collector:
    """`skips` says whether a pod of a profile is no longer to be tried."""

    def __init__(
        self,
        groups: Groups,
        queue: MemberQueue,
        profiles: Mapping[str, Profile],
        failures: FailureHandler,
        skips: Callable[[Pod, Profile], bool],
        observers: Sequence[Observer] = (),
    ) -> None:
        self._groups = groups
        self._queue = queue
        self._profiles = profiles
        self._failures = failures
        self._skips = skips
        self._on_collected = callers(observers, Observer.collected)

    def collect(self, popped: QueuedPod) -> CollectedGroup | None:
        """The group of a member that was popped; None if there is nothing to try."""
        key = self._groups.key_of(popped.pod)
        assert key is not None, popped
        queued_pods = self._siblings(popped, key)
        if queued_pods is None:
            # Spec 11 §5.2: upstream loses the error, so neither event nor condition is written.
            self._failures.handle(popped, SUCCESS, None)
            return None
        for call in self._on_collected:
            call(key, queued_pods)
        profile = self._common_profile(queued_pods)
        if profile is None:
            return None
        tried = [queued_pod for queued_pod in queued_pods if self._is_tried(queued_pod, profile)]
        uids = [queued_pod.uid for queued_pod in tried]
        for pod_set in self._groups.pod_sets(key):
            self._groups.start_trying(pod_set, uids)
        return CollectedGroup(key, profile, tried) if tried else None

    def _siblings(self, popped: QueuedPod, key: GroupKey) -> list[QueuedPod] | None:
        """All members that can be tried now; None if the group is not known."""
        if self._groups.find(key) is None:
            log.error("pod group state not found for pod group %s", key)
            return None
        found = [popped]
        for pod in self._unscheduled(key):
            if pod.metadata.name != popped.pod_info.name:
                queued_pod = self._queue.pop_member(pod)
                if queued_pod is not None:
                    found.append(queued_pod)
        return sorted(found, key=_order)

    def _unscheduled(self, key: GroupKey) -> list[Pod]:
        """Members without a node, also of groups that are placed together with this one."""
        found = map(self._groups.find, self._groups.pod_sets(key))
        return [pod for members in found if members for pod in members.unscheduled_pods()]

    def _common_profile(self, queued_pods: Sequence[QueuedPod]) -> Profile | None:
        first = queued_pods[0].scheduler_name
        for queued_pod in queued_pods:
            name = queued_pod.scheduler_name
            if name != first:
                error = PluginError(different_names_text(name, first))
                self._fail_all(queued_pods, Status.from_error(error))
                return None
        profile = self._profiles.get(first)
        if profile is None:
            self._drop(queued_pods[0])
        return profile

    def _fail_all(self, queued_pods: Sequence[QueuedPod], status: Status) -> None:
        for queued_pod in queued_pods:
            if queued_pod.scheduler_name not in self._profiles:
                # As upstream: the members behind this one stay in flight.
                self._drop(queued_pod)
                return
            self._failures.handle(queued_pod, status, CLEAR_NOMINATION)

    def _drop(self, queued_pod: QueuedPod) -> None:
        log.error('profile not found for scheduler name "%s"', queued_pod.scheduler_name)
        self._queue.done(queued_pod.uid)

    def _is_tried(self, queued_pod: QueuedPod, profile: Profile) -> bool:
        if not self._skips(queued_pod.pod, profile):
            return True
        self._queue.done(queued_pod.uid)
        return False


def different_names_text(name: str, first: str) -> str:
    return (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        f'got: "{name}" and "{first}"'
    )


def _order(queued_pod: QueuedPod) -> tuple[int, int]:
    """More important members first, then those that were first tried earlier."""
    first_ns = queued_pod.initial_attempt_ns
    return -queued_pod.pod_info.priority, -1 if first_ns is None else first_ns
