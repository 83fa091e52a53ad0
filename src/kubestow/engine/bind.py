"""The binding cycle: from a chosen node to a pod the API server shows there (spec 04 §12).

Runs as a task of its own for every pod, while the scheduler already decides on the next one:

    PreBindPreFlight → (nominate the node) → wait at Permit → PreBind → Bind → PostBind
        any failure → Unreserve, forget the assumed pod, move pods that may fit now, requeue
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import CoroutineType
from typing import Final, NamedTuple

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cluster.status_writer import StatusPatch, StatusWriter
from kubestow.engine.decision import CLEAR_NOMINATION, FitError
from kubestow.engine.extenders import ExtenderChain
from kubestow.engine.failure import FailureHandler
from kubestow.engine.metrics import SCHEDULED, SchedulerMetrics
from kubestow.engine.observer import Observer, callers
from kubestow.errors import CacheError, PluginError
from kubestow.framework.answers import (
    no_answer,
    pre_flight_answer,
    status_answer,
    wrong_answer,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.events import ASSIGNED_POD_DELETE
from kubestow.framework.faults import (
    BINDING_CYCLE,
    attempt_fault,
    fault_status,
    is_cancellation,
)
from kubestow.framework.handle import EventSink
from kubestow.framework.metrics import (
    BIND,
    POST_BIND,
    PRE_BIND,
    PRE_BIND_PRE_FLIGHT,
    UNRESERVE,
)
from kubestow.framework.plugin import PreBindPlugin
from kubestow.framework.profile import Profile, plugin_name
from kubestow.framework.runner import failure, guarded, run_unreserve
from kubestow.framework.status import Code, Status
from kubestow.framework.waiting import PodInPreBind, WaitingPods
from kubestow.logs import ObjectName, inform, is_printed
from kubestow.queue import Queue, QueuedPod

log = logging.getLogger(__name__)

# Returns once a binding may be written.
BindPermission = Callable[[], Awaitable[None]]


class Placement(NamedTuple):
    """A pod with its node, assumed in the cache and reserved by the plugins."""

    profile: Profile
    state: CycleState
    queued_pod: QueuedPod  # the copy whose pod names the node
    node_name: str
    evaluated_count: int = 0
    feasible_count: int = 0

    @property
    def pod(self) -> PodInfo:
        return self.queued_pod.pod_info


class Binder:
    def __init__(
        self,
        cache: Cache,
        queue: Queue,
        waiting_pods: WaitingPods,
        in_pre_bind: dict[str, PodInPreBind],
        failures: FailureHandler,
        events: Mapping[str, EventSink],
        writer: StatusWriter,
        metrics: SchedulerMetrics,
        *,
        looks_ahead: bool,
        extenders: ExtenderChain | None,
        may_bind: BindPermission | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        """`events` are by scheduler name. `looks_ahead` is NominatedNodeNameForExpectation: run
        PreBindPreFlight, skip PreBind plugins without work, and write the nominated node."""
        self._cache = cache
        self._queue = queue
        self._waiting_pods = waiting_pods
        self._failures = failures
        self._events = events
        self._writer = writer
        self._metrics = metrics
        # By the UID of the pod.
        self.in_pre_bind: Final = in_pre_bind
        self._looks_ahead = looks_ahead
        self._extenders = extenders
        self._may_bind = may_bind
        self._on_submitted = callers(observers, Observer.submitted)
        self._on_binding_failed = callers(observers, Observer.binding_failed)
        self._on_bound = callers(observers, Observer.bound)
        # How many pods are being bound.
        self.running_count = 0

    async def bind(self, placement: Placement) -> None:
        placement.state.meter.resume()
        self.running_count += 1
        try:
            for call in self._on_submitted:
                call(placement.queued_pod, placement.node_name)
            status = await self._try_bind(placement)
            if status is not None:
                for wait in self._on_binding_failed:
                    await wait(placement.queued_pod, status)
        except BaseException as error:
            if is_cancellation(error):
                raise
            # No other task knows of this pod: without this it would keep its node and never be
            # tried again.
            status = attempt_fault(error, BINDING_CYCLE)
        finally:
            self.running_count -= 1
        if status is None:
            self._succeed(placement)
        else:
            self._fail(placement, status)

    def _succeed(self, placement: Placement) -> None:
        pod, meter = placement.queued_pod.pod_info, placement.state.meter
        if is_printed(log, 2):
            inform(
                log,
                "Successfully bound pod to node",
                v=2,
                pod=ObjectName(pod.namespace, pod.name),
                node=placement.node_name,
                evaluatedNodes=placement.evaluated_count,
                feasibleNodes=placement.feasible_count,
            )
        self._events[placement.profile.name].record(
            pod.pod,
            type="Normal",
            reason="Scheduled",
            action="Binding",
            note=f"Successfully assigned {pod.key} to {placement.node_name}",
        )
        meter.attempt_ended(SCHEDULED)
        self._metrics.pod_bound(placement.queued_pod)
        for call in self._on_bound:
            call(placement.queued_pod, placement.node_name)
        for plugin in placement.profile.post_bind:
            guarded(
                lambda plugin=plugin: no_answer(
                    plugin.post_bind(placement.state, pod, placement.node_name),
                    plugin_name(plugin),
                    "post_bind",
                ),
                plugin_name(plugin),
                POST_BIND,
            )
        meter.point_ended(POST_BIND)
        if placement.state.pods_to_activate:
            self._queue.activate(placement.state.pods_to_activate.values())

    async def _try_bind(self, placement: Placement) -> Status | None:
        """Everything up to the written binding; what failed, if anything did."""
        uid, meter = placement.queued_pod.pod_info.uid, placement.state.meter
        preflight = None
        if self._looks_ahead:
            preflight = run_pre_flight(placement)
            meter.point_ended(PRE_BIND_PRE_FLIGHT, preflight)
        if preflight is not None and preflight.code == Code.ERROR:
            return preflight
        has_work = preflight is None
        waiting = self._waiting_pods.get(uid)
        if self._looks_ahead and (has_work or waiting is not None):
            await self._announce_node(placement)
        if waiting is not None:
            status = await self._wait_on_permit(placement)
            if status is not None:
                return status
        # From here on the pod cannot be parked any more, so its events are of no use.
        self._queue.done(uid)
        status = await self._pre_bind(placement) if has_work else None
        # Upstream measures it also if all plugins were skipped.
        meter.point_ended(PRE_BIND, status)
        if status is not None:
            return status
        if is_printed(log, 3):
            inform(log, "Attempting to bind pod to node", v=3, pod=placement.pod.key)
        status = await self._write_binding(placement)
        meter.point_ended(BIND, status)
        return status

    async def _write_binding(self, placement: Placement) -> Status | None:
        # The API server may take the binding first, and then what an earlier attempt writes: the
        # pod would be bound and say that it is not.
        while (status_write := self._writer.under_way(placement.pod.uid)) is not None:
            await status_write
        if self._may_bind is not None:
            await self._may_bind()
        if self._extenders is None:
            return await run_bind(placement)
        return await _bind_with(self._extenders, placement)

    async def _announce_node(self, placement: Placement) -> None:
        """Write the nominated node, for others to see while a slow binding runs (§12.2).

        The pod stays in flight until it is written: should the binding fail before that, the
        events since then count.
        """
        pod = placement.pod.pod
        if pod.status.nominated_node_name != placement.node_name:
            patch = StatusPatch(nominated_node_name=placement.node_name)
            await self._writer.start_write(pod, patch)

    async def _wait_on_permit(self, placement: Placement) -> Status | None:
        uid = placement.pod.uid
        waiting = self._waiting_pods.get(uid)
        assert waiting is not None, uid
        try:
            status = await waiting.wait_outcome()
        finally:
            self._waiting_pods.remove(uid)
        placement.state.meter.wait_ended(status)
        if status.is_success:
            return None
        if status.is_rejected:
            return rejected_on(placement.node_name, status)
        return Status(
            Code.ERROR,
            error=PluginError(f"waiting on permit for pod: {status.message}"),
            plugin=status.plugin,
        )

    async def _pre_bind(self, placement: Placement) -> Status | None:
        uid = placement.pod.uid
        entry = self.in_pre_bind[uid] = PodInPreBind(asyncio.current_task())
        try:
            for group in pre_bind_groups(placement.profile, placement.state):
                status = await _run_group(group, placement, entry)
                if status is not None:
                    return status
            if not entry.mark_prebound():
                return Status(Code.ERROR, error=PluginError(entry.cancel_reason or ""))
            return None
        finally:
            self.in_pre_bind.pop(uid, None)

    def _fail(self, placement: Placement, status: Status) -> None:
        """Undo everything and requeue the pod (§12.6)."""
        pod = placement.pod
        # The failure handler replaces it with the newest version, which has no node.
        assumed = pod.pod
        meter = placement.state.meter
        meter.resume()
        run_unreserve(placement.profile, placement.state, pod, placement.node_name)
        meter.point_ended(UNRESERVE)
        # A wait that never began must not delay the next attempt.
        self._waiting_pods.remove(pod.uid)
        is_forgotten = self._forget(pod)
        if is_forgotten and not status.is_rejected:
            self._queue.move_all(ASSIGNED_POD_DELETE, assumed, None)
        self._failures.handle(placement.queued_pod, status, CLEAR_NOMINATION, meter)
        if is_forgotten and status.is_rejected:
            # The pod must not be moved by the resources it freed itself.
            def is_another(waiting: Pod) -> bool:
                return waiting.metadata.uid != pod.uid

            self._queue.move_all(ASSIGNED_POD_DELETE, assumed, None, is_another)

    def _forget(self, pod: PodInfo) -> bool:
        try:
            self._cache.forget_pod(pod.pod)
        except CacheError as error:
            log.error("ForgetPod failed: %s", error)
            return False
        return True


def rejected_on(node_name: str, status: Status) -> Status:
    """A rejection after the node was chosen, as a FitError of that one node."""
    diagnosis = Diagnosis((node_name,))
    diagnosis.set_explicit(0, status)
    diagnosis.unschedulable_plugins.add(status.plugin)
    if status.code == Code.PENDING:
        diagnosis.pending_plugins.add(status.plugin)
    return Status(status.code, error=FitError(diagnosis), plugin=status.plugin)


def run_pre_flight(placement: Placement) -> Status | None:
    """None if some PreBind plugin has work, Skip if none has (§12.1)."""
    state, pod = placement.state, placement.queued_pod.pod_info
    skip: set[str] = set()
    parallel: set[str] = set()
    has_work = False
    for plugin in placement.profile.pre_bind:
        name = plugin_name(plugin)
        try:
            answer = plugin.pre_bind_pre_flight(state, pod, placement.node_name)
            status, allow_parallel = pre_flight_answer(answer, name)
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            status, allow_parallel = fault_status(error, name, PRE_BIND_PRE_FLIGHT), False
        if allow_parallel:
            parallel.add(name)
        if status is None or status.is_success:
            has_work = True
        elif status.code == Code.SKIP:
            skip.add(name)
        elif status.code == Code.ERROR:
            return failure("running PreBindPreFlight", name, status)
        else:
            text = (
                f'PreBindPreFlight {name} returned "{status.code.label}", which is unsupported. '
                "It is supposed to return Success, Skip, or Error status"
            )
            return Status(Code.ERROR, error=PluginError(text), plugin=name)
    state.skip_pre_bind = frozenset(skip)
    state.parallel_pre_bind = frozenset(parallel)
    return None if has_work else Status.skip()


def pre_bind_groups(profile: Profile, state: CycleState) -> list[list[PreBindPlugin]]:
    """PreBind plugins that run at the same time; groups run one after the other (§12.4)."""
    groups: list[list[PreBindPlugin]] = []
    group: list[PreBindPlugin] = []
    for plugin in profile.pre_bind:
        name = plugin_name(plugin)
        is_skipped = name in state.skip_pre_bind
        if name in state.parallel_pre_bind:
            if not is_skipped:
                group.append(plugin)
            continue
        groups += [group, [] if is_skipped else [plugin]]
        group = []
    return [group for group in [*groups, group] if group]


async def _run_group(
    group: Sequence[PreBindPlugin], placement: Placement, entry: PodInPreBind
) -> Status | None:
    if len(group) == 1:
        return await _run_one(group[0], placement, entry)
    tasks = [asyncio.ensure_future(_run_one(plugin, placement, entry)) for plugin in group]
    try:
        for finished in asyncio.as_completed(tasks):
            status = await finished
            if status is not None:
                return status
        return None
    except asyncio.CancelledError:
        if entry.cancel_reason is None:
            raise
        _accept_cancellation()
        return failure(
            "running PreBind plugin",
            plugin_name(group[0]),
            Status.from_error(PluginError(entry.cancel_reason)),
        )
    finally:
        for task in tasks:
            task.cancel("some other PreBind operation failed")
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run_one(
    plugin: PreBindPlugin, placement: Placement, entry: PodInPreBind
) -> Status | None:
    name = plugin_name(plugin)
    try:
        call = plugin.pre_bind(placement.state, placement.pod, placement.node_name)
        status = status_answer(await _awaitable(call, name, "pre_bind"), name, "pre_bind")
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        if not is_cancellation(error):
            status = fault_status(error, name, PRE_BIND)
        elif entry.cancel_reason is None:
            raise
        else:
            _accept_cancellation()
            status = Status.from_error(PluginError(entry.cancel_reason))
    if status is None or status.is_success:
        return None
    if status.is_rejected:
        return status.with_plugin(name)
    return failure("running PreBind plugin", name, status)


def _awaitable(call: object, plugin: str, method: str) -> Awaitable[object]:
    """What a method that may wait returned, if it is something to wait for."""
    # The declared type is not trusted: a plugin of a user may not have been type-checked. Nearly
    # all are coroutines; asking the abstract class takes longer.
    if isinstance(call, (CoroutineType, Awaitable)):
        return call  # pyright: ignore[reportUnknownVariableType]
    raise wrong_answer(plugin, method, call, "an awaitable: declare it with async def")


def _accept_cancellation() -> None:
    """The cancellation is for PreBind only: the task goes on, to undo what was done."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


async def _bind_with(extenders: ExtenderChain, placement: Placement) -> Status | None:
    """An extender binds before the Bind plugins; its error text is not wrapped (§12.5, §13.5)."""
    try:
        if await extenders.bind(placement.pod.pod, placement.node_name):
            return None
    except Exception as error:  # An extender may raise anything.
        return Status.from_error(error)
    return await run_bind(placement)


async def run_bind(placement: Placement) -> Status | None:
    """Bind plugins in order until one does not skip (§12.5)."""
    state = placement.state
    for plugin in placement.profile.bind:
        name = plugin_name(plugin)
        try:
            call = plugin.bind(state, placement.queued_pod.pod_info, placement.node_name)
            status = status_answer(await _awaitable(call, name, "bind"), name, "bind")
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            if is_cancellation(error):
                raise
            status = fault_status(error, name, BIND)
        state.sampler.plugin_ended(name, BIND, status)
        if status is None or status.is_success:
            return None
        if status.code == Code.SKIP:
            continue
        if status.is_rejected:
            return status.with_plugin(name)
        return failure("running Bind plugin", name, status)
    return Status.skip()
