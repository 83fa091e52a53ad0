"""A browser, and a server of the page with a made-up cluster.

The made-up cluster has any size and any names and is under a test's control. It is sent as
`kubestow.web.protocol` describes, through the same hub and with the same headers as a real one.
What it cannot show is a decision; tests of those use a demo.

The browser lasts for a module and no longer: as long as it runs, its driver has an event loop in
this thread, and other tests start their own.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypeVar

import msgspec
import pytest
from aiohttp import web
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from kubestow.web.assets import Assets
from kubestow.web.hub import Hub
from kubestow.web.protocol import (
    AttemptRow,
    Batch,
    ClockState,
    Counts,
    Leader,
    NodeChanges,
    NodeColumns,
    NodeRow,
    PodChanges,
    PodColumns,
    PodRow,
    ProfileState,
    QueueState,
    Resource,
    SchedulerState,
    SeriesPoint,
    Span,
    State,
    Words,
)
from kubestow.web.responses import NOT_KEPT, error_answer, json_answer

# How long a test waits for what has to appear; far more than it takes, also on a busy machine.
WAIT_MS: Final = 180_000
WAIT_S: Final = WAIT_MS / 1000
FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no Chromium on this machine: scripts/page-tools installs one where it can")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=list(FLAGS), timeout=WAIT_MS
        )
        expect.set_options(timeout=WAIT_MS)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, reduced_motion="reduce", locale="en-GB"
    )
    context.set_default_timeout(WAIT_MS)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that fails its test if a script fails or the browser refuses something."""
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: (
            problems.append(message.text) if "Content Security" in message.text else None
        ),
    )
    yield page
    assert not problems


# --- a demo ---------------------------------------------------------------------------------------

ADDRESS: Final = re.compile(r"http://\S+/page/\S*")


@contextmanager
def running_demo() -> Iterator[str]:
    """The address of a demo in a process of its own, five times as fast as the clock."""
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
        process.communicate(timeout=WAIT_S)


@pytest.fixture(scope="module")
def demo_address() -> Iterator[str]:
    """Of the demo that the tests of a module share, in any order."""
    with running_demo() as address:
        yield address


# Keeps what the page announces: it is there for seconds, and a busy machine may look later.
HEAR = """addEventListener("DOMContentLoaded", () => {
  window.heard = new Set();
  new MutationObserver(() => {
    for (const found of document.querySelectorAll("[role=status]")) heard.add(found.textContent);
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
})"""


def _opened(page: Page, address: str) -> Page:
    page.add_init_script(HEAR)
    page.goto(address)
    expect(page.locator("header").get_by_role("status")).to_have_text("live")
    return page


@pytest.fixture
def demo(page: Page, demo_address: str) -> Page:
    return _opened(page, demo_address)


@pytest.fixture
def own_demo(page: Page) -> Iterator[Page]:
    """A demo of its own, for a test that leaves another cluster behind."""
    with running_demo() as address:
        yield _opened(page, address)


@pytest.fixture
def wait_heard(page: Page) -> Callable[[str], None]:
    """Waits until the page has announced something that has this pattern."""

    def wait(pattern: str) -> None:
        page.wait_for_function(
            "pattern => [...heard].some(text => RegExp(pattern).test(text))", arg=pattern
        )

    return wait


@pytest.fixture
def paused(page: Page) -> Callable[[], AbstractContextManager[None]]:
    """Within it the cluster of a demo stands still, and so do the lists of its page."""

    @contextmanager
    def standing_still() -> Iterator[None]:
        page.get_by_role("button", name="❚❚ Pause").click()
        resume = page.get_by_role("button", name="▶ Resume")
        expect(resume).to_be_visible()
        try:
            yield
        finally:
            resume.click()
            expect(page.get_by_role("button", name="❚❚ Pause")).to_be_visible()

    return standing_still


# --- a made-up cluster --------------------------------------------------------------------------

