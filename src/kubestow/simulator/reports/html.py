"""The page of a report: one file that loads nothing, with charts, and tables to sort and search.

All values are text: in the page they are escaped, in the data of charts no
`<` remains. A content security policy refuses every request and every script but those of the page,
which it names by their hashes.

A page with charts needs the optional extra `reports`: call `extra.require_extra` before.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubestow.simulator.reports.tables import Column, Kind, Table
from kubestow.simulator.reports.units import amount_text, seconds_text, share_text

if TYPE_CHECKING:
    # Imported where they are used: these need packages that may be missing.
    from kubestow.simulator.reports.charts import Drawing

# Rows of one table; the data files have all of them.
ROWS_MAX: Final = 1000
# A table with fewer rows needs no search.
_SEARCHED_ROWS: Final = 8
_LONG_TEXTS: Final = ("message", "detail")
_PACKAGE: Final = "kubestow.simulator.reports"


class Card(NamedTuple):
    """One number, and what it is."""

    value: str
    label: str


class ShownTable(NamedTuple):
    """The rows to show, in this order. `order` says what comes first, where rows are left out."""

    table: Table
    rows: Sequence[int]
    order: str = ""
    is_open: bool = True


class Inset(NamedTuple):
    """A part of a page that draws itself: `data` is JSON, which `script` finds by `name`."""

    name: str
    markup: str
    style: str
    data: str
    script: str


class Page(NamedTuple):
    """`definitions` are words and what they mean."""

    title: str
    subtitle: str
    warning: str
    cards: Sequence[Card]
    drawings: "Sequence[Drawing]"
    tables: Sequence[ShownTable]
    definitions: Sequence[tuple[str, str]]
    inset: Inset | None = None


def page_html(page: Page) -> str:
    """The whole file."""
    insets = [] if page.inset is None else [page.inset]
    scripts = [asset(_PACKAGE, "page.js"), *(inset.script for inset in insets)]
    if page.drawings:
        scripts.insert(0, _libraries())
    warning = f'<p class="partial">{escape(page.warning)}</p>' if page.warning else ""
    parts = (
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(page.title)}</title>",
        f"<style>{asset(_PACKAGE, 'page.css')}{''.join(inset.style for inset in insets)}</style>",
        "</head><body>",
        f'<header><h1>{escape(page.title)}</h1><p class="soft">{escape(page.subtitle)}</p>',
        f"{warning}</header>",
        f'<section class="cards">{"".join(map(_card, page.cards))}</section>',
        *(inset.markup for inset in insets),
        f'<section class="charts">{"".join(map(_chart, page.drawings))}</section>',
        *map(_table, page.tables),
        _definitions(page.definitions),
        f'<script type="application/json" id="charts">{_chart_data(page.drawings)}</script>',
        *map(_inset_data, insets),
        *(f"<script>{script}</script>" for script in scripts),
        "</body></html>",
    )
    return "\n".join(parts) + "\n"


def _policy(scripts: Sequence[str]) -> str:
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    # Vega makes functions of the expressions of a chart, and its pictures are data of the page.
    return (
        f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; it takes seconds to put together."""
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Only within texts of the script, where the backslash changes nothing.
    return bundle.replace("</script", r"<\/script").replace("<!--", r"<\!--")


@cache
def asset(package: str, name: str) -> str:
    """The text of a file of a package, such as a style sheet."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def _chart_data(drawings: "Sequence[Drawing]") -> str:
    if not drawings:
        return "{}"
    from kubestow.simulator.reports.charts import CONFIG

    config = {key: value for key, value in CONFIG.items() if key != "background"}
    specs = {
        drawing.name: {
            **drawing.chart.properties(width="container").to_dict(),
            "background": None,
            "config": config,
            "autosize": {"type": "fit-x", "contains": "padding"},
        }
        for drawing in drawings
    }
    return _harmless(json.dumps(specs, separators=(",", ":"), ensure_ascii=True, allow_nan=False))


def _inset_data(inset: Inset) -> str:
    data = _harmless(inset.data)
    return f'<script type="application/json" id="data-{escape(inset.name)}">{data}</script>'


def _harmless(data: str) -> str:
    """JSON in which nothing ends the element that it is in."""
    return data.replace("<", r"\u003c").replace(">", r"\u003e")


def _card(card: Card) -> str:
    return f'<div class="card"><b>{escape(card.value)}</b><span>{escape(card.label)}</span></div>'


def _chart(drawing: "Drawing") -> str:
    return (
        f'<figure class="chart"><figcaption><h2>{escape(drawing.title)}</h2>'
        f"<p>{escape(drawing.note)}</p></figcaption>"
        f'<div id="chart-{escape(drawing.name)}"></div></figure>'
    )


def _table(shown: ShownTable) -> str:
    table, rows = shown.table, shown.rows[:ROWS_MAX]
    left_out = table.row_count - len(rows)
    note = (
        f"{len(rows):,} of {table.row_count:,} rows, {shown.order}; "
        f"{left_out:,} are in the data files only"
        if left_out
        else f"{table.row_count:,} {'row' if table.row_count == 1 else 'rows'}"
    )
    search = (
        '<input type="search" placeholder="Search" '
        f'aria-label="Search in {escape(table.title)}"><span><output></output></span>'
        if len(rows) >= _SEARCHED_ROWS
        else ""
    )
    heads = "".join(
        f'<th scope="col"{_class(column)}><button>{escape(_heading(column.name))}</button></th>'
        for column in table.columns
    )
    body = "\n".join(
        "<tr>" + "".join(_cell(table, column, row) for column in table.columns) + "</tr>"
        for row in rows
    )
    return (
        f'<details class="table" id="table-{escape(table.name)}"{" open" if shown.is_open else ""}>'
        f'<summary><h2>{escape(table.title)}</h2> <span class="soft">{escape(note)}</span>'
        f'</summary><div class="tools">{search}</div>'
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
        "</div></details>"
    )


def _heading(name: str) -> str:
    """The name of a column as words; its unit stands with the values."""
    return name.removesuffix("_s").replace("_", " ")


def _class(column: Column) -> str:
    return "" if column.kind is Kind.TEXT else ' class="n"'


def _cell(table: Table, column: Column, row: int) -> str:
    value = column.values[row]
    if column.kind is Kind.TEXT:
        kind = ' class="long"' if column.name in _LONG_TEXTS else ""
        return f"<td{kind}>{escape(value)}</td>"
    if value is None:
        return '<td class="n" data-v=""></td>'
    return f'<td class="n" data-v="{value}">{escape(_number(table, column, row, value))}</td>'


def _number(table: Table, column: Column, row: int, value: Any) -> str:
    match column.kind:
        case Kind.SECONDS:
            return seconds_text(value)
        case Kind.NUMBER:
            return f"{value:,.1f}"
        case Kind.SHARE:
            return share_text(value)
        case Kind.AMOUNT:
            resource: str = column.resource or table.column("resource").values[row]
            return amount_text(value, resource)
        case _:
            return f"{value:,}"


def _definitions(definitions: Sequence[tuple[str, str]]) -> str:
    if not definitions:
        return ""
    entries = "".join(
        f"<dt>{escape(word)}</dt><dd>{escape(meaning)}</dd>" for word, meaning in definitions
    )
    return f'<footer class="card"><h2>Definitions</h2><dl>{entries}</dl></footer>'
