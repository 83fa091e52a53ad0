"""Log lines with fields: a fixed text says what happened, fields hold names and numbers.

Lines are searched and counted by their text, so names and numbers do not belong in it.

Verbosity follows the rest of Kubernetes: 0 is always printed, `-v=2` adds what operators usually
need, 10 is everything. It maps to a level of the standard library, INFO less the verbosity, so
checking whether a line is printed is cheap.

Not here: handlers, formats, setting the verbosity (`service.logging`).
"""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

# The attribute of a LogRecord that holds the fields; absent on plain lines.
FIELDS: Final = "fields"
# Levels must stay above 0, which means "not set".
VERBOSITY_MAX: Final = logging.INFO - 1


class ObjectName(NamedTuple):
    """An object in a log line: `"namespace/name"` in text, two fields in JSON."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def level_of(verbosity: int) -> int:
    """The level of the standard library for a verbosity."""
    return logging.INFO - max(0, min(verbosity, VERBOSITY_MAX))


_LEVELS: Final = tuple(map(level_of, range(11)))  # of the verbosities that lines have


def is_printed(log: logging.Logger, verbosity: int) -> bool:
    """Whether a line of this verbosity is printed; for callers whose fields are expensive."""
    return log.isEnabledFor(_LEVELS[verbosity])


def inform(log: logging.Logger, message: str, /, *, v: int = 0, **fields: object) -> None:
    """Log what happened."""
    level = _LEVELS[v]
    if log.isEnabledFor(level):
        log.log(level, message, extra={FIELDS: fields}, stacklevel=2)


def warn(log: logging.Logger, message: str, /, **fields: object) -> None:
    """Log what may become a problem."""
    log.warning(message, extra={FIELDS: fields}, stacklevel=2)


def fail(
    log: logging.Logger, message: str, error: BaseException | str | None = None, /, **fields: object
) -> None:
    """Log what went wrong, with the error as the first field."""
    shown = {"err": str(error)} if error is not None else {}
    log.error(message, extra={FIELDS: {**shown, **fields}}, stacklevel=2)


@contextmanager
def silenced() -> Generator[None, None, None]:
    """Inside, this package logs nothing: what it would log is known, or part of a result."""
    logger = logging.getLogger("kubestow")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)
