"""Handling of a failed attempt (spec 04 §14)."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kubestow.api.meta import Condition
from kubestow.api.pod import Pod, assign
from kubestow.cache.objects import ClusterObjects
from kubestow.cluster.status_writer import StatusPatch
from kubestow.engine.decision import CLEAR_NOMINATION, FitError, Nomination
from kubestow.engine.failure import FailureHandler
from kubestow.errors import PluginError
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.events import Action, ClusterEvent, Resource
from kubestow.framework.hints import HintRegistration
from kubestow.framework.status import Code, Status
from kubestow.queue import Place, QueuedPod, SchedulingQueue
from kubestow.testing import ManualClock, make_pod
from kubestow.testing.handles import RecordedEvents

NOW = datetime(2026, 5, 1, 12, 30, 45, tzinfo=UTC)
EARLIER = datetime(2026, 5, 1, 12, tzinfo=UTC)
MESSAGE = "0/1 nodes are available: 1 full."


def fit_error(*plugins: str, pending: Sequence[str] = (), reason: str = "full") -> Status:
    diagnosis = Diagnosis(["n1"])
    diagnosis.set_explicit(0, Status.unschedulable(reason))
    diagnosis.unschedulable_plugins.update(plugins, pending)
    diagnosis.pending_plugins.update(pending)
    return Status(Code.UNSCHEDULABLE, error=FitError(diagnosis))


ERROR = Status.from_error(PluginError("boom"))


class Harness:
    """A pod in flight, and everything its failure may change."""

    def __init__(self, pod: Pod | None = None) -> None:
        self.pod = pod or make_pod("p", uid="u1")
        self.clock = ManualClock(NOW.timestamp() + 0.75)
        self.objects = ClusterObjects()
        self.events = RecordedEvents()
        self.patches: list[StatusPatch] = []
        event = ClusterEvent(Resource.NODE, Action.ALL)
        self.queue = SchedulingQueue(
            clock=self.clock,
            sort_key=lambda queued_pod: queued_pod.timestamp_ns,
            hint_maps={"default-scheduler": [HintRegistration(event, "F", None)]},
            pod_lister=self.objects.pods.get,
        )
        self.handler = FailureHandler(
            self.queue, self.objects.pods, {"default-scheduler": self.events}, self, self.clock
        )
        self.objects.pods.put(self.pod)
        self.queue.add(self.pod)
        popped = self.queue.pop_nowait()
        assert popped is not None
        self.queued_pod: QueuedPod = popped

    def start_write(self, pod: Pod, patch: StatusPatch) -> None:
        self.patches.append(patch)

    def fail(self, status: Status = ERROR, nomination: Nomination | None = None) -> None:
        self.handler.handle(self.queued_pod, status, nomination)
        assert self.queue.statistics().in_flight == 0

    @property
    def place(self) -> Place | None:
        return self.queue.place_of(self.pod)

    @property
    def condition(self) -> Condition | None:
        (patch,) = self.patches
        return patch.condition


# --- back to the queue (steps 1 to 3) ---


def test_a_pod_that_fits_nowhere_is_parked_with_its_rejectors() -> None:
    harness = Harness()
    harness.fail(fit_error("F", pending=["G"]))
    assert harness.place is Place.UNSCHEDULABLE
    assert harness.queued_pod.unschedulable_plugins == {"F", "G"}
    assert harness.queued_pod.pending_plugins == {"G"}
    assert harness.condition is not None
    assert (harness.condition.reason, harness.condition.message) == ("Unschedulable", MESSAGE)


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        pytest.param(ERROR, "SchedulerError", "boom", id="error"),
        pytest.param(
            Status(
                Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
                error=PluginError("no nodes available to schedule pods"),
            ),
            "Unschedulable",
            "no nodes available to schedule pods",
            id="14.3-6-no-nodes",
        ),
        pytest.param(
            Status.unschedulable("quota").with_plugin("F"),
            "Unschedulable",
            "quota",
            id="12.6-a-rejection-at-bind",
        ),
    ],
)
def test_what_is_no_fit_error_waits_for_no_event(status: Status, reason: str, message: str) -> None:
    harness = Harness()
    harness.fail(status)
    assert harness.place is Place.ERROR_BACKOFF
    assert harness.queued_pod.rejectors == frozenset()
    assert harness.queued_pod.consecutive_errors_count == 1
    assert harness.condition is not None
    assert (harness.condition.reason, harness.condition.message) == (reason, message)


def test_what_the_last_attempt_left_is_replaced() -> None:
    harness = Harness()
    harness.queued_pod.reject(unschedulable=["old"], pending=["older"])
    harness.queued_pod.gating_plugin = "gate"
    harness.fail(fit_error("F"))
    assert harness.queued_pod.rejectors == {"F"}
    assert not harness.queued_pod.is_gated


def test_the_newest_version_of_the_pod_goes_back() -> None:
    harness = Harness()
    newer = msgspec.structs.replace(
        harness.pod, metadata=msgspec.structs.replace(harness.pod.metadata, labels={"new": "yes"})
    )
    harness.objects.pods.put(newer)
    harness.fail()
    assert harness.queued_pod.pod is newer


@pytest.mark.parametrize("fate", ["gone", "bound", "bound-under-another-uid"])
def test_a_pod_that_is_gone_or_bound_is_not_requeued_but_the_failure_is_reported(
    fate: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    harness = Harness(make_pod("p", uid="u1", nominated_node="n9"))
    if fate == "gone":
        harness.objects.pods.remove("default", "p")
    else:
        uid = "u1" if fate == "bound" else "u2"
        harness.objects.pods.put(assign(make_pod("p", uid=uid), "n1"))
    harness.fail(ERROR, Nomination("n5"))
    assert harness.place is None
    assert len(harness.queue.nominator) == 0
    assert [event.note for event in harness.events.events] == ["boom"]
    assert len(harness.patches) == 1
    why = "doesn't exist in informer cache" if fate == "gone" else "has been assigned to node"
    assert f"Pod {why}" in caplog.text


def test_a_pod_of_the_same_name_is_not_changed() -> None:
    harness = Harness()
    harness.objects.pods.put(make_pod("p", uid="u2"))
    harness.fail(ERROR, Nomination("n5"))
    assert harness.place is None
    assert len(harness.queue.nominator) == 0
    assert harness.events.events == []
    assert harness.patches == []


def test_the_failure_of_a_pod_that_is_queued_already_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = Harness()
    harness.queue.add(harness.pod)
    harness.fail()
    assert "is already present in the active queue" in caplog.text
    assert [event.note for event in harness.events.events] == ["boom"]
    assert harness.place is Place.ACTIVE


# --- nominations (step 4, §14.1) ---


@pytest.mark.parametrize(
    ("own", "nomination", "nominated", "patched"),
    [
        pytest.param("", Nomination("n1"), ["n1"], "n1", id="a-new-one"),
        pytest.param("n2", Nomination("n1"), ["n1"], "n1", id="another-one"),
        pytest.param("n1", Nomination("n1"), ["n1"], None, id="the-same"),
        pytest.param("n1", CLEAR_NOMINATION, [""], "", id="cleared"),
        pytest.param("", CLEAR_NOMINATION, [""], None, id="nothing-to-clear"),
        pytest.param("n1", None, ["n1"], None, id="kept"),
        pytest.param("", None, [], None, id="none"),
    ],
)
def test_nominations(
    own: str, nomination: Nomination | None, nominated: list[str], patched: str | None
) -> None:
    harness = Harness(make_pod("p", uid="u1", nominated_node=own))
    harness.fail(ERROR, nomination)
    assert harness.queue.nominator.nominated_nodes() == nominated
    (patch,) = harness.patches
    assert patch.nominated_node_name == patched


# --- event and condition (steps 5 to 7) ---


def test_the_event() -> None:
    harness = Harness()
    harness.fail(fit_error("F"))
    (event,) = harness.events.events
    assert event.regarding.metadata.name == "p"
    assert (event.type, event.reason, event.action) == (
        "Warning",
        "FailedScheduling",
        "Scheduling",
    )
    assert event.note == MESSAGE


def test_14_3_8_the_condition_holds_the_whole_text() -> None:
    harness = Harness()
    harness.fail(Status.from_error(PluginError("x" * 1030)))
    assert harness.condition is not None
    assert harness.condition.message == "x" * 1030
    assert harness.events.events[0].note == "x" * 1030  # the recorder truncates it


def test_a_skip_is_requeued_without_event_and_condition() -> None:
    harness = Harness()
    harness.fail(Status.skip(), CLEAR_NOMINATION)
    assert harness.place is Place.ERROR_BACKOFF
    assert harness.events.events == []
    assert harness.patches == []


def known_condition(**changes: Any) -> Condition:
    condition = Condition(
        type="PodScheduled",
        status="False",
        reason="SchedulerError",
        message="boom",
        observed_generation=3,
        last_transition_time=EARLIER,
    )
    return msgspec.structs.replace(condition, **changes)


def test_the_first_condition() -> None:
    pod = make_pod("p", uid="u1")
    metadata = msgspec.structs.replace(pod.metadata, generation=7)
    harness = Harness(msgspec.structs.replace(pod, metadata=metadata))
    harness.fail()
    assert harness.condition == known_condition(observed_generation=7, last_transition_time=NOW)


@pytest.mark.parametrize(
    ("known", "written"),
    [
        pytest.param(known_condition(), None, id="the-same"),
        pytest.param(known_condition(observed_generation=9), None, id="generation-alone"),
        pytest.param(known_condition(message="other"), EARLIER, id="message"),
        pytest.param(known_condition(reason="Unschedulable"), EARLIER, id="reason"),
        pytest.param(known_condition(status="True"), NOW, id="status-moves-the-time"),
        pytest.param(known_condition(last_probe_time=EARLIER), EARLIER, id="probe-time"),
        pytest.param(known_condition(type="Ready"), NOW, id="another-type"),
    ],
)
def test_a_condition_is_written_when_it_changes(known: Condition, written: datetime | None) -> None:
    harness = Harness(make_pod("p", uid="u1", conditions=[known]))
    harness.fail()
    if written is None:
        assert harness.patches == []
        return
    assert harness.condition is not None
    assert harness.condition.last_transition_time == written
    assert harness.condition.message == "boom"


def test_a_nomination_alone_is_written_without_a_condition() -> None:
    harness = Harness(make_pod("p", uid="u1", conditions=[known_condition()]))
    harness.fail(ERROR, Nomination("n1"))
    assert harness.patches == [StatusPatch(nominated_node_name="n1")]


def test_event_and_condition_are_of_the_newest_version() -> None:
    harness = Harness()
    newer = make_pod("p", uid="u1", conditions=[known_condition()])
    harness.objects.pods.put(newer)
    harness.fail()
    assert harness.patches == []
    assert harness.events.events[0].regarding is newer
