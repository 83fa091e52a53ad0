"""The page of `kubestow demo` in a real browser: a living cluster, decisions, and all forms."""

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.slow

Wait = Callable[[str], None]
Paused = Callable[[], AbstractContextManager[None]]


def node_list(page: Page):
    page.get_by_role("button", name="Table").click()
    return page.get_by_role("table", name="Nodes")


def act(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def confirm(page: Page, title: str, answer: str) -> None:
    """The question before something is destroyed, answered."""
    question = page.get_by_role("dialog", name=title)
    question.get_by_role("button", name=answer, exact=True).click()
    expect(question).to_have_count(0)


def add_yaml(page: Page, text: str) -> None:
    page.get_by_role("button", name="Add pods…").click()
    dialog = page.get_by_role("dialog", name="Add pods")
    dialog.get_by_role("button", name="YAML").click()
    dialog.get_by_label("One or several documents").fill(text)
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog).to_have_count(0)


def spec(cpu: str) -> str:
    request = f"resources: {{requests: {{cpu: {cpu}}}}}"
    return f"containers: [{{name: main, image: i, {request}}}]"


def pod(name: str, spec: str) -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"


def test_attempts_appear_by_themselves(demo: Page) -> None:
    attempts = demo.get_by_role("list", name="Attempts")
    expect(attempts.get_by_text("→").first).to_be_visible()
    newest = attempts.get_by_role("listitem").first
    before = newest.inner_text()
    expect(newest).not_to_have_text(before)


def test_a_decision_is_opened_with_scores_and_rejections(demo: Page) -> None:
    # It fits on nodes of which more and less is used, so their scores differ.
    add_yaml(demo, pod("scored", spec("10m")))
    demo.get_by_label("Find attempts by pod or owner").fill("scored")
    attempts = demo.get_by_role("list", name="Attempts").get_by_role("listitem")
    attempts.filter(has_text="→").first.click()
    detail = demo.get_by_role("complementary", name="Details")
    expect(detail.get_by_role("heading", name="Attempt scored")).to_be_focused()
    expect(detail.get_by_role("heading", name="Scores of")).to_be_visible()
    expect(detail.locator(".bar-row.chosen")).to_have_count(1)
    expect(detail.get_by_text("NodeResourcesFit", exact=True)).to_be_visible()
    # Its taint keeps pods off the node with GPUs.
    detail.get_by_text("node(s) had untolerated taint(s)").click()
    expect(detail.get_by_role("button", name="gpu-0")).to_be_visible()
    expect(demo.locator(".legend")).to_contain_text("does not fit the opened pod")


def test_a_cluster_that_is_paused_stands_still_until_it_is_resumed(
    demo: Page, paused: Paused
) -> None:
    header = demo.locator("header")
    with paused():
        expect(header).to_contain_text("paused")
        expect(demo.get_by_role("button", name="❚❚ Pause")).to_have_count(0)
    expect(header).not_to_contain_text("paused")


def test_a_waiting_pod_is_opened_with_what_would_place_it(demo: Page, paused: Paused) -> None:
    with paused():
        demo.locator('[data-place="3"]').click()
        demo.get_by_role("list", name="Waiting pods").get_by_text("scratch-").first.click()
        detail = demo.get_by_role("complementary", name="Details")
        expect(detail.get_by_role("heading", name="Pod scratch-")).to_be_visible()
        suggestion = detail.get_by_text(re.compile("label .* with disk=nvme"))
        suggestion.click()
        expect(detail.locator("pre").first).to_contain_text("kubectl label nodes")
        detail.get_by_text("JSON Patch").first.click()
        expect(detail.locator("pre").nth(1)).to_contain_text('"op": "add"')


def test_pods_and_nodes_are_added_by_forms(own_demo: Page, wait_heard: Wait) -> None:
    own_demo.get_by_role("button", name="Add nodes…").click()
    dialog = own_demo.get_by_role("dialog", name="Add nodes")
    dialog.get_by_label("Kind of node").select_option(label="NVMe disk")
    dialog.get_by_label("How many").fill("2")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog).to_have_count(0)
    wait_heard("added 2 nodes")
    # The pods that needed such a node are placed.
    nodes = node_list(own_demo)
    expect(nodes).to_contain_text("node-10")
    own_demo.get_by_role("button", name="Add pods…").click()
    dialog = own_demo.get_by_role("dialog", name="Add pods")
    dialog.get_by_label("Template").select_option("cache")
    dialog.get_by_label("How many").fill("1")
    dialog.get_by_label("Name", exact=True).fill("mine")
    dialog.get_by_label("CPU, each").fill("much")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text('"much" is no amount')
    dialog.get_by_label("CPU, each").fill("100m")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog).to_have_count(0)
    own_demo.get_by_role("searchbox", name="Find pods").fill("mine-")
    expect(own_demo.get_by_role("list", name="Pods with this name")).to_contain_text("mine-")


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
    demo.get_by_role("searchbox", name="Find pods").fill("typed")
    expect(demo.get_by_role("list", name="Pods with this name")).to_contain_text("typed")


