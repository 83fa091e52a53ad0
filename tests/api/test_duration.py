"""Durations as Go reads them."""

import pytest

from kubestow.api.duration import parse_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("1ns", 1),
        ("1us", 1_000),
        ("1µs", 1_000),
        ("1\u03bcs", 1_000),  # the Greek letter
        ("1.5ms", 1_500_000),
        ("10s", 10_000_000_000),
        ("+10s", 10_000_000_000),
        ("-10s", -10_000_000_000),
        ("1h2m3s", 3_723_000_000_000),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
        ("0.9ns", 0),
    ],
)
def test_duration_in_nanoseconds(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".s", 'time: invalid duration ".s"'),
        ("10", 'time: missing unit in duration "10"'),
        ("10x", 'time: unknown unit "x" in duration "10x"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("9999999h", 'time: invalid duration "9999999h"'),
    ],
)
def test_an_invalid_duration_is_an_error(text: str, error: str) -> None:
    with pytest.raises(ValueError, match="time: ") as caught:
        parse_duration(text)
    assert str(caught.value) == error
