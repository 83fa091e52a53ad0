"""Leader election: of several schedulers, only the holder of a lease works (spec 09 §6).

    candidate ──lease free or expired──► leader ──renewed──► leader
                                           └──not renewed in time, or asked to stop──► released

A candidate never compares the times in a lease with its own clock. It records when it saw the lease
change, and takes it over when that is longer ago than the lease lasts. A leader stops earlier than
that: at its renew deadline, and in any case before the lease it last wrote can have expired for
others. So two leaders never overlap, as long as clocks run equally fast.

Not here: what a leader does, and that the process ends when it no longer is one (`service`).
"""

import asyncio
import logging
import math
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np

from kubestow.api.coordination import Lease, LeaseSpec
from kubestow.api.meta import ObjectMeta
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.documents import microseconds_at
from kubestow.cluster.lease_watch import LeaseWatch
from kubestow.errors import ApiError, ConfigError, ConflictError, NotFoundError
from kubestow.logs import fail, inform

logger = logging.getLogger(__name__)

JITTER_FACTOR: Final = 1.2
RELEASE_TRIES: Final = 3
RELEASED_DURATION_S: Final = 1


class ElectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which lease, and how long things take (`leaderElection` of the configuration)."""

    namespace: str = "kube-system"
    name: str = "kube-scheduler"
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    @property
    def lease_seconds(self) -> int:
        """The duration as written in the lease: whole seconds, cut off."""
        return int(self.lease_duration_s)

    def check(self) -> None:
        """ConfigError if no elector can work like this; the order and the texts are upstream's."""
        problem = ""
        if self.lease_duration_s <= self.renew_deadline_s:
            problem = "leaseDuration must be greater than renewDeadline"
        elif self.renew_deadline_s <= JITTER_FACTOR * self.retry_period_s:
            problem = "renewDeadline must be greater than retryPeriod*JitterFactor"
        elif self.lease_duration_s <= 0:
            problem = "leaseDuration must be greater than zero"
        elif self.renew_deadline_s <= 0:
            problem = "renewDeadline must be greater than zero"
        elif self.retry_period_s <= 0:
            problem = "retryPeriod must be greater than zero"
        if problem:
            raise ConfigError(f"couldn't create leader elector: {problem}")


class ElectionStatistics(msgspec.Struct, frozen=True):
    is_leading: bool
    holder: str
    slow_path_count: int  # renewals that had to read the lease first


