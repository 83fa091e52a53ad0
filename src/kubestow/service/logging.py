"""How log lines are printed: as klog's text, or as JSON (spec 09 §10).

    I1115 05:23:10.123456       1 scheduler.py:120] "Successfully bound pod to node" pod="ns/a"
    {"ts":1731648190123.456,"caller":"scheduler.py:120","msg":"…","v":2,"pod":{"name":"a",…}}

Lines with fields have a quoted message; plain lines are printed as they are. Everything goes to
standard error; with split streams only errors do, and the rest to standard output.

Not here: what is logged and with which fields (`kubestow.logs`).
"""

import fnmatch
import logging
import os
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final, TextIO, cast

import msgspec

from kubestow.logs import FIELDS, ObjectName, level_of
from kubestow.redaction import printable_lines, without_secrets

_LETTERS: Final = (
    (logging.CRITICAL, "F"),
    (logging.ERROR, "E"),
    (logging.WARNING, "W"),
)
# Loggers of libraries whose lines below warnings are of no use to an operator.
_QUIET: Final = ("aiohttp", "asyncio")


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    format: str = "text"  # or "json"
    verbosity: int = 0
    # `pattern=N,…`: the verbosity of modules whose name matches.
    vmodule: str = ""
    split_stream: bool = False


class Verbosity:
    """How much is printed; may be changed while the process runs (`/debug/flags/v`)."""

    def __init__(self, settings: LogSettings) -> None:
        self._modules = _module_levels(settings.vmodule)
        self.value = 0
        self.set(settings.verbosity)

    def set(self, verbosity: int) -> None:
        self.value = verbosity
        # The level of a logger does not depend on modules, so the highest verbosity of any module
        # is set for all; `admits` filters the rest.
        logging.getLogger().setLevel(level_of(max([verbosity, *self._modules.values()])))

    def admits(self, record: logging.LogRecord) -> bool:
        if not self._modules or record.levelno >= logging.INFO:
            return True
        for pattern, verbosity in self._modules.items():
            if fnmatch.fnmatchcase(record.module, pattern):
                return record.levelno >= level_of(verbosity)
        return record.levelno >= level_of(self.value)


def configure_logging(
    settings: LogSettings, *, stdout: TextIO | None = None, stderr: TextIO | None = None
) -> Verbosity:
    """Apply the settings to all log lines of the process."""
    errors = stderr or sys.stderr
    formatter = JsonFormatter() if settings.format == "json" else TextFormatter()
    verbosity = Verbosity(settings)
    handlers = [logging.StreamHandler(errors)]
    if settings.split_stream:
        informing = logging.StreamHandler(stdout or sys.stdout)
        informing.addFilter(lambda record: record.levelno < logging.ERROR)
        handlers[0].setLevel(logging.ERROR)
        handlers.append(informing)
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    for handler in handlers:
        handler.setFormatter(formatter)
        handler.addFilter(verbosity.admits)
        root.addHandler(handler)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    return verbosity


class TextFormatter(logging.Formatter):
    """`<L><MMDD> <hh:mm:ss.micros> <pid> <file>:<line>] "message" key="value" …`"""

    def __init__(self) -> None:
        super().__init__()
        self._pid = f"{os.getpid():7d}"
        self._second = -1
        self._clock = ""

    def format(self, record: logging.LogRecord) -> str:
        fields = fields_of(record)
        message = record.getMessage()
        shown = printable_lines(message) if fields is None else _quoted(message)
        line = f"{self._header(record)} {shown}"
        if fields:
            line += "".join(f" {key}={text_value(value)}" for key, value in fields.items())
        if record.exc_info:
            line += f"\n{self.formatException(record.exc_info)}"
        return without_secrets(line)

    def _header(self, record: logging.LogRecord) -> str:
        second = int(record.created)
        if second != self._second:
            self._second = second
            self._clock = time.strftime("%m%d %H:%M:%S", time.localtime(second))
        micros = int(record.created * 1_000_000) - second * 1_000_000
        letter = next((mark for level, mark in _LETTERS if record.levelno >= level), "I")
        return f"{letter}{self._clock}.{micros:06d} {self._pid} {_caller(record)}]"


class JsonFormatter(logging.Formatter):
    """One object per line."""

    def __init__(self) -> None:
        super().__init__()
        self._encode = msgspec.json.Encoder(enc_hook=str).encode

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": round(record.created * 1000, 3),
            "caller": _caller(record),
            "msg": record.getMessage(),
        }
        if record.levelno < logging.WARNING:
            line["v"] = max(0, logging.INFO - record.levelno)
        for key, value in (fields_of(record) or {}).items():
            line[key] = _json_value(value)
        if record.exc_info:
            line["stacktrace"] = self.formatException(record.exc_info)
        return without_secrets(self._encode(line).decode())


def fields_of(record: logging.LogRecord) -> Mapping[str, object] | None:
    """The fields of a line; None for a plain one."""
    return cast(Mapping[str, object] | None, getattr(record, FIELDS, None))


def text_value(value: object) -> str:
    """A field's value in the text format."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        return "<nil>"
    if isinstance(value, ObjectName | str | BaseException):
        return _quoted(str(value))
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return msgspec.json.encode(value, enc_hook=str, order="sorted").decode()
    return _quoted(str(value))


def _quoted(text: str) -> str:
    if "\n" in text:
        # As klog prints texts of several lines: indented, not escaped.
        inner = printable_lines(text.removesuffix("\n")).replace("\n", "\n\t")
        return f"<\n\t{inner}\n >"
    return msgspec.json.encode(text).decode()


def _json_value(value: object) -> object:
    if isinstance(value, ObjectName):
        return {"name": value.name, **({"namespace": value.namespace} if value.namespace else {})}
    return str(value) if isinstance(value, BaseException) else value


def _caller(record: logging.LogRecord) -> str:
    return f"{record.filename}:{record.lineno}"


def _module_levels(vmodule: str) -> dict[str, int]:
    pairs = (entry.partition("=") for entry in vmodule.split(",") if entry)
    return {pattern: int(verbosity) for pattern, _, verbosity in pairs}


@contextmanager
def warnings_on_stderr(handler: logging.Handler | None = None) -> Generator[None]:
    """Print warnings and errors with their fields, for a command that is not a service."""
    handler = handler or logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter())
    handler.setLevel(logging.WARNING)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
