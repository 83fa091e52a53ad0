"""Schedules of CronJobs."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from kubestow.simulator.controllers.cron_schedule import most_recent, parse_schedule


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("* * * * *", "2026-01-01T00:00:00", "2026-01-01T00:01:00"),
        ("* * * * *", "2026-01-01T00:00:59.9", "2026-01-01T00:01:00"),
        ("*/15 * * * *", "2026-01-01T00:01:00", "2026-01-01T00:15:00"),
        ("5/20 * * * *", "2026-01-01T00:26:00", "2026-01-01T00:45:00"),
        ("10-20/5,40 * * * *", "2026-01-01T00:20:00", "2026-01-01T00:40:00"),
        ("30 6-16/4 * * 1-5", "2026-01-02T14:30:00", "2026-01-05T06:30:00"),
        ("0 0 * * MON", "2026-01-01T00:00:00", "2026-01-05T00:00:00"),
        ("0 0 1 feb ?", "2026-01-01T00:00:00", "2026-02-01T00:00:00"),
        # Both days are restricted: either is enough.
        ("0 0 13 * fri", "2026-01-01T00:00:00", "2026-01-02T00:00:00"),
        # A step makes a restriction of a star.
        ("0 0 */2 * 1", "2026-01-01T00:00:00", "2026-01-03T00:00:00"),
        ("0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("@hourly", "2026-01-01T00:00:00", "2026-01-01T01:00:00"),
        ("@daily", "2026-01-01T00:00:00", "2026-01-02T00:00:00"),
        ("@weekly", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
        ("@monthly", "2026-01-01T00:00:00", "2026-02-01T00:00:00"),
        ("@yearly", "2026-01-01T00:00:00", "2027-01-01T00:00:00"),
        ("@every 1h30m", "2026-01-01T00:00:00.7", "2026-01-01T01:30:00"),
        ("@every 10ms", "2026-01-01T00:00:00", "2026-01-01T00:00:01"),
    ],
)
def test_the_next_time(schedule: str, after: str, expected: str):
    assert parse_schedule(schedule).next_after(at(after)) == at(expected)


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        pytest.param("30 9 * * *", "2026-01-01T00:00", ["2026-01-01T08:30"], id="winter"),
        pytest.param("30 9 * * *", "2026-07-01T00:00", ["2026-07-01T07:30"], id="summer"),
        # On 29 March the clock goes from 2:00 to 3:00, on 25 October from 3:00 to 2:00.
        pytest.param("30 2 * * *", "2026-03-28T12:00", ["2026-03-30T00:30"], id="skipped"),
        pytest.param(
            "30 2 * * *", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-25T01:30"], id="twice"
        ),
    ],
)
def test_times_are_local(schedule: str, after: str, expected: list[str]):
    parsed = parse_schedule(schedule, ZoneInfo("Europe/Berlin"))
    found, moment = [], at(after)
    for _ in expected:
        following = parsed.next_after(moment)
        assert following is not None
        found.append(following)
        moment = following
    assert found == [at(text) for text in expected]


def test_a_day_whose_midnight_is_skipped():
    parsed = parse_schedule("0 * 4 11 *", ZoneInfo("America/Sao_Paulo"))
    assert parsed.next_after(at("2018-11-03T12:00")) == at("2018-11-04T03:00")


def test_a_time_that_never_comes():
    schedule = parse_schedule("59 23 31 2 *")
    assert schedule.next_after(at("2026-01-01T00:00")) is None
    with pytest.raises(ValueError, match="time difference between two schedules"):
        most_recent(schedule, at("2026-01-01T00:00"), at("2027-01-01T00:00"))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
    ],
)
def test_what_is_wrong_is_said_as_in_a_real_cluster(text: str, error: str):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared
        parse_schedule(text)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("minutes", "due", "missed"),
    [
        pytest.param(5, None, 0, id="none"),
        pytest.param(10, 10, 0, id="now"),
        pytest.param(19, 10, 0, id="one"),
        pytest.param(25, 20, 2, id="two"),
        pytest.param(2005, 2000, 200, id="many"),
    ],
)
def test_the_latest_of_the_times_that_are_due(minutes: int, due: int | None, missed: int):
    start = at("2026-01-01T00:00")
    found = most_recent(parse_schedule("*/10 * * * *"), start, start + timedelta(minutes=minutes))
    assert found.due == (None if due is None else start + timedelta(minutes=due))
    assert found.missed_count == missed
