"""The columns that the definition of a custom resource adds to its table."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from kubestow.api.meta import Json, JsonObject
from kubestow.apiserver.http.ages import age
from kubestow.apiserver.http.cells import AGE, NAME
from kubestow.apiserver.http.table import Cell, CellOf, Column, TableColumns
from kubestow.apiserver.served import PrinterColumn
from kubestow.cluster.documents import as_list, as_object, is_list, is_object

_STEP: Final = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\\])+)
    |\[\s*(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\s*\]
    |\[(?P<index>-?\d+)\]
    |(?P<all>\[\*\]|\.\*)
    |\[\?\(@(?P<field>(?:\.[^=!\s]+))\s*==\s*(?P<mark>['"])(?P<value>.*?)(?P=mark)\s*\)\]""",
    re.VERBOSE,
)


def custom_columns(columns: tuple[PrinterColumn, ...]) -> TableColumns:
    """Name, then the columns of the definition; name and age if it has none."""
    if not columns:
        return (NAME, AGE)
    return (NAME, *(_column(column) for column in columns))


def _column(column: PrinterColumn) -> Column:
    return Column(column.name, _cell(column), type=column.type, priority=column.priority)


def _cell(column: PrinterColumn) -> CellOf:
    def cell(document: JsonObject, now_ns: int) -> Cell | None:
        found = values_at(document, column.json_path)
        if not found:
            return None
        return _shown(found[0], column.type, now_ns)

    return cell


def _shown(value: Json, type: str, now_ns: int) -> Cell | None:
    match type:
        case "integer" | "number":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return value if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return age(value, now_ns)
        case _:
            return _text(value)


def _text(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_object(value):
        return f"map[{' '.join(f'{key}:{_text(below)}' for key, below in sorted(value.items()))}]"
    if is_list(value):
        return f"[{' '.join(map(_text, value))}]"
    return "" if value is None else str(value)


def values_at(document: JsonObject, json_path: str) -> list[Json]:
    """The values at a path such as `.status.conditions[?(@.type=="Ready")].status`."""
    found: list[Json] = [document]
    for step in _steps(json_path):
        found = [below for value in found for below in _below(value, step)]
    return [value for value in found if value is not None]


@lru_cache(256)  # few definitions have more columns than that
def _steps(json_path: str) -> tuple[re.Match[str], ...]:
    return tuple(_STEP.finditer(json_path.strip("{}")))


def _below(value: Json, step: re.Match[str]) -> Iterable[Json]:
    if step["name"] is not None or step["quoted"] is not None:
        name = step["quoted"] or re.sub(r"\\(.)", r"\1", step["name"] or "")
        return [as_object(value).get(name)]
    if step["index"] is not None:
        return as_list(value)[int(step["index"]) :][:1]
    if step["all"]:
        return as_list(value) or as_object(value).values()
    path = step["field"] or ""
    return [item for item in as_list(value) if values_at(item, path)[:1] == [step["value"]]]
