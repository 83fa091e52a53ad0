"""The page of `kubestow demo` in a real browser: a living cluster, decisions, and all forms."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.slow

ADDRESS = re.compile(r"http://\S+/page/\S*")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a demo in a process of its own, five times as fast as the clock."""
    command = [sys.executable, "-m", "kubestow", "demo", "--page", "--speed", "5"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        found = (ADDRESS.search(line) for line in process.stdout)
        yield next(filter(None, found))[0]
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture
def demo(page: Page, address: str) -> Page:
    page.goto(address)
    expect(page.locator("header").get_by_role("status")).to_have_text("live")
    return page


def node_list(page: Page):
    page.get_by_role("button", name="Table").click()
    return page.get_by_role("list", name="Nodes:")


def act(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def open_scored(page: Page):
    """The newest attempt with scores; there are none where only one node fits."""
    placed = page.get_by_role("list", name="Attempts").get_by_role("listitem")
    placed = placed.filter(has_text=re.compile(r"batch-.*→", re.DOTALL))
    detail = page.get_by_role("complementary", name="Details")
    for index in range(placed.count()):
        placed.nth(index).click()
        expect(detail.locator(".lead, .nothing")).to_be_visible()
        if detail.get_by_text("Scores").count():
            return detail
        page.keyboard.press("Escape")
    pytest.fail("no attempt has scores")


def test_attempts_appear_by_themselves(demo: Page) -> None:
    attempts = demo.get_by_role("list", name="Attempts")
    expect(attempts.get_by_text("→").first).to_be_visible()
    newest = attempts.get_by_role("listitem").first
    before = newest.inner_text()
    expect(newest).not_to_have_text(before)


def test_a_decision_is_opened_with_scores_and_rejections(demo: Page) -> None:
    demo.get_by_role("button", name="❚❚ Pause").click()
    detail = open_scored(demo)
    expect(detail.get_by_role("heading", name="Attempt batch-")).to_be_focused()
    expect(detail.locator(".bar-row.chosen")).to_have_count(1)
    expect(detail.get_by_text("NodeResourcesBalancedAllocation", exact=True)).to_be_visible()
    # Its taint keeps pods off the node with GPUs.
    detail.get_by_text("node(s) had untolerated taint(s)").click()
    expect(detail.get_by_role("button", name="gpu-0")).to_be_visible()
    expect(demo.locator(".legend")).to_contain_text("does not fit the opened pod")
    demo.get_by_role("button", name="▶ Resume").click()
    expect(demo.get_by_role("button", name="❚❚ Pause")).to_be_visible()


def test_a_waiting_pod_is_opened_with_what_would_place_it(demo: Page) -> None:
    demo.locator('[data-place="3"]').click()
    demo.get_by_role("list", name="Waiting pods").get_by_text("scratch-").first.click()
    detail = demo.get_by_role("complementary", name="Details")
    expect(detail.get_by_role("heading", name="Pod scratch-")).to_be_visible()
    suggestion = detail.get_by_text(re.compile("label .* with disk=nvme"))
    suggestion.click()
    expect(detail.locator("pre").first).to_contain_text('"op": "add"')


def test_pods_and_nodes_are_added_by_forms(demo: Page) -> None:
    demo.get_by_role("button", name="Add nodes…").click()
    dialog = demo.get_by_role("dialog", name="Add nodes")
    dialog.get_by_label("Kind of node").select_option(label="NVMe disk")
    dialog.get_by_label("How many").fill("2")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(demo.get_by_text("added 2 nodes")).to_be_visible()
    # The pods that needed such a node are placed.
    nodes = node_list(demo)
    expect(nodes).to_contain_text("node-10")
    demo.get_by_role("button", name="Add pods…").click()
    dialog = demo.get_by_role("dialog", name="Add pods")
    dialog.get_by_label("Template").select_option("cache")
    dialog.get_by_label("How many").fill("1")
    dialog.get_by_label("Name", exact=True).fill("mine")
    dialog.get_by_label("CPU, each").fill("much")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text('"much" is no amount')
    dialog.get_by_label("CPU, each").fill("100m")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog).to_have_count(0)
    demo.get_by_role("searchbox").fill("mine-")
    expect(demo.get_by_role("list", name="Pods with this name")).to_contain_text("mine-")


def test_a_pod_is_added_from_yaml_with_the_keyboard_alone(demo: Page) -> None:
    demo.get_by_role("button", name="Add pods…").focus()
    demo.keyboard.press("Enter")
    dialog = demo.get_by_role("dialog", name="Add pods")
    expect(dialog).to_be_visible()
    demo.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(demo.get_by_role("button", name="Add pods…")).to_be_focused()
    demo.keyboard.press("Enter")
    # The dialog puts the focus on its first button, but not at once.
    expect(dialog.get_by_role("button", name="Template")).to_be_focused()
    demo.keyboard.press("Tab")
    expect(dialog.get_by_role("button", name="YAML")).to_be_focused()
    demo.keyboard.press("Enter")
    dialog.get_by_label("One or several documents").focus()
    demo.keyboard.press("Control+A")
    demo.keyboard.insert_text(
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "typed", "namespace": "demo"},'
        ' "spec": {"containers": [{"name": "main", "image": "i"}]}}'
    )
    demo.keyboard.press("Tab")
    demo.keyboard.press("Tab")
    demo.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    demo.get_by_role("searchbox").fill("typed")
    expect(demo.get_by_role("list", name="Pods with this name")).to_contain_text("typed")


