"""Lines of a CSV file with a header; every error names file, line and column."""

import csv
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from kubestow.api.quantity import parse_quantity
from kubestow.apiserver.writes.names import subdomain_problem
from kubestow.errors import InputError
from kubestow.files.reading import open_text
from kubestow.simulator.scenario.source import near, parse_seconds

_TIME_S_MAX: Final = 1e9
_INTEGER_MAX: Final = 2**53
_SHARE_MAX: Final = 1000.0


class CsvRow(NamedTuple):
    """One line; a column that the file does not have is empty."""

    path: Path
    line: int
    cells: dict[str, str]

    def text(self, column: str) -> str:
        return self.cells.get(column, "")

    def error(self, column: str, problem: str) -> InputError:
        return InputError(f"{self.path}, line {self.line}, column {column}: {problem}")

    def required(self, column: str) -> str:
        text = self.text(column)
        if not text:
            raise self.error(column, "is empty, expected a value")
        return text

    def name(self, column: str) -> str:
        """A name that an object can have."""
        text = self.required(column)
        if (problem := subdomain_problem(text)) is not None:
            raise self.error(column, f'is "{_cut(text)}": {problem}')
        return text

    def integer(
        self, column: str, *, default: int | None = None, least: int = 0, most: int = _INTEGER_MAX
    ) -> int:
        """A whole number; an empty cell has the default, if there is one."""
        text = self.text(column)
        if not text and default is not None:
            return default
        try:
            number = int(text) if text.removeprefix("-").isdecimal() else None
        except ValueError:  # more digits than Python converts
            number = None
        if number is None or not least <= number <= most:
            expected = (
                f"a whole number of at least {least}"
                if most == _INTEGER_MAX
                else (f"a whole number from {least} to {most}")
            )
            raise self.error(column, f'is "{_cut(text)}", expected {expected}')
        return number

    def seconds(self, column: str) -> float | None:
        """A time: a number of seconds, or a duration such as 10m; None if the cell is empty."""
        text = self.text(column)
        if not text:
            return None
        try:
            seconds = float(text)
        except ValueError:
            seconds = self._duration(column, text)
        if not (math.isfinite(seconds) and 0 <= seconds <= _TIME_S_MAX):
            raise self.error(column, f'is "{_cut(text)}", expected 0 to {_TIME_S_MAX:g} seconds')
        return seconds

    def _duration(self, column: str, text: str) -> float:
        try:
            return parse_seconds(text)
        except ValueError as error:
            raise self.error(
                column, f'is "{_cut(text)}", expected seconds, or a duration such as 10m'
            ) from error

    def time(self, column: str) -> float:
        """A time that has to be there."""
        seconds = self.seconds(column)
        if seconds is None:
            raise self.error(column, "is empty, expected a time in seconds")
        return seconds

    def percent(self, column: str) -> float:
        """A number of percent as a share; NaN if the cell is empty."""
        text = self.text(column)
        if not text:
            return math.nan
        try:
            share = float(text) / 100
        except ValueError:
            share = -1.0
        if not 0 <= share <= _SHARE_MAX:
            raise self.error(column, f'is "{_cut(text)}", expected a number of percent')
        return share

    def renamed(self, column: str, change: Callable[[str], str]) -> Self:
        """The row with another text in a column."""
        return self._replace(cells={**self.cells, column: change(self.text(column))})

    def quantity(self, column: str, *, is_whole: bool) -> str:
        """An amount of a resource as a quantity; empty if the cell is."""
        text = self.text(column)
        if not text:
            return ""
        try:
            is_fine = parse_quantity(text) >= parse_quantity(0) and (
                not is_whole or text.isdecimal()
            )
        except ValueError:
            is_fine = False
        if not is_fine:
            expected = (
                "a whole number of at least 0"
                if is_whole
                else ("a quantity of at least 0 such as 500m or 2Gi")
            )
            raise self.error(column, f'is "{_cut(text)}", expected {expected}')
        return text


def csv_rows(
    path: Path,
    *,
    required: Collection[str],
    optional: Collection[str],
    is_more: Callable[[str], bool] = lambda name: False,
) -> Iterator[CsvRow]:
    """The lines of a file; `is_more` says of another column whether the file may have it."""
    lines = _lines(path)
    header = next(lines, _Line(1, [])).cells
    _check_header(path, header, required, optional, is_more)
    for number, cells in lines:
        if not cells:
            continue
        if len(cells) != len(header):
            raise InputError(
                f"{path}, line {number}: has {len(cells)} columns, expected {len(header)} as in "
                "line 1"
            )
        yield CsvRow(path, number, dict(zip(header, cells, strict=True)))


def headless_rows(path: Path, columns: Sequence[str]) -> Iterator[CsvRow]:
    """The lines of a file without a header, whose columns are these; the last may be missing."""
    for number, cells in _lines(path):
        if not cells:
            continue
        if len(cells) > len(columns):
            raise InputError(
                f"{path}, line {number}: has {len(cells)} columns, expected {len(columns)}: "
                f"{', '.join(columns)}"
            )
        yield CsvRow(path, number, dict(zip(columns, cells, strict=False)))


class _Line(NamedTuple):
    number: int
    cells: list[str]


def _lines(path: Path) -> Iterator[_Line]:
    """The lines of a file; InputError if it cannot be read, or is no CSV."""
    try:
        with open_text(path) as file:
            reader = csv.reader(file, strict=True)
            while True:
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    raise InputError(f"{path}, line {reader.line_num}: not CSV: {error}") from error
                yield _Line(reader.line_num, [cell.strip() for cell in cells])
    except OSError as error:
        raise InputError(f'cannot read "{path}": {error.strerror}') from error
    except UnicodeDecodeError as error:
        raise InputError(f'cannot read "{path}": not text in UTF-8: {error.reason}') from error


def _check_header(
    path: Path,
    header: Sequence[str],
    required: Collection[str],
    optional: Collection[str],
    is_more: Callable[[str], bool],
) -> None:
    known = (*required, *optional)
    for name in header:
        if name not in known and not is_more(name):
            hint = near(name, known) or f"; expected {', '.join(known)}"
            raise InputError(f'{path}, line 1: unknown column "{_cut(name)}"{hint}')
        if header.count(name) > 1:
            raise InputError(f'{path}, line 1: the column "{name}" is given twice')
    for name in required:
        if name not in header:
            raise InputError(f'{path}, line 1: the column "{name}" is missing')


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
