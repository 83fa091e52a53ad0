"""Evictions, groups and devices in a real browser, and what axe-core finds on the page."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.slow

AXE = Path(__file__).parents[3] / "web/node_modules/axe-core/axe.min.js"
RUN_AXE = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => id + ": " + nodes.map((node) => node.html).join(" ").slice(0, 400));
}"""
# What each view has when it has been read.
VIEWS = {
    "evictions": "No pod was evicted since|On the map:",
    "groups": "No pod is a member of a group|members placed",
    "scheduler": "as kube-scheduler",
    "node/node-0": "Node node-0.*Labels",
}
SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: node-0
  pool: {name: node-0, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-a}, {name: gpu-b}]
"""
Serve = Any
MakeCluster = Any


def violations(page: Page) -> list[str]:
    if not AXE.exists():
        pytest.skip("no axe-core: scripts/page-tools installs it where it can")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return page.evaluate(RUN_AXE)


def test_victims_and_their_replacements_are_listed(demo: Page) -> None:
    demo.get_by_role("button", name="Evictions").click()
    region = demo.get_by_role("region", name="Evictions")
    demo.get_by_role("button", name="Add pods…").click()
    dialog = demo.get_by_role("dialog", name="Add pods")
    dialog.get_by_label("Template").select_option("urgent")
    dialog.get_by_label("How many").fill("14")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(region.locator("li").first).to_contain_text("for a more important pod")
    expect(region.locator("li").first.get_by_role("button").first).to_be_visible()
    expect(demo.locator(".legend")).to_contain_text("evicted from here")
    expect(demo).to_have_url(re.compile("#/evictions$"))


def test_devices_of_a_node_are_listed(demo: Page) -> None:
    demo.get_by_role("button", name="Add nodes…").click()
    dialog = demo.get_by_role("dialog", name="Add nodes")
    dialog.get_by_role("button", name="YAML").click()
    dialog.get_by_label("One or several documents").fill(SLICE)
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog).to_have_count(0)
    demo.evaluate("location.hash = '#/node/node-0'")
    devices = demo.locator(".devices li")
    expect(devices).to_have_count(2)
    expect(devices.first).to_contain_text(re.compile("gpu-a.*free"))


def test_a_group_is_one_thing(page: Page, serve: Serve, make_cluster: MakeCluster) -> None:
    cluster = make_cluster(nodes=4, pods_per_node=0, waiting=0)
    cluster.set_pods(
        [
            cluster.pod("demo/m-0", node=1),
            cluster.pod("demo/m-1", node=1),
            cluster.pod("demo/m-2", place=3),
        ]
    )
    row = {
        "namespace": "demo",
        "name": "train",
        "members": 3,
        "placed": 2,
        "minCount": 3,
        "exists": True,
    }
    server = serve(cluster)
    server.documents["groups"] = {"groups": [row], "count": 1}
    server.documents["groups/demo/train"] = {
        "row": row,
        "topologyKey": "rack",
        "condition": "2 of 3 members fit",
        "pods": [["demo/m-0"], ["demo/m-1"], ["demo/m-2"]],
    }
    page.goto(server.address)
    page.get_by_role("button", name="Groups").click()
    line = page.get_by_role("list", name="Groups of pods").get_by_role("listitem")
    expect(line).to_contain_text("2 of 3 members placed, 3 are needed together")
    line.click()
    region = page.get_by_role("region", name="Group train")
    expect(region).to_contain_text("2 of 3 members fit")
    expect(region).to_contain_text("node-1 \N{MULTIPLICATION SIGN}2")
    expect(region).to_contain_text("5 Insufficient cpu")
    expect(page.get_by_role("list", name="Members of train").get_by_role("listitem")).to_have_count(
        3
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing_serious(demo: Page, scheme: Any, width: int) -> None:
    demo.set_viewport_size({"width": width, "height": 850})
    demo.emulate_media(color_scheme=scheme)
    assert violations(demo) == []
    demo.get_by_role("button", name="Table").click()
    demo.get_by_role("button", name="By owner").click()
    assert violations(demo) == []
    details = demo.get_by_role("complementary", name="Details")
    for view, shown in VIEWS.items():
        demo.evaluate(f"location.hash = '#/{view}'")
        expect(details).to_contain_text(re.compile(shown))
        assert violations(demo) == [], view
    demo.evaluate("location.hash = '#/'")
    demo.get_by_role("searchbox", name="Find pods").fill("scratch-")
    demo.get_by_role("list", name="Pods with this name").get_by_role("listitem").first.click()
    suggestion = demo.get_by_text(re.compile("label .* with disk=nvme")).first
    suggestion.click()
    assert violations(demo) == []
    demo.locator("summary").filter(has_text="didn't match").first.click()
    expect(demo.locator(".evidence li").first).to_be_visible()
    assert violations(demo) == []
    demo.keyboard.press("Escape")
    demo.get_by_role("button", name="Add pods…").click()
    expect(demo.get_by_role("dialog", name="Add pods")).to_be_visible()
    assert violations(demo) == []


def test_an_attempt_has_nothing_serious(demo: Page) -> None:
    demo.get_by_role("button", name="Placed", exact=True).click()
    attempts = demo.get_by_role("list", name="Attempts").get_by_role("listitem")
    attempts.filter(has_text="→").first.click()
    expect(demo.get_by_role("heading", name="Attempt")).to_be_visible()
    expect(demo.get_by_role("button", name="The pod as of now")).to_be_visible()
    assert violations(demo) == []
