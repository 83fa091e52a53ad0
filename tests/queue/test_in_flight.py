"""Events during attempts, and when they are dropped (spec 02 §10)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.framework.events import Action, ClusterEvent
from kubestow.queue.in_flight import InFlight
from kubestow.queue.interest import Interest
from kubestow.queue.metrics import NO_METRICS

INTEREST = Interest({})


class Log:
    """An in-flight log addressed by names: pods are upper case, events are not."""

    def __init__(self, metrics: Any = NO_METRICS) -> None:
        self.in_flight = InFlight(metrics=metrics)

    def play(self, script: str) -> "Log":
        """`A` pops that pod, `-A` ends its attempt, anything else is an event."""
        for word in script.split():
            if word.startswith("-"):
                self.in_flight.done(word[1:])
            elif word.isupper():
                self.in_flight.start(word)
            else:
                event = ClusterEvent("Node", Action.ADD, word)
                self.in_flight.log(INTEREST.audience_of(event), None, None)
        return self

    def events(self, uid: str) -> str | None:
        events = self.in_flight.events_since_pop(uid)
        return None if events is None else " ".join(event.audience.label for event in events)


@pytest.mark.parametrize(
    ("script", "events", "event_count"),
    [
        pytest.param("e0", {}, 0, id="Q10-1-nothing-in-flight"),
        pytest.param("e0 A e1 B e2", {"A": "e1 e2", "B": "e2"}, 2, id="Q10-1"),
        pytest.param("A e1 B e2 -B", {"A": "e1 e2"}, 2, id="Q10-2-front-is-A"),
        pytest.param("A e1 B e2 -B -A", {}, 0, id="Q10-2-both-done"),
        pytest.param("A e1 B e2 -A", {"B": "e2"}, 1, id="Q10-3-e1-pruned"),
        pytest.param("A e1 B e2 -A -B -A", {}, 0, id="Q10-3-done-twice"),
        pytest.param("A e1 -A A e2", {"A": "e2"}, 1, id="popped-again"),
        pytest.param("A B e1 -A", {"B": "e1"}, 1, id="no-event-between"),
        pytest.param("A e1 B e2 C e3 -B -A", {"C": "e3"}, 1, id="two-prunes-at-once"),
    ],
)
def test_events_since_pop_are_those_logged_after_it(
    metrics: Any, script: str, events: dict[str, str], event_count: int
) -> None:
    log = Log(metrics).play(script)
    assert {uid: log.events(uid) for uid in log.in_flight.uids()} == events
    assert log.in_flight.event_count == event_count
    gauges = {label: value for label, value in metrics.in_flight.items() if value}
    assert gauges.pop("PodPopped", 0) == len(events)
    assert sum(gauges.values()) == event_count
    assert log.events("Z") is None


def test_a_pod_is_in_flight_once() -> None:
    in_flight = InFlight(metrics=NO_METRICS)
    assert in_flight.start("a")
    assert not in_flight.start("a")
    assert in_flight.uids() == ["a"]
    assert "a" in in_flight


def test_metrics_are_flushed_when_the_last_pod_is_done(metrics: Any) -> None:
    log = Log(metrics).play("A B e1 -A")
    assert metrics.flush_count == 0
    log.play("-B")
    assert metrics.flush_count == 1


WORDS = st.one_of(
    st.sampled_from("ABCDEF"),
    st.sampled_from("ABCDEF").map("-{}".format),
    st.integers(0, 9).map("e{}".format),
)


@given(st.lists(WORDS, max_size=400))
def test_any_script_gives_the_log_of_the_specification(words: list[str]) -> None:
    """Against one list that holds pods and events alike and is pruned from the front."""
    log, reference = Log(), []
    for word in words:
        is_flying = any(entry.isupper() for entry in reference)
        if word.startswith("-"):
            if word[1:] in reference:
                reference.remove(word[1:])
            while reference and not reference[0].isupper():
                reference.pop(0)
        elif word not in reference if word.isupper() else is_flying:
            reference.append(word)
        log.play(word)
        pods = [entry for entry in reference if entry.isupper()]
        assert log.in_flight.uids() == pods
        assert log.in_flight.event_count == len(reference) - len(pods)
        for uid in pods:
            missed = [e for e in reference[reference.index(uid) :] if not e.isupper()]
            assert log.events(uid) == " ".join(missed)


def test_a_long_attempt_keeps_its_events_while_others_start_and_end() -> None:
    log = Log().play("A")
    for _ in range(500):
        log.play("e1 B e2 -B")
    assert log.in_flight.event_count == 1_000
    log.play("C e3 -A")
    assert log.events("C") == "e3"
    assert log.in_flight.event_count == 1