def test_a_node_is_cordoned_and_drained(demo: Page, wait_heard: Wait) -> None:
    nodes = node_list(demo)
    nodes.get_by_text("node-3", exact=True).click()
    act(demo, "Cordon")
    expect(nodes.get_by_role("row").filter(has_text="node-3")).to_contain_text("cordoned")
    act(demo, "Drain…")
    confirm(demo, "Drain node-3?", "Drain")
    wait_heard('drained "node-3"')
    expect(demo.get_by_text("No pod is on this node")).to_be_visible()
    act(demo, "Uncordon")
    expect(nodes.get_by_role("row").filter(has_text="node-3")).to_contain_text("ready")


def test_a_node_fails_and_is_repaired(demo: Page) -> None:
    nodes = node_list(demo)
    nodes.get_by_text("node-8", exact=True).click()
    act(demo, "Fail…")
    confirm(demo, "Let node-8 fail?", "Fail")
    demo.get_by_label("Speed").select_option("60")
    line = nodes.get_by_role("row").filter(has_text="node-8")
    expect(line).to_contain_text("not ready")
    act(demo, "Repair")
    expect(line.get_by_text("ready", exact=True)).to_be_visible()
    demo.get_by_label("Speed").select_option("5")


def test_the_slider_shows_the_cluster_as_it_was(demo: Page) -> None:
    expect(demo.get_by_role("list", name="Attempts").get_by_text("→").first).to_be_visible()
    demo.get_by_role("button", name="Back to the attempt before").click()
    expect(demo.get_by_text("As it was at")).to_be_visible()
    status = demo.locator("header").get_by_role("status")
    expect(status).to_have_text("looking back")
    expect(demo.get_by_role("heading", name="Attempt")).to_be_visible()
    expect(demo.get_by_role("button", name="Add pods…")).to_have_count(0)
    demo.get_by_label("Time shown").focus()
    demo.keyboard.press("End")
    expect(demo.get_by_text("As it was at")).to_have_count(0)
    expect(status).to_have_text("live")
    expect(demo.get_by_role("button", name="Add pods…")).to_be_visible()


def test_a_cluster_is_saved_and_loaded(own_demo: Page, tmp_path: Path) -> None:
    with own_demo.expect_download() as download:
        own_demo.get_by_role("button", name="Save").click()
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
    own_demo.get_by_role("button", name="Load…").click()
    dialog = own_demo.get_by_role("dialog", name="Load a cluster or a scenario")
    dialog.get_by_label("A saved cluster, manifests or a scenario, YAML or JSON").set_input_files(
        node
    )
    expect(dialog.get_by_label("Or as text")).to_have_value(re.compile("only"))
    dialog.get_by_role("button", name="Replace the cluster").click()
    expect(dialog).to_have_count(0)
    expect(own_demo.locator("header")).to_contain_text("1 node")


def test_a_suggested_move_is_carried_out_after_a_question(own_demo: Page, wait_heard: Wait) -> None:
    def node(name: str) -> str:
        allocatable = "allocatable: {cpu: '4', memory: 8Gi, pods: '110'}"
        return (
            f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {{{allocatable}}}\n"
        )

    held = pod("held", f"nodeName: beta, {spec('2500m')}")
    template = f"{{metadata: {{labels: {{app: one}}}}, spec: {{{spec('1500m')}}}}}"
    moved = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: one}\n"
        f"spec: {{selector: {{matchLabels: {{app: one}}}}, template: {template}}}\n"
    )
    own_demo.get_by_role("button", name="Load…").click()
    dialog = own_demo.get_by_role("dialog", name="Load a cluster or a scenario")
    dialog.get_by_label("Or as text").fill("---\n".join((node("alpha"), node("beta"), held, moved)))
    dialog.get_by_role("button", name="Replace the cluster").click()
    expect(dialog).to_have_count(0)
    nodes = node_list(own_demo)
    nodes.get_by_text("alpha", exact=True).click()
    detail = own_demo.get_by_role("complementary", name="Details")
    expect(detail).to_contain_text("one-")
    add_yaml(own_demo, pod("large", spec("3")))
    own_demo.get_by_role("searchbox", name="Find pods").fill("large")
    own_demo.get_by_role("list", name="Pods with this name").get_by_text("large").click()
    detail.get_by_text(re.compile("move the pod default/one-.* from alpha to beta")).click()
    act(own_demo, "Apply…")
    question = own_demo.get_by_role("dialog", name="Apply this change?")
    expect(question).to_contain_text("is deleted, and made again by its controller")
    question.get_by_role("button", name="Cancel").click()
    expect(question).to_have_count(0)
    act(own_demo, "Apply…")
    confirm(own_demo, "Apply this change?", "Apply")
    wait_heard('moves "one-.*" from alpha')
    nodes.get_by_text("alpha", exact=True).click()
    expect(detail).to_contain_text("large")
    expect(detail).not_to_contain_text("one-")
    expect(nodes.get_by_role("row").filter(has_text="alpha")).to_contain_text("ready")
    nodes.get_by_text("beta", exact=True).click()
    expect(detail).to_contain_text("one-")
