"""Puts a pod on its chosen node: assume, Reserve, Permit, start binding (spec 04 §10, §11)."""

import logging

from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.engine.bind import Binder, Placement, rejected_on
from kubestow.engine.decision import CLEAR_NOMINATION, Decision
from kubestow.engine.failure import FailureHandler
from kubestow.engine.tasks import BackgroundTasks
from kubestow.errors import CacheError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.metrics import PERMIT, RESERVE, UNRESERVE
from kubestow.framework.profile import Profile
from kubestow.framework.runner import run_permit, run_reserve, run_unreserve
from kubestow.framework.status import Code, Status
from kubestow.framework.waiting import PERMIT_WAIT_S_MAX, WaitingPods
from kubestow.queue import Queue, QueuedPod

log = logging.getLogger(__name__)


class Placer:
    """Places one pod after the other; the binding of each goes on beside the scheduling loop."""

    def __init__(
        self,
        cache: Cache,
        queue: Queue,
        waiting_pods: WaitingPods,
        binder: Binder,
        failures: FailureHandler,
        tasks: BackgroundTasks,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._waiting_pods = waiting_pods
        self._binder = binder
        self._failures = failures
        self._tasks = tasks

    def place(self, profile: Profile, queued_pod: QueuedPod, decision: Decision) -> bool:
        """Assume the pod, run Reserve and Permit, and start binding; False if one of them fails."""
        state, node_name = decision.state, decision.node_name
        assumed = queued_pod.copy_for_assume(queued_pod.pod_info.assigned_to(node_name))
        placement = Placement(
            profile,
            state,
            assumed,
            node_name,
            decision.evaluated_count,
            decision.feasible_count,
        )
        status = self._assume(placement)
        if status is not None:
            self._failures.handle(assumed, status, CLEAR_NOMINATION, state.meter)
            return False
        if state.pods_to_activate:
            self._queue.activate(state.pods_to_activate.values())
            state.pods_to_activate.clear()
        # Binding runs beside other attempts, so the timer of attempts does not fit it.
        state.measure(state.meter)
        self._tasks.spawn(self._binder.bind(placement))
        return True

    def _assume(self, placement: Placement) -> Status | None:
        pod, node_name, state = placement.pod, placement.node_name, placement.state
        try:
            self._cache.assume_pod(pod)
        except CacheError as error:
            return Status.from_error(error)
        self._queue.nominator.delete(pod.pod)
        meter = state.meter
        meter.resume()
        state.timer.resume()
        status = run_reserve(placement.profile, state, pod, node_name)
        meter.point_ended(RESERVE, status)
        if status is None:
            outcome = run_permit(placement.profile, state, pod, node_name, PERMIT_WAIT_S_MAX)
            status = outcome.status
            meter.point_ended(PERMIT, status)
            if status is not None and status.code == Code.WAIT:
                self._waiting_pods.add(pod, outcome.timeouts_s)
                status = None
        if status is None:
            return None
        unreserve(placement.profile, state, pod, node_name)
        try:
            self._cache.forget_pod(pod.pod)
        except CacheError as error:
            log.error("ForgetPod failed: %s", error)
        return as_misfit(node_name, status)


def unreserve(profile: Profile, state: CycleState, pod: PodInfo, node_name: str) -> None:
    run_unreserve(profile, state, pod, node_name)
    state.meter.point_ended(UNRESERVE)


def as_misfit(node_name: str, status: Status) -> Status:
    """A rejection by Reserve or Permit as that of the one node that was chosen."""
    return rejected_on(node_name, status) if status.is_rejected else status
