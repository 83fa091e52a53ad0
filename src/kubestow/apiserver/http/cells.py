"""The cells that tables of many kinds have: names, ages, texts, numbers, selectors.

A cell is a small function of the document; a missing value shows as `<none>`, `<unset>` or empty,
as in any cluster.
"""

from collections.abc import Iterable
from typing import Any, Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.ages import age
from kubestow.apiserver.http.table import CellOf, Column, TableColumns
from kubestow.cluster.documents import as_list, as_object, objects_in, value_at

NONE: Final = "<none>"
UNSET: Final = "<unset>"
WIDE: Final = 1  # the priority of columns that only wide tables have


def name_of(document: JsonObject, _now_ns: int) -> str:
    return value_at(document, "metadata", "name") or ""


def age_of(document: JsonObject, now_ns: int) -> str:
    return age(value_at(document, "metadata", "creationTimestamp"), now_ns)


NAME: Final = Column("Name", name_of, format="name")
AGE: Final = Column("Age", age_of)
NAME_AND_AGE: Final[TableColumns] = (NAME, AGE)


def text(*path: str, missing: str = "") -> CellOf:
    def cell(document: JsonObject, _now_ns: int) -> str:
        value = value_at(document, *path)
        return missing if value in (None, "") else str(value)

    return cell


NAME_AND_CREATION: Final[TableColumns] = (
    NAME,
    Column("Created At", text("metadata", "creationTimestamp"), type="date"),
)


def flag(*path: str) -> CellOf:
    def cell(document: JsonObject, _now_ns: int) -> bool:
        return bool(value_at(document, *path))

    return cell


def count(*path: str) -> CellOf:
    def cell(document: JsonObject, _now_ns: int) -> int:
        value = value_at(document, *path)
        return value if isinstance(value, int) else 0

    return cell


def size(*path: str) -> CellOf:
    """How many entries a map or list has."""

    def cell(document: JsonObject, _now_ns: int) -> int:
        return len(value_at(document, *path) or ())

    return cell


def number(name: str, *path: str) -> Column:
    return Column(name, count(*path), type="integer")


def joined(texts: Iterable[Any], missing: str = NONE) -> str:
    return ",".join(str(text) for text in texts) or missing


def template(field: str, path: tuple[str, ...] = ("spec", "template")) -> CellOf:
    """Names or images of the containers in a workload's template."""

    def cell(document: JsonObject, _now_ns: int) -> str:
        containers = objects_in(value_at(document, *path, "spec", "containers"))
        return joined((container.get(field, "") for container in containers), "")

    return cell


def selector_text(selector: object) -> str:
    """A label selector as written in a query."""
    found = as_object(selector)
    if "matchLabels" not in found and "matchExpressions" not in found:
        parts = [f"{key}={value}" for key, value in sorted(found.items())]
        return joined(parts)
    parts = [f"{key}={value}" for key, value in sorted(as_object(found.get("matchLabels")).items())]
    parts += [_expression_text(part) for part in objects_in(found.get("matchExpressions"))]
    return joined(parts)


def _expression_text(expression: JsonObject) -> str:
    key, values = expression.get("key", ""), ",".join(as_list(expression.get("values")))
    match expression.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return key


def selector(document: JsonObject, _now_ns: int) -> str:
    return selector_text(value_at(document, "spec", "selector"))


WORKLOAD_WIDE: Final[TableColumns] = (
    Column("Containers", template("name"), priority=WIDE),
    Column("Images", template("image"), priority=WIDE),
)
SELECTOR_WIDE: Final = Column("Selector", selector, priority=WIDE)


def integer(cell: CellOf, name: str) -> Column:
    return Column(name, cell, type="integer")
