"""The figures are those of the chapter: calm ones where there are any, else the older ones."""

import re
from pathlib import Path

import pytest

from kubestow.simulator.bench import WORKLOADS
from kubestow.simulator.bench.upstream import BUSY_FACTOR, UPSTREAM, Baseline, Figure

CHAPTER = Path(__file__).parents[3] / "docs" / "spec" / "10-benchmarks.md"


def chapter_rows(header: str) -> list[list[str]]:
    """The cells of the table with this header."""
    lines = CHAPTER.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(header))
    rows: list[list[str]] = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().rstrip("*").replace(",", "") for cell in line.split("|")[1:-1]])
    return rows


def calm_us() -> dict[tuple[str, str], float]:
    rows = chapter_rows("| workload | nodes | % | upstream µs |")
    return {(name, percent): float(us) for name, _, percent, us, *_ in rows}


def test_every_workload_has_a_figure_and_every_figure_a_workload() -> None:
    assert {workload.name for workload in WORKLOADS} == set(UPSTREAM)


def test_calm_figures_are_those_of_the_chapter() -> None:
    calm = calm_us()
    assert len(calm) == 22
    assert {
        (name, percent): figure.us_per_pod
        for name, baseline in UPSTREAM.items()
        for percent, figure in (("0", baseline.adaptive), ("100", baseline.all_nodes))
        if figure and not figure.is_estimated and not name.startswith("ManyApps")
    } == calm


@pytest.mark.parametrize("cells", chapter_rows("| workload | nodes / init pods |"), ids=str)
def test_other_figures_are_estimated_from_the_older_ones(cells: list[str]) -> None:
    name, _, _, adaptive_us, _, _, all_nodes_us, _ = cells
    if (name, "0") not in calm_us():
        assert UPSTREAM[name] == Baseline(
            Figure(float(adaptive_us) / BUSY_FACTOR, is_estimated=True),
            Figure(float(all_nodes_us) / BUSY_FACTOR, is_estimated=True),
        )


def test_the_chapter_has_the_factor() -> None:
    text = CHAPTER.read_text(encoding="utf-8")
    assert re.search(rf"factor of about {BUSY_FACTOR}\b", text)
