"""The page in a real browser, with clusters that are made up: what it shows, and how fast."""

from itertools import pairwise
from statistics import median
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from kubestow.web.protocol import AttemptRow

# From docs/reference/page.md: PLACES[0] and PLACES[3].
ACTIVE, UNSCHEDULABLE = 0, 3
FIRST_VIEW_MS_MAX = 2_000
UPDATE_MS_MAX = 100
UPDATES = 5
MEASURED = "() => performance.getEntriesByName('kubestow:%s').at(-1)?.duration ?? null"

pytestmark = pytest.mark.slow

Serve = Any
MakeCluster = Any


def place(page: Page, index: int):
    return page.locator(f'[data-place="{index}"]')


def show_table(page: Page) -> None:
    page.get_by_role("button", name="Table").click()


def test_the_first_view_has_nodes_queue_and_totals(
    page: Page, serve: Serve, make_cluster: MakeCluster
) -> None:
    server = serve(make_cluster(nodes=12, pods_per_node=3, waiting=4))
    page.goto(server.address)
    expect(page.get_by_role("status").first).to_have_text("live")
    expect(page.locator("header")).to_contain_text("12 nodes")
    expect(page.locator("header")).to_contain_text("40 pods")
    expect(place(page, UNSCHEDULABLE)).to_contain_text("4")
    expect(page.get_by_role("button", name="NodeResourcesFit 4")).to_be_visible()
    expect(page.get_by_role("list", name="Waiting pods").get_by_role("listitem")).to_have_count(4)


def test_a_batch_changes_what_is_shown(page: Page, serve: Serve, make_cluster: MakeCluster) -> None:
    cluster = make_cluster(nodes=3, pods_per_node=1, waiting=1)
    server = serve(cluster)
    page.goto(server.address)
    show_table(page)
    nodes = page.get_by_role("table", name="Nodes")
    expect(nodes.get_by_role("rowheader")).to_have_count(3)
    server.publish(
        nodes=[cluster.node(3, 0, name="added"), cluster.node(0, 2)],
        pods=[cluster.pod("demo/parked-0", node=0)],
        attempts=[
            AttemptRow(1, cluster.time_ms, "demo/parked-0", "node-0", "scheduled", 0, 0.5, "", 0, 1)
        ],
    )
    expect(nodes).to_contain_text("added")
    expect(nodes.get_by_role("row").filter(has_text="node-0")).to_contain_text("2 of 110")
    expect(page.get_by_role("list", name="Attempts")).to_contain_text("→ node-0")
    expect(page.get_by_text("No pod waits")).to_be_visible()


def test_another_resource_and_another_grouping_are_remembered(
    page: Page, serve: Serve, make_cluster: MakeCluster
) -> None:
    server = serve(make_cluster(nodes=8, pods_per_node=1))
    page.goto(server.address)
    page.get_by_label("Colour").select_option("memory")
    page.get_by_label("Group").select_option("pool")
    page.reload()
    expect(page.get_by_label("Colour")).to_have_value("memory")
    expect(page.get_by_label("Group")).to_have_value("pool")
    expect(page.locator(".legend")).to_contain_text("100 % memory")


def test_every_node_is_reached_with_the_keyboard_alone(
    page: Page, serve: Serve, make_cluster: MakeCluster
) -> None:
    server = serve(make_cluster(nodes=9, pods_per_node=2))
    page.goto(server.address)
    nodes = page.get_by_role("listbox")
    for _ in range(40):
        page.keyboard.press("Tab")
        if nodes.evaluate("element => element === document.activeElement"):
            break
    current = nodes.get_by_role("option")
    # By zone, and by number in it: zone-a has node-0, node-3 and node-6.
    expect(current).to_have_text("node-0, cpu 10 % (1.6 of 16), 2 pods, in zone-a")
    page.keyboard.press("ArrowRight")
    expect(current).to_contain_text("node-3")
    page.keyboard.press("PageDown")
    expect(current).to_contain_text("node-1")
    page.keyboard.press("End")
    expect(current).to_contain_text("node-8")
    page.keyboard.press("Home")
    expect(current).to_contain_text("node-0")
    page.keyboard.press("Enter")
    heading = page.get_by_role("heading", name="Node node-0")
    expect(heading).to_be_focused()
    page.keyboard.press("Escape")
    expect(heading).to_have_count(0)
    expect(nodes).to_be_focused()


def test_the_theme_follows_the_system_until_it_is_switched(
    page: Page, serve: Serve, make_cluster: MakeCluster
) -> None:
    server = serve(make_cluster(nodes=2, pods_per_node=1))
    page.emulate_media(color_scheme="dark")
    page.goto(server.address)
    background = "getComputedStyle(document.body).backgroundColor"
    switch = page.get_by_role("button", name="Dark theme")
    expect(switch).to_have_attribute("aria-pressed", "true")
    dark = page.evaluate(background)
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "false")
    assert page.evaluate(background) != dark
    page.reload()
    expect(switch).to_have_attribute("aria-pressed", "false")


