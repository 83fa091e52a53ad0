"""The scheduler process: everything put together, started in order and ended in order (spec 09 §1,
§6.4, §11).

    options ─► clients, socket ─► scheduler ─► HTTPS ─► informers ─► lease ─► scheduling
                                                                                  │ SIGTERM
    exit code ◄─ HTTPS closed ◄─ lease released ◄─ bindings under way end ◄─ no new pods

With leader election only the holder of the lease schedules; a standby keeps its caches warm. A
process that loses its lease, or whose cache contradicts the cluster, ends: starting anew is the one
way back that is always right.

Beyond upstream: on SIGTERM bindings under way are given a few seconds to end before the lease is
released, so that no pod is bound twice over or left half-bound.
"""

import asyncio
import gc
import logging
from collections.abc import Coroutine, Iterable
from typing import Any, Final, cast

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import Clock
from kubestow.cluster.documents import microseconds_at
from kubestow.cluster.election import ElectionSettings, LeaderElector, process_identity
from kubestow.cluster.events import EventRecorder
from kubestow.config.connection import LeaderElectionConfig, check_election
from kubestow.config.written import configz_document, write_config
from kubestow.engine.profile_events import ProfileEvents
from kubestow.engine.scheduler import Scheduler
from kubestow.engine.watching import ClusterWatcher
from kubestow.errors import ApiError, CacheCorruptedError, ConfigError
from kubestow.logs import fail, is_heard, tell
from kubestow.plugins.loading import load_plugins
from kubestow.service.connections import Connections
from kubestow.service.debugger import CacheDebugger
from kubestow.service.metrics.pod_resources import pod_resource_texts
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions
from kubestow.service.serving.application import Application, Pages
from kubestow.service.serving.authentication import Authenticator
from kubestow.service.serving.authorization import Authorizer
from kubestow.service.serving.certificates import ServingCertificates
from kubestow.service.serving.health import (
    NOT_SYNCED,
    SHUTTING_DOWN,
    HealthEndpoint,
    HealthSlis,
    NamedCheck,
    always_ok,
)
from kubestow.service.serving.pages import ProcessFacts
from kubestow.service.serving.server import HttpsServer, bind_socket
from kubestow.service.serving.trust import TrustLookup

log = logging.getLogger(__name__)

# How long bindings under way may take after SIGTERM. Well below the time a kubelet gives a pod.
DRAIN_S: Final = 5.0
# How long the last events may take to be sent.
FLUSH_S: Final = 2.0
# Collections happen after this many more objects were made than freed (youngest generation), and
# older generations are looked at after so many collections of the one before.
GC_THRESHOLDS: Final = (20_000, 20, 50)


class RunError(Exception):
    """The process has to end with an error; the text is logged as the reason."""


