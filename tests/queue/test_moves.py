"""Verdicts of events on a rejected pod, and where it goes (spec 02 §8, §9.4)."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.framework.events import (
    FORCE_ACTIVATE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Hint,
    HintFunction,
)
from kubestow.framework.hints import HintRegistration
from kubestow.queue.hint_call import ask_hint
from kubestow.queue.interest import Interest, Listener
from kubestow.queue.moves import Place, Verdict, judge, judge_missed, place_after
from kubestow.queue.queued_pod import QueuedPod
from kubestow.testing.builders import make_node, make_pod

PROFILE = "default-scheduler"
SKIP, AFTER, NOW = Verdict.SKIP, Verdict.AFTER_BACKOFF, Verdict.IMMEDIATELY


def queued(*, unschedulable: str = "", pending: str = "", profile: str = PROFILE) -> QueuedPod:
    queued_pod = QueuedPod(PodInfo(make_pod("p", uid="u", scheduler_name=profile)), timestamp_ns=0)
    queued_pod.reject(unschedulable=unschedulable, pending=pending)
    return queued_pod


def always_queue(pod: Pod, old: object, new: object) -> Hint:
    return Hint.QUEUE


def always_skip(pod: Pod, old: object, new: object) -> Hint:
    return Hint.SKIP


def broken(pod: Pod, old: object, new: object) -> Hint:
    raise TypeError("no")


def verdict(
    queued_pod: QueuedPod,
    hints: dict[str, HintFunction | None],
    event: ClusterEvent = NODE_ADD,
    new: object = None,
) -> Verdict:
    interest = Interest(
        {PROFILE: [HintRegistration(NODE_ADD, plugin, hint) for plugin, hint in hints.items()]}
    )
    mask = interest.mask_of(queued_pod.rejectors)
    return judge(queued_pod, mask, interest.audience_of(event), None, new, ask_hint)


@pytest.mark.parametrize(
    ("queued_pod", "hints", "expected"),
    [
        pytest.param(queued(), {"A": always_skip}, AFTER, id="no-rejectors"),
        pytest.param(queued(unschedulable="A", profile="?"), {}, AFTER, id="no-hint-map"),
        pytest.param(queued(unschedulable="A"), {"A": always_queue}, AFTER, id="queue"),
        pytest.param(queued(unschedulable="A"), {"A": always_skip}, SKIP, id="skip"),
        pytest.param(queued(unschedulable="A"), {"A": None}, AFTER, id="always"),
        pytest.param(queued(unschedulable="A"), {"B": always_queue}, SKIP, id="not-a-rejector"),
        pytest.param(
            queued(unschedulable="AB", pending="B"),
            {"A": always_queue, "B": always_skip},
            AFTER,
            id="Q8-2-only-the-unschedulable-one",
        ),
        pytest.param(
            queued(unschedulable="AB", pending="B"),
            {"A": always_skip, "B": always_queue},
            NOW,
            id="Q8-2-the-pending-one",
        ),
        pytest.param(queued(unschedulable="P", pending="P"), {"P": always_queue}, NOW, id="Q8-3"),
        pytest.param(queued(unschedulable="A"), {"A": broken}, AFTER, id="Q8-4"),
        pytest.param(queued(pending="P"), {"P": broken}, NOW, id="pending-error"),
        pytest.param(
            queued(unschedulable="A", pending="P"),
            {"A": None, "P": always_queue},
            NOW,
            id="pending-upgrades-an-always",
        ),
    ],
)
def test_verdicts(
    queued_pod: QueuedPod, hints: dict[str, HintFunction | None], expected: Verdict
) -> None:
    for order in permutations(hints.items()):
        assert verdict(queued_pod, dict(order)) is expected


@pytest.mark.parametrize(
    ("event", "new", "expected"),
    [
        pytest.param(FORCE_ACTIVATE, make_pod("q", uid="v"), SKIP, id="Q8-5-another-pod"),
        pytest.param(FORCE_ACTIVATE, make_pod("p", uid="u"), AFTER, id="this-pod"),
        pytest.param(UNSCHEDULABLE_TIMEOUT, None, AFTER, id="Q8-5-all-pods"),
        pytest.param(UNSCHEDULABLE_TIMEOUT, make_node("n"), SKIP, id="not-a-pod"),
    ],
)
def test_a_wildcard_applies_to_all_pods_or_the_one_it_names(
    event: ClusterEvent, new: object, expected: Verdict
) -> None:
    # No hint is called: this one would give the opposite.
    assert verdict(queued(unschedulable="A"), {"A": always_skip}, event, new) is expected
    assert verdict(queued(), {}, event, new) is AFTER


def test_an_event_no_rejector_registered_calls_no_function() -> None:  # Q8-6
    event = ClusterEvent("AssignedPod", Action.UPDATE_POD_LABEL)
    assert verdict(queued(unschedulable="A"), {"A": broken}, event) is SKIP


@pytest.mark.parametrize(
    ("pending", "asked"),
    [pytest.param("", "A", id="first-decides"), pytest.param("C", "ABC", id="all")],
)
def test_asking_stops_when_no_answer_can_change_the_verdict(pending: str, asked: str) -> None:
    calls: list[str] = []

    def ask(listener: Listener, label: str, pod: Pod, old: object, new: object) -> Hint:
        calls.append(listener.plugin)
        return Hint.SKIP if listener.plugin == "C" else Hint.QUEUE

    interest = Interest(
        {PROFILE: [HintRegistration(NODE_ADD, plugin, always_queue) for plugin in "ABC"]}
    )
    queued_pod = queued(unschedulable="ABC", pending=pending)
    mask = interest.mask_of(queued_pod.rejectors)
    assert judge(queued_pod, mask, interest.audience_of(NODE_ADD), None, None, ask) is AFTER
    assert "".join(calls) == asked


@pytest.mark.parametrize(
    ("pending", "verdicts", "expected", "looked_at"),
    [
        pytest.param("", [], SKIP, 0, id="no-event"),
        pytest.param("", [SKIP, SKIP], SKIP, 2, id="only-skips"),
        pytest.param("", [SKIP, AFTER, SKIP], AFTER, 2, id="first-queue-decides"),
        pytest.param("P", [AFTER, SKIP], AFTER, 2, id="a-pending-plugin-may-still-answer"),
        pytest.param("P", [AFTER, NOW, SKIP], NOW, 2, id="and-does"),
    ],
)
def test_missed_events_are_judged_until_one_decides(
    pending: str, verdicts: list[Verdict], expected: Verdict, looked_at: int
) -> None:
    rest = iter(verdicts)
    assert judge_missed(queued(unschedulable="A", pending=pending), rest) is expected
    assert len(verdicts) - len(list(rest)) == looked_at


@pytest.mark.parametrize(
    ("verdict", "is_backing_off", "place"),
    [
        (SKIP, True, Place.UNSCHEDULABLE),
        (SKIP, False, Place.UNSCHEDULABLE),
        (AFTER, True, Place.BACKOFF),
        (AFTER, False, Place.ACTIVE),
        (NOW, True, Place.ACTIVE),
        (NOW, False, Place.ACTIVE),
    ],
)
def test_where_a_verdict_sends_a_pod(verdict: Verdict, is_backing_off: bool, place: Place) -> None:
    assert place_after(verdict, is_backing_off=is_backing_off) is place


ANSWERS = st.sampled_from((None, always_queue, always_skip, broken))


@given(
    st.dictionaries(st.sampled_from("ABCD"), ANSWERS),
    st.sets(st.sampled_from("ABCD"), min_size=1),
    st.sets(st.sampled_from("ABCD")),
)
def test_a_verdict_equals_the_plain_reading_of_the_rules(
    hints: dict[str, HintFunction | None], unschedulable: set[str], pending: set[str]
) -> None:
    said_queue = {
        plugin
        for plugin, hint in hints.items()
        if plugin in unschedulable | pending and hint is not always_skip
    }
    expected = NOW if said_queue & pending else AFTER if said_queue else SKIP
    queued_pod = queued()
    queued_pod.reject(unschedulable=unschedulable, pending=pending)
    assert verdict(queued_pod, hints) is expected
