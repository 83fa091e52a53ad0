"""The scheduler process: start and end of all its parts in order (spec 09 §1, §6.4, §11).

    options ─► clients, socket ─► scheduler ─► HTTPS ─► informers ─► lease ─► scheduling
                                                                                  │ SIGTERM
    exit code ◄─ HTTPS closed ◄─ lease released ◄─ bindings under way end ◄─ no new pods

With leader election only the holder of the lease schedules; a standby keeps its caches up to date.
A process that loses its lease, or whose cache contradicts the cluster, ends: only a restart gives a
state that is always right.

The lease and the HTTPS port have a loop each (`loops`); all else runs on this one.

Beyond upstream: on SIGTERM bindings under way have a few seconds to end before the lease is
released, so that the next leader finds no half-bound pod.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from kubestow import __version__
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import Clock, SystemClock
from kubestow.cluster.election import process_identity
from kubestow.cluster.events import EventRecorder
from kubestow.collector import collect_if_due
from kubestow.config.profile import enabled_names
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.written import write_config
from kubestow.editions.edition import Edition
from kubestow.editions.rules import CORE_RULES, Rules
from kubestow.engine.bind import BindPermission
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.engine.observer import DecisionListener
from kubestow.engine.profile_events import ProfileEvents
from kubestow.engine.watching import ClusterWatcher
from kubestow.errors import CacheCorruptedError, ConfigError, InputError
from kubestow.explain.history import AttemptHistory
from kubestow.explain.running_pod import RunningPod, find_running, kept_attempts
from kubestow.files import keeping
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.logs import fail, inform, is_printed
from kubestow.plugins.loading import load_plugins
from kubestow.service.connections import Connections, note_other_edition
from kubestow.service.debugger import CacheDebugger
from kubestow.service.leadership import Leadership
from kubestow.service.loops import Loops, OtherLoop, SharedLoops
from kubestow.service.metrics.process_metrics import ComponentMetrics, ProcessMetrics
from kubestow.service.options import SchedulerOptions
from kubestow.service.serving.application import PagePaths
from kubestow.service.serving.serving import Serving

if TYPE_CHECKING:
    from kubestow.recording.recording import RunRecording
    from kubestow.service.measuring.measuring import Measuring
    from kubestow.service.run_page import RunPage

log = logging.getLogger(__name__)

# How long bindings under way may take after SIGTERM; well below the grace period of a pod.
DRAIN_S: Final = 5.0
# How long the last events may take to be sent.
FLUSH_S: Final = 2.0


class OtherEditionError(Exception):
    """The server is of another version than this process schedules as."""

    def __init__(self, edition: Edition) -> None:
        super().__init__(f"the API server is {edition.version}")
        self.edition = edition


class RunError(Exception):
    """The process has to end with an error; the text is logged as the reason."""


class ServiceProcess(ABC):
    """The life of a scheduler process of any version, from its options to its exit code.

    Made inside a running event loop. A subclass builds the scheduler itself.
    """

    def __init__(
        self,
        options: SchedulerOptions,
        config: SchedulerConfig,
        connections: Connections,
        metrics: ComponentMetrics,
        clock: Clock,
        rng: np.random.Generator,
        *,
        hostname: str,
        loops: Loops | None = None,
        set_verbosity: Callable[[int], None] | None = None,
        on_synced: Callable[[], None] | None = None,
        configz: Callable[[], JsonObject] | None = None,
    ) -> None:
        """Build everything around the scheduler; nothing runs yet. Raises ConfigError.

        The lease and the HTTPS port run on theirs of `loops`, by default on this one. `on_synced`
        is called when the caches are filled and scheduling begins. `configz` is what that page
        shows, by default the configuration.
        """
        if options.page and not options.choice.edition.is_modern:
            raise ConfigError("--page needs the scheduler of today: leave out --compatibility")
        self.options = options
        self.config = config
        self.is_stopping = False
        # Where the server's version is not known yet: waits for it, before the informers start.
        self.edition_once_known: Callable[[], Coroutine[Any, Any, Edition]] | None = None
        self._on_synced = on_synced
        self._loops = loops or SharedLoops()
        self._connections = connections
        self._stopping = asyncio.Event()
        self._failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._are_informers_started = False
        self.serving: Serving | None = None
        if options.serving.port:
            self.serving = Serving(
                options,
                config,
                connections,
                metrics,
                clock,
                rng,
                port_loop=self._loops.port,
                set_verbosity=set_verbosity,
                configz=configz,
            )
        self.leadership: Leadership | None = None
        if config.leader_election.leader_elect:
            self.leadership = Leadership(
                config.leader_election,
                connections,
                metrics.election,
                self._loops.control,
                clock,
                rng,
                identity=process_identity(hostname, rng),
                component=config.profiles[0].scheduler_name,
            )
            connections.guard_writes(self.leadership.wait_valid)
        self.recorder = EventRecorder(
            connections.events,
            clock,
            hostname=hostname,
            rng=rng,
            is_busy=connections.is_main_saturated,
        )
        metrics.own.observe(self.recorder)

    # --- what a subclass builds ---

    @property
    @abstractmethod
    def has_synced(self) -> bool: ...

    @abstractmethod
    def pods(self) -> tuple[Pod, ...]: ...

    @abstractmethod
    def compare_and_dump(self) -> None:
        """Log what the caches hold, and where they differ from the watches (SIGUSR2)."""

    @abstractmethod
    async def _watch(self) -> None:
        """Follow the cluster until cancelled."""

    @abstractmethod
    async def _wait_synced(self) -> None:
        """Return once the caches are filled, and pods and nodes are followed."""

    @abstractmethod
    def _scheduling(self) -> Sequence[Coroutine[Any, Any, None]]:
        """What the leader runs until it is cancelled."""

    @abstractmethod
    async def _drain(self, limit_s: float) -> bool:
        """Let bindings under way end; False if some were cancelled."""

    @property
    def _may_bind(self) -> BindPermission | None:
        return None if self.leadership is None else self.leadership.wait_valid

    # --- state ---

    @property
    def is_active(self) -> bool:
        return self.leadership is None or self.leadership.is_leading

    @property
    def stall(self) -> str | None:
        return self._loops.stall()

    @property
    def has_reacted(self) -> bool:
        """Whether a stop was requested and this loop has reacted."""
        return self._stopping.is_set()

    def running_pod(self, namespace: str, name: str) -> RunningPod | None:
        """What is known of a pod, for its explanation; None of versions that keep no attempts."""
        return None

    def kept_attempts(self, namespace: str) -> Sequence[FrozenDecision]:
        """The last attempts of the pods that wait; versions that keep none have none."""
        return ()

    def conditions(self) -> Sequence[str]:
        """Lines about the state of what kube-scheduler does not have, for `/statusz`."""
        return ()

    def page_site(self, port: OtherLoop) -> PagePaths | None:
        """The page on the port, made on its loop; None without one."""
        return None

    def request_stop(self) -> None:
        """Begin to end, as after SIGTERM. From here on the process is not ready."""
        self.is_stopping = True
        self._stopping.set()

    # --- run ---

    async def run(self) -> int:
        """Run until a stop is requested or a part fails; the exit code of the process.

        OtherEditionError if the server turns out to be of another version; nothing was scheduled.
        """
        inform(
            log,
            "Starting Kubernetes Scheduler",
            version=self.options.reported_version,
            kubestow=__version__,
        )
        try:
            if self.serving is not None:
                await self._loops.port.run(self.serving.start(self))
                self._spawn(self._loops.port.run(self.serving.trust.run()))
            self._spawn(self.recorder.run())
            if self.edition_once_known is not None:
                await self._check_edition(self.edition_once_known())
            # Spec 09 §5: a standby may be configured to start its watches when it leads.
            if self.leadership is None or not self.config.delay_cache_until_active:
                self._start_informers()
            return await self._work()
        finally:
            await self._end()

    async def _check_edition(self, reading: Coroutine[Any, Any, Edition]) -> None:
        """Wait until the server's version is known, or a stop is requested."""
        known = asyncio.ensure_future(reading)
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await _first(known, stopping, self._failed)
            if known.done() and known.result() is not self.options.choice.edition:
                raise OtherEditionError(known.result())
        finally:
            known.cancel()
            stopping.cancel()

    async def _work(self) -> int:
        leadership = self.leadership
        work = asyncio.ensure_future(
            self._lead() if leadership is None else leadership.run(self._lead)
        )
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await _first(work, stopping, self._failed)
            if self.is_active:
                # A process that schedules ends by itself, in order, after a stop request.
                await _first(work, self._failed)
        finally:
            stopping.cancel()
            if not work.done():
                work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        if self._failed.done():
            raise self._failed.result()
        return self._exit_code(is_lost=not work.cancelled() and work.result() is False)

    def _exit_code(self, *, is_lost: bool) -> int:
        """Spec 09 §6.4, §11."""
        if self.leadership is None:
            raise RunError("finished without leader elect")
        if self.is_stopping and not is_lost:
            inform(log, "Requested to terminate, exiting")
            return 0
        fail(log, "Leaderelection lost")
        return 1

    async def _lead(self) -> None:
        """Schedule until a stop is requested; cancelled when the lease is lost."""
        if not self._are_informers_started:
            inform(log, "Starting informers and waiting for sync...")
            self._start_informers()
        if not await self._is_synced_before_stop():
            return
        inform(log, "Handlers synced", v=3)
        if self._on_synced is not None:
            self._on_synced()
        running = [self._spawn(work) for work in self._scheduling()]
        if self.leadership is not None:
            edition = self.options.choice.edition
            self._spawn(note_other_edition(self._connections.main, edition))
        limit_s = 0.0
        try:
            await self._stopping.wait()
            limit_s = DRAIN_S
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            if not await self._drain(limit_s):
                log.warning("some bindings did not end in time and were cancelled")

    async def _is_synced_before_stop(self) -> bool:
        """Wait for the caches; False if a stop is requested before that."""
        synced = asyncio.ensure_future(self._wait_synced())
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await _first(synced, stopping)
            return not self.is_stopping
        finally:
            synced.cancel()
            stopping.cancel()

    async def _end(self) -> None:
        """Close everything, also after a failure."""
        self.is_stopping = True
        if self.serving is not None:
            await self._loops.port.run(self.serving.close())
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(FLUSH_S):
                await self.recorder.flush()
        except TimeoutError:
            unsent_count = self.recorder.statistics().waiting_count
            log.warning("%d event(s) could not be sent before the process ended", unsent_count)
        self._connections.close_main()
        await self._loops.control.run(self._connections.close_control())
        await self._loops.port.run(self._connections.close_port())

    # --- tasks ---

    def _start_informers(self) -> None:
        self._are_informers_started = True
        self._spawn(self._watch())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a required task: if it fails, so does the process."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if not self._failed.done():
            self._failed.set_result(first_error(error))


