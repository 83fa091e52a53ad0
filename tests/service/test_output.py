"""Tables: one line per row; only on a terminal is anything cut, and then only the last column."""

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from kubestow.service.formats import DataFormat
from kubestow.service.output import Table, duration_text, print_data, stream_json


def table() -> Table:
    made = Table("NAME", "COUNT", "NODE", "MESSAGE", right=("COUNT",))
    made.add("web-0", "7", "", "0/3 nodes are available: 3 Insufficient cpu.")
    made.add("a-longer-name", "1000", "node-with-a-name", "")
    return made


def test_columns_are_as_wide_as_their_content() -> None:
    assert table().lines() == [
        "NAME            COUNT   NODE               MESSAGE",
        "web-0               7                      0/3 nodes are available: 3 Insufficient cpu.",
        "a-longer-name    1000   node-with-a-name",
    ]


def test_without_a_header_it_does_not_widen_columns() -> None:
    lines = table().lines(has_header=False)
    assert len(lines) == 2
    assert lines[1] == "a-longer-name   1000   node-with-a-name"


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (200, "web-0   n   a message"),
        (21, "web-0   n   a message"),
        (20, "web-0   n   a messa…"),
        (14, "web-0   n   a…"),
        (5, "web-0   n"),
    ],
)
def test_only_the_last_column_is_cut(width: int, line: str) -> None:
    made = Table("A", "B", "C")
    made.add("web-0", "n", "a message")
    assert made.lines(has_header=False, width=width) == [line]


def test_a_pipe_gets_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    made = Table("NAME", "MESSAGE")
    for index in range(100):
        made.add(f"pod-{index}", "x" * 300)
    made.print()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 101
    assert all(line.endswith("x" * 300) for line in lines[1:])


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
