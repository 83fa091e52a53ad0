"""One scheduler of a simulated cluster: a process that is started again whenever it ends."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

import msgspec

from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import NANOSECONDS
from kubestow.config.profile import PluginRef
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.engine.decision import Decision, Nomination
from kubestow.engine.extenders import HttpExtender
from kubestow.engine.failure import FailureHandler
from kubestow.engine.scheduler import Scheduler
from kubestow.errors import CacheError
from kubestow.framework.metrics import NO_METER, CycleMeter
from kubestow.framework.status import Status
from kubestow.queue import QueuedPod
from kubestow.service.connections import Connections
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.service.run import SchedulerProcess
from kubestow.simulator.virtual_time import VirtualClock
from tools.faults.client import ClientHooks, FaultyClient
from tools.faults.extender import SimulatedExtender, extender_config
from tools.faults.link import Link
from tools.faults.moments import Surroundings
from tools.faults.planned import Setup
from tools.faults.plugin import REFERENCE, surroundings
from tools.faults.replicas import SimulatedProcess
from tools.faults.wire import Wire, WireClient
from tools.faults.wire_server import WireServer

# How long the kubelet takes to start a process that ended.
RESTART_S: Final = 2.0


class MovedClock(VirtualClock):
    """The clock of one machine, whose wall time may be set to another."""

    offset_ns = 0

    def now_ns(self) -> int:
        return super().now_ns() + self.offset_ns

    def move(self, seconds: float) -> None:
        self.offset_ns += round(seconds * NANOSECONDS)


class ReplicaEvents(Protocol):
    """What a simulation learns from its replicas."""

    def decided(self, replica: "Replica", decision: Decision) -> None: ...

    def binding_sent(self, replica: "Replica", pod: Pod, node_name: str) -> None: ...

    def binding_confirmed(self, replica: "Replica", pod: Pod, node_name: str) -> None: ...

    def event_lost(self, node_name: str) -> None: ...

    def member_lost(self, pod: Pod) -> None: ...

    def freed_without_event(self, node_name: str) -> None: ...

    def ended(self, scheduler: Scheduler) -> None: ...

    def report(self, invariant: str, text: str) -> None: ...


class Replica:
    """A place where a scheduler runs, with its link to the API server."""

    def __init__(
        self,
        name: str,
        cluster: MemoryCluster,
        wire: WireServer | None,
        setup: Setup,
        around: Surroundings,
        events: ReplicaEvents,
        *,
        group_pause_s: float,
    ) -> None:
        """With `wire` its requests are HTTP, as bytes."""
        self.name = name
        self.faults = around.faults
        self.link = Link(around.faults)
        self.clock = MovedClock(asyncio.get_running_loop())
        self.extender = SimulatedExtender(around.faults)
        self.process: SchedulerProcess | None = None
        self.exit_codes: list[int | str] = []
        self._cluster = cluster
        self._wire = wire
        self._options = _options(setup)
        self._around = around
        self._rng = around.faults.rng
        self._hooks = ClientHooks(
            partial(events.binding_sent, self),
            partial(events.binding_confirmed, self),
            events.event_lost,
            events.report,
        )
        self._decided = partial(events.decided, self)
        self._events = events
        self._machine: SimulatedProcess | None = None
        self._ended: asyncio.Future[int | str] = asyncio.get_running_loop().create_future()
        self._killed: list[SimulatedProcess] = []
        self._clients: list[FaultyClient | WireClient] = []
        self._is_closed = False
        self._group_pause_s = group_pause_s

    @property
    def identity(self) -> str:
        """The identity in the lease."""
        process = self.process
        assert process is not None
        assert process.leadership is not None
        return process.leadership.identity

    @property
    def is_leading(self) -> bool:
        return self.process is not None and self.process.is_active

    async def run(self) -> None:
        """Start the process again and again."""
        while not self._is_closed:
            machine = self._machine = SimulatedProcess(self.name)
            self._ended = asyncio.get_running_loop().create_future()
            machine.call(lambda: self._start(self._ended))
            code = await self._ended
            if self.process is not None:
                self._events.ended(self.process.scheduler)
            self.exit_codes.append(code)
            self._close_connections()
            self.process = self._machine = None
            if not self._is_closed:
                await asyncio.sleep(RESTART_S)

    def _start(self, ended: "asyncio.Future[int | str]") -> None:
        """Build the process and let it run; called in its own context."""
        surroundings.set(self._around)
        main, events, election = (self._client(timeout_s) for timeout_s in (None, None, 5.0))
        process = self.process = SchedulerProcess(
            self._options,
            Connections(main=main, events=events, election=election, lease_events=election),
            ProcessMetrics(self._options, self.clock, self._rng),
            self.clock,
            self._rng,
            hostname=self.name,
            rules=rules_of(self._options.choice.edition),
        )
        scheduler = process.scheduler
        scheduler.listeners = (lambda decision, _: self._decided(decision),)
        scheduler.group_pause_s = self._group_pause_s
        failures = _WatchedFailures(scheduler.failures, self._events.member_lost)
        scheduler.failures.handle = failures.handle
        deletions = _WatchedDeletions(scheduler, self._events.freed_without_event)
        scheduler.handlers.pod_deleted_unseen = deletions.pod_deleted_unseen
        if process.scheduler.extenders is not None:
            for extender in process.scheduler.extenders.extenders:
                assert isinstance(extender, HttpExtender)
                extender.post = self.extender.post

        async def run() -> None:
            try:
                code: int | str = await process.run()
            except Exception as error:  # What ends the process is judged afterwards.
                code = repr(error)
            if not ended.done():
                ended.set_result(code)

        asyncio.get_running_loop().create_task(run())

    def _client(self, timeout_s: float | None) -> FaultyClient | WireClient:
        client = (
            FaultyClient(self._cluster, self.link, self._hooks, timeout_s=timeout_s)
            if self._wire is None
            else WireClient(
                Wire(self._wire, self.link, self._hooks),
                self.clock,
                self._rng,
                timeout_s=timeout_s,
            )
        )
        self._clients.append(client)
        return client

    def _close_connections(self) -> None:
        for client in self._clients:
            client.disconnect()
        self._clients.clear()
        self.link.binding.clear()

    # --- what happens to it ---

    def kill(self) -> None:
        if self._machine is not None and not self._ended.done():
            self._machine.kill()
            self._killed.append(self._machine)
            self._ended.set_result("killed")

    def pause(self) -> None:
        if self._machine is not None:
            self._machine.pause()

    def resume(self) -> None:
        if self._machine is not None:
            self._machine.resume()

    def calm_down(self) -> None:
        """Nothing goes wrong any more."""
        self.faults.end_all()
        self.link.mend()
        self.resume()

    def stop(self) -> None:
        """End the process as SIGTERM does, for good."""
        self._is_closed = True
        for machine in self._killed:
            machine.bury()
        if self.process is not None:
            self.process.request_stop()


class _WatchedFailures:
    """Reports members whose placement fails, and passes all failures on."""

    def __init__(self, failures: FailureHandler, lost: Callable[[Pod], None]) -> None:
        self._handle = failures.handle
        self._lost = lost

    def handle(
        self,
        queued_pod: QueuedPod,
        status: Status,
        nomination: Nomination | None,
        meter: CycleMeter = NO_METER,
    ) -> None:
        if queued_pod.pod.spec.node_name:  # It was assumed there.
            self._lost(queued_pod.pod)
        self._handle(queued_pod, status, nomination, meter)


class _WatchedDeletions:
    """Reports nodes that lose a pod which the broken watch last showed without one: hints skip such
    a deletion (spec 02 §7.3), as if it had freed nothing."""

    def __init__(self, scheduler: Scheduler, freed: Callable[[str], None]) -> None:
        self._cache = scheduler.cache
        self._handle = scheduler.handlers.pod_deleted_unseen
        self._freed = freed

    def pod_deleted_unseen(self, last_known: Pod) -> None:
        if not last_known.spec.node_name:
            with suppress(CacheError):
                self._freed(self._cache.pod(last_known).pod.spec.node_name)
        self._handle(last_known)


def _options(setup: Setup) -> SchedulerOptions:
    gates = ",".join(f"{gate}=true" for gate in setup.gates)
    options = parse_options(
        ["--secure-port=0", *([f"--feature-gates={gates}"] if gates else [])],
        edition=edition_named(setup.edition),
    )
    assert isinstance(options, SchedulerOptions)
    config = options.config
    if setup.has_plugin:
        (profile,) = config.profiles
        plugins = profile.plugins
        points = plugins.multi_point
        points = msgspec.structs.replace(points, enabled=(*points.enabled, PluginRef(REFERENCE)))
        plugins = msgspec.structs.replace(plugins, multi_point=points)
        profile = msgspec.structs.replace(profile, plugins=plugins)
        config = msgspec.structs.replace(config, profiles=(profile,))
    if setup.extender:
        extender = extender_config(is_ignorable=setup.extender == "ignorable")
        config = msgspec.structs.replace(config, extenders=(extender,))
    return msgspec.structs.replace(options, config=config)
