"""The page on reliability has every hostile case at two sizes, and none is over the limit."""

from pathlib import Path

from tools.hostile.cases import ALL_CASES
from tools.hostile.objects import NOTHING
from tools.hostile.run import STRETCH_S_MAX
from tools.hostile.table import HEADER

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def _rows() -> list[list[str]]:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(HEADER + "\n")
    table, _, _ = rest.partition("\n\n")
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


def test_every_case_has_its_row() -> None:
    assert [(name, size) for name, size, *_ in _rows()] == [
        (case.name, f"{case.size_max:,}") for case in (NOTHING, *ALL_CASES)
    ]


def test_no_figure_is_over_the_limit() -> None:
    for name, _, half, full, _ in _rows():
        figures = [int(text.replace(",", "")) for text in (half, full) if text]
        assert len(figures) == (1 if name == NOTHING.name else 2), name
        assert max(figures) <= STRETCH_S_MAX * 1000, name
