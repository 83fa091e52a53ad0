"""Hints are called once, never break the queue, and are measured (spec 02 §8)."""

from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.framework.events import Hint
from kubestow.queue.hint_call import ask_hint, hint_caller
from kubestow.queue.interest import Listener
from kubestow.queue.metrics import NO_METRICS
from kubestow.testing.builders import make_pod
from kubestow.testing.clock import ManualClock

POD, OLD, NEW = make_pod("waiting"), make_pod("old"), make_pod("new")


def broken(pod: Pod, old: object, new: object) -> Hint:
    raise TypeError("expected a node")


@pytest.mark.parametrize("is_measured", [False, True])
@pytest.mark.parametrize(
    ("hint", "answer", "label"),
    [
        pytest.param(lambda *_: Hint.QUEUE, Hint.QUEUE, "Queue", id="queue"),
        pytest.param(lambda *_: Hint.SKIP, Hint.SKIP, "QueueSkip", id="skip"),
        pytest.param(None, Hint.QUEUE, "Queue", id="always"),
        pytest.param(broken, Hint.QUEUE, "Error", id="Q8-4-error-counts-as-queue"),
    ],
)
def test_the_answer_and_how_it_is_recorded(
    metrics: Any, hint: Any, answer: Hint, label: str, is_measured: bool
) -> None:
    ask = hint_caller(metrics if is_measured else NO_METRICS, ManualClock())
    assert ask(Listener(1, "A", hint), "NodeAdd", POD, None, None) is answer
    assert metrics.hints == ([("A", "NodeAdd", label)] if is_measured else [])


def test_the_function_gets_the_pod_and_both_objects() -> None:
    calls: list[tuple[object, ...]] = []

    def hint(*objects: object) -> Hint:
        calls.append(objects)
        return Hint.SKIP

    ask_hint(Listener(1, "A", hint), "NodeAdd", POD, OLD, NEW)
    assert calls == [(POD, OLD, NEW)]


def test_a_failure_is_logged_with_plugin_event_and_pod(caplog: pytest.LogCaptureFixture) -> None:
    ask_hint(Listener(1, "A", broken), "NodeAdd", POD, None, None)
    assert "'A' failed for event NodeAdd and pod 'default/waiting'" in caplog.text
    assert "expected a node" in caplog.text
