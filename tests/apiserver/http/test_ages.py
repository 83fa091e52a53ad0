"""Ages as tables show them."""

import pytest

from kubestow.apiserver.http.ages import age, duration
from kubestow.clock import NANOSECONDS

MINUTE, HOUR, DAY = 60, 3_600, 86_400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 5, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 61, "3h1m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR + DAY, "8y"),
    ],
)
def test_a_larger_age_has_fewer_digits(seconds: int, expected: str):
    assert duration(seconds) == expected


def test_an_age_is_counted_from_a_time_of_a_document():
    now_ns = 1_700_000_030 * NANOSECONDS
    assert age("2023-11-14T22:13:20Z", now_ns) == "30s"
    assert age("2023-11-14T22:13:20.5Z", now_ns) == "29s"


@pytest.mark.parametrize("missing", [None, "", "yesterday", 5])
def test_no_time_is_unknown(missing: object):
    assert age(missing, 0) == "<unknown>"
