"""Arrivals from a CSV file: a header, then a line for each arrival in the order of time.

    time,duration,requests.cpu,requests.memory
    0,10m,500m,1Gi
    12.5,3600,2,8Gi

The file is checked as a whole before a run, and read line by line during it.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.api.quantity import parse_quantity
from kubestow.cluster.documents import as_list, as_object, replaced_at, value_at
from kubestow.errors import InputError
from kubestow.simulator.scenario.scenario import Arrival
from kubestow.simulator.scenario.source import near, parse_seconds

_TIME: Final = "time"
_REQUESTS: Final = "requests."
_COLUMNS: Final = (
    _TIME,
    "duration",
    "leaveAfter",
    "name",
    "namespace",
    "priorityClassName",
    "schedulerName",
)


class CsvRow(NamedTuple):
    line: int
    cells: dict[str, str]


class CsvArrivals:
    """An `ArrivalSource` of a file; a cell that is empty leaves the template as it is."""

    def __init__(self, path: Path, name: str, template: JsonObject) -> None:
        self._path = path
        self._name = name
        self._template = template
        # Equal changes of the template are one document.
        self._documents: dict[tuple[tuple[str, str], ...], JsonObject] = {}

    def check(self) -> int:
        """Read the file once; InputError names the first line and field that is wrong."""
        return sum(1 for _ in self(0))

    def __call__(self, seed: int) -> Iterator[Arrival]:
        last_s = 0.0
        for row in self._rows():
            time_s = self._seconds(row, _TIME)
            if time_s is None:
                raise self._error(row.line, _TIME, "is empty, expected a time")
            if time_s < last_s:
                problem = f"is {row.cells[_TIME]}, before the line above it; sort the file by time"
                raise self._error(row.line, _TIME, problem)
            last_s = time_s
            yield Arrival(
                time_s,
                self._document(row),
                self._seconds(row, "duration"),
                self._name,
                self._seconds(row, "leaveAfter"),
            )

    def _rows(self) -> Iterator[CsvRow]:
        try:
            with self._path.open(newline="", encoding="utf-8-sig") as file:
                reader = csv.reader(file, strict=True)
                header = self._header(next(reader, []))
                for cells in reader:
                    if not cells:
                        continue
                    if len(cells) != len(header):
                        problem = f"has {len(cells)} fields, expected {len(header)}"
                        raise self._error(reader.line_num, "", problem)
                    texts = (cell.strip() for cell in cells)
                    yield CsvRow(reader.line_num, dict(zip(header, texts, strict=True)))
        except OSError as error:
            raise InputError(f'cannot read "{self._path}": {error.strerror}') from error
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f'cannot read "{self._path}": not CSV: {error}') from error

    def _header(self, cells: list[str]) -> list[str]:
        names = [cell.strip() for cell in cells]
        for name in names:
            if name not in _COLUMNS and not name.startswith(_REQUESTS):
                hint = near(name, _COLUMNS) or f"; expected {', '.join(_COLUMNS)}, requests.NAME"
                raise self._error(1, name, f"unknown column{hint}")
            if names.count(name) > 1:
                raise self._error(1, name, "the column is given twice")
        if _TIME not in names:
            raise self._error(1, _TIME, "the column is missing")
        return names

    def _seconds(self, row: CsvRow, column: str) -> float | None:
        text = row.cells.get(column, "")
        if not text:
            return None
        try:
            seconds = float(text) if _is_number(text) else parse_seconds(text)
        except ValueError as error:
            problem = f'is "{text}": {error}; expected seconds or, for example, 10m'
            raise self._error(row.line, column, problem) from error
        if not 0 <= seconds <= 1e9:
            raise self._error(row.line, column, f'is "{text}", expected 0 or more')
        return seconds

    def _document(self, row: CsvRow) -> JsonObject:
        changes = tuple(
            (column, text)
            for column, text in row.cells.items()
            if text and column not in (_TIME, "duration", "leaveAfter", "name")
        )
        document = self._documents.get(changes)
        if document is None:
            document = self._changed(row, dict(changes))
            if len(self._documents) < DOCUMENTS_MAX:
                self._documents[changes] = document
        if name := row.cells.get("name"):
            document = replaced_at(document, ("metadata", "name"), name)
        return document

    def _changed(self, row: CsvRow, changes: dict[str, str]) -> JsonObject:
        document, spec = self._template, _spec_path(self._template)
        requests: JsonObject = {}
        for column, text in changes.items():
            if column == "namespace":
                document = replaced_at(document, ("metadata", "namespace"), text)
            elif column.startswith(_REQUESTS):
                try:
                    parse_quantity(text)
                except ValueError as error:
                    problem = f'is "{text}", expected a quantity such as 500m or 2Gi'
                    raise self._error(row.line, column, problem) from error
                requests[column.removeprefix(_REQUESTS)] = text
            else:
                document = replaced_at(document, (*spec, column), text)
        return _with_requests(document, spec, requests) if requests else document

    def _error(self, line: int, column: str, problem: str) -> InputError:
        field = f": {column}" if column else ""
        return InputError(f"{self._path}, line {line}{field}: {problem}")


# Distinct documents that are kept, of one file.
DOCUMENTS_MAX: Final = 4_096


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _spec_path(template: JsonObject) -> tuple[str, ...]:
    """Where the spec of the pods is."""
    return ("spec",) if template.get("kind") == "Pod" else ("spec", "template", "spec")


def _with_requests(document: JsonObject, spec: tuple[str, ...], requests: JsonObject) -> JsonObject:
    """The document with these requests of the first container; extended ones need equal limits."""
    path = (*spec, "containers")
    containers = as_list(value_at(document, *path)) or [{"name": "main", "image": "none"}]
    first = as_object(containers[0])
    resources = as_object(first.get("resources"))
    limits = {name: text for name, text in requests.items() if "/" in name}
    changed = {
        **resources,
        "requests": {**as_object(resources.get("requests")), **requests},
    }
    if limits:
        changed["limits"] = {**as_object(resources.get("limits")), **limits}
    return replaced_at(document, path, [{**first, "resources": changed}, *containers[1:]])
