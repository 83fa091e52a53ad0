"""The page in a real browser: it draws its charts, sorts and searches, and loads nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.simulator.reports.report_run import make_run

from kubestow.simulator.reports.files import write_report
from kubestow.simulator.reports.html import ROWS_MAX
from kubestow.simulator.results import Change

# Vega is put together once, and a browser started.
pytestmark = pytest.mark.slow
CHROMIUM = Path("/usr/bin/chromium")
HOSTILE = (
    "</script><script>document.title='broken'</script>"
    "<img src=x onerror=\"document.title='broken'\">"
)
RUN = make_run(pods=ROWS_MAX + 200, nodes=12, samples=50, name=f"a day {HOSTILE}")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pods = [
        msgspec.structs.replace(pod, owner=HOSTILE, message=pod.message and HOSTILE)
        for pod in RUN.pods
    ]
    nodes = [
        msgspec.structs.replace(
            node,
            zone=HOSTILE,
            allocatable={**node.allocatable, HOSTILE: 4},
            requested={**node.requested, HOSTILE: 1},
        )
        for node in RUN.nodes
    ]
    changes = [Change(time_s=5.0, kind=HOSTILE, subject=HOSTILE, detail=HOSTILE)]
    run = msgspec.structs.replace(RUN, pods=pods, nodes=nodes, changes=changes)
    return write_report(run, tmp_path_factory.mktemp("page") / "run.html")[0]


class Opened:
    """The page, and what went wrong in it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.problems: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: self.problems.append(message.text))

    def column(self, table: str, name: str, attribute: str = "") -> list[str]:
        """The cells of a column in the rows that are shown."""
        return self.page.evaluate(
            """([table, name, attribute]) => {
              const found = document.querySelector(`#table-${table} table`);
              const heads = Array.from(found.tHead.rows[0].cells, (cell) => cell.textContent);
              const column = heads.indexOf(name);
              return Array.from(found.tBodies[0].rows).filter((row) => !row.hidden).map((row) => {
                const cell = row.cells[column];
                return attribute ? cell.dataset[attribute] : cell.textContent;
              });
            }""",
            [table, name, attribute],
        )

    def sort(self, table: str, name: str) -> None:
        self.page.locator(f"#table-{table} th button", has_text=name).first.click()


@pytest.fixture(scope="module")
def opened(path: Path) -> Iterator[Opened]:
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"], timeout=300_000
        )
        found = Opened(browser.new_page())
        found.page.goto(path.as_uri())
        found.page.wait_for_selector("html[data-charts=drawn]", timeout=300_000)
        yield found
        browser.close()


def test_charts_are_drawn_without_any_request(opened: Opened, path: Path) -> None:
    assert opened.requests == [path.as_uri()]
    assert opened.problems == []
    drawn = opened.page.eval_on_selector_all(
        ".chart svg.marks", "all => all.map((svg) => svg.querySelectorAll('path, line').length)"
    )
    assert len(drawn) == opened.page.locator(".chart").count() >= 8
    assert all(count > 10 for count in drawn)


def test_hostile_texts_are_text(opened: Opened) -> None:
    page = opened.page
    assert page.title() == RUN.name
    assert page.locator("h1").text_content() == RUN.name
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3
    assert set(opened.column("pods", "owner")) == {HOSTILE}
    assert opened.column("changes", "subject") == [HOSTILE]
    # In legends, too, as far as there is room.
    assert any(
        text.startswith("</script>") for text in page.locator("svg text").all_text_contents()
    )


def test_a_tooltip_shows_hostile_texts_as_text(opened: Opened) -> None:
    page = opened.page
    page.locator("#chart-changes .mark-rect path").first.hover()
    tooltip = page.locator("#vg-tooltip-element")
    tooltip.wait_for(state="visible")
    assert "</script>" in tooltip.text_content()
    assert tooltip.locator("script, img").count() == 0
    assert page.title() == RUN.name


def test_tables_are_sorted_by_value(opened: Opened) -> None:
    opened.sort("pods", "waited")
    rising = opened.column("pods", "waited", "v")
    numbers = [float(value) for value in rising if value]
    assert numbers == sorted(numbers)
    # Pods that never got a node have no time, and come last.
    assert rising[-1] == ""
    opened.sort("pods", "waited")
    falling = opened.column("pods", "waited", "v")
    assert [float(value) for value in falling if value] == numbers[::-1]
    assert falling[-1] == ""
    opened.sort("nodes", "name")
    assert opened.column("nodes", "name") == [f"node-{index}" for index in range(12)]


def test_a_search_leaves_the_rows_with_all_words(opened: Opened) -> None:
    box = opened.page.locator("#table-pods input")
    box.fill("node-7 running")
    names = opened.column("pods", "node")
    assert names
    assert set(names) == {"node-7"}
    assert f"{len(names)} of {ROWS_MAX} rows" in opened.page.locator("#table-pods").inner_text()
    box.fill("")
    assert len(opened.column("pods", "node")) == ROWS_MAX


def test_rows_beyond_the_limit_are_counted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert f"{ROWS_MAX:,} of {ROWS_MAX + 200:,} rows" in text
    assert "200 are in the data files only" in text
    # Pods that wait are shown before all others.
    waiting = sum(pod.outcome == "Pending" for pod in RUN.pods)
    pods = text[text.index('id="table-pods"') : text.index('id="table-nodes"')]
    assert pods.count("<td>Pending</td>") == waiting


def test_no_text_of_the_data_ends_a_script(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("<script") == text.count("</script>") == 3
    assert HOSTILE not in text
    assert "<img src=x" not in text
