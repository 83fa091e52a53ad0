"""Finding attempts, nodes and waiting pods, the table of nodes, and what is in the address."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from kubestow.web.protocol import AttemptRow

pytestmark = pytest.mark.slow

UNSCHEDULABLE = 3
Serve = Any
MakeCluster = Any


def attempt(number: int, pod: str, node: str = "") -> AttemptRow:
    result = "scheduled" if node else "unschedulable"
    return AttemptRow(number, 1_700_000_000_000, pod, node, result, 0 if node else 1, 1, "", 0, 1)


def test_attempts_are_filtered_and_the_filter_is_in_the_address(
    page: Page, serve: Serve, make_cluster: MakeCluster
) -> None:
    server = serve(make_cluster(nodes=3, pods_per_node=1, waiting=2))
    page.goto(server.address)
    rows = page.get_by_role("list", name="Attempts").get_by_role("listitem")
    expect(page.get_by_text("No attempts yet")).to_be_visible()
    server.publish(
        attempts=[
            attempt(1, "demo/a", "node-0"),
            attempt(2, "demo/b"),
            attempt(3, "shop/c", "node-1"),
        ]
    )
    expect(rows).to_have_count(3)
    page.get_by_role("button", name="Failed").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("b demo")
    expect(page).to_have_url(re.compile("attempts=failed"))
    page.reload()
    # A new page has no attempts of before; those that come are filtered.
    expect(page.get_by_role("button", name="Failed")).to_have_attribute("aria-pressed", "true")
    server.publish(attempts=[attempt(4, "demo/d", "node-2"), attempt(5, "demo/e")])
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("e demo")
    page.get_by_role("button", name="All", exact=True).click()
    page.get_by_label("Find attempts by pod or owner").fill("replicaset/WEB")
    expect(rows).to_have_count(2)
    page.get_by_label("Namespace").select_option("demo")
    page.get_by_label("Find attempts by pod or owner").fill("d")
    expect(rows).to_have_count(2)
    expect(page).to_have_url(re.compile("namespace=demo"))


def test_waiting_pods_are_grouped_by_owner(
    page: Page, serve: Serve, make_cluster: MakeCluster
) -> None:
    cluster = make_cluster(nodes=2, pods_per_node=1, waiting=7)
    cluster.set_pods([cluster.pod("shop/alone", place=UNSCHEDULABLE, owner=0)])
    page.goto(serve(cluster).address)
    page.get_by_role("button", name="By owner").click()
    owners = page.get_by_role("list", name="Owners of waiting pods").get_by_role("listitem")
    expect(owners).to_have_text(
        ["web demo\N{MULTIPLICATION SIGN}7", "alone shop\N{MULTIPLICATION SIGN}1"]
    )
    owners.first.click()
    pods = page.get_by_role("list", name="Waiting pods").get_by_role("listitem")
    expect(pods).to_have_count(7)
    page.reload()
    expect(pods).to_have_count(7)
    page.get_by_role("button", name="demo/ReplicaSet/web").click()
    expect(owners).to_have_count(2)


def test_nodes_are_found_on_the_map_and_in_the_table(demo: Page) -> None:
    field = demo.get_by_label("Find nodes by name, label or taint")
    field.fill("zone-a usual")
    expect(demo.locator(".node-find")).to_contain_text("2 nodes")
    demo.get_by_role("button", name="Table").click()
    rows = demo.get_by_role("table", name="Nodes").get_by_role("rowheader")
    expect(rows).to_have_text(["node-0", "node-3"])
    field.fill(":noschedule")
    expect(rows).to_have_text(["gpu-0"])
    demo.reload()
    expect(rows).to_have_text(["gpu-0"])
    field.fill("no such node")
    expect(demo.get_by_text("No node is like this")).to_be_visible()
    demo.get_by_role("button", name="Map").click()


def test_the_table_is_sorted_by_any_column_and_saved(
    page: Page, serve: Serve, make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_cluster(nodes=12, pods_per_node=2)
    cluster.set_nodes([cluster.node(0, 2, name='=1+1,"x"', taints=("gpu=a100:NoSchedule",))])
    page.goto(serve(cluster).address)
    page.get_by_role("button", name="Table").click()
    table = page.get_by_role("table", name="Nodes")
    heads = table.get_by_role("columnheader")
    expect(heads).to_have_text(
        ["Name▲", "zone", "pool", "Condition", "cpu", "memory", "pods", "Taints", "Age"]
    )
    names = table.get_by_role("rowheader")
    expect(names.nth(1)).to_have_text("node-1")
    expect(names.nth(2)).to_have_text("node-2")
    cpu = table.get_by_role("columnheader", name="cpu")
    cpu.get_by_role("button").click()
    expect(cpu).to_have_attribute("aria-sort", "ascending")
    cpu.get_by_role("button").click()
    expect(cpu).to_have_attribute("aria-sort", "descending")
    # Node 8 has 96 of 100 steps, the most of these twelve.
    expect(names.first).to_have_text("node-8")
    expect(page).to_have_url(re.compile("sort=-cpu"))
    page.reload()
    expect(names.first).to_have_text("node-8")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    download.value.save_as(tmp_path / "nodes.csv")
    saved = (tmp_path / "nodes.csv").read_text(encoding="utf-8")
    head, *rows = csv.reader(saved.splitlines())
    assert head[0] == "name"
    assert len(rows) == 12
    # What a spreadsheet would compute is marked as text.
    assert ['\'=1+1,"x"', "gpu=a100:NoSchedule"] in [[row[0], row[-2]] for row in rows]


def test_the_table_is_used_with_the_keyboard_alone(
    page: Page, serve: Serve, make_cluster: MakeCluster
) -> None:
    page.goto(serve(make_cluster(nodes=300, pods_per_node=1)).address)
    page.get_by_role("button", name="Table").click()
    table = page.get_by_role("table", name="Nodes")
    table.get_by_role("button", name="Age").focus()
    page.keyboard.press("Tab")
    expect(table.get_by_role("row", name="node-0 zone")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(table.get_by_role("row", name="node-1 zone")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Node node-1 ready")).to_be_focused()
    page.keyboard.press("Escape")
    expect(table.get_by_role("row", name="node-1 zone")).to_be_focused()
    page.keyboard.press("End")
    expect(table.get_by_role("row", name="node-299 zone")).to_be_focused()


# The colours of the legend, once they are others than these.
LEGEND = """before => {
  const drawn = document.querySelector(".legend canvas").getContext("2d");
  const data = [...drawn.getImageData(0, 0, 101, 1).data];
  return data.some((value, index) => value !== before[index]) && data;
}"""


def test_text_on_nodes_is_readable_at_every_share(
    page: Page, serve: Serve, make_cluster: MakeCluster
) -> None:
    """The colours of the legend are those of nodes; black or white is written on them."""
    page.goto(serve(make_cluster(nodes=2, pods_per_node=1)).address)
    palettes: list[list[int]] = [[0] * 404]
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_attribute("data-theme", scheme)
        # The legend is drawn after the theme has changed.
        found = page.wait_for_function(LEGEND, arg=palettes[-1])
        palettes.append(found.json_value())
        data = palettes[-1]
        colours = [data[at : at + 3] for at in range(0, len(data), 4)]
        assert len(colours) == 101
        assert min(map(_best_contrast, colours)) >= 4.5


def _best_contrast(colour: list[int]) -> float:
    channels = [value / 255 for value in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return max(1.05 / (luminance + 0.05), (luminance + 0.05) / 0.05)
