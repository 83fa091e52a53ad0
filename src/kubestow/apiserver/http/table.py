"""Objects as rows: what `kubectl get` requests and prints.

The server chooses the columns, so that every client shows a kind in the same way. Columns of
priority 1 appear with `-o wide`. Beside its cells a row has the object's metadata, or the whole
object, or nothing, as the client requests.

Not here: the columns of each kind (`columns`).
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.representation import META_VERSION, partial_metadata
from kubestow.apiserver.refusals import bad_request

Cell = str | int | float | bool
# A cell is computed from the document and, for ages, the current time in nanoseconds.
CellOf = Callable[[JsonObject, int], Cell | None]


class Column(NamedTuple):
    name: str
    cell: CellOf
    type: str = "string"
    # 0 is always shown, 1 only in wide tables.
    priority: int = 0
    # kubectl finds the column of names by its format.
    format: str = ""

    @property
    def definition(self) -> JsonObject:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": "",
            "priority": self.priority,
        }


TableColumns = tuple[Column, ...]
_INCLUDES: Final = ("", "Metadata", "Object", "None")


def table(
    columns: TableColumns,
    documents: Iterable[JsonObject],
    *,
    now_ns: int,
    metadata: JsonObject | None = None,
    include: str = "",
    has_headers: bool = True,
) -> JsonObject:
    """The Table of some objects; without headers it continues an earlier one."""
    if include not in _INCLUDES:
        raise bad_request(f'unrecognized includeObject value: "{include}"')
    definitions = [column.definition for column in columns] if has_headers else None
    return {
        "kind": "Table",
        "apiVersion": META_VERSION,
        "metadata": metadata or {},
        "columnDefinitions": definitions,
        "rows": [_row(columns, document, now_ns, include) for document in documents],
    }


def _row(columns: TableColumns, document: JsonObject, now_ns: int, include: str) -> JsonObject:
    row: JsonObject = {"cells": [column.cell(document, now_ns) for column in columns]}
    if include in ("", "Metadata"):
        row["object"] = partial_metadata(document)
    elif include == "Object":
        row["object"] = document
    return row
