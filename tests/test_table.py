"""Tables: a line per row in pipes; on terminals no column is left out and no word broken."""

import io
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.table import Table

NUMBERS = ("ALLOCATABLE", "REQUESTED", "USED", "MEAN")


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
    ("width", "lines"),
    [
        (52, ["web-0   n   a message of eight words that is long."]),
        (49, ["web-0   n   a message of eight words that is", "            long."]),
        (36, ["web-0   n   a message of eight words", "            that is long."]),
        # Beside the others it would be too narrow.
        (30, ["web-0   n", "        a message of eight", "        words that is long."]),
    ],
)
def test_texts_are_wrapped_at_blanks(width: int, lines: list[str]) -> None:
    made = Table("A", "B", "C")
    made.add("web-0", "n", "a message of eight words that is long.")
    assert made.lines(has_header=False, width=width) == lines


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (49, ["web-0   n   a message of eight words that is lon…"]),
        (30, ["web-0   n", "        a message of eight wo…"]),
    ],
)
def test_a_list_of_many_rows_may_be_cut(width: int, lines: list[str]) -> None:
    made = Table("A", "B", "C")
    made.add("web-0", "n", "a message of eight words that is long.")
    assert made.lines(has_header=False, width=width, is_cut=True) == lines


def test_numbers_are_never_cut() -> None:
    made = Table("RESOURCE", *NUMBERS, right=NUMBERS)
    made.add("cpu", "400", "300", "75.1 %", "70.3 %")
    made.add("nvidia.com/gpu", "4", "3", "75.0 %", "69.9 %")
    assert made.lines(width=44) == [
        "RESOURCE         ALLOCATABLE   REQUESTED",
        "cpu                      400         300",
        "nvidia.com/gpu             4           3",
        "",
        "RESOURCE           USED     MEAN",
        "cpu              75.1 %   70.3 %",
        "nvidia.com/gpu   75.0 %   69.9 %",
    ]


def test_a_further_table_begins_with_all_that_names_a_row() -> None:
    made = Table("NAMESPACE", "NAME", "PODS", "WAITING", right=("PODS", "WAITING"), keys=2)
    made.add("default", "web", "3", "1")
    assert made.lines(width=30) == [
        "NAMESPACE   NAME   PODS",
        "default     web       3",
        "",
        "NAMESPACE   NAME   WAITING",
        "default     web          1",
    ]


def test_a_pipe_gets_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    made = Table("NAME", "MESSAGE")
    for index in range(100):
        made.add(f"pod-{index}", "x" * 300)
    made.print(is_cut=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 101
    assert all(line.endswith("x" * 300) for line in lines[1:])


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_lines_of_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    table().print(indent="  ")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert max(map(len, lines)) <= 40
    assert all(line.startswith("  ") for line in lines if line)


words = st.text("abc,-", min_size=1, max_size=30)
cells = st.one_of(words, st.lists(words, max_size=8).map(" ".join))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Table, list[str]]:
    """A table, and all its cells."""
    count = draw(st.integers(1, 7))
    columns = [f"C{index}" for index in range(count)]
    made = Table(
        *columns,
        right=draw(st.sets(st.sampled_from(columns))),  # type: ignore[arg-type]
        texts=draw(st.one_of(st.none(), st.lists(st.sampled_from(columns), unique=True))),
        keys=draw(st.integers(1, count)),
    )
    rows = draw(st.lists(st.lists(cells, min_size=count, max_size=count), max_size=4))
    for row in rows:
        made.add(*row)
    return made, [*columns, *(cell for row in rows for cell in row)]


@given(tables(), st.integers(1, 90))
def test_no_line_is_too_long_and_no_word_is_lost_or_broken(
    made: tuple[Table, list[str]], width: int
) -> None:
    lines = made[0].lines(width=width)
    for line in lines:
        assert len(line) <= width or len(line.split()) == 1
        assert line == line.rstrip()
    wanted = {word for cell in made[1] for word in cell.split()}
    assert {word for line in lines for word in line.split()} == wanted


def test_a_cell_of_a_table_stays_on_its_line() -> None:
    table = Table("NAME", "MESSAGE")
    table.add("a", "x\n::error::forged\x1b[2J")
    assert table.lines() == ["NAME   MESSAGE", r"a      x\n::error::forged\x1b[2J"]
