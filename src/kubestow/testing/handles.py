"""The handle a plugin is created with, for tests that create one by hand."""

from collections.abc import Coroutine, Iterable
from typing import Any, NamedTuple

from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.framework.handle import Handle
from kubestow.queue.nominator import Nominator
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
        spawn=_never_run,
        feature_gates=feature_gates,
    )
    handle.nominator = Nominator(find=_find_nothing, pod_lister=objects.pods.get)
    handle.activate = _ignore_pods
    return handle


def _find_nothing(key: str) -> PodInfo | None:
    return None


def _never_run(work: Coroutine[Any, Any, None]) -> None:
    work.close()


def _ignore_pods(pods: Iterable[Pod]) -> None:
    pass
