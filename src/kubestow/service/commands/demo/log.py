"""What a demo prints of its log: each message once a minute, and how many of them were left out.

At a thousand times the speed of the clock, a pod that is gone before it is bound is nothing to look
at; hundreds of lines about such pods would only push the address of the page out of the terminal.
"""

import logging
import sys
from collections.abc import Callable
from typing import Final, TextIO

from kubestow.plural import counted

EVERY_S: Final = 60.0
# Messages without their fields, of which there are few: they are written in the code.
MESSAGES_MAX: Final = 256


class RareLines(logging.StreamHandler[TextIO]):
    """Prints to standard error; `on_line` is called after each line."""

    def __init__(self, on_line: Callable[[], None]) -> None:
        super().__init__(sys.stderr)
        self._on_line = on_line
        # By logger and message: when it was printed, and how many were left out since.
        self._printed: dict[tuple[str, str], tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        key = record.name, str(record.msg)
        printed_s, left_out = self._printed.get(key, (float("-inf"), 0))
        if record.created - printed_s < EVERY_S:
            self._printed[key] = printed_s, left_out + 1
            return
        if len(self._printed) >= MESSAGES_MAX:
            self._printed.clear()
        self._printed[key] = record.created, 0
        super().emit(record)
        if left_out:
            self._write(f"  and {left_out:,} more of these since the last one")
        self._on_line()

    def close(self) -> None:
        left_out = sum(count for _, count in self._printed.values())
        if left_out:
            self._write(f"left out of the log: {counted(left_out, 'line')} like those above")
        self._printed.clear()
        super().close()

    def _write(self, text: str) -> None:
        try:
            self.stream.write(f"{text}\n")
            self.flush()
        except (OSError, ValueError):  # The terminal is closed.
            return