class SchedulerProcess:
    """One scheduler from its options to its exit code. Made inside a running event loop."""

    def __init__(
        self,
        options: SchedulerOptions,
        connections: Connections,
        metrics: ProcessMetrics,
        clock: Clock,
        rng: np.random.Generator,
        *,
        hostname: str,
        set_verbosity: Any = None,
    ) -> None:
        """Build everything; ConfigError says what cannot be built. Nothing runs yet."""
        self.options = options
        self._connections = connections
        self._metrics = metrics
        self._clock = clock
        self._rng = rng
        self._started_ns = clock.now_ns()
        self._is_stopping = False
        self._stopping = asyncio.Event()
        self._failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._are_informers_started = False
        self._set_verbosity = set_verbosity
        self._server: HttpsServer | None = None
        self._certificates: ServingCertificates | None = None

        loaded = load_plugins(options.config)
        self.config = loaded.config
        check_election(self.config.leader_election)
        self._authenticator = Authenticator(
            clock,
            reviewer=connections.authentication,
            token_ttl_s=options.authentication.token_cache_ttl.seconds,
        )
        self._trust = TrustLookup(
            options.authentication, connections.authentication, self._authenticator
        )
        socket = None
        if options.serving.port:
            self._certificates = ServingCertificates(
                options.serving, clock, lambda: self._authenticator.trust.all_authorities
            )
            socket = bind_socket(options.serving)
        self.recorder = EventRecorder(connections.events, clock, hostname=hostname, rng=rng)
        self.scheduler = Scheduler(
            self.config,
            client=connections.main,
            objects=ClusterObjects(),
            events=lambda profile_name: ProfileEvents(self.recorder, profile_name),
            clock=clock,
            registry=loaded.registry,
            gates=options.gates,
            queue_metrics=metrics.queue,
            metrics=metrics.scheduler,
            max_unschedulable_ns=int(options.pod_max_in_unschedulable_pods),
        )
        metrics.scheduler.observe(self.scheduler)
        self.watcher = ClusterWatcher(connections.main, self.scheduler, clock, rng)
        self.debugger = CacheDebugger(self.scheduler)
        self.elector = self._make_elector(process_identity(hostname, rng))
        if socket is not None and self._certificates is not None:
            application = Application(
                self._pages(), self._authenticator, self._authorizer(), clock, rng
            )
            self._server = HttpsServer(application, socket, self._certificates.context)

    @property
    def address(self) -> str:
        """Where it serves; empty if it does not."""
        return self._server.address if self._server is not None else ""

    def request_stop(self) -> None:
        """Begin to end, as after SIGTERM. From here on the process is not ready."""
        self._is_stopping = True
        self._stopping.set()

    async def run(self) -> int:
        """Run until asked to stop, or until it cannot go on; the exit code of the process."""
        tell(log, "Starting Kubernetes Scheduler", version=self.options.reported_version)
        try:
            await self._trust.look()
            if self._server is not None:
                await self._server.start()
            self._spawn(self.recorder.run())
            self._spawn(self._trust.run())
            if not self._is_delayed:
                self._start_informers()
            return await self._work()
        finally:
            await self._end()

    # --- the main line ---

    async def _work(self) -> int:
        elector = self.elector
        work = asyncio.ensure_future(elector.run(self._lead) if elector else self._lead())
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((work, stopping, self._failed), return_when=asyncio.FIRST_COMPLETED)
            if elector is None or elector.is_leading:
                # Whoever schedules ends by itself, in order, once it is asked to stop.
                await asyncio.wait((work, self._failed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not work.done():
                work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        if self._failed.done():
            raise self._failed.result()
        outcome = None if work.cancelled() else work.result()
        return self._exit_code(outcome)

    def _exit_code(self, outcome: object) -> int:
        """Spec 09 §6.4, §11."""
        if self.elector is None:
            raise RunError("finished without leader elect")
        if self._is_stopping:
            tell(log, "Requested to terminate, exiting")
            return 0
        if outcome == "lost":
            fail(log, "Leaderelection lost")
        return 1

    async def _lead(self) -> None:
        """Schedule until asked to stop; cancelled when the lease is lost."""
        if not self._are_informers_started:
            tell(log, "Starting informers and waiting for sync...")
            self._start_informers()
        if not await self._is_synced_before_stop():
            return
        tell(log, "Handlers synced", v=3)
        settle_memory()
        running = [
            self._spawn(self.scheduler.run()),
            self._spawn(self.scheduler.queue.run_timers()),
        ]
        limit_s = 0.0
        try:
            await self._stopping.wait()
            limit_s = DRAIN_S
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            if not await self.scheduler.drain(limit_s):
                log.warning("some bindings did not end in time and were cancelled")

    async def _is_synced_before_stop(self) -> bool:
        """Wait for the caches; False if the process is asked to stop before that."""
        synced = asyncio.ensure_future(self.watcher.wait_synced())
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((synced, stopping), return_when=asyncio.FIRST_COMPLETED)
            return synced.done() and not self._is_stopping
        finally:
            synced.cancel()
            stopping.cancel()

    async def _end(self) -> None:
        """Whatever happened, leave nothing behind."""
        self._is_stopping = True
        if self._server is not None:
            await self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(FLUSH_S):
                await self.recorder.flush()
        except TimeoutError:
            log.warning("the last events could not be sent in time")
        self._connections.close()
        if self._certificates is not None:
            self._certificates.close()

    # --- tasks ---

    @property
    def _is_delayed(self) -> bool:
        """Whether informers start only with leadership (spec 09 §5)."""
        return self.elector is not None and self.config.delay_cache_until_active

    def _start_informers(self) -> None:
        self._are_informers_started = True
        self._spawn(self.watcher.run())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something the process cannot do without: if it fails, so does the process."""
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

    # --- leadership ---

    def _make_elector(self, identity: str) -> LeaderElector | None:
        config = self.config.leader_election
        if not config.leader_elect:
            return None
        elector = LeaderElector(
            self._connections.election,
            self._clock,
            identity=identity,
            rng=self._rng,
            settings=election_settings(config),
            on_change=self._leadership_changed,
        )
        metrics = self._metrics.election
        metrics.changed(is_leading=False)
        metrics.slow_path.refresh = lambda: metrics.slow_path_counted(
            elector.statistics().slow_path_count
        )
        return elector

    def _leadership_changed(self, is_leading: bool) -> None:
        assert self.elector is not None
        self._metrics.election.changed(is_leading=is_leading)
        verb = "became leader" if is_leading else "stopped leading"
        asyncio.get_running_loop().create_task(
            self._tell_cluster(f"{self.elector.identity} {verb}")
        )

    async def _tell_cluster(self, message: str) -> None:
        """An event about the lease; of the older kind, as everybody writes them."""
        client, config = self._connections.lease_events, self.config.leader_election
        if client is None:
            return
        path = f"/api/v1/namespaces/{config.resource_namespace}/events"
        event = lease_event(
            config,
            message,
            component=self.config.profiles[0].scheduler_name,
            now_ns=self._clock.now_ns(),
        )
        try:
            await client.create_document(path, event)
        except ApiError as error:
            log.debug("cannot write an event about the lease: %s", error)

    # --- serving ---

    def _authorizer(self) -> Authorizer:
        options = self.options.authorization
        return Authorizer(
            self._clock,
            reviewer=self._connections.authorization,
            always_allow_paths=options.always_allow_paths,
            allow_ttl_s=options.allow_cache_ttl.seconds,
            deny_ttl_s=options.deny_cache_ttl.seconds,
        )

    def _pages(self) -> Pages:
        slis = HealthSlis()
        # Spec 09 §7: this check is there, but nobody ever connected it to the elector.
        election = [NamedCheck("leaderElection", always_ok)] if self.elector is not None else []
        ping = [NamedCheck("ping", always_ok)]
        ready = [
            *election,
            NamedCheck("shutdown", lambda: SHUTTING_DOWN if self._is_stopping else None),
            NamedCheck(
                "sched-handler-sync", lambda: None if self.watcher.has_synced else NOT_SYNCED
            ),
        ]
        gates, options = self.options.gates, self.options
        paths = ("/healthz", "/livez", "/readyz", "/metrics", "/configz", "/flagz", "/statusz")
        return Pages(
            health=(
                HealthEndpoint("healthz", election or ping, slis),
                HealthEndpoint("livez", ping, slis),
                HealthEndpoint("readyz", ready, slis),
            ),
            slis=slis,
            metrics=self._metrics.registry,
            runtime=self._metrics.runtime,
            pod_resources=self._pod_resources,
            configz=lambda: configz_document(self.config, gates),
            flags=dict(_flag_pairs(options.flags.lines()))
            if gates.enabled("ComponentFlagz")
            else None,
            facts=ProcessFacts(
                started_ns=self._started_ns,
                version=options.reported_version,
                emulated_version=options.emulated_version,
                paths=(*paths, "/debug") if self.config.enable_profiling else paths,
            )
            if gates.enabled("ComponentStatusz")
            else None,
            set_verbosity=self._set_verbosity if self.config.enable_profiling else None,
        )

    def _pod_resources(self) -> Iterable[str]:
        if self.elector is not None and not self.elector.is_leading:
            return ()
        return pod_resource_texts(self.scheduler.objects.pods.list())


def settle_memory() -> None:
    """Keep the garbage collector from walking over what stays.

    After the first lists there are millions of objects that live as long as the process: pods,
    nodes, what was derived from them. The collector would go over all of them again and again, and
    for a large cluster that takes longer than a hundred scheduling cycles. Frozen, they are never
    looked at again. An attempt makes some hundred objects and leaves none in a cycle, so the young
    ones need not be looked at often either.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def first_error(error: BaseException) -> BaseException:
    """The first single error of a group; what corrupts the cache goes before all others."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast(BaseExceptionGroup[BaseException], error)
    errors = [first_error(part) for part in group.exceptions]
    return next((found for found in errors if isinstance(found, CacheCorruptedError)), errors[0])


def election_settings(config: LeaderElectionConfig) -> ElectionSettings:
    return ElectionSettings(
        namespace=config.resource_namespace,
        name=config.resource_name,
        lease_duration_s=config.lease_duration.seconds,
        renew_deadline_s=config.renew_deadline.seconds,
        retry_period_s=config.retry_period.seconds,
    )


def lease_event(
    config: LeaderElectionConfig, message: str, *, component: str, now_ns: int
) -> JsonObject:
    """Spec 09 §9.1, last row."""
    now = microseconds_at(now_ns).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{config.resource_name}.{now_ns:x}",
            "namespace": config.resource_namespace,
        },
        "involvedObject": {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": config.resource_namespace,
            "name": config.resource_name,
        },
        "reason": "LeaderElection",
        "message": message,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
        "type": "Normal",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def announce_config(options: SchedulerOptions, process: SchedulerProcess) -> bool:
    """Log the configuration and write it where asked to; True if the process is done with that."""
    if not options.write_config_to and not is_heard(log, 2):
        return False
    text = write_config(process.config, options.gates)
    tell(log, "Using component config", v=2, config=f"\n-------------------------\n{text}\n")
    if not options.write_config_to:
        return False
    try:
        with open(options.write_config_to, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(
            f"open {options.write_config_to}: {(error.strerror or '').lower()}"
        ) from error
    tell(log, "Wrote configuration", file=options.write_config_to)
    return True


def _flag_pairs(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        name, _, value = line.partition("=")
        yield name, value.removeprefix('"').removesuffix('"')