class SchedulerProcess(ServiceProcess):
    """A process whose scheduler has plugins: today's, or of another edition."""

    def __init__(
        self,
        options: SchedulerOptions,
        connections: Connections,
        metrics: ProcessMetrics,
        clock: Clock,
        rng: np.random.Generator,
        *,
        hostname: str,
        rules: Rules = CORE_RULES,
        loops: Loops | None = None,
        set_verbosity: Callable[[int], None] | None = None,
        on_synced: Callable[[], None] | None = None,
    ) -> None:
        """Build everything; nothing runs yet. Raises ConfigError."""
        loaded = load_plugins(options.config, rules.registry)
        super().__init__(
            options,
            loaded.config,
            connections,
            metrics,
            clock,
            rng,
            hostname=hostname,
            loops=loops,
            set_verbosity=set_verbosity,
            on_synced=on_synced,
        )
        # A generator of its own: what else draws numbers must not change what is recorded.
        scheduler_rng = np.random.default_rng(int(rng.integers(2**63)))
        self.recording: RunRecording | None = None
        if options.record and not options.choice.edition.is_modern:
            raise ConfigError("--record needs the scheduler of today: leave out --compatibility")
        if options.record:
            self.recording = _begin_recording(options, self.config, clock, scheduler_rng)
        recording = self.recording
        client = connections.main if recording is None else recording.client(connections.main)
        # The page adds itself while one is open.
        listeners: list[DecisionListener] = []
        self._measuring: Measuring | None = None
        if any("LoadAware" in enabled_names(one.plugins) for one in self.config.profiles):
            # Imported here: a scheduler without the plugin loads nothing of it.
            from kubestow.service.measuring import measuring

            self._measuring = measuring.Measuring(self.config)
        self.history = AttemptHistory(clock)
        metrics.own.observe_history(self.history)
        self.scheduler = rules.factory(
            config=self.config,
            client=client,
            objects=ClusterObjects(),
            events=lambda profile_name: ProfileEvents(self.recorder, profile_name),
            clock=clock,
            registry=loaded.registry,
            gates=options.gates,
            queue_metrics=metrics.queue,
            metrics=metrics.scheduler,
            observers=[self.history] if recording is None else [self.history, recording.recorder],
            max_unschedulable_ns=int(options.pod_max_in_unschedulable_pods),
            may_bind=self._may_bind,
            leaves_to_chance=True,
            rng=scheduler_rng,
            listeners=listeners,
            usage=None if self._measuring is None else self._measuring.usage,
            timer=AttemptTimer(
                clock.monotonic_s,
                budget_s=options.attempt_budget.seconds,
                count_slow=metrics.own.count_slow_call,
            ),
        ).build()
        metrics.scheduler.observe(self.scheduler)
        self.scheduler.is_in_real_time = isinstance(clock, SystemClock)
        self.scheduler.on_turn_over = collect_if_due
        if self._measuring is not None:
            self._measuring.connect(self.scheduler, connections.main, clock)
            self._measuring.observe(metrics.own)
        if recording is not None:
            recording.observe_extenders(self.scheduler)
        self.watcher = ClusterWatcher(
            connections.main,
            self.scheduler,
            clock,
            rng,
            make_handler=None if recording is None else recording.recorder.handler,
        )
        self.debugger = CacheDebugger(self.scheduler)
        self._page: RunPage | None = None
        if options.page:
            # Imported here: a scheduler without the page loads nothing of it.
            from kubestow.service import run_page

            self._page = run_page.RunPage(
                self.scheduler, listeners, clock, self.leadership, self.options.gates
            )

    @property
    def has_synced(self) -> bool:
        return self.watcher.has_synced

    def pods(self) -> tuple[Pod, ...]:
        return self.scheduler.objects.pods.list()

    def running_pod(self, namespace: str, name: str) -> RunningPod | None:
        gates = self.options.gates
        return find_running(self.scheduler, self.history, namespace, name, gates)

    def kept_attempts(self, namespace: str) -> Sequence[FrozenDecision]:
        return kept_attempts(self.scheduler, self.history, namespace)

    def page_site(self, port: OtherLoop) -> PagePaths | None:
        if self._page is None:
            return None
        return self._page.site(self.config, self.options.gates, self.history, port)

    def conditions(self) -> Sequence[str]:
        return () if self._measuring is None else self._measuring.conditions()

    def compare_and_dump(self) -> None:
        self.debugger.compare_and_dump()

    async def _watch(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watcher.run())
            group.create_task(self._prepare())
            if self.recording is not None:
                group.create_task(self.recording.run(self.scheduler))
            if self._measuring is not None:
                group.create_task(self._measuring.run(self.watcher))

    async def _wait_synced(self) -> None:
        await self.watcher.wait_synced()
        await self.watcher.wait_following()

    async def _prepare(self) -> None:
        """Prepare the scheduler, also as a standby: no pod waits for it when the leader changes."""
        await self.watcher.wait_synced()
        self.scheduler.prepare()

    def _scheduling(self) -> Sequence[Coroutine[Any, Any, None]]:
        return (self.scheduler.run(), self.scheduler.queue.run_timers())

    async def _end(self) -> None:
        await super()._end()
        if self.recording is not None:
            self.recording.close()

    async def _drain(self, limit_s: float) -> bool:
        return await self.scheduler.tasks.drain(limit_s)