HOSTILE = [
    '<img src=x onerror="document.title=`taken`">',
    "<script>document.title='taken'</script>",
    "\u202egnp.exe",
    "a" * 253,
    "quote\"'`${document.title='taken'}",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(
    page: Page, serve: Serve, make_cluster: MakeCluster, name: str
) -> None:
    cluster = make_cluster(nodes=2, pods_per_node=1)
    cluster.set_nodes([cluster.node(0, 1, name=name)])
    cluster.set_pods([cluster.pod(f"{name}/{name}", place=UNSCHEDULABLE)])
    server = serve(cluster)
    page.goto(server.address)
    expect(page.get_by_role("list", name="Waiting pods")).to_contain_text(name)
    show_table(page)
    page.get_by_role("table", name="Nodes").get_by_text(name, exact=True).click()
    expect(page.locator("[data-title]")).to_contain_text(name)
    expect(page.get_by_role("list", name="Pods on")).to_contain_text("web-0-0")
    assert page.title() == "kubestow"
    width = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.evaluate(width)


def test_the_page_connects_again_after_the_server_restarts(
    page: Page, serve: Serve, make_cluster: MakeCluster
) -> None:
    first = serve(make_cluster(nodes=3, pods_per_node=1))
    page.goto(first.address)
    status = page.locator("header").get_by_role("status")
    expect(status).to_have_text("live")
    first.close()
    expect(status).to_contain_text("connection lost")
    # Another server, with other nodes and lower numbers of its batches.
    second = make_cluster(nodes=7, pods_per_node=1)
    server = serve(second, port=first.port)
    expect(status).to_have_text("live")
    expect(page.locator("header")).to_contain_text("7 nodes")
    server.publish(nodes=[second.node(7, 0)])
    expect(page.locator("header")).to_contain_text("8 nodes")


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_nothing_is_wider_than_the_screen(
    page: Page, serve: Serve, make_cluster: MakeCluster, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 850})
    server = serve(make_cluster(nodes=40, pods_per_node=5, waiting=3))
    page.goto(server.address)
    expect(page.get_by_role("listbox")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_five_thousand_nodes_are_shown_and_updated_in_time(
    context: BrowserContext, page: Page, serve: Serve, make_cluster: MakeCluster
) -> None:
    """Times are those of the page's thread: how busy the machine is does not count."""
    cluster = make_cluster(nodes=5_000, pods_per_node=9, waiting=5_000)
    server = serve(cluster)
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy_ms() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        (duration_s,) = (entry["value"] for entry in metrics if entry["name"] == "TaskDuration")
        return 1000 * duration_s

    page.goto(server.address)
    page.wait_for_function(MEASURED % "first")
    expect(page.locator("header")).to_contain_text("50,000 pods")
    assert 0 < busy_ms() < FIRST_VIEW_MS_MAX
    updates: list[float] = []
    for turn in range(UPDATES):
        changed = range(turn, 5_000, 10)
        page.evaluate("performance.clearMeasures('kubestow:update')")
        before = busy_ms()
        server.publish(
            nodes=[cluster.node(number, 10) for number in changed],
            pods=[cluster.pod(f"demo/parked-{number}", node=number) for number in changed],
        )
        page.wait_for_function(MEASURED % "update")
        updates.append(busy_ms() - before)
    assert 0 < median(updates) < UPDATE_MS_MAX


# Of the colours of the legend, once it is drawn.
LIGHTNESS = """() => {
  const canvas = document.querySelector(".legend canvas");
  if (!canvas) return null;
  const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 1);
  if (data.every(value => value === 0)) return null;
  const linear = value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  return Array.from({ length: width }, (_, x) => {
    const [red, green, blue] = [0, 1, 2].map(at => linear(data[4 * x + at] / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  });
}"""


@pytest.mark.parametrize(("scheme", "sign"), [("light", -1), ("dark", 1)])
def test_the_palette_orders_by_lightness_alone(
    page: Page, serve: Serve, make_cluster: MakeCluster, scheme: Any, sign: int
) -> None:
    """People who see fewer colours read the same order. Full is far from the background."""
    page.emulate_media(color_scheme=scheme)
    page.goto(serve(make_cluster(nodes=3, pods_per_node=1)).address)
    lightness = page.wait_for_function(LIGHTNESS).json_value()
    steps = [sign * (after - before) for before, after in pairwise(lightness)]
    assert min(steps) >= 0
    assert sign * (lightness[-1] - lightness[0]) > 0.5


WATCH_FLOW = """() => {
  window.flew = false;
  const canvas = document.querySelector("canvas.flow");
  const isDrawn = () => canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height).data.some(value => value > 0);
  const watch = () => { window.flew ||= isDrawn(); requestAnimationFrame(watch); };
  watch();
}"""


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_pods_fly_to_their_nodes_unless_motion_is_to_be_reduced(
    page: Page, serve: Serve, make_cluster: MakeCluster, motion: Any
) -> None:
    cluster = make_cluster(nodes=6, pods_per_node=1, waiting=5)
    server = serve(cluster)
    page.emulate_media(reduced_motion=motion)
    page.goto(server.address)
    expect(page.get_by_role("list", name="Waiting pods").get_by_role("listitem")).to_have_count(5)
    page.evaluate(WATCH_FLOW)
    server.publish(pods=[cluster.pod(f"demo/parked-{number}", node=number) for number in range(5)])
    expect(page.get_by_text("No pod waits")).to_be_visible()
    if motion == "reduce":
        assert not page.evaluate("window.flew")
    else:
        page.wait_for_function("() => window.flew")


def test_a_stream_that_ends_is_opened_again_without_notice(
    page: Page, serve: Serve, make_cluster: MakeCluster
) -> None:
    cluster = make_cluster(nodes=3, pods_per_node=1)
    server = serve(cluster)
    page.goto(server.address)
    status = page.locator("header").get_by_role("status")
    expect(status).to_have_text("live")
    page.evaluate(
        """() => {
          window.said = [];
          const status = document.querySelector("header [role=status]");
          new MutationObserver(() => window.said.push(status.textContent))
            .observe(status, { childList: true, characterData: true, subtree: true });
        }"""
    )
    with page.expect_request("**/stream?*"):
        server.end_streams()
    server.publish(nodes=[cluster.node(3, 0)])
    expect(page.locator("header")).to_contain_text("4 nodes")
    assert page.evaluate("window.said") == []
