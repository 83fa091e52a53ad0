"""A plan of evictions on the page of a demo, in a real browser."""

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser.test_groups import violations

pytestmark = pytest.mark.slow

# The pods are on their nodes already: a plan asked for at once finds each on one of its own.
WORKLOAD = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: a}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}
- apiVersion: v1
  kind: Node
  metadata: {name: b}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-1
    namespace: default
    uid: web-1
    labels: {app: web}
    ownerReferences:
    - {apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}
  spec: {nodeName: a, containers: [{name: c, image: c, resources: {requests: {cpu: "1"}}}]}
  status: {phase: Running}
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-2
    namespace: default
    uid: web-2
    labels: {app: web}
    ownerReferences:
    - {apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}
  spec: {nodeName: b, containers: [{name: c, image: c, resources: {requests: {cpu: "1"}}}]}
  status: {phase: Running}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: web, namespace: default, uid: web}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec:
        containers: [{name: c, image: c, resources: {requests: {cpu: "1"}}}]
"""


def open_plan(demo: Page):
    demo.get_by_role("button", name="Load…").click()
    dialog = demo.get_by_role("dialog", name="Load a cluster or a scenario")
    dialog.get_by_label("Or as text").fill(WORKLOAD)
    dialog.get_by_role("button", name="Replace the cluster").click()
    expect(dialog).to_have_count(0)
    expect(demo.locator("header")).to_contain_text("2 pods")
    demo.get_by_role("button", name="Rebalance…").click()
    return demo.get_by_role("dialog", name="Rebalance")


def test_a_plan_is_shown_step_by_step(demo: Page) -> None:
    dialog = open_plan(demo)
    dialog.get_by_label("Goal").fill("empty-nodes")
    dialog.get_by_role("button", name="Find a plan").click()
    expect(dialog.get_by_role("status")).to_contain_text("2 nodes in use before, 1 after 1 move")
    picture = dialog.get_by_role("img", name="Nodes before and after")
    expect(picture.locator(".move")).to_have_count(1)
    expect(picture).to_contain_text("50 %")
    expect(picture).to_contain_text("0 %, closed")
    assert violations(demo) == []
    dialog.get_by_label("One step back").click()
    expect(picture.locator(".move")).to_have_count(0)
    expect(dialog.locator("figcaption")).to_contain_text("Step 1 of 2: cordon")
    dialog.get_by_label("Step of the plan").press("End")
    expect(dialog.locator("figcaption")).to_contain_text("Step 2 of 2: evict default/web-")
    # Nothing was evicted, nothing closed.
    dialog.get_by_role("button", name="Close").click()
    expect(demo.locator("header")).to_contain_text("2 pods")


def test_a_wrong_goal_is_named(demo: Page) -> None:
    dialog = open_plan(demo)
    dialog.get_by_label("Goal").fill("best")
    dialog.get_by_role("button", name="Find a plan").click()
    expect(dialog.get_by_role("alert")).to_contain_text('there is no goal "best"')
    dialog.get_by_label("Goal").fill("balance")
    dialog.get_by_role("button", name="Find a plan").click()
    expect(dialog.get_by_role("status")).to_contain_text("no move helps")
