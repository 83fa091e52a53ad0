"""`kubestow run --page`: the page on the scheduler's own port, and who sees it.

Nothing sleeps: the tests wait for lines, changes and events of the stream, with a limit.
"""

import asyncio
import json
import signal
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.service.test_run_process import is_bound, node, pod, reviews
from tests.web.page_model import PageModel

from kubestow.errors import ConfigError
from kubestow.service.options import parse_options
from tools.https_cluster import TOKEN, HttpsCluster
from tools.scheduler_process import SchedulerProcessRun

LIMIT_S = 300


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await main()

    asyncio.run(limited())


class Browser:
    """A client that has a cookie jar, as browsers do, and no certificate."""

    def __init__(self, address: str) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.base = f"https://127.0.0.1:{address.rpartition(':')[2]}"
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context),
            cookie_jar=aiohttp.CookieJar(unsafe=True),
        )

    async def ask(
        self, path: str, *, method: str = "GET", data: Any = None, **headers: str
    ) -> tuple[int, str, Any]:
        async with self.session.request(
            method, self.base + path, data=data, headers=headers, allow_redirects=False
        ) as response:
            return response.status, await response.text(), response.headers


@asynccontextmanager
async def page(
    folder: Path, *flags: str
) -> AsyncGenerator[tuple[HttpsCluster, SchedulerProcessRun, Browser], None]:
    async with (
        HttpsCluster(folder).serving() as cluster,
        cluster.scheduler(*reviews(cluster), *flags) as scheduler,
    ):
        browser = Browser(await scheduler.address())
        try:
            yield cluster, scheduler, browser
        finally:
            await browser.session.close()


@pytest.mark.slow
def test_it_shows_the_scheduler_to_those_who_may_read_it(tmp_path: Path):
    async def main() -> None:
        async with page(tmp_path, "--page") as (cluster, scheduler, browser):
            allowed = {"Authorization": f"Bearer {TOKEN}"}
            # Without credentials, or with wrong ones, nothing is shown, not even files.
            for path in ("/page/", "/page/state", "/page/stream", "/page/nodes/n1", "/page/x.js"):
                assert (await browser.ask(path))[0] == 403
                assert (await browser.ask(path, Authorization="Bearer wrong"))[0] == 401
            status, text, headers = await browser.ask("/page/", Accept="text/html,*/*")
            assert (status, '<form method="post" action="session">' in text) == (401, True)
            assert "default-src 'none'" in headers["Content-Security-Policy"]

            cluster.store.load([node("n1"), pod("a"), pod("huge", cpu="100")])
            await cluster.wait_for_pod("a", is_bound)
            await cluster.wait_for_pod("huge", lambda pod: bool(pod.status.conditions))
            status, text, _ = await browser.ask("/page/state", **allowed)
            state = json.loads(text)
            assert (status, state["mode"], state["actions"]) == (200, "run", [])
            leader = state["scheduler"]["leader"]
            assert (leader["elects"], leader["leads"]) == (True, True)
            assert "kind: KubeSchedulerConfiguration" in state["scheduler"]["config"]
            model = PageModel(state)
            await follow(browser, allowed, model)
            status, text, _ = await browser.ask("/page/pods/default/huge", **allowed)
            detail = json.loads(text)
            assert detail["explanation"]["outcome"] == "Unschedulable"
            assert (await browser.ask("/page", **allowed))[0] == 307

            await no_write_path(browser, allowed)
            await sign_in(browser)
            # Streams do not delay the end.
            url = f"{browser.base}/page/stream"
            async with browser.session.get(url, headers=allowed) as stream:
                await stream.content.readline()
                assert await scheduler.end(signal.SIGTERM) == 0

    async def follow(browser: Browser, allowed: dict[str, str], model: PageModel) -> None:
        """Read the stream until both pods are shown as they are."""
        url = f"{browser.base}/page/stream?since={model.seq}"
        async with browser.session.get(url, headers=allowed) as stream:
            while not is_shown(model):
                line = await stream.content.readline()
                if line.startswith(b"data: "):
                    model.apply(json.loads(line[6:]))

    def is_shown(model: PageModel) -> bool:
        pods = model.shown()["pods"]
        return (
            pods.get("default/a", {}).get("node") == "n1"
            and pods["default/huge"]["rejectors"] == "NodeResourcesFit"
        )

    async def no_write_path(browser: Browser, allowed: dict[str, str]) -> None:
        for path in ("state", "stream", "pods/default/a", "nodes/n1", "", "attempts"):
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                status, _, _ = await browser.ask(f"/page/{path}", method=method, **allowed)
                assert status == 405
        for action in ("create", "add-pods", "drain", "delete", "load", "pause"):
            status, _, _ = await browser.ask(
                f"/page/actions/{action}", method="POST", data=b"{}", **allowed
            )
            assert status == 404

    async def sign_in(browser: Browser) -> None:
        """The form of a browser, whose cookie counts for the page and nothing else."""
        wrong = await browser.ask("/page/session", method="POST", data={"token": "wrong"})
        assert (wrong[0], "Set-Cookie" in wrong[2]) == (401, False)
        foreign = await browser.ask(
            "/page/session", method="POST", data={"token": TOKEN}, Origin="https://evil.example"
        )
        assert foreign[0] == 403
        assert (await browser.ask("/page/session"))[0] == 405
        large = await browser.ask("/page/session", method="POST", data={"token": "x" * 20_000})
        assert large[0] == 413
        entered = await browser.ask("/page/session", method="POST", data={"token": TOKEN})
        assert entered[0] == 200
        cookie = entered[2]["Set-Cookie"]
        for part in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/page/"):
            assert part in cookie
        cookie, _, rest = cookie.partition(";")
        path = next(part[5:] for part in rest.split("; ") if part.startswith("Path="))
        # Other servers of the host have no such path, so the token is not sent to them.
        assert len(path) > len("/page/") + 10
        assert f'url={path.removeprefix("/page/")}"' in entered[1]
        assert (await browser.ask(f"{path}state", Cookie=cookie))[0] == 200
        written = await browser.ask(
            f"{path}actions/create", method="POST", data=b"{}", Cookie=cookie
        )
        assert written[0] == 404
        for other in ("/metrics", "/page/state", "/page/other/state"):
            assert (await browser.ask(other, Cookie=cookie))[0] == 403
        old = await browser.ask("/page/old/", Accept="text/html", Cookie=cookie)
        assert (old[0], old[2]["Location"]) == (307, "/page/")  # where the form is

    run(main)


def test_it_needs_the_port():
    with pytest.raises(ConfigError, match="--page needs the port that --secure-port 0 turns off"):
        parse_options(["--page", "--secure-port=0"])
