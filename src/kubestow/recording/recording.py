"""A recording in progress: one object to start, connect and end it.

It is bounded. When the file has half of the bytes allowed, a second one begins as soon as no pod is
being bound, with all objects as they are at that moment; the first is kept beside it as FILE.1, in
place of an older one. Each of the two can be replayed by itself.
"""

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from kubestow import __version__
from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, is_assigned
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.written import write_config
from kubestow.engine.scheduler import Scheduler
from kubestow.errors import InputError
from kubestow.files import keeping
from kubestow.recording.client import RecordingClient
from kubestow.recording.file import RecordingWriter
from kubestow.recording.format import Header
from kubestow.recording.posts import record_posts
from kubestow.recording.recorder import Recorder

log = logging.getLogger(__name__)

# A process that is killed loses what was recorded since the last time.
FLUSH_S: Final = 1.0


class RecordTo(NamedTuple):
    """Where a recording is written, by which command, and how many bytes it may take.

    force   files that exist are replaced: that of the path, and the second one
    """

    path: Path
    origin: str
    bytes_max: int | None = None
    force: bool = False

    def check(self, option: str = "--record") -> None:
        """InputError if a file could not be written, before there is anything to write."""
        keeping.require_new(self.path, option, force=self.force)
        if self.bytes_max is not None:
            keeping.require_new(self.second, option, force=self.force)

    @property
    def second(self) -> Path:
        """Where the first part is kept when the recording goes on in a new file."""
        return self.path.with_name(self.path.name + ".1")


class RunRecording:
    """Begins with an empty cluster, so it is made before the informers of its scheduler run.

    The scheduler gets `client` and the observer `recorder`, its watcher the observer
    `recorder.handler`; then `observe_extenders`.
    """

    def __init__(
        self,
        to: RecordTo,
        clock: Clock,
        config: SchedulerConfig,
        gates: FeatureGates = DEFAULT_GATES,
        *,
        rng: np.random.Generator,
        leaves_to_chance: bool = False,
    ) -> None:
        """`rng` is that of the scheduler, of nothing else. Raises InputError."""
        to.check()
        self._to = to
        self._clock = clock
        self._rng = rng
        self._header = Header(
            program=__version__,
            origin=to.origin,
            started_ns=clock.now_ns(),
            config=write_config(_unconnected(config), gates),
            edition=gates.edition.version,
            gates=gates.overrides,
            chance=_state_of(rng),
            leaves_to_chance=leaves_to_chance,
        )
        self._writer = RecordingWriter(to.path, self._header, force=to.force)
        self.recorder = Recorder(self._writer, clock)

    def observe_extenders(self, scheduler: Scheduler) -> None:
        if scheduler.extenders is not None:
            record_posts(scheduler.extenders, self.recorder)
            self.recorder.has_extenders = True

    def client(self, client: ClusterClient) -> ClusterClient:
        return RecordingClient(client, self.recorder)

    async def flush_regularly(self) -> None:
        """Write to the file from time to time, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_S)
            self._writer.flush()

    async def run(self, scheduler: Scheduler) -> None:
        """Write to the file from time to time, within the limit of its size, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_S)
            self._writer.flush()
            limit = self._to.bytes_max
            if limit is None or keeping.is_device(self._to.path):
                continue
            if self._writer.bytes_written > limit / 2:
                self._go_on_in_a_new_file(scheduler, limit)

    def close(self) -> None:
        self._writer.close()

    def _go_on_in_a_new_file(self, scheduler: Scheduler, bytes_max: int) -> None:
        if self._writer.is_ended:
            return
        # What plugins have reserved for a pod that is being bound is not in any object, and a cycle
        # that waits for extenders decides on what was before.
        is_waiting = scheduler.cycles is not None and not scheduler.cycles.are_idle.is_set()
        if is_waiting or scheduler.binder.running_count or not scheduler.tasks.is_idle:
            if self._writer.bytes_written > bytes_max:
                self._writer.end(
                    f"{self._to.path} has {bytes_max >> 20} MiB, and pods are always bound"
                )
            return
        self._writer.close()
        try:
            self._to.path.rename(self._to.second)
            header = _started_again(self._header, scheduler, self._clock, self._rng)
            self._writer = RecordingWriter(self._to.path, header)
        except (OSError, InputError) as error:
            log.error("The recording has ended: %s", error)
            return
        self.recorder.start_again(self._writer)
        for api_object in _objects_of(scheduler):
            self.recorder.put(api_object)


def _started_again(
    header: Header, scheduler: Scheduler, clock: Clock, rng: np.random.Generator
) -> Header:
    return Header(
        program=header.program,
        origin=header.origin,
        started_ns=clock.now_ns(),
        config=header.config,
        edition=header.edition,
        gates=header.gates,
        start_index=scheduler.decider.next_start_index,
        chance=_state_of(rng),
        leaves_to_chance=header.leaves_to_chance,
    )


def _unconnected(config: SchedulerConfig) -> SchedulerConfig:
    """Without the certificates of extenders: a replay sends no request."""
    extenders = (msgspec.structs.replace(each, tls_config=None) for each in config.extenders)
    return msgspec.structs.replace(config, extenders=tuple(extenders))


def _state_of(rng: np.random.Generator) -> str:
    return json.dumps(rng.bit_generator.state)


def _objects_of(scheduler: Scheduler) -> Iterator[ApiObject]:
    """All objects, in an order from which the same cache is built: ties are broken by it."""
    objects, cache = scheduler.objects, scheduler.cache
    for cls in objects.types():
        if cls not in (Node, Pod):
            yield from objects.store(cls).list()
    for name in cache.node_tree.list():
        node = objects.nodes.get(name)
        if node is not None:
            yield node
    for info in cache.nodes.values():
        for pod_info in info.pods:
            yield pod_info.pod
    for pod in objects.pods.list():
        if not is_assigned(pod):
            yield pod
