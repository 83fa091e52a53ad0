"""How long a soak runs."""

import pytest

from kubestow.errors import InputError
from kubestow.service.commands.bench.soak import soak_seconds


@pytest.mark.parametrize(("text", "seconds"), [("600", 600), ("10m", 600), ("1h30m", 5400)])
def test_seconds_and_durations_are_understood(text: str, seconds: float) -> None:
    assert soak_seconds(text) == seconds


@pytest.mark.parametrize("text", ["x", "-1s", "0", "5q"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="use 600 or 10m"):
        soak_seconds(text)
