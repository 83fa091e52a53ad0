"""What demos share: output that survives a closed terminal, and an end by signals."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from rich.console import Console

# Added to the number of the signal that ended the process, as shells do.
ENDED_BY_SIGNAL: Final = 128
_LINES_MIN: Final = 5


def end_on_signals(end: Callable[[], None]) -> list[signal.Signals]:
    """Call a function at each signal that asks to end; the signals are in the list returned."""
    received: list[signal.Signals] = []

    def note(number: signal.Signals) -> None:
        received.append(number)
        end()

    numbers = [signal.SIGINT, signal.SIGTERM]
    # A process started by nohup ignores the end of its terminal.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        with suppress(NotImplementedError):  # Windows: Ctrl-C then ends the loop itself.
            asyncio.get_running_loop().add_signal_handler(number, note, number)
    return received


def exit_code(signals: list[signal.Signals]) -> int:
    return ENDED_BY_SIGNAL + signals[0] if signals else 0


class Output:
    """Prints as long as there is a reader: a closed terminal or pipe does not end the cluster.

    In a terminal, what must stay in sight is printed again before it is gone.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_closed = False
        self._kept = ""
        self._line_count = 0

    def keep_in_sight(self, text: str) -> None:
        """Print it now, and again after about as many lines as the terminal has."""
        self.print(text)
        self._kept, self._line_count = text, 0

    def print(self, text: str, *, is_wrapped: bool = False) -> None:
        """Print lines; those that are not wrapped can be pasted, as commands and addresses are."""
        if self._is_closed:
            return
        try:
            self._console.print(text, soft_wrap=None if is_wrapped else True)
        except (OSError, SystemExit):
            # rich exits by itself when a pipe is closed.
            self._is_closed = True
            # Python writes the rest of its buffer when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        self.note_lines(text.count("\n") + 1)

    def note_lines(self, count: int = 1) -> None:
        """Count lines that were printed, here or by others."""
        self._line_count += count
        if self._kept and self._console.is_terminal and self._line_count >= self._lines_in_sight():
            self._line_count = 0
            self.print(self._kept)

    def _lines_in_sight(self) -> int:
        # Some lines are longer than the terminal is wide.
        return max(self._console.height // 2, _LINES_MIN)
