"""One POST with a timeout.

The request runs on an event loop in a thread of its own, because the caller's loop may be in
virtual time. The body is read up to a limit: an endless answer must not fill the memory.
"""

import asyncio
import ssl
import threading
from concurrent.futures import Future
from functools import cache
from typing import Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from kubestow.cluster.http.credentials import basic
from kubestow.cluster.http.dial import Dialer
from kubestow.cluster.http.proxy import Proxy
from kubestow.cluster.http.tls import TlsContexts
from kubestow.cluster.http.wire import CutOffError, WireError
from kubestow.errors import ConfigError, ExtenderError, UnreachableError
from kubestow.redaction import without_secrets

OK: Final = 200


class PostResponse(NamedTuple):
    """`body` is empty unless the code is 200."""

    code: int
    body: bytes


class Post(Protocol):
    """`post_json`, or what a simulation has in its place."""

    def __call__(
        self,
        url: str,
        body: bytes,
        *,
        timeout_s: float,
        body_bytes_max: int,
        tls: TlsContexts,
        proxy: Proxy | None,
    ) -> "Future[PostResponse]": ...


def post_json(
    url: str,
    body: bytes,
    *,
    timeout_s: float,
    body_bytes_max: int,
    tls: TlsContexts,
    proxy: Proxy | None,
) -> "Future[PostResponse]":
    """The answer, or an ExtenderError with the URL and the cause."""
    shown = without_secrets(url)

    async def exchange() -> PostResponse:
        try:
            async with asyncio.timeout(timeout_s):
                return await _exchange(url, body, body_bytes_max, Dialer(url, tls, proxy))
        except TimeoutError as error:
            raise ExtenderError(f'Post "{shown}": no answer within {timeout_s:g} s') from error
        except (UnreachableError, ConfigError, ValueError) as error:
            raise ExtenderError(f'Post "{shown}": {_words(error)}') from error

    return asyncio.run_coroutine_threadsafe(exchange(), _loop())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="extenders", daemon=True).start()
    return loop


async def _exchange(url: str, body: bytes, body_bytes_max: int, dialer: Dialer) -> PostResponse:
    request = _head(url, len(body), dialer) + body
    connection = await dialer.dial()
    sink = _Body(body_bytes_max)
    try:
        response = await connection.exchange(request, sink, any_status=True)
        if response.head.status != OK:
            return PostResponse(response.head.status, b"")
        received = await sink.whole
    finally:
        connection.close()
    if len(received) > body_bytes_max:
        raise ValueError(f"the answer has more than {body_bytes_max} bytes")
    return PostResponse(OK, received)


def _head(url: str, length: int, dialer: Dialer) -> bytes:
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [
        f"POST {parts._replace(netloc=host).geturl() if dialer.asks_proxy else target} HTTP/1.1",
        f"Host: {host}",
        "Accept-Encoding: identity",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        "Connection: close",
    ]
    if user:
        name, _, password = user.partition(":")
        lines += (f"{key}: {value}" for key, value in basic(unquote(name), unquote(password)))
    if dialer.asks_proxy and dialer.proxy_authorization:
        lines.append(f"Proxy-Authorization: {dialer.proxy_authorization}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


class _Body:
    """A `Sink` that joins a body, up to the first piece beyond the limit."""

    def __init__(self, bytes_max: int) -> None:
        self.whole: Final[asyncio.Future[bytes]] = asyncio.get_running_loop().create_future()
        self._bytes_max = bytes_max
        self._received = bytearray()

    def feed(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > self._bytes_max:
            self.end(None)

    def end(self, error: UnreachableError | None) -> None:
        if self.whole.done():
            return
        if error is None:
            self.whole.set_result(bytes(self._received))
        else:
            self.whole.set_exception(error)


def _words(error: Exception) -> str:
    source = error.__cause__ or error
    if isinstance(error, UnreachableError) and error.cause == "refused":
        return "Connection refused"
    if isinstance(source, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {source.verify_message}"
    if isinstance(source, CutOffError):
        return "the connection was closed before an answer came"
    if isinstance(source, WireError):
        return f"the answer is no HTTP: {source}"
    if isinstance(source, OSError) and source.strerror:
        return source.strerror
    return str(source) or str(error)
