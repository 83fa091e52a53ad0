"""The events of an object are found by its key, equal ones are counted."""

import pytest

from kubestow.web import events
from kubestow.web.events import PageEvents


def add(log: PageEvents, key: str, note: str, time_ms: int) -> None:
    log.add(key, type="Warning", reason="FailedScheduling", note=note, time_ms=time_ms)


def test_equal_events_are_one_with_a_count() -> None:
    log = PageEvents()
    add(log, "demo/a", "no room", 1)
    add(log, "demo/b", "no room", 2)
    add(log, "demo/a", "other", 3)
    add(log, "demo/a", "no room", 4)
    newest, older = log.of("demo/a")
    assert (newest.note, newest.count, newest.first, newest.time) == ("no room", 2, 1, 4)
    assert (older.note, older.count) == ("other", 1)
    assert log.of("demo/c") == ()


def test_only_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVENTS_MAX", 3)
    log = PageEvents()
    for number in range(5):
        add(log, "demo/a", f"{number}" + "x" * 5_000, number)
    assert [each.time for each in log.of("demo/a")] == [4, 3, 2]
    assert len(log) == 3
    assert all(len(each.note) == events.NOTE_LENGTH_MAX for each in log.of("demo/a"))