T = TypeVar("T")
GIB: Final = 1024**3
START_MS: Final = 1_700_000_000_000
ZONE: Final = "topology.kubernetes.io/zone"
POOL: Final = "pool"
NODE_CPU: Final = 16_000
NODE_MEMORY: Final = 64 * GIB
POD_REQUESTS: Final = (250, GIB // 2, 0, 0)


class MadeUpCluster:
    """Rows of nodes and pods; `pods_per_node` run on each, `waiting` are parked."""

    def __init__(self, *, nodes: int, pods_per_node: int, waiting: int = 0) -> None:
        self.seq = 1
        self.time_ms = START_MS
        self.nodes: dict[int, NodeRow] = {}
        self.pods: dict[str, PodRow] = {}
        self.set_nodes([self.node(number, pods_per_node) for number in range(nodes)])
        self.set_pods(
            [
                self.pod(f"demo/web-{number}-{index}", node=number)
                for number in range(nodes)
                for index in range(pods_per_node)
            ]
        )
        self.set_pods([self.pod(f"demo/parked-{number}", place=3) for number in range(waiting)])

    def set_nodes(self, rows: Sequence[NodeRow]) -> None:
        self.nodes.update((row.id, row) for row in rows)

    def set_pods(self, rows: Sequence[PodRow]) -> None:
        self.pods.update((row.key, row) for row in rows)

    @staticmethod
    def node(number: int, pods: int, *, name: str = "", taints: tuple[str, ...] = ()) -> NodeRow:
        # Between a tenth and nine tenths full, so that the map has all colours.
        share = 0.1 + 0.8 * ((number * 37) % 100) / 100
        return NodeRow(
            id=number,
            name=name or f"node-{number}",
            groups=(f"zone-{'abc'[number % 3]}", ("general", "memory", "batch", "gpu")[number % 4]),
            unschedulable=number % 97 == 5,
            ready=number % 211 != 7,
            taints=taints,
            allocatable=(NODE_CPU, NODE_MEMORY, 0, 110),
            requested=(int(NODE_CPU * share), int(NODE_MEMORY * (1 - share)), 0, pods),
            created=START_MS - number * 3_600_000,
        )

    @staticmethod
    def pod(key: str, *, node: int = -1, place: int = -1, owner: int = 1) -> PodRow:
        return PodRow(
            key=key,
            node=node,
            place=place,
            priority=0,
            owner=owner,
            requests=0,
            reason=0 if place < 0 else 1,
            rejectors=0 if place < 0 else 1,
            terminating=False,
            created=START_MS,
        )

    def state(self) -> State:
        parked = sum(pod.place == 3 for pod in self.pods.values())
        return State(
            seq=self.seq,
            mode="run",
            actions=(),
            clock=ClockState(time=self.time_ms),
            span=Span(begin=START_MS, end=self.time_ms),
            scheduler=SchedulerState(
                version="0.0.0",
                upstream="v1.36",
                leader=Leader(),
                profiles=(ProfileState(name="default-scheduler", plugins=()),),
                config="",
            ),
            words=Words(
                resources=(
                    Resource(name="cpu", unit="milli"),
                    Resource(name="memory", unit="bytes"),
                    Resource(name="ephemeral-storage", unit="bytes"),
                    Resource(name="pods", unit="count"),
                ),
                groupings=(ZONE, POOL),
                owners=("", "ReplicaSet/web"),
                requests=(POD_REQUESTS,),
                reasons=("", "0/5 nodes are available: 5 Insufficient cpu."),
                rejectors=("", "NodeResourcesFit"),
            ),
            nodes=_columns(NodeColumns, [*self.nodes.values()]),
            pods=_columns(PodColumns, [*self.pods.values()]),
            queue=QueueState(places=(0, 0, 0, parked, 0, 0), rejectors=((1, parked),)),
            series=tuple(
                SeriesPoint(
                    START_MS - 1000 * (60 - second), 40 + second % 7, 2, 0, 0.4, 1.9, (0,) * 6
                )
                for second in range(60)
            ),
            plugin_times=(),
            attempts=(),
            counts=Counts(),
        )


def _columns(kind: type[T], rows: Sequence[msgspec.Struct]) -> T:
    return kind(
        **{name: [getattr(row, name) for row in rows] for name in kind.__struct_fields__}  # type: ignore[attr-defined]
    )


class PretendedPage:
    """Serves a `MadeUpCluster` from a thread of its own until it is closed."""

    def __init__(self, cluster: MadeUpCluster, *, port: int = 0) -> None:
        self.cluster = cluster
        # What is answered besides state and stream, by path.
        self.documents: dict[str, object] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = self._call(self._start(port))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/page/"

    def publish(
        self,
        *,
        nodes: Sequence[NodeRow] = (),
        pods: Sequence[PodRow] = (),
        attempts: Sequence[AttemptRow] = (),
    ) -> None:
        """Send these rows to the page."""
        self.cluster.seq += 1
        self.cluster.time_ms += 100
        self.cluster.set_nodes(nodes)
        self.cluster.set_pods(pods)
        batch = Batch(
            seq=self.cluster.seq,
            clock=ClockState(time=self.cluster.time_ms),
            nodes=NodeChanges(set=tuple(nodes)) if nodes else None,
            pods=PodChanges(set=tuple(pods)) if pods else None,
            attempts=tuple(attempts),
        )
        data = msgspec.json.encode(batch)
        self._call(self._on_loop(lambda: self._hub.publish(batch.seq, data)))

    def end_streams(self) -> None:
        """End all streams that are open; they can be opened again."""
        self._call(self._on_loop(self._restart_hub))

    def close(self) -> None:
        """Stop; a second call does nothing."""
        if self._loop.is_closed():
            return
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # --- on its own loop ---

    def _restart_hub(self) -> None:
        old, self._hub = self._hub, Hub()
        self._hub.reset(self.cluster.seq)
        old.close()

    async def _start(self, port: int) -> int:
        self._hub = Hub()
        self._hub.reset(self.cluster.seq)
        self._assets = Assets()
        app = web.Application()
        app.router.add_get("/page/state", self._state)
        app.router.add_get("/page/stream", self._stream)
        app.router.add_get("/page/attempts", self._attempts)
        app.router.add_get("/page/{name:.*}", self._file)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        return self._runner.addresses[0][1]

    async def _stop(self) -> None:
        self._hub.close()
        await self._runner.cleanup()
        # The browser may connect or read slowly in this moment: a connection that was just accepted
        # is a task, and one that has something to send is closed later than its loop.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for transport in [*vars(self._loop)["_transports"].values()]:
            transport.abort()
        await asyncio.sleep(0)

    async def _state(self, _: web.Request) -> web.StreamResponse:
        return json_answer(self.cluster.state())

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={**NOT_KEPT, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for frame in self._hub.frames(int(request.query["since"])):
            await response.write(frame)
        return response

    async def _attempts(self, _: web.Request) -> web.StreamResponse:
        return json_answer({"attempts": [], "dropped": 0})

    async def _file(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name in self.documents:
            return json_answer(self.documents[name])
        return self._assets.answer(request, name) or error_answer(404, f"there is no {name}")

    async def _on_loop(self, function: Callable[[], None]) -> None:
        function()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)


Serve = Callable[["MadeUpCluster"], PretendedPage]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers, which are closed after the test."""
    servers: list[PretendedPage] = []

    def start(cluster: MadeUpCluster, *, port: int = 0) -> PretendedPage:
        servers.append(PretendedPage(cluster, port=port))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def make_cluster() -> type[MadeUpCluster]:
    return MadeUpCluster
