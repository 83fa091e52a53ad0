"""What a demo prints: few lines of its log, and the address of its page again."""

import io
import logging
from itertools import pairwise

import pytest
from rich.console import Console

from kubestow.service.commands.demo.log import EVERY_S, MESSAGES_MAX, RareLines
from kubestow.service.commands.demo.output import Output


def record(message: str, time_s: float, *args: object) -> logging.LogRecord:
    made = logging.LogRecord("kubestow.x", logging.ERROR, "x.py", 1, message, args, None)
    made.created = time_s
    return made


def test_a_message_is_printed_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[int] = []
    handler = RareLines(lambda: lines.append(1))
    for number in range(120):
        handler.handle(record("pod %d is gone", number * 0.1, number))
    handler.handle(record("another", 12.0))
    handler.handle(record("pod %d is gone", EVERY_S, 120))
    handler.handle(record("another", 13.0))
    handler.close()
    assert capsys.readouterr().err.splitlines() == [
        "pod 0 is gone",
        "another",
        "pod 120 is gone",
        "  and 119 more of these since the last one",
        "left out of the log: 1 line like those above",
    ]
    assert len(lines) == 3


def test_a_limited_number_of_messages_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    handler = RareLines(lambda: None)
    for number in range(3 * MESSAGES_MAX):
        handler.handle(record(f"message {number}", 0.0))
        assert len(handler._printed) <= MESSAGES_MAX
    assert len(capsys.readouterr().err.splitlines()) == 3 * MESSAGES_MAX


def test_a_closed_terminal_ends_nothing() -> None:
    handler = RareLines(lambda: None)
    for _ in range(2):
        handler.handle(record("gone", 0.0))
    handler.stream = io.StringIO()
    handler.stream.close()
    handler.close()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_must_stay_in_sight_is_printed_again_in_a_terminal(is_terminal: bool) -> None:
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=is_terminal, height=20, width=80, color_system=None
    )
    output = Output(console)
    output.keep_in_sight("The page: here")
    for number in range(25):
        output.print(f"line {number}")
        output.note_lines()  # of the log
    lines = stream.getvalue().splitlines()
    places = [index for index, line in enumerate(lines) if line == "The page: here"]
    assert len(places) == (6 if is_terminal else 1)
    # With those of the log there are never more than half a terminal between two.
    assert all(after - before <= 10 for before, after in pairwise(places))
