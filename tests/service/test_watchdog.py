"""A loop that stands still is found, with the plugin and the pod it stands at."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.logs import FIELDS
from kubestow.queue import QueuedPod
from kubestow.service.watchdog import LATE_S, STALLED_S, Watchdog
from kubestow.testing import ManualClock, make_pod


class Slow:
    name: ClassVar[str] = "Slow"

    def __init__(self) -> None:
        self.is_reached = threading.Event()
        self.may_go_on = threading.Event()

    def filter(self) -> None:
        self._compute()

    def _compute(self) -> None:
        self.is_reached.set()
        self.may_go_on.wait()


def schedule_one(queued_pod: QueuedPod | None, plugin: Slow) -> None:
    plugin.filter()


@contextmanager
def stuck(clock: ManualClock, queued_pod: QueuedPod | None) -> Iterator[Watchdog]:
    """A watchdog for a thread that stands in a plugin."""
    plugin, made = Slow(), list[Watchdog]()

    def cycle() -> None:
        made.append(Watchdog(clock))
        schedule_one(queued_pod, plugin)

    thread = threading.Thread(target=cycle)
    thread.start()
    plugin.is_reached.wait()
    try:
        yield made[0]
    finally:
        plugin.may_go_on.set()
        thread.join()


def queued(name: str) -> QueuedPod:
    return QueuedPod(PodInfo(make_pod(name)), timestamp_ns=0)


def test_livez_fails_after_20_s_and_names_the_plugin() -> None:
    clock = ManualClock()
    with stuck(clock, queued("web")) as watchdog:
        clock.advance_s(STALLED_S)
        assert watchdog.error() is None
        clock.advance_s(1)
        assert watchdog.error() == (
            "the scheduling loop has not moved for 21s "
            'in "filter" of plugin "Slow" for pod "default/web"'
        )


def test_outside_of_a_cycle_there_is_no_plugin() -> None:
    clock = ManualClock()
    with stuck(clock, None) as watchdog:
        clock.advance_s(STALLED_S + 1)
        assert watchdog.error() == "the scheduling loop has not moved for 21s"


def test_a_standstill_is_logged_once_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    with stuck(clock, queued("web")) as watchdog:
        watchdog.report()
        clock.advance_s(LATE_S + 0.5)
        watchdog.report()
        watchdog.report()
    (record,) = caplog.records
    fields: dict[str, Any] = getattr(record, FIELDS)
    assert record.message == "The scheduling loop does not move"
    stack = fields.pop("stack")
    assert fields == {"seconds": 5.5, "plugin": "Slow", "point": "filter", "pod": "default/web"}
    assert "in _compute" in stack
