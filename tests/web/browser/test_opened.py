"""What is opened on the page of a demo, in a real browser: what a pod asks for, evidence, YAML,
events, and changes that are carried out."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect
from tests.web.browser.test_demo import add_yaml, pod, spec

pytestmark = pytest.mark.slow

Wait = Callable[[str], None]
Paused = Callable[[], AbstractContextManager[None]]


def detail_of(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Details")


def open_pod(page: Page, text: str) -> Locator:
    page.get_by_role("searchbox", name="Find pods").fill(text)
    page.get_by_role("list", name="Pods with this name").get_by_role("listitem").filter(
        has_text=text
    ).first.click()
    expect(page.get_by_role("heading", name=re.compile(f"Pod {text}"))).to_be_visible()
    return detail_of(page)


def add_pods(page: Page, template: str, *, name: str, count: int = 1) -> None:
    page.get_by_role("button", name="Add pods…").click()
    dialog = page.get_by_role("dialog", name="Add pods")
    dialog.get_by_label("Template").select_option(template)
    dialog.get_by_label("How many").fill(str(count))
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog).to_have_count(0)


def test_a_pod_shows_what_it_asks_for_and_each_rejection_its_evidence(demo: Page) -> None:
    detail = open_pod(demo, "database-")
    expect(detail.get_by_text("app=database")).to_be_visible()
    reason = detail.locator("summary").filter(has_text="Insufficient memory")
    expect(reason).to_contain_text("needs 48Gi memory, the most free is")
    reason.click()
    evidence = reason.locator("..").locator(".evidence li").first
    expect(evidence).to_contain_text(re.compile(r"needs 48Gi memory, [\d.]+Gi of \d+Gi free"))
    expect(evidence.get_by_role("button", name="node-").first).to_be_visible()


def test_nodes_that_almost_fit_are_listed_and_marked(demo: Page, paused: Paused) -> None:
    detail = open_pod(demo, "scratch-")
    nearest = detail.locator(".nearest li")
    expect(nearest).to_have_count(5)
    expect(nearest.first).to_contain_text("needs disk=nvme, has no such label")
    expect(demo.locator(".legend")).to_contain_text("almost fits")
    with paused():
        name = nearest.first.get_by_role("button").inner_text()
        nearest.first.get_by_role("button").click()
    expect(demo.get_by_role("heading", name=f"Node {name}")).to_be_visible()


def test_yaml_and_commands_are_copied(
    demo: Page, context: BrowserContext, wait_heard: Wait
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    detail = open_pod(demo, "scratch-")
    detail.get_by_text("YAML", exact=True).click()
    detail.get_by_role("button", name="Copy the YAML").click()
    wait_heard("^Copied$")
    text = demo.evaluate("navigator.clipboard.readText()")
    assert text.startswith("apiVersion: v1\nkind: Pod\n")
    assert "disk: nvme" in text
    detail.get_by_text(re.compile("label .* with disk=nvme")).click()
    detail.get_by_role("button", name="Copy the kubectl commands").click()
    demo.wait_for_function("async () => (await navigator.clipboard.readText()).includes('kubectl')")
    text = demo.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(r"kubectl label nodes \S+ disk=nvme", text)


def test_events_of_a_waiting_pod_are_shown(demo: Page) -> None:
    add_pods(demo, "database", name="large")
    detail = open_pod(demo, "large-")
    expect(detail.locator(".event-list")).to_contain_text("FailedScheduling")
    expect(detail.locator(".event-list")).to_contain_text("nodes are available")


def test_a_gated_pod_is_released(demo: Page, wait_heard: Wait) -> None:
    add_pods(demo, "gated", name="held")
    detail = open_pod(demo, "held-")
    expect(detail.get_by_text("gated", exact=True).first).to_be_visible()
    expect(detail.get_by_text("kubestow.io/demo", exact=True)).to_be_visible()
    detail.get_by_role("button", name="Release").click()
    wait_heard('released "held-')
    expect(detail.get_by_role("button", name="Release")).to_have_count(0)
    expect(detail.get_by_text("kubestow.io/demo", exact=True)).to_have_count(0)


def test_deleting_is_asked_about_first(demo: Page) -> None:
    add_pods(demo, "gated", name="unwanted")
    detail = open_pod(demo, "unwanted-")
    detail.get_by_role("button", name="Delete…").click()
    question = demo.get_by_role("dialog", name=re.compile("Delete the pod unwanted-"))
    expect(question).to_contain_text("Nothing makes it again.")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    demo.keyboard.press("Enter")
    expect(question).to_have_count(0)
    expect(detail.get_by_role("button", name="Delete…")).to_be_visible()
    detail.get_by_role("button", name="Delete…").click()
    question.get_by_role("button", name="Delete").click()
    expect(demo.get_by_role("list", name="Pods with this name")).not_to_contain_text("unwanted")


def test_the_workload_of_a_pod_is_scaled(own_demo: Page, wait_heard: Wait) -> None:
    detail = open_pod(own_demo, "cache-")
    detail.get_by_role("button", name="Scale cache…").click()
    dialog = own_demo.get_by_role("dialog", name="Scale Deployment cache")
    dialog.get_by_label("Pods").fill("1")
    dialog.get_by_role("button", name=re.compile("Delete . pods?")).click()
    wait_heard('scaled Deployment "cache" to 1 pod')
    own_demo.get_by_role("searchbox", name="Find pods").fill("cache-")
    pods = own_demo.get_by_role("list", name="Pods with this name")
    expect(pods.get_by_role("listitem")).to_have_count(1)


def test_a_suggestion_is_applied_and_the_pod_is_placed(
    own_demo: Page, paused: Paused, wait_heard: Wait
) -> None:
    detail = open_pod(own_demo, "scratch-")
    suggestion = detail.get_by_text(re.compile(r"label (\S+) with disk=nvme"))
    with paused():
        node = re.findall(r"label (\S+) with", suggestion.inner_text())[0]
        suggestion.click()
        detail.get_by_role("button", name="Apply", exact=True).click()
    wait_heard("made 1 change")
    expect(detail.locator(".facts-list")).to_contain_text(node)
    expect(detail.locator("[data-title]")).to_contain_text("on a node")


def test_score_bars_begin_where_nodes_differ(demo: Page) -> None:
    # It fits on nodes of which more and less is used.
    add_yaml(demo, pod("scored", spec("10m")))
    detail = open_pod(demo, "scored")
    expect(
        detail.get_by_text(re.compile(r"Bars begin at \d+, which all of them have"))
    ).to_be_visible()
    # Both at once: the explanation is asked for again when the pod was tried.
    found = detail.locator(".bar-row").evaluate_all(
        """rows => rows.map(row => {
          const track = row.querySelector(".track");
          const parts = [...track.children].map(part => part.offsetWidth);
          const width = parts.reduce((sum, width) => sum + width, 0) / track.offsetWidth;
          return [Number(row.querySelector("b.number").textContent), width];
        })"""
    )
    totals, widths = zip(*found, strict=True)
    # The node with the lowest total has an empty bar or a short one; the best one fills it.
    assert list(totals) == sorted(totals, reverse=True)
    assert widths[0] > 0.97
    assert list(widths) == sorted(widths, reverse=True)
    assert widths[-1] < 0.75 or totals[0] == totals[-1]
