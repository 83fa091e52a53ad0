"""Requests: their headers, and when they are repeated (spec 09 §4.1)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web

from kubestow.clock import SystemClock
from kubestow.cluster.http.credentials import Identity, bearer
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import RETRIES_MAX, ApiSession
from kubestow.errors import ApiError, ConfigError, UnreachableError
from kubestow.testing.clock import ManualClock


def busy(code: int, **headers: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    status = {"kind": "Status", "code": code, "message": "busy", "reason": "TooManyRequests"}

    async def answer(_: web.Request) -> web.Response:
        body = msgspec.json.encode(status)
        return web.Response(status=code, body=body, headers=headers)

    return answer


async def ok(_: web.Request) -> web.Response:
    return web.Response(body=b"done")


async def hang_up(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


LATER = busy(429, **{"Retry-After": "3"})


def test_every_request_has_its_headers(serve: Any, connect: Any):
    async def main() -> None:
        async with serve(ok) as server:
            config = ServerConfig(server=server.url, impersonation=(("Impersonate-User", "bob"),))
            session = connect("", config=config, user_agent="kubestow/1 (x)").session
            await session.request("POST", "/api/v1/x", b'{"a":1}')
            await session.request("PATCH", "/api/v1/y", b"{}", content_type="application/z+json")
            session.close()
            first, second = server.requests
            assert (first.method, first.path, first.body) == ("POST", "/api/v1/x", {"a": 1})
            assert first.headers == {
                "Host": server.url.removeprefix("http://"),
                "User-Agent": "kubestow/1 (x)",
                "Accept": "application/json",
                "Impersonate-User": "bob",
                "Content-Type": "application/json",
                "Content-Length": "7",
            }
            assert second.headers["Content-Type"] == "application/z+json"

    asyncio.run(main())


def test_a_server_may_be_below_a_path(serve: Any, connect: Any):
    async def main() -> None:
        async with serve(ok) as server:
            session = connect(f"{server.url}/clusters/c1").session
            await session.request("GET", "/api")
            session.close()
            assert server.requests[0].path == "/clusters/c1/api"

    asyncio.run(main())


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_request_is_repeated_after_the_retry_after_time(
    serve: Any, connect: Any, pauses: Any, code: int, method: str
):
    async def main() -> None:
        later = busy(code, **{"Retry-After": "3"})
        async with serve(later, later, ok) as server:
            session = connect(server.url).session
            assert await session.request(method, "/x") == b"done"
            assert pauses.delays_s == [3.0, 3.0]
            assert session.statistics().retry_count == 2
            session.close()

    asyncio.run(main())


def test_a_request_is_sent_eleven_times_at_most(serve: Any, connect: Any, pauses: Any):
    async def main() -> None:
        async with serve(LATER) as server:
            session = connect(server.url).session
            with pytest.raises(ApiError, match="busy") as caught:
                await session.request("GET", "/x")
            assert caught.value.code == 429
            assert len(server.requests) == 1 + RETRIES_MAX
            session.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(busy(429), id="later-without-a-time"),
        pytest.param(busy(500), id="error-without-a-time"),
        pytest.param(busy(503, **{"Retry-After": "Wed, 21 Oct"}), id="a-date"),
        pytest.param(busy(409, **{"Retry-After": "1"}), id="a-conflict"),
        pytest.param(busy(302, Location="/y"), id="a-redirect"),
    ],
)
def test_other_refusals_are_final(serve: Any, connect: Any, pauses: Any, answer: Any):
    async def main() -> None:
        async with serve(answer, ok) as server:
            session = connect(server.url).session
            with pytest.raises(ApiError, match="busy"):
                await session.request("GET", "/x")
            assert pauses.delays_s == []
            session.close()

    asyncio.run(main())


def test_only_a_get_is_repeated_after_the_connection_broke(serve: Any, connect: Any, pauses: Any):
    async def main() -> None:
        async with serve(hang_up, hang_up, ok) as server:
            session = connect(server.url).session
            assert await session.request("GET", "/x") == b"done"
            assert pauses.delays_s == [1.0, 1.0]
            session.close()
        async with serve(hang_up, ok) as server:
            session = connect(server.url).session
            with pytest.raises(UnreachableError, match="broke off"):
                await session.request("POST", "/x")
            session.close()

    asyncio.run(main())


def test_a_client_with_a_timeout_does_not_wait(serve: Any, connect: Any, pauses: Any):
    async def main() -> None:
        answered = asyncio.Event()

        async def never(_: web.Request) -> web.Response:
            await answered.wait()
            return web.Response()

        async with serve(never) as server:
            session = connect(server.url, timeout_s=0.05).session
            with pytest.raises(UnreachableError, match=r"GET /x: no answer within 0\.05 s"):
                await session.request("GET", "/x")
            assert pauses.delays_s == []
            answered.set()
            session.close()

    asyncio.run(main())


def test_the_rate_limit_holds_and_counts_repetitions(serve: Any, pauses: Any):
    async def main() -> None:
        async with serve(LATER, ok) as server:
            session = ApiSession(
                ServerConfig(server=server.url), ManualClock(), qps=2.0, burst=2, sleep=pauses
            )
            await session.request("GET", "/x")
            await session.request("GET", "/x")
            # The repetition took the second token.
            assert pauses.delays_s == [3.0, 0.5]
            assert session.statistics().throttled_s == 0.5
            session.close()

    asyncio.run(main())


class Permission:
    """Can be withdrawn; then a request that asks for it waits for ever."""

    def __init__(self) -> None:
        self.is_given = True
        self.missed = asyncio.Event()

    async def __call__(self) -> None:
        if not self.is_given:
            self.missed.set()
            await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("answers", [(ok,), (LATER, ok)], ids=["rate limit", "repetition"])
def test_a_write_is_not_sent_once_its_permission_has_ended(serve: Any, answers: Any):
    """It ends while the request waits, as during a pause of the process."""
    permission = Permission()
    sent_first = len(answers) - 1

    async def pause(_: float) -> None:
        permission.is_given = False

    async def main() -> None:
        async with serve(*answers) as server:
            config, burst = ServerConfig(server=server.url), sent_first * 5
            session = ApiSession(config, ManualClock(), qps=2.0, burst=burst, sleep=pause)
            session.may_write = permission
            writing = asyncio.create_task(session.request("POST", "/x", b"{}"))
            missed = asyncio.create_task(permission.missed.wait())
            await asyncio.wait((writing, missed), return_when=asyncio.FIRST_COMPLETED)
            assert not writing.done()
            assert len(server.requests) == sent_first
            # Reading is always allowed.
            assert await session.request("GET", "/x") == b"done"
            assert [seen.method for seen in server.requests[sent_first:]] == ["GET"]
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            session.close()

    asyncio.run(main())


# --- Identities -------------------------------------------------------------------------------


class Changing:
    """Credentials that are another token each time."""

    def __init__(self, *, valid_for_s: float = 60.0, clock: ManualClock | None = None) -> None:
        self.count = 0
        self.clock = clock or ManualClock()
        self._valid_for_s = valid_for_s

    async def identify(self) -> Identity:
        self.count += 1
        await asyncio.sleep(0)
        return Identity(
            bearer(f"t{self.count}"), None, self.clock.monotonic_s() + self._valid_for_s
        )

    def rejected(self) -> bool:
        return True


def accepts(token: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        if request.headers["Authorization"] != f"Bearer {token}":
            return await busy(401)(request)
        return await ok(request)

    return answer


def changing_session(url: str, credentials: Changing, pauses: Any) -> ApiSession:
    config = ServerConfig(server=url, credentials=credentials)
    return ApiSession(config, credentials.clock, qps=-1.0, sleep=pauses)


def test_an_identity_is_asked_for_again_when_it_expires(serve: Any, pauses: Any):
    async def main() -> None:
        async with serve(ok) as server:
            credentials = Changing()
            session = changing_session(server.url, credentials, pauses)
            for advance_s in (0, 59, 1):
                credentials.clock.advance_s(advance_s)
                await session.request("GET", "/x")
            tokens = [seen.headers["Authorization"] for seen in server.requests]
            assert tokens == ["Bearer t1", "Bearer t1", "Bearer t2"]
            session.close()

    asyncio.run(main())


def test_many_requests_at_once_ask_only_once(serve: Any, pauses: Any):
    async def main() -> None:
        async with serve(accepts("t2")) as server:
            credentials = Changing()
            session = changing_session(server.url, credentials, pauses)
            requests = (session.request("GET", "/x") for _ in range(5))
            assert await asyncio.gather(*requests) == [b"done"] * 5
            # The first was rejected five times, the second serves all.
            assert credentials.count == 2
            session.close()

    asyncio.run(main())


def test_an_identity_rejected_twice_is_an_error(serve: Any, pauses: Any):
    async def main() -> None:
        async with serve(accepts("never")) as server:
            session = changing_session(server.url, Changing(), pauses)
            with pytest.raises(ApiError) as caught:
                await session.request("GET", "/x")
            assert caught.value.code == 401
            assert len(server.requests) == 2
            session.close()

    asyncio.run(main())


def test_no_identity_is_no_answer(serve: Any, connect: Any):
    class Failing(Changing):
        async def identify(self) -> Identity:
            raise ConfigError("the plugin is on holiday")

    async def main() -> None:
        async with serve(ok) as server:
            session = connect(server.url, credentials=Failing()).session
            with pytest.raises(UnreachableError, match="the plugin is on holiday"):
                await session.request("GET", "/x")
            assert server.requests == []

    asyncio.run(main())


def test_requests_that_waited_for_an_identity_fail_with_the_one_that_asked(serve: Any, pauses: Any):
    class Failing(Changing):
        async def identify(self) -> Identity:
            await super().identify()
            raise ConfigError(f"failed {self.count}")

    async def main() -> None:
        async with serve(ok) as server:
            credentials = Failing()
            session = changing_session(server.url, credentials, pauses)

            async def outcomes() -> set[str]:
                requests = (session.request("GET", "/x") for _ in range(5))
                return {str(one) for one in await asyncio.gather(*requests, return_exceptions=True)}

            assert await outcomes() == {"failed 1"}
            assert await outcomes() == {"failed 2"}  # a later request asks again
            session.close()

    asyncio.run(main())


def test_a_token_cannot_add_headers(serve: Any, connect: Any):
    class Smuggler(Changing):
        async def identify(self) -> Identity:
            return Identity(bearer("t\r\nImpersonate-User: admin"))

    async def main() -> None:
        async with serve(ok) as server:
            session = connect(server.url, credentials=Smuggler()).session
            with pytest.raises(UnreachableError, match="contains a line end"):
                await session.request("GET", "/x")
            assert server.requests == []

    asyncio.run(main())


class Listener:
    """Records the calls of a session to its observer."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def answered(
        self, method: str, code: int, duration_s: float, *, sent_bytes: int, received_bytes: int
    ) -> None:
        self.calls.append((method, code, sent_bytes, received_bytes))

    def unanswered(self, method: str) -> None:
        self.calls.append((method, "unanswered"))

    def held_back(self, method: str, duration_s: float) -> None:
        self.calls.append((method, "held back"))

    def repeated(self, method: str, code: int | None) -> None:
        self.calls.append((method, "repeated", code))


def test_an_observer_is_called_for_every_answer(serve: Any, pauses: Any):
    async def main() -> None:
        listener = Listener()
        async with serve(LATER, ok) as server:
            session = ApiSession(
                ServerConfig(server=server.url),
                SystemClock(),
                sleep=pauses,
                observer=listener,
            )
            body = await session.request("PUT", "/x", b"{}")
            assert [entry for entry in listener.calls if "held back" not in entry] == [
                ("PUT", 429, 2, 72),
                ("PUT", "repeated", 429),
                ("PUT", 200, 2, len(body)),
            ]
            assert listener.calls.count(("PUT", "held back")) == 2
            assert session.statistics().request_count == 2
            session.close()

    asyncio.run(main())


def test_an_observer_is_called_without_an_answer():
    async def main() -> None:
        listener = Listener()
        session = ApiSession(
            ServerConfig(server="http://127.0.0.1:1"), SystemClock(), qps=-1, observer=listener
        )
        with pytest.raises(UnreachableError):
            await session.request("POST", "/x")
        assert listener.calls == [("POST", "unanswered")]
        session.close()

    asyncio.run(main())
