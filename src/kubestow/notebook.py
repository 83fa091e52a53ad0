"""Tables for notebooks: what `_repr_html_` of results returns."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Final

_ROWS_SHOWN: Final = 20


def html_table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], row_count: int
) -> str:
    """The first rows under a caption, and how many more there are."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in islice(rows, _ROWS_SHOWN)
    )
    more = f"<p>and {row_count - _ROWS_SHOWN:,} more</p>" if row_count > _ROWS_SHOWN else ""
    return (
        f"<p>{escape(caption)}</p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{more}"
    )