async def _first(*waited_for: asyncio.Future[Any]) -> None:
    await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)


def _begin_recording(
    options: SchedulerOptions, config: SchedulerConfig, clock: Clock, rng: np.random.Generator
) -> "RunRecording":
    # Imported here: a scheduler that does not record loads nothing of it.
    from kubestow.recording import recording

    path = Path(options.record)
    to = recording.RecordTo(path, "run", options.record_bytes_max, options.force)
    try:
        to.check()
    except InputError as error:
        raise ConfigError(str(error)) from error
    return recording.RunRecording(to, clock, config, options.gates, rng=rng, leaves_to_chance=True)


def first_error(error: BaseException) -> BaseException:
    """The first single error of a group; CacheCorruptedError comes before all others."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast(BaseExceptionGroup[BaseException], error)
    errors = [first_error(part) for part in group.exceptions]
    return next((found for found in errors if isinstance(found, CacheCorruptedError)), errors[0])


def announce_config(process: ServiceProcess) -> bool:
    """Log the configuration; True if it was written to a file and the run ends (spec 09 §1, 11)."""
    options = process.options
    if ignored := options.gates.without_effect:
        inform(log, "Feature gates of other components have no effect", gates=ignored)
    if not options.choice.edition.has_plugins:
        return False  # It has flags and a Policy instead; `/configz` shows them.
    if not options.write_config_to and not is_printed(log, 2):
        return False
    text = write_config(process.config, options.gates)
    inform(log, "Using component config", v=2, config=text)
    if not options.write_config_to:
        return False
    path = Path(options.write_config_to)
    try:
        # To be used as a configuration, so with its secrets.
        text = write_config(process.config, options.gates, has_secrets=True)
        # As kube-scheduler, it replaces a file that exists.
        keeping.write(path, text, force=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"open {options.write_config_to}: {reason}") from error
    inform(log, "Wrote configuration", file=options.write_config_to)
    return True
