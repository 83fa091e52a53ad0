"""What commands print: durations, JSON."""

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from kubestow.service.formats import DataFormat
from kubestow.service.output import duration_text, print_data, stderr, stdout, stream_json


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (3.6e-08, "0s"),
        (0.25, "250ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (59.96, "60s"),
        (125, "2m5s"),
        (600, "10m"),
        (3600, "1h"),
        (3661, "1h1m1s"),
    ],
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


class Part(msgspec.Struct, frozen=True):
    name: str
    tags: tuple[str, ...] = ()


class Whole(msgspec.Struct, frozen=True, rename="camel"):
    one_part: Part
    parts: tuple[Part, ...] = ()
    amounts: dict[str, int] = {}
    text: str = ""
    missing: str | UnsetType = UNSET


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(Whole(one_part=Part("a")), id="empty-lists"),
        pytest.param(
            Whole(
                one_part=Part("a", ("x", 'q"')),
                parts=(Part("b"), Part("c", ("y",))),
                amounts={"n": 1},
                text="two\nlines",
            ),
            id="nested",
        ),
    ],
)
def test_streamed_json_reads_as_printed_json(
    data: Whole, capsys: pytest.CaptureFixture[str]
) -> None:
    parts: list[str] = []
    stream_json(data, parts.append)
    print_data(data, DataFormat.JSON)
    assert "".join(parts) == capsys.readouterr().out
    assert len(parts) > len(data.parts)


def test_a_console_prints_no_escape_sequence_of_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    stdout().print("one\ntwo \x1b]0;title\x07", markup=False)
    stderr().print("three\r\x1b[1A", markup=False)
    printed = capsys.readouterr()
    assert printed.out == "one\ntwo \\x1b]0;title\\x07\n"
    assert printed.err == "three\\r\\x1b[1A\n"
