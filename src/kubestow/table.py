"""Tables for people and pipes.

In a pipe a row is one line, neither cut nor wrapped, so that `grep`, `awk` and `wc` work as with
kubectl. A terminal gets lines of its width, and no column is left out and no word broken: texts
wrap at blanks, one that would become too narrow goes to lines of its own below its row, and columns
that still find no place follow in a further table that begins with the same column.
"""

import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from rich.console import Console

from kubestow.redaction import printable

_GAP: Final = "   "
_BELOW: Final = "    "  # before texts below their row
_INDENT_COLUMNS: Final = 12
_CUT: Final = "…"
# A text is not wrapped to fewer columns beside others, unless it is shorter.
_TEXT_WIDTH_MIN: Final = 24


def wrapped_line(line: str, width: int | None) -> list[str]:
    """The line on several, if it is too long, with the further ones deeper."""
    if width is None or len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line.lstrip(),
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


class Table:
    """Rows of texts under a header."""

    def __init__(
        self,
        *columns: str,
        right: Sequence[str] = (),
        texts: Sequence[str] | None = None,
        keys: int = 1,
    ) -> None:
        """`right` are the columns whose texts are aligned on the right, as numbers are; `texts`
        those that may be wrapped: without a list the last one, unless it has numbers. The first
        `keys` columns say what a row is about."""
        self._columns = columns
        self._is_right = [column in right for column in columns]
        texts = [each for each in columns[-1:] if each not in right] if texts is None else texts
        self._texts = [index for index, column in enumerate(columns) if column in texts]
        self._keys = keys
        self._rows: list[Sequence[str]] = []

    def add(self, *cells: str) -> None:
        assert len(cells) == len(self._columns), cells
        self._rows.append([printable(cell) for cell in cells])

    def lines(
        self, *, has_header: bool = True, width: int | None = None, is_cut: bool = False
    ) -> list[str]:
        """The lines, of at most `width` columns; `is_cut`: what a text has beyond one is left out.

        Only a single word that is longer than the width makes a longer line.
        """
        marked = self.marked_lines(has_header=has_header, width=width, is_cut=is_cut)
        return [text for text, _ in marked]

    def print(self, *, has_header: bool = True, is_cut: bool = False, indent: str = "") -> None:
        """Print it, for a terminal in its width and with a bold header."""
        is_terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns - len(indent) if is_terminal else None
        bold = Console(highlight=False) if is_terminal else None
        for text, is_header in self.marked_lines(has_header=has_header, width=width, is_cut=is_cut):
            if is_header and bold is not None:
                bold.print(indent + text, style="bold", markup=False, soft_wrap=True)
            else:
                sys.stdout.write(f"{indent}{text}".rstrip() + "\n")

    def marked_lines(
        self, *, has_header: bool = True, width: int | None = None, is_cut: bool = False
    ) -> Iterator[tuple[str, bool]]:
        """Each line, and whether it belongs to a header."""
        rows = [self._columns, *self._rows] if has_header else self._rows
        if not rows:
            return
        for number, part in enumerate(self._parts(rows, width)):
            if number:
                yield "", False
            for index, cells in enumerate(rows):
                is_header = has_header and index == 0
                for line in self._row(part, cells, width, is_cut=is_cut):
                    yield line, is_header

    def _parts(self, rows: Sequence[Sequence[str]], width: int | None) -> list["_Part"]:
        """How the columns are laid out; one part if they have the width."""
        columns = list(zip(*rows, strict=True))
        beside = {index: max(map(len, cells)) for index, cells in enumerate(columns)}
        if width is None or _total(beside.values()) <= width:
            return [_Part(beside)]
        least = dict(beside)
        for index in self._texts:
            least[index] = _least_width(columns[index], beside[index])
        below: list[int] = []
        for index in (None, *reversed(self._texts)):
            if index is not None and index >= self._keys:
                below.insert(0, index)
                del beside[index], least[index]
            left = width - _total(least.values())
            if left >= 0:
                return [_Part(_widened(least, beside, left), below)]
        return _split(beside, self._keys, below, width)

    def _row(
        self, part: "_Part", cells: Sequence[str], width: int | None, *, is_cut: bool
    ) -> list[str]:
        if width is None:
            return [self._line(part, {index: cells[index] for index in part.widths})]
        wrapped = {
            index: _wrapped(cells[index], columns, is_cut=is_cut)
            if index in self._texts
            else [cells[index]]
            for index, columns in part.widths.items()
        }
        height = max(map(len, wrapped.values()))
        lines: list[str] = []
        for number in range(height):
            texts = {i: dict(enumerate(each)).get(number, "") for i, each in wrapped.items()}
            line = self._line(part, texts)
            lines += [line] if len(line) <= width else _flowed(texts.values(), width)
        indent = _indent(part)
        for index in part.below:
            found = _wrapped(cells[index], width - len(indent), is_cut=is_cut)
            lines += [indent + line for line in found if line]
        return lines

    def _line(self, part: "_Part", texts: dict[int, str]) -> str:
        padded = [
            text.rjust(part.widths[index])
            if self._is_right[index]
            else text.ljust(part.widths[index])
            for index, text in texts.items()
        ]
        return _GAP.join(padded).rstrip()


