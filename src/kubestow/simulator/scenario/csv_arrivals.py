"""Arrivals from a CSV file: a header, then a line for each arrival in the order of time.

    at,duration,cpu,memory
    0,10m,500m,1Gi
    12.5,3600,2,8Gi

The file is checked as a whole before a run, and read line by line during it. A cell that is empty
leaves the template as it is.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kubestow.api.labels import qualified_name_errors
from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import as_list, as_object, replaced_at, value_at
from kubestow.simulator.scenario.scenario import Arrival
from kubestow.simulator.traces.csv_rows import CsvRow, csv_rows

# Distinct documents that are kept, of one file.
DOCUMENTS_MAX: Final = 4_096
_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_OPTIONAL: Final = ("duration", "leaveAfter", "name", "namespace", "priorityClassName", *_NATIVE)


class CsvArrivals:
    """An `ArrivalSource` of a file."""

    def __init__(self, path: Path, name: str, template: JsonObject) -> None:
        self._path = path
        self._name = name
        self._template = template
        # Equal changes of the template are one document.
        self._documents: dict[tuple[tuple[str, str], ...], JsonObject] = {}

    def check(self) -> None:
        """Read the file once; InputError names the first line and column that is wrong."""
        for _ in self(0):
            pass

    def __call__(self, seed: int) -> Iterator[Arrival]:
        last_s = 0.0
        rows = csv_rows(self._path, required=("at",), optional=_OPTIONAL, is_more=_is_extended)
        for row in rows:
            time_s = row.seconds("at")
            if time_s is None:
                raise row.error("at", "is empty, expected a time")
            if time_s < last_s:
                raise row.error(
                    "at", f'is "{row.text("at")}", before the line above; sort the file by time'
                )
            last_s = time_s
            yield Arrival(
                time_s,
                self._document(row),
                row.seconds("duration"),
                self._name,
                row.seconds("leaveAfter"),
            )

    def _document(self, row: CsvRow) -> JsonObject:
        requests = {
            column: amount
            for column in row.cells
            if column in _NATIVE or _is_extended(column)
            if (amount := row.quantity(column, is_whole=column not in _NATIVE))
        }
        namespace = row.name("namespace") if row.text("namespace") else ""
        priority_class = row.name("priorityClassName") if row.text("priorityClassName") else ""
        key = (("", namespace), ("", priority_class), *requests.items())
        document = self._documents.get(key)
        if document is None:
            document = _changed(self._template, namespace, priority_class, requests)
            if len(self._documents) < DOCUMENTS_MAX:
                self._documents[key] = document
        if row.text("name"):
            document = replaced_at(document, ("metadata", "name"), row.name("name"))
        return document


def _is_extended(column: str) -> bool:
    return "/" in column and not qualified_name_errors(column)


def _changed(
    template: JsonObject, namespace: str, priority_class: str, requests: dict[str, str]
) -> JsonObject:
    spec = ("spec",) if template.get("kind") == "Pod" else ("spec", "template", "spec")
    document = template
    if namespace:
        document = replaced_at(document, ("metadata", "namespace"), namespace)
    if priority_class:
        document = replaced_at(document, (*spec, "priorityClassName"), priority_class)
    return _with_requests(document, (*spec, "containers"), requests) if requests else document


def _with_requests(
    document: JsonObject, path: tuple[str, ...], requests: dict[str, str]
) -> JsonObject:
    """With other requests of the first container; extended resources need limits, too."""
    containers = as_list(value_at(document, *path))
    first = as_object(containers[0] if containers else None)
    resources = as_object(first.get("resources"))
    changed = {**resources, "requests": {**as_object(resources.get("requests")), **requests}}
    if limits := {name: amount for name, amount in requests.items() if "/" in name}:
        changed["limits"] = {**as_object(resources.get("limits")), **limits}
    return replaced_at(document, path, [{**first, "resources": changed}, *containers[1:]])