class LeaderElector:
    """One candidate for a lease."""

    def __init__(
        self,
        client: ClusterClient,
        clock: Clock,
        *,
        identity: str,
        rng: np.random.Generator,
        settings: ElectionSettings | None = None,
        on_change: Callable[[bool], None] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`on_change` is called when this candidate starts (True) or stops (False) leading."""
        self.identity: Final = identity
        self.settings: Final = settings or ElectionSettings()
        self.settings.check()
        self.is_leading = False
        self._client = client
        self._clock = clock
        self._rng = rng
        self._on_change = on_change
        self._sleep = sleep
        self._lease: Lease | None = None  # as last read or written
        self._observation: Observation | None = None
        # When the last renewal was sent that others can observe: they count from then on.
        self._renewed_s = 0.0
        self._renewed = asyncio.Event()
        self._news = asyncio.Event()  # the watch has shown a change
        self._renewal: asyncio.Task[None] | None = None
        self._released = asyncio.Event()
        self._slow_path_count = 0
        self._lock = f"{self.settings.namespace}/{self.settings.name}"  # in every line of the log
        self._obstacle = ""  # why the last try failed

    @property
    def is_lease_valid(self) -> bool:
        """Whether this candidate leads and no other can have taken over.

        Not so after a pause of the process: it leads in its own view until it finds out.
        """
        valid_until_s = self._renewed_s + self.settings.lease_seconds
        return self.is_leading and self._clock.monotonic_s() < valid_until_s

    async def wait_valid(self) -> None:
        """Return while the lease is valid; wait for a renewal if it is not."""
        while not self.is_lease_valid:
            self._renewed.clear()
            await self._renewed.wait()

    def statistics(self) -> ElectionStatistics:
        return ElectionStatistics(
            is_leading=self.is_leading,
            holder=self._holder,
            slow_path_count=self._slow_path_count,
        )

    @property
    def lease(self) -> Lease | None:
        """The lease as last read or written."""
        return self._lease

    async def run(
        self, lead: Callable[[], Coroutine[Any, Any, None]]
    ) -> Literal["lost", "finished"]:
        """Wait for the lease, then lead until the lease is lost or the work is finished.

        However it ends, also by cancellation: the work is cancelled and the lease is released.
        """
        await self.acquire()
        self._change(is_leading=True)
        work = asyncio.create_task(lead(), name="lead")
        self._renewal = renewal = asyncio.create_task(self.renew(), name="renew lease")
        try:
            await asyncio.wait((work, renewal), return_when=asyncio.FIRST_COMPLETED)
            is_finished = work.done()
        finally:
            # The work first: once the lease is free, another candidate starts. Work on another loop
            # may not notice at once that it is cancelled; `wait_valid` holds it back from here on.
            self._renewed_s = -math.inf
            work.cancel()
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)
            await self.release()
            self._released.set()
            self._change(is_leading=False)
            await asyncio.gather(work, return_exceptions=True)
        if not is_finished:
            return "lost"
        work.result()  # raises the error of the work
        return "finished"

    async def give_up(self) -> None:
        """End a `run` that leads, and return once the lease is released; the work may still run."""
        if self._renewal is not None:
            self._renewal.cancel()
            await self._released.wait()

    async def acquire(self) -> None:
        """Return once this candidate holds the lease (§6.3)."""
        inform(logger, "Attempting to acquire leader lease...", lock=self._lock)
        watch = LeaseWatch(
            self._client,
            namespace=self.settings.namespace,
            name=self.settings.name,
            on_change=self._changed,
        )
        watching = asyncio.create_task(watch.run(self._known_version), name="watch lease")
        try:
            while not await self.try_once():
                inform(logger, "Failed to acquire lease", v=4, lock=self._lock)
                await self._wait_turn()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        inform(logger, "Successfully acquired lease", lock=self._lock)

    async def renew(self) -> None:
        """Keep the lease; return when it could not be kept (§6.3)."""
        while await self._renew_in_time():
            await self._sleep(self.settings.retry_period_s)
        inform(logger, "Failed to renew lease", lock=self._lock, err=self._obstacle)

    async def try_once(self) -> bool:
        """Acquire or renew; whether this candidate now holds the lease (§6.2)."""
        now_s = self._clock.monotonic_s()
        known = self._observation
        self._obstacle = "no answer in time"
        if self._lease is not None and known is not None and self._holder == self.identity:
            spec = self._claim(known, now_s)
            if spec is not None and known.is_valid(now_s):
                try:
                    await self._write(self._lease, spec)
                except ApiError as error:
                    self._obstacle = str(error)
                    text = "Failed to update lease optimistically, falling back to slow path"
                    inform(logger, text, v=2, lock=self._lock, err=self._obstacle)
                else:
                    return True
        try:
            lease = await self._read()
        except NotFoundError:
            return await self._create()
        except ApiError as error:
            return self._failed("Error retrieving lease lock", error)
        now_s = self._clock.monotonic_s()
        observation = self._observe(lease, now_s)
        spec = self._claim(observation, now_s)
        if spec is None:
            self._obstacle = f"held by {self._holder}"
            return False
        if observation.spec.holder_identity == self.identity:
            self._slow_path_count += 1
        try:
            await self._write(lease, spec)
        except ApiError as error:
            return self._failed("Failed to update lease", error)
        return True

    async def release(self) -> None:
        """Let others take over at once, if this candidate still holds the lease (§6.4)."""
        try:
            async with asyncio.timeout(self.settings.renew_deadline_s):
                for _ in range(RELEASE_TRIES):
                    lease = await self._read()
                    observation = self._observe(lease, self._clock.monotonic_s())
                    if observation.spec.holder_identity != self.identity:
                        return
                    released = _released(observation.spec, self._now())
                    try:
                        self._lease = await self._client.update(lease, _with_spec(lease, released))
                    except ConflictError:
                        continue  # our own last renewal arrived meanwhile
                    self._observation = Observation(released, self._clock.monotonic_s())
                    return
        except (ApiError, TimeoutError) as error:
            fail(
                logger,
                "Failed to release lease",
                str(error) or "no answer in time",
                lock=self._lock,
            )

    @property
    def _holder(self) -> str:
        known = self._observation
        return (known.spec.holder_identity or "") if known is not None else ""

    async def _wait_turn(self) -> None:
        """Wait for the time of the next reading, or until the lease becomes free before that."""
        retry_s = self.settings.retry_period_s
        delay_s = retry_s + self._rng.random() * JITTER_FACTOR * retry_s
        read_s = self._clock.monotonic_s() + delay_s
        while delay_s > 0.0:
            self._news.clear()
            try:
                async with asyncio.timeout(min(delay_s, self._time_left_s() or delay_s)):
                    await self._news.wait()
            except TimeoutError:
                return
            if not self._time_left_s():
                return  # It was released.
            delay_s = read_s - self._clock.monotonic_s()

    def _known_version(self) -> str:
        return "" if self._lease is None else self._lease.metadata.resource_version

    def _changed(self, lease: Lease) -> None:
        if lease.spec.holder_identity == self.identity:
            return  # our own claim, seen before its answer: `_wrote` counts from when it was sent
        self._observe(lease, self._clock.monotonic_s())
        self._news.set()

    def _time_left_s(self) -> float:
        """How long the lease of another candidate is still valid, as far as known."""
        known = self._observation
        if known is None or not known.spec.holder_identity:
            return 0.0
        return max(0.0, known.expiry_s - self._clock.monotonic_s())

    async def _renew_in_time(self) -> bool:
        """Try until it succeeds; False when time is up."""
        settings = self.settings
        started_s = self._clock.monotonic_s()
        # The deadline counts from now. After a slow response to the last renewal it could lie
        # beyond the end of the lease, when another candidate may lead already.
        deadline_s = min(
            started_s + settings.renew_deadline_s, self._renewed_s + settings.lease_seconds
        )
        next_try_s = started_s
        try:
            async with asyncio.timeout(deadline_s - started_s):
                while not await self.try_once():
                    next_try_s += settings.retry_period_s
                    await self._sleep(max(0.0, next_try_s - self._clock.monotonic_s()))
                return True
        except TimeoutError:
            return False

    async def _read(self) -> Lease:
        return await self._client.get(Lease, self.settings.namespace, self.settings.name)

    async def _create(self) -> bool:
        settings = self.settings
        now = self._now()
        spec = LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=settings.lease_seconds,
            acquire_time=now,
            renew_time=now,
            lease_transitions=0,
        )
        metadata = ObjectMeta(name=settings.name, namespace=settings.namespace)
        new = Lease(
            api_version="coordination.k8s.io/v1", kind="Lease", metadata=metadata, spec=spec
        )
        sent_s = self._clock.monotonic_s()
        try:
            lease = await self._client.create(new)
        except ApiError as error:
            return self._failed("Error initially creating lease lock", error)
        self._wrote(lease, spec, sent_s)
        return True

    async def _write(self, lease: Lease, spec: LeaseSpec) -> None:
        sent_s = self._clock.monotonic_s()
        written = await self._client.update(lease, _with_spec(lease, spec))
        self._wrote(written, spec, sent_s)

    def _failed(self, message: str, error: ApiError) -> Literal[False]:
        self._obstacle = str(error)
        if isinstance(error, ConflictError):  # another candidate was faster
            inform(logger, message, v=2, lock=self._lock, err=self._obstacle)
        else:
            fail(logger, message, error, lock=self._lock)
        return False

    def _wrote(self, lease: Lease, spec: LeaseSpec, sent_s: float) -> None:
        known = self._observation
        # Two renewals within a second look the same to others: they count from the first one.
        if known is None or _visible(known.spec) != _visible(spec):
            self._renewed_s = sent_s
        self._lease = lease
        self._observation = Observation(spec, self._clock.monotonic_s())
        self._renewed.set()

    def _observe(self, lease: Lease, now_s: float) -> "Observation":
        self._lease = lease
        old_holder = self._holder
        self._observation = observation = observe(self._observation, lease.spec, now_s)
        if self._holder != old_holder and self._holder != self.identity:
            logger.info('New leader elected: "%s"', self._holder)
        return observation

    def _claim(self, observation: "Observation", now_s: float) -> LeaseSpec | None:
        return claim(
            observation, self.identity, self.settings.lease_seconds, now_s=now_s, now=self._now()
        )

    def _now(self) -> datetime:
        return microseconds_at(self._clock.now_ns())

    def _change(self, *, is_leading: bool) -> None:
        self.is_leading = is_leading
        if self._on_change is not None:
            self._on_change(is_leading)


class Observation(NamedTuple):
    """The content of a lease, and when it was first seen (on our monotonic clock)."""

    spec: LeaseSpec
    seen_s: float

    @property
    def expiry_s(self) -> float:
        """When the lease expires, counted from when it was seen."""
        return self.seen_s + (self.spec.lease_duration_seconds or 0)

    def is_valid(self, now_s: float) -> bool:
        return self.expiry_s > now_s


def observe(old: Observation | None, spec: LeaseSpec, now_s: float) -> Observation:
    """The observation after reading the lease: the old one unless it visibly changed (§6.1)."""
    if old is not None and _visible(old.spec) == _visible(spec):
        return old
    return Observation(spec, now_s)


def claim(
    observation: Observation,
    identity: str,
    lease_seconds: int,
    *,
    now_s: float,
    now: datetime,
) -> LeaseSpec | None:
    """The record with which to claim the lease; None while another candidate holds it (§6.2)."""
    held = observation.spec
    holder = held.holder_identity or ""
    transitions = held.lease_transitions or 0
    acquire_time = now
    if holder == identity:
        acquire_time = held.acquire_time or now
    elif holder and observation.is_valid(now_s):
        return None
    else:
        transitions += 1
    return LeaseSpec(
        holder_identity=identity,
        lease_duration_seconds=lease_seconds,
        acquire_time=acquire_time,
        renew_time=now,
        lease_transitions=transitions,
    )


def process_identity(hostname: str, rng: np.random.Generator) -> str:
    """A name that no other process has."""
    return f"{hostname}_{uuid.UUID(bytes=rng.bytes(16), version=4)}"


def _released(spec: LeaseSpec, now: datetime) -> LeaseSpec:
    return LeaseSpec(
        holder_identity="",
        lease_duration_seconds=RELEASED_DURATION_S,
        acquire_time=now,
        renew_time=now,
        lease_transitions=spec.lease_transitions,
    )


def _with_spec(lease: Lease, spec: LeaseSpec) -> Lease:
    return msgspec.structs.replace(lease, spec=spec)


def _visible(spec: LeaseSpec) -> LeaseSpec:
    """The record as it is compared: times to the second."""
    return msgspec.structs.replace(
        spec,
        acquire_time=_whole_second(spec.acquire_time),
        renew_time=_whole_second(spec.renew_time),
    )


def _whole_second(time: datetime | None) -> datetime | None:
    return None if time is None else time.replace(microsecond=0)