def test_a_node_is_cordoned_and_drained(demo: Page) -> None:
    nodes = node_list(demo)
    nodes.get_by_text("node-3", exact=True).click()
    act(demo, "Cordon")
    expect(nodes.get_by_role("listitem").filter(has_text="node-3")).to_contain_text("cordoned")
    act(demo, "Drain")
    expect(demo.get_by_text('drained "node-3"')).to_be_visible()
    expect(demo.get_by_text("No pod is on this node")).to_be_visible()
    act(demo, "Uncordon")
    expect(nodes.get_by_role("listitem").filter(has_text="node-3")).to_contain_text("ready")


def test_a_node_fails_and_is_repaired(demo: Page) -> None:
    nodes = node_list(demo)
    nodes.get_by_text("node-8", exact=True).click()
    act(demo, "Fail")
    demo.get_by_label("Speed").select_option("60")
    line = nodes.get_by_role("listitem").filter(has_text="node-8")
    expect(line).to_contain_text("not ready")
    act(demo, "Repair")
    expect(line.get_by_text("ready", exact=True)).to_be_visible()
    demo.get_by_label("Speed").select_option("5")


def test_the_slider_shows_the_cluster_as_it_was(demo: Page) -> None:
    expect(demo.get_by_role("list", name="Attempts").get_by_text("→").first).to_be_visible()
    demo.get_by_role("button", name="Back to the attempt before").click()
    expect(demo.get_by_text("As it was at")).to_be_visible()
    expect(demo.get_by_role("heading", name="Attempt")).to_be_visible()
    expect(demo.get_by_role("button", name="Add pods…")).to_have_count(0)
    demo.get_by_label("Time shown").focus()
    demo.keyboard.press("End")
    expect(demo.get_by_text("As it was at")).to_have_count(0)
    expect(demo.get_by_role("button", name="Add pods…")).to_be_visible()


def test_a_cluster_is_saved_and_loaded(demo: Page, tmp_path: Path) -> None:
    with demo.expect_download() as download:
        demo.get_by_role("button", name="Save").click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    kinds = {entry["kind"] for entry in json.loads(saved.read_text(encoding="utf-8"))["items"]}
    assert {"Node", "Pod", "Deployment"} <= kinds
    node = tmp_path / "node.yaml"
    node.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: only}\n"
        "status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}\n",
        encoding="utf-8",
    )
    demo.get_by_role("button", name="Load…").click()
    dialog = demo.get_by_role("dialog", name="Load a cluster or a scenario")
    dialog.get_by_label("A saved cluster, manifests or a scenario, YAML or JSON").set_input_files(
        node
    )
    expect(dialog.get_by_label("Or as text")).to_have_value(re.compile("only"))
    dialog.get_by_role("button", name="Replace the cluster").click()
    expect(dialog).to_have_count(0)
    expect(demo.locator("header")).to_contain_text("1 node")
