"""Makes the pictures of pages that README and guides show, from the pages themselves.

A demo is started, a browser opens its page, and what it shows is written to docs/images. Needs a
Chromium; run by `make pictures` after a change of the page that can be seen.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from playwright.sync_api import Browser, Page, sync_playwright

IMAGES: Final = Path(__file__).parents[1] / "images"
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
FLAGS: Final = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")
WIDTH: Final = 1360
HEIGHT: Final = 800
ADDRESS: Final = re.compile(r"http://\S+/page/\S*")

# As the guide of the page says.
MANY_NODES: Final = ("--nodes", "420", "--speed", "10")


@contextmanager
def demo(*options: str) -> Iterator[str]:
    """Yields the address of the page of a demo that runs meanwhile."""
    command = [sys.executable, "-u", "-m", "kubestow", "demo", "--page", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := ADDRESS.search(line):
                yield found[0]
                return
        raise SystemExit("the demo ended without the address of its page")
    finally:
        process.terminate()
        process.wait()


def opened(browser: Browser, address: str, scheme: Literal["light", "dark"]) -> Page:
    page = browser.new_page(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme, reduced_motion="reduce"
    )
    page.goto(address)
    page.get_by_role("listbox").wait_for()
    return page


def decision(browser: Browser) -> None:
    """A small cluster, and one decision with its scores."""
    with demo("--speed", "10") as address:
        page = opened(browser, address, "light")
        page.wait_for_timeout(12_000)
        page.get_by_role("button", name="❚❚ Pause").click()
        _open_scored(page)
        page.locator(".notice button").click()
        page.screenshot(path=IMAGES / "page-light.png")


def _open_scored(page: Page) -> None:
    """The newest attempt with scores; there are none where only one node fits."""
    attempts = page.get_by_role("list", name="Attempts").get_by_role("listitem")
    placed = attempts.filter(has_text=re.compile(r"batch-.*→", re.DOTALL))
    for index in range(placed.count()):
        placed.nth(index).click()
        page.locator(".detail .lead, .detail .nothing").wait_for()
        if page.get_by_text("Scores").count():
            return
        page.keyboard.press("Escape")
    raise SystemExit("no attempt has scores: run it again")


def many_nodes(browser: Browser) -> None:
    """Hundreds of nodes, about half of them in use."""
    with demo(*MANY_NODES) as address:
        page = opened(browser, address, "dark")
        page.wait_for_timeout(20_000)
        page.screenshot(path=IMAGES / "page-dark.png")


def plan(browser: Browser) -> None:
    """The page of the plan that the guide of rebalance shows, at its fifth step."""
    guide = (IMAGES.parent / "guides" / "rebalance.md").read_text()
    cluster = re.search(r"^```yaml save=decayed.yaml\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    assert cluster is not None
    with TemporaryDirectory() as folder:
        file, report = Path(folder) / "decayed.yaml", Path(folder) / "plan.html"
        file.write_text(cluster[1])
        command = [sys.executable, "-m", "kubestow", "rebalance", "-f", str(file)]
        command += ["--goal", "empty-nodes", "--report", str(report)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        page = browser.new_page(viewport={"width": 1100, "height": 700}, color_scheme="light")
        page.goto(report.as_uri())
        page.get_by_label("One step back").click(click_count=2)
        page.locator("#plan").screenshot(path=IMAGES / "rebalance.png")


def main() -> None:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit("no Chromium on this machine: install the package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        decision(browser)
        many_nodes(browser)
        plan(browser)
        browser.close()


if __name__ == "__main__":
    main()
