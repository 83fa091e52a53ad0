"""The page of a demo from the outside: a loopback port, its token, and what it answers."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.web.followed_cluster import FollowedCluster
from tests.web.page_model import PageModel
from yarl import URL

from kubestow.api.meta import JsonObject
from kubestow.errors import ConflictError, InputError
from kubestow.explain.history import AttemptHistory
from kubestow.service.loops import SharedLoop
from kubestow.simulator.paced_time import UNLIMITED, PacedLoop
from kubestow.testing import make_node, make_pod
from kubestow.web import feed as feed_module
from kubestow.web import hub as hub_module
from kubestow.web import routes as routes_module
from kubestow.web.assets import Assets
from kubestow.web.feed import Feed
from kubestow.web.local import LocalPage
from kubestow.web.responses import POLICY
from kubestow.web.routes import PageRoutes
from kubestow.web.suggest import no_suggestions

HOSTILE = ["<script>", "..", "%2e%2e", "a%00b", "%0d%0aSet-Cookie: x=y", "x" * 5000]


class Answer:
    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, str]:
        return self.json["error"]


class Forms:
    """An action that works, and those that fail in each way."""

    names = ("echo", "wrong", "taken")

    def templates(self) -> JsonObject:
        return {"pods": [], "shapes": []}

    async def perform(self, name: str, body: JsonObject) -> JsonObject:
        if name == "wrong":
            error = InputError("no such thing")
            error.where = "thing"
            raise error
        if name == "taken":
            raise ConflictError('pods "a" already exists')
        return {"message": "done", **body}


class Site:
    def __init__(self, cluster: FollowedCluster, feed: Feed, page: LocalPage) -> None:
        self.cluster = cluster
        self.feed = feed
        self.page = page
        self.base = f"http://127.0.0.1:{page.port}"
        self.session = aiohttp.ClientSession(
            cookie_jar=aiohttp.CookieJar(unsafe=True), timeout=aiohttp.ClientTimeout(total=None)
        )

    async def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        token: str | None = None,
        data: bytes | None = None,
        **headers: str,
    ) -> Answer:
        """With the token, unless another one is given; "" is none."""
        token = self.page.token if token is None else token
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        url = URL(self.base + path, encoded=True)
        async with self.session.request(
            method, url, headers=headers, data=data, allow_redirects=False
        ) as response:
            return Answer(response.status, response.headers, await response.read())

    async def act(self, name: str, body: bytes, **headers: str) -> Answer:
        headers = {"Content_Type": "application/json", **headers}
        return await self.ask(f"/page/actions/{name}", method="POST", data=body, **headers)


@asynccontextmanager
async def site(
    *, assets: Path | None = None, is_read_only: bool = False, is_always_on: bool = True
) -> AsyncGenerator[Site]:
    cluster = FollowedCluster(make_node("a", cpu="4"), make_node("b", cpu="2"))
    feed = Feed(cluster.follower, SharedLoop(), is_always_on=is_always_on)
    routes = PageRoutes(
        feed,
        cluster.facts,
        Assets(assets),
        history=AttemptHistory(cluster.clock),
        suggest=no_suggestions,
        actions=None if is_read_only else Forms(),
    )
    page = LocalPage(routes)
    page.start()
    opened = Site(cluster, feed, page)
    async with cluster.embedded.running():
        try:
            yield opened
        finally:
            await opened.session.close()
            await feed.close()
            await page.close()


def run(work: Callable[[], Coroutine[Any, Any, None]], speed: float = 20) -> None:
    """Timers of the cluster do not wait long. Sockets are real: limits on them still have to be
    longer than they take."""
    with asyncio.Runner(loop_factory=lambda: PacedLoop(speed)) as runner:
        runner.run(work())


# --- who may ask ---


def test_the_printed_address_is_exchanged_for_a_cookie():
    async def main() -> None:
        async with site() as page:
            assert page.page.address == f"{page.base}/page/?token={page.page.token}"
            answer = await page.ask(page.page.address.removeprefix(page.base), token="")
            assert answer.status == 200
            cookie = answer.headers["Set-Cookie"]
            assert f"kubestow-page-{page.page.port}={page.page.token}" in cookie
            for part in ("HttpOnly", "SameSite=Strict"):
                assert part in cookie
            assert page.page.token not in answer.body.decode()
            # Browsers send a cookie to all ports of a host: no other server has this path.
            (folder,) = re.findall('href="(.*?)"', answer.body.decode())
            assert re.fullmatch(rf"{page.page.port}-[\w-]{{16}}/", folder)
            assert f"Path=/page/{folder}" in cookie
            assert (await page.ask(f"/page/{folder}state", token="")).status == 200
            assert (
                (await page.ask(f"/page/{folder}", token=""))
                .headers["Content-Type"]
                .startswith("text/html")
            )
            assert (await page.ask("/page/state", token="")).status == 401
            assert (await page.ask(f"/page/{folder}../state", token="")).status != 200

    run(main)


def test_two_pages_have_two_paths():
    async def main() -> None:
        async with site() as one, site() as other:
            paths: set[str] = set()
            for page in (one, other):
                answer = await page.ask(page.page.address.removeprefix(page.base), token="")
                paths.update(re.findall("Path=[^;]*", answer.headers["Set-Cookie"]))
            assert len(paths) == 2

    run(main)


@pytest.mark.parametrize("token", ["", "wrong", "wr\u00f6ng", "x" * 4000])
def test_without_the_token_nothing_is_shown(token: str):
    async def main() -> None:
        async with site() as page:
            for path in ("state", "stream", "nodes/a", "attempts", "pods/default/x", "app.js"):
                assert (await page.ask(f"/page/{path}", token=token)).status == 401
            answer = await page.ask("/page/", token=token)
            assert answer.status == 401
            assert b"Open the address that kubestow has printed" in answer.body
            assert (await page.act("echo", b"{}", token=token)).status == 401
            quoted = URL.build(query={"token": token}).raw_query_string
            answer = await page.ask(f"/page/?{quoted}", token="")
            assert answer.status == 401
            assert "Set-Cookie" not in answer.headers

    run(main)


@pytest.mark.parametrize("header", [b"Authorization: Bearer \xff\xfe", b"Cookie: a=\xff; =; ;,"])
def test_headers_that_are_no_text_are_refused(header: bytes):
    async def main() -> None:
        async with site() as page:
            reader, writer = await asyncio.open_connection("127.0.0.1", page.page.port)
            host = page.base.removeprefix("http://").encode()
            writer.write(b"GET /page/state HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n" % (host, header))
            assert b" 401 " in await reader.readline()
            writer.close()
            await writer.wait_closed()

    run(main)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Host": "evil.example"}, 421, id="another-host"),
        pytest.param({"Host": "127.0.0.1:1"}, 421, id="another-port"),
        pytest.param({"Host": ""}, 421, id="no-host"),
        pytest.param({"Origin": "http://evil.example"}, 403, id="another-origin"),
        pytest.param({"Origin": "null"}, 403, id="opaque-origin"),
        pytest.param({"Sec_Fetch_Site": "cross-site"}, 403, id="another-site"),
        pytest.param({"Sec_Fetch_Site": "same-site"}, 403, id="another-port-of-the-machine"),
        pytest.param({"Sec_Fetch_Site": "same-origin"}, 200, id="its-own-page"),
        pytest.param({}, 200, id="a-program"),
    ],
)
def test_only_the_page_itself_may_ask(headers: dict[str, str], status: int):
    async def main() -> None:
        async with site() as page:
            assert (await page.ask("/page/state", **headers)).status == status
            assert (await page.act("echo", b"{}", **headers)).status == status

    run(main)


@pytest.mark.parametrize("token", [None, ""])
def test_a_packed_body_is_refused_before_anything_else(token: str | None):
    async def main() -> None:
        async with site() as page:
            body = gzip.compress(b"{}")
            for path in ("/page/actions/echo", "/page/state", "/"):
                headers = {"Content_Type": "application/json", "Content_Encoding": "gzip"}
                answer = await page.ask(path, method="POST", token=token, data=body, **headers)
                assert answer.status == 415

    run(main)


def test_the_names_of_the_port_are_known():
    async def main() -> None:
        async with site() as page:
            host = f"localhost:{page.page.port}"
            assert (await page.ask("/page/state", Host=host, Origin=f"http://{host}")).status == 200
            answer = await page.ask("/")
            assert (answer.status, answer.headers["Location"]) == (307, "/page/")
            # A link of another site may open the page.
            assert (await page.ask("/page/", Sec_Fetch_Site="cross-site")).status == 200

    run(main)


def test_every_answer_forbids_what_the_page_does_not_need(tmp_path: Path):
    (tmp_path / "index.html").write_text("<!doctype html>")

    async def main() -> None:
        async with site(assets=tmp_path) as page:
            for path in ("/page/", "/page/state", "/page/nowhere", "/elsewhere"):
                headers = (await page.ask(path)).headers
                assert headers["Content-Security-Policy"] == POLICY
                assert "unsafe" not in POLICY
                assert "script-src 'self'" in POLICY
                assert headers["X-Content-Type-Options"] == "nosniff"
                assert headers["X-Frame-Options"] == "DENY"
                assert headers["Referrer-Policy"] == "no-referrer"
            assert (await page.ask("/page/state")).headers["Cache-Control"] == "no-store"

    run(main)


# --- files ---


def test_files_have_types_and_tags(tmp_path: Path):
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "app.0123abcd.js").write_text("1")
    (tmp_path / "notes.py").write_text("secret")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.css").write_text("b{}")

    async def main() -> None:
        async with site(assets=tmp_path) as page:
            answer = await page.ask("/page/")
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            assert "no-cache" in answer.headers["Cache-Control"]
            again = await page.ask("/page/", If_None_Match=answer.headers["ETag"])
            assert (again.status, again.body) == (304, b"")
            answer = await page.ask("/page/app.0123abcd.js")
            assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
            assert "immutable" in answer.headers["Cache-Control"]
            assert (await page.ask("/page/sub/a.css")).body == b"b{}"
            for path in ("notes.py", "sub", "sub/", "../local.py", "%2e%2e/local.py", "%2fetc"):
                assert (await page.ask(f"/page/{path}")).status == 404

    run(main)


# --- state and stream ---


def test_the_stream_goes_on_where_the_state_ends():
    async def main() -> None:
        async with site() as page:
            model = PageModel((await page.ask("/page/state")).json)
            headers = {"Authorization": f"Bearer {page.page.token}"}
            url = f"{page.base}/page/stream?since={model.seq}"
            async with page.session.get(url, headers=headers) as stream:
                assert stream.headers["Content-Type"] == "text/event-stream"
                page.cluster.add(make_pod("x", cpu="1"), make_pod("y", cpu="5"))
                async with asyncio.timeout(1000):
                    async for event, data in events(stream):
                        assert event == "message"
                        model.apply(data)
                        shown = model.shown()["pods"]
                        if shown.get("default/x", {}).get("node") and shown["default/y"]["reason"]:
                            break
            fresh = PageModel((await page.ask("/page/state")).json)
            assert fresh.shown()["pods"] == shown
            assert (await page.ask("/page/state", Accept_Encoding="gzip")).json["mode"] == "demo"

    run(main)


def test_a_reader_that_comes_back_continues_or_is_reset(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub_module, "KEPT_BATCHES_MAX", 2)

    async def main() -> None:
        async with site() as page:
            first = (await page.ask("/page/state")).json["seq"]
            for _ in range(5):
                last = (await page.ask("/page/state")).json["seq"]
            assert last >= first + 5
            headers = {"Authorization": f"Bearer {page.page.token}", "Last-Event-ID": str(first)}
            async with page.session.get(f"{page.base}/page/stream", headers=headers) as stream:
                event, data = await anext(events(stream))
                assert (event, data["dropped"] >= 5) == ("reset", True)
            assert page.feed.hub.statistics().resets == 1
            headers["Last-Event-ID"] = str((await page.ask("/page/state")).json["seq"])
            async with page.session.get(f"{page.base}/page/stream", headers=headers) as stream:
                page.cluster.add(make_pod("x"))
                async for event, data in events(stream):
                    assert event == "message"
                    if "pods" in data:
                        break
                assert data["pods"]["set"][0][0] == "default/x"

    run(main)


def test_the_number_of_pages_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub_module, "READERS_MAX", 1)

    async def main() -> None:
        async with site() as page:
            headers = {"Authorization": f"Bearer {page.page.token}"}
            async with page.session.get(f"{page.base}/page/stream", headers=headers):
                assert (await page.ask("/page/stream")).status == 503

    run(main)


def test_following_ends_some_time_after_the_last_page():
    async def main() -> None:
        async with site(is_always_on=False) as page:
            await page.feed.start()
            assert page.cluster.follower.is_started
            await asyncio.sleep(feed_module.LINGER_S + 2 * feed_module.QUIET_S)
            assert not page.cluster.follower.is_started
            assert page.cluster.embedded.listeners == []
            await page.feed.start()
            assert page.cluster.follower.is_started

    run(main, UNLIMITED)


def test_a_failure_ends_following_and_the_next_page_starts_it_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def main() -> None:
        async with site() as page:
            await page.ask("/page/state")

            def fail(_: object) -> None:
                raise RuntimeError("a row cannot be made")

            monkeypatch.setattr(page.cluster.follower.rows, "pod_row", fail)
            page.cluster.add(make_pod("x", cpu="1"))
            await asyncio.sleep(1)
            assert not page.cluster.follower.is_started
            assert "a row cannot be made" in caplog.text
            # The scheduler has not been disturbed.
            assert [pod.name for pod in page.cluster.scheduler.cache.nodes["a"].pods] == ["x"]
            assert (await page.ask("/page/state")).json["pods"]["key"] == ["default/x"]

    run(main)


async def events(stream: aiohttp.ClientResponse) -> AsyncGenerator[tuple[str, Any], None]:
    event = "message"
    async for line in stream.content:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            event = value
        elif name == "data":
            yield event, json.loads(value)
            event = "message"


# --- what is opened ---


def test_a_pod_is_shown_with_its_explanation_and_attempts():
    async def main() -> None:
        async with site() as page:
            await page.ask("/page/state")
            page.cluster.add(make_pod("x", cpu="1"), make_pod("y", cpu="5"))
            await page.cluster.settle()
            shown = (await page.ask("/page/pods/default/x")).json
            assert shown["row"]["node"] in ("a", "b")
            assert shown["row"]["requests"] == {"cpu": 1000, "pods": 1}
            assert shown["explanation"]["outcome"] == "Bound"
            assert {node["name"] for node in shown["explanation"]["nodes"]} == {"a", "b"}
            assert shown["explanation"]["nodes"][0]["scores"]
            shown = (await page.ask("/page/pods/default/y")).json
            assert shown["row"]["place"] == "unschedulable"
            assert shown["explanation"]["reasons"][0]["reasonCode"] == "InsufficientCPU"
            assert [each["result"] for each in shown["attempts"]] == ["unschedulable"]
            assert shown["attempts"][0]["reason"].startswith("0/2 nodes")
            found = (await page.ask("/page/pods/default/y/suggestions")).json
            assert found["note"].startswith("kubestow explain -n default y")

    run(main)


def test_a_pod_that_was_there_before_the_page_has_a_note():
    async def main() -> None:
        async with site() as page:
            page.cluster.add(make_pod("x", cpu="1"))
            page.cluster.add(make_pod("other", cpu="1", scheduler_name="another"))
            await page.cluster.settle()
            shown = (await page.ask("/page/pods/default/x")).json
            assert shown["explanation"] is None
            assert shown["note"].startswith("no attempt of it is kept")
            shown = (await page.ask("/page/pods/default/other")).json
            assert shown["note"] == "no profile of this scheduler places it"

    run(main)


def test_a_node_is_shown_with_its_pods():
    async def main() -> None:
        async with site() as page:
            page.cluster.add(make_pod("x", cpu="1", node="a"))
            await page.cluster.settle()
            shown = (await page.ask("/page/nodes/a")).json
            assert shown["row"]["requested"] == {"cpu": 1000, "pods": 1}
            assert [row[0] for row in shown["pods"]] == ["default/x"]

    run(main)


def test_attempts_are_paged_and_explained():
    async def main() -> None:
        async with site() as page:
            await page.ask("/page/state")
            page.cluster.add(*(make_pod(f"p{number}", cpu="1") for number in range(6)))
            await page.cluster.settle()
            first = (await page.ask("/page/attempts?limit=2")).json["attempts"]
            assert [each["id"] for each in first] == [6, 5]
            second = (await page.ask("/page/attempts?limit=3&before=5")).json["attempts"]
            assert [each["id"] for each in second] == [4, 3, 2]
            one = (await page.ask("/page/attempts/4")).json
            assert one["attempt"] == second[0]
            assert one["explanation"]["outcome"] == "Scheduled"
            state = (await page.ask("/page/state?attempt=2")).json
            assert len([node for node in state["pods"]["node"] if node >= 0]) >= 2

    run(main)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("state?at=yesterday", 400),
        ("state?at=1", 404),
        ("state?at=1&attempt=1", 400),
        ("state?attempt=99", 404),
        ("state?attempt=-1", 400),
        ("stream?since=x", 400),
        ("attempts?limit=0", 400),
        ("attempts?limit=1001", 400),
        ("attempts?limit=9999999999999999999999", 400),
        ("attempts?before=x", 400),
        ("attempts/0", 404),
        ("attempts/x", 404),
        ("pods/default", 404),
        ("pods/default/nothing", 404),
        ("nodes/nothing", 404),
        ("nodes/", 404),
        ("nowhere", 404),
    ],
)
def test_wrong_requests_say_what_is_wrong(path: str, status: int):
    async def main() -> None:
        async with site() as page:
            answer = await page.ask(f"/page/{path}")
            assert answer.status == status
            assert answer.error["message"]
            for method in ("POST", "PUT", "DELETE", "PATCH"):
                assert (await page.ask(f"/page/{path}", method=method)).status == 405

    run(main)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_only_text(name: str):
    async def main() -> None:
        async with site() as page:
            for path in (f"pods/default/{name}", f"pods/{name}/x", f"nodes/{name}", name):
                answer = await page.ask(f"/page/{path}")
                assert answer.status in (400, 404)
                if answer.headers["Content-Type"] == "application/json":
                    assert answer.error["message"]
                assert "x=y" not in str(answer.headers)

    run(main)


# --- actions ---


def test_an_action_is_performed_and_its_errors_are_answered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(routes_module, "BODY_BYTES_MAX", 100)

    async def main() -> None:
        async with site() as page:
            assert (await page.ask("/page/templates")).json == {"pods": [], "shapes": []}
            answer = await page.act("echo", b'{"a": 1}')
            assert (answer.status, answer.json) == (200, {"message": "done", "a": 1})
            answer = await page.act("wrong", b"{}")
            assert (answer.status, answer.error) == (
                400,
                {"message": "no such thing", "where": "thing"},
            )
            assert (await page.act("taken", b"")).status == 409
            assert (await page.act("nothing", b"{}")).status == 404
            assert (await page.act("echo/echo", b"{}")).status == 404
            assert (await page.ask("/page/actions/echo")).status == 405
            assert (await page.act("echo", b"{}", Content_Type="text/plain")).status == 415
            assert (await page.act("echo", b"[1]")).status == 400
            assert (await page.act("echo", b"{")).status == 400
            assert (await page.act("echo", b" " * 101)).status == 413

    run(main)


def test_bodies_that_no_parser_reads_are_refused():
    async def main() -> None:
        async with site() as page:
            for body in (b'{"text":' + b"[" * 100_000, b'{"text":"\xff"}'):
                answer = await page.act("echo", body)
                assert answer.status == 400
                assert answer.error["message"].startswith("the body is no JSON object")

    run(main)


def test_a_page_without_actions_has_no_path_for_them():
    async def main() -> None:
        async with site(is_read_only=True) as page:
            assert (await page.act("echo", b"{}")).status == 404
            assert (await page.ask("/page/templates")).status == 404
            assert (await page.ask("/page/state")).json["actions"] == []

    run(main)


def test_a_port_that_is_taken_is_named():
    async def main() -> None:
        async with site() as page:
            with pytest.raises(InputError, match=f"cannot serve the page on port {page.page.port}"):
                LocalPage(page.page._routes, port=page.page.port)

    run(main)