class _Part(NamedTuple):
    """A table of some of the columns."""

    # By the index of the column, in their order.
    widths: dict[int, int]
    # Texts on lines of their own.
    below: Sequence[int] = ()


def _indent(part: _Part) -> str:
    """What stands before a text below its row: as much as the first column, if that is little."""
    beside = len(_GAP) + next(iter(part.widths.values()))
    return " " * beside if beside <= _INDENT_COLUMNS else _BELOW


def _least_width(cells: Sequence[str], whole: int) -> int:
    """What a column of texts may be wrapped to."""
    word = max((len(word) for cell in cells for word in cell.split()), default=0)
    return min(max(_TEXT_WIDTH_MIN, word), whole)


def _widened(least: dict[int, int], whole: dict[int, int], left: int) -> dict[int, int]:
    """The widths with what is left shared; the columns that lack least come first."""
    widths = dict(least)
    lacking = sorted(widths, key=lambda index: whole[index] - widths[index])
    for number, index in enumerate(lacking):
        more = min(whole[index] - widths[index], left // (len(lacking) - number))
        widths[index] += more
        left -= more
    return widths


def _split(beside: dict[int, int], keys: int, below: Sequence[int], width: int) -> list[_Part]:
    """Several tables, which all begin with the same columns."""
    first = {index: columns for index, columns in beside.items() if index < keys}
    parts: list[dict[int, int]] = [dict(first)]
    for index, columns in beside.items():
        if index < keys:
            continue
        if len(parts[-1]) > keys and _total((*parts[-1].values(), columns)) > width:
            parts.append(dict(first))
        parts[-1][index] = columns
    return [*map(_Part, parts[:-1]), _Part(parts[-1], below)]


def _total(widths: Collection[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _wrapped(text: str, width: int, *, is_cut: bool = False) -> list[str]:
    """At least one line, of whole words."""
    if len(text) <= width:
        return [text]
    if is_cut:
        return [text[: max(width - len(_CUT), 0)].rstrip() + _CUT]
    lines = textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False)
    return lines or [""]


def _flowed(texts: Iterable[str], width: int) -> list[str]:
    """Cells that do not fit beside each other: as many on a line as there is place for."""
    lines: list[str] = []
    for text in filter(None, texts):
        if lines and len(lines[-1]) + len(_GAP) + len(text) <= width:
            lines[-1] += _GAP + text
        else:
            indent = _BELOW if lines else ""
            lines += [indent + line for line in _wrapped(text, width - len(indent))]
    return lines
