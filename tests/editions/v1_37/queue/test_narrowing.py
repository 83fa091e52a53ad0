"""Events that concern some pods only (spec 12 §3.5)."""

import logging
from collections.abc import Sequence

import pytest
from tests.queue.conftest import PROFILE, RecordingMetrics

from kubestow.api.device import ResourceClaim
from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.editions.v1_37.plugins.dynamic_resources.hints import ClaimHintsV137
from kubestow.editions.v1_37.queue.narrowing import (
    FindConcerned,
    IsConcerned,
    Narrowing,
    Narrowings,
)
from kubestow.editions.v1_37.queue.pod_queue import PodQueueV137
from kubestow.framework.events import (
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Hint,
    Resource,
)
from kubestow.framework.hints import HintRegistration
from kubestow.index.devices import KnownDevices
from kubestow.queue.moves import Place
from kubestow.testing import ManualClock, make_handle, make_pod
from kubestow.testing.devices import make_allocation, make_claim

CHANGES = ClusterEvent(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE | Action.DELETE)
UPDATED = ClusterEvent(Resource.RESOURCE_CLAIM, Action.UPDATE)


@pytest.fixture
def metrics() -> RecordingMetrics:
    return RecordingMetrics()


class Knowing:
    def __init__(self, find: FindConcerned) -> None:
        self._find = find

    @property
    def name(self) -> str:
        return "Knowing"

    def narrowings(self) -> Sequence[Narrowing]:
        return [Narrowing(CHANGES, self._find)]


def only(name: str) -> IsConcerned:
    return lambda pod: pod.metadata.name == name


def parked(queue: PodQueueV137, *names: str) -> None:
    for name in names:
        queue.add(make_pod(name))
        popped = queue.pop_nowait()
        assert popped is not None
        popped.reject(unschedulable=("Knowing", "Other"))
        queue.add_unschedulable_if_not_present(popped)


def make_queue(find: FindConcerned, metrics: RecordingMetrics) -> PodQueueV137:
    """Two plugins wait for claims; one of them can say which pods an event concerns."""
    queue = PodQueueV137(
        clock=ManualClock(1_000),
        sort_key=lambda queued_pod: (queued_pod.timestamp_ns,),
        hint_maps={
            PROFILE: [
                HintRegistration(CHANGES, "Knowing", lambda pod, old, new: Hint.QUEUE),
                HintRegistration(CHANGES, "Other", None),
            ]
        },
        pod_lister=lambda namespace, name: make_pod(name, namespace=namespace),
        metrics=metrics,
    )
    queue.narrowings = Narrowings([Knowing(find), object()], metrics)
    return queue


def test_other_pods_are_not_looked_at(metrics: RecordingMetrics) -> None:
    queue = make_queue(lambda old, new: only("a"), metrics)
    parked(queue, "a", "b")
    queue.move_all(UPDATED, None, None)
    assert queue.place_of(make_pod("a")) is Place.BACKOFF
    # Not by the other plugin either, which would queue every pod.
    assert queue.place_of(make_pod("b")) is Place.UNSCHEDULABLE
    assert metrics.narrowed == [("Knowing", False)]


@pytest.mark.parametrize("fails", [False, True])
def test_all_pods_are_asked_if_the_plugin_cannot_say(
    metrics: RecordingMetrics, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    def find(old: object, new: object) -> None:
        if fails:
            raise ValueError("broken")

    caplog.set_level(logging.CRITICAL)
    queue = make_queue(find, metrics)
    parked(queue, "a", "b")
    queue.move_all(UPDATED, None, None)
    assert {queue.place_of(make_pod(name)) for name in "ab"} == {Place.BACKOFF}
    assert metrics.narrowed == [("Knowing", True)]


def test_other_events_are_not_narrowed(metrics: RecordingMetrics) -> None:
    queue = make_queue(lambda old, new: only("a"), metrics)
    parked(queue, "a", "b")
    queue.move_all(ClusterEvent(Resource.NODE, Action.ADD), None, None)
    queue.move_all(UNSCHEDULABLE_TIMEOUT, None, None)
    assert {queue.place_of(make_pod(name)) for name in "ab"} == {Place.BACKOFF}
    assert metrics.narrowed == []


def claim(name: str = "c", *, allocated: bool = False) -> ResourceClaim:
    return make_claim(name, allocation=make_allocation("p/a") if allocated else None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(claim(allocated=True), claim(), id="given-back"),
        pytest.param(claim(allocated=True), None, id="deleted"),
        pytest.param(None, None, id="not-known"),
    ],
)
def test_freed_devices_concern_all_pods(
    old: ResourceClaim | None, new: ResourceClaim | None
) -> None:
    assert hints().find_concerned(old, new) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(None, claim(), id="added"),
        pytest.param(claim(), claim(allocated=True), id="allocated"),
        pytest.param(claim(), None, id="deleted-before-it-was-allocated"),
    ],
)
def test_other_changes_concern_the_pods_that_refer_to_the_claim(
    old: ResourceClaim | None, new: ResourceClaim | None
) -> None:
    is_concerned = hints().find_concerned(old, new)
    assert is_concerned is not None
    assert is_concerned(using("c"))
    assert not is_concerned(using("d"))
    assert not is_concerned(using("c", namespace="other"))


def using(name: str, namespace: str = "default") -> Pod:
    claims = [PodResourceClaim(name="x", resource_claim_name=name)]
    return make_pod(namespace=namespace, resource_claims=claims)


def hints() -> ClaimHintsV137:
    handle = make_handle()
    return ClaimHintsV137(KnownDevices.of(handle.objects, handle.feature_gates).claims)
