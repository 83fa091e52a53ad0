"""The page of a plan in a real browser: the slider shows the state after each step."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.simulator.rebalance.rebalance_clusters import documents, node, owner, pod
from tests.simulator.rebalance.test_view import viewed

from kubestow.simulator.rebalance import plan_page
from kubestow.simulator.rebalance.plan_page import page_of
from kubestow.simulator.reports.html import page_html

CHROMIUM = Path("/usr/bin/chromium")
HOSTILE = "</script><script>document.title='broken'</script>"
CLUSTER = [
    node("a"),
    node("b"),
    owner("web", 2),
    pod("web-1", "a", cpu="1"),
    pod("web-2", "a", cpu="1"),
    pod("db-1", "b", kind=""),
]


def test_a_page_without_steps_has_no_picture() -> None:
    _, plan, view = viewed(documents(node("a"), node("b"), pod("web-1", "a", kind="")), "balance")
    assert not plan.steps
    text = page_html(page_of(plan, view))
    assert 'id="plan"' not in text
    assert "it has no controller, so it would be lost" in text


def test_the_script_is_no_markup_and_has_the_licences_of_what_it_contains() -> None:
    script = Path(plan_page.__file__).with_name("plan.js").read_text(encoding="utf-8")
    assert "</script" not in script
    assert "<!--" not in script
    for name in ("preact", "@preact/signals", "@preact/signals-core"):
        assert re.search(rf"^{name} [\d.]+ \(MIT\)$", script, re.MULTILINE)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    _, plan, view = viewed(documents(*CLUSTER), "empty-nodes")
    path = tmp_path_factory.mktemp("plan") / "plan.html"
    page = page_of(plan, view)
    path.write_text(page_html(page._replace(title=f"{page.title} {HOSTILE}")))
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        shown = browser.new_page()
        problems: list[str] = []
        shown.on("pageerror", lambda error: problems.append(str(error)))
        shown.on("console", lambda message: problems.append(message.text))
        shown.goto(path.as_uri())
        yield shown
        assert problems == []
        browser.close()


def labels(page: Any) -> list[str]:
    """Names and shares: of all nodes before, then after, row by row."""
    texts = (
        page.get_by_role("img", name="Nodes before and after")
        .locator("text")
        .evaluate_all(
            "all => all.map((text) => [...text.childNodes].filter((node) => node.nodeType === 3)"
            ".map((node) => node.data).join(''))"
        )
    )
    return texts[2:]


@pytest.mark.slow
def test_the_slider_goes_through_the_steps(opened: Any) -> None:
    assert opened.title().endswith(HOSTILE)
    slider = opened.get_by_label("Step of the plan")
    # It begins with what the plan leaves: closing the node, and two evictions.
    assert slider.input_value() == "3"
    assert labels(opened) == ["a 50 %", "a 0 %, closed", "b 25 %", "b 75 %"]
    assert opened.locator(".move").count() == 2
    opened.get_by_label("One step back").click()
    assert labels(opened)[1::2] == ["a 25 %, closed", "b 50 %"]
    assert "evict default/web-1 from a" in opened.locator("figcaption").text_content()
    slider.focus()
    opened.keyboard.press("Home")
    assert labels(opened)[1::2] == ["a 50 %", "b 25 %"]
    assert opened.locator(".move").count() == 0
    opened.get_by_label("One step on").click()
    assert labels(opened)[1] == "a 50 %, closed"


@pytest.mark.slow
def test_another_resource_is_chosen(opened: Any) -> None:
    opened.get_by_label("Resource").select_option(label="memory")
    assert all("0 %" in text for text in labels(opened))
