"""The handle a plugin is created with, for tests that create one by hand."""

from typing import NamedTuple

from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.engine.deciding import NoQueue, drop_work
from kubestow.framework.handle import Handle
from kubestow.testing.clock import ManualClock


class RecordedEvent(NamedTuple):
    regarding: Pod
    type: str
    reason: str
    action: str
    note: str
    related: ApiObject | None


class RecordedEvents:
    """An event sink that keeps all events in order."""

    def __init__(self) -> None:
        self.events: list[RecordedEvent] = []

    def record(
        self,
        regarding: Pod,
        *,
        type: str,
        reason: str,
        action: str,
        note: str,
        related: ApiObject | None = None,
    ) -> None:
        self.events.append(RecordedEvent(regarding, type, reason, action, note, related))


def make_handle(
    snapshot: Snapshot | None = None,
    *,
    objects: ClusterObjects | None = None,
    clock: Clock | None = None,
    client: ClusterClient | None = None,
    events: RecordedEvents | None = None,
    feature_gates: FeatureGates = DEFAULT_GATES,
) -> Handle:
    """A handle on an empty cluster in memory, unless parts of it are given.

    There is no queue: pods are never activated, and spawned work is never run.
    """
    objects = ClusterObjects() if objects is None else objects
    clock = ManualClock() if clock is None else clock
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=Snapshot() if snapshot is None else snapshot,
        objects=objects,
        clock=clock,
        client=MemoryClient(MemoryCluster(clock)) if client is None else client,
        events=RecordedEvents() if events is None else events,
        spawn=drop_work,
        feature_gates=feature_gates,
    )
    queue = NoQueue(objects)
    handle.nominator, handle.activate = queue.nominator, queue.activate
    return handle
