"""The charts of the page of a demo, in a real browser: use, causes, and the window they show."""

import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.slow


def window_of(page: Page) -> tuple[int, int]:
    shown = re.compile(r"window=(\d+)-(\d+)")
    expect(page).to_have_url(shown)
    found = shown.search(page.url)
    assert found is not None, page.url
    return int(found[1]), int(found[2])


def test_use_is_shown_by_zone_and_by_pool(demo: Page) -> None:
    chart = demo.get_by_role("figure").filter(has_text="Requested cpu")
    expect(chart.locator(".key")).to_contain_text(re.compile(r"all nodes \d+ %"))
    chart.get_by_label("Requested by").select_option(label="by zone")
    expect(chart.locator(".key")).to_have_count(3)
    chart.get_by_label("Requested by").select_option(label="by pool")
    expect(chart).to_contain_text("gpu")
    demo.get_by_label("Colour").select_option("memory")
    expect(demo.get_by_role("figure").filter(has_text="Requested memory")).to_be_visible()
    demo.reload()
    expect(demo.get_by_label("Requested by")).to_have_value("pool")


def test_waiting_pods_are_shown_by_cause(demo: Page) -> None:
    demo.get_by_label("Waiting by").select_option("cause")
    chart = demo.get_by_role("figure").filter(has_text="Waiting")
    expect(chart).to_contain_text(re.compile(r"NodeAffinity, TaintToleration \d"))
    expect(demo).to_have_url(re.compile("waiting=cause"))


def test_the_window_is_zoomed_by_drawing_and_moved_by_buttons(demo: Page) -> None:
    group = demo.get_by_role("group", name="Window of the charts")
    expect(group.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "true")
    chart = demo.get_by_role("figure").first
    # The chart is made again with the first values: what was found before is gone then.
    expect(chart.locator(".key")).to_contain_text(re.compile(r"all nodes \d+ %"))
    plot = chart.locator(".u-over")
    width = int(plot.evaluate("element => element.clientWidth"))
    plot.hover(position={"x": width * 0.25, "y": 30})
    demo.mouse.down()
    plot.hover(position={"x": width * 0.5, "y": 30})
    plot.hover(position={"x": width * 0.75, "y": 30})
    demo.mouse.up()
    begin, end = window_of(demo)
    assert end - begin >= 10_000
    # Drawing is no click: the map shows the present.
    expect(demo.get_by_text("As it was at")).to_have_count(0)
    drawn = demo.url
    group.get_by_role("button", name="Later").press("Enter")
    demo.wait_for_url(lambda url: url != drawn)
    assert window_of(demo)[0] > begin
    moved = demo.url
    group.get_by_role("button", name="A longer window").press("Enter")
    demo.wait_for_url(lambda url: url != moved)
    assert window_of(demo)[1] - window_of(demo)[0] == pytest.approx(2 * (end - begin), abs=4)
    group.get_by_role("button", name="Whole").click()
    demo.wait_for_url(lambda url: "window=all" in url)
    group.get_by_role("button", name="Follow").click()
    demo.wait_for_url(lambda url: "window" not in url)
