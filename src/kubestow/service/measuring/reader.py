"""Reads a source again and again, and adds what it finds to the store of usage.

    read, at most `timeout_s` ──► measurements of known nodes and pods, some at a time ──► store
      │ fails, hangs or is wrong
      └──► what was measured before is used until it is too old (the plugin's maxAge)

Between two parts of an answer the loop goes on with other work, so no pod waits for a source.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from kubestow.cache.objects import ClusterObjects
from kubestow.clock import NANOSECONDS, Clock
from kubestow.errors import KubestowError
from kubestow.logs import inform, warn
from kubestow.usage.measurement import Measurement
from kubestow.usage.store import UsageStore
from kubestow.usage.workload import workload_of

log = logging.getLogger(__name__)

# How many measurements are added before the loop goes on with other work.
PART: Final = 200
# What is not measured any more is dropped after this many reads.
READS_PER_FORGETTING: Final = 20


class MeasurementBatch(NamedTuple):
    """Measurements of one answer, and how many of its entries are none."""

    measurements: Sequence[Measurement]
    bad_count: int = 0


class Source(Protocol):
    @property
    def name(self) -> str: ...

    def read(self) -> AsyncIterator[MeasurementBatch]:
        """All measurements that the source has now; raises KubestowError or OSError."""
        ...


class LoadCondition(NamedTuple):
    """Whether placement goes by measured use; as a condition of an object of Kubernetes."""

    status: str
    reason: str
    message: str
    since: str


class ReaderStatistics(NamedTuple):
    """Reads by result, and nodes by state."""

    succeeded: int
    failed: int
    usable: int
    stale: int
    unmeasured: int


# How many nodes are usable, have a measurement that is not, and have none.
NodeCounts = Callable[[], tuple[int, int, int]]


class MeasurementReader:
    """`counts` is what the plugin uses of the measurements; `sleep` waits between two reads."""

    def __init__(
        self,
        source: Source,
        store: UsageStore,
        objects: ClusterObjects,
        clock: Clock,
        *,
        interval_s: float,
        timeout_s: float,
        counts: NodeCounts,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._source = source
        self._store = store
        self._objects = objects
        self._clock = clock
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._counts = counts
        self._sleep = sleep
        self._succeeded = self._failed = 0
        self._error = ""
        self.condition = self._made("Unknown", "Starting", "the source has not been read yet")

    async def run(self) -> None:
        """Read until cancelled; no failure of the source ends it."""
        while True:
            started_s = self._clock.monotonic_s()
            await self.read_once()
            passed_s = self._clock.monotonic_s() - started_s
            await self._sleep(max(self._interval_s - passed_s, self._interval_s / 10))

    async def read_once(self) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                async for batch in self._source.read():
                    await self._add(batch)
        except TimeoutError:
            self._note_failure(f"no answer within {self._timeout_s:g} s")
        except (KubestowError, OSError) as error:
            self._note_failure(str(error))
        except Exception as error:  # A source that misbehaves must not end the scheduler.
            log.exception("reading usage from %s failed", self._source.name)
            self._note_failure(f"{type(error).__name__}: {error}")
        else:
            self._succeeded += 1
            self._error = ""
        if (self._succeeded + self._failed) % READS_PER_FORGETTING == 0:
            self._store.forget_old(self._clock.now_ns())
        self._judge()

    def statistics(self) -> ReaderStatistics:
        return ReaderStatistics(self._succeeded, self._failed, *self._counts())

    async def _add(self, batch: MeasurementBatch) -> None:
        if batch.bad_count:
            self._store.refuse("not readable", batch.bad_count)
        for first in range(0, len(batch.measurements), PART):
            self._store.add(self._known(batch.measurements[first : first + PART]))
            await asyncio.sleep(0)

    def _known(self, measurements: Iterable[Measurement]) -> list[Measurement]:
        """The measurements of nodes and pods that exist, for pods with their workload."""
        known: list[Measurement] = []
        nodes, pods = self._objects.nodes, self._objects.pods
        for measurement in measurements:
            if not measurement.pod:
                if nodes.get(measurement.node) is not None:
                    known.append(measurement)
                    continue
            elif (pod := pods.get(measurement.namespace, measurement.pod)) is not None:
                known.append(measurement._replace(workload=workload_of(pod)))
                continue
            self._store.refuse("unknown object")
        return known

    # --- what is known of its state ---

    def _note_failure(self, error: str) -> None:
        self._failed += 1
        # The same failure is logged once, not every few seconds.
        if error != self._error:
            warn(log, "Cannot read usage", source=self._source.name, err=error[:500])
        self._error = error

    def _judge(self) -> None:
        """Log when placement begins to go by measured use, and when it ends."""
        usable, stale, unmeasured = self._counts()
        if usable:
            message = f"{usable} nodes have a usable measurement, {stale + unmeasured} have none"
            new = self._made("True", "Measured", message)
        else:
            message = "no node has a usable measurement: pods are placed as without LoadAware"
            if self._error:
                message += f"; {self._error[:200]}"
            new = self._made("False", "NoUsableMeasurement", message)
        if new.status != self.condition.status:
            (inform if usable else warn)(
                log, "Load-aware placement", active=bool(usable), message=message
            )
        else:
            new = new._replace(since=self.condition.since)
        self.condition = new

    def _made(self, status: str, reason: str, message: str) -> LoadCondition:
        now = datetime.fromtimestamp(self._clock.now_ns() // NANOSECONDS, UTC)
        return LoadCondition(status, reason, message, f"{now:%Y-%m-%dT%H:%M:%SZ}")
