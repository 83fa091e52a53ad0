"""One POST that blocks, and ends in time whatever the other side does.

A socket's own time-out starts anew with every byte, so a server that sends one byte a second would
never run into it. Here a timer shuts the connection down when the time of the whole request is up.
The body is read up to a limit: an answer without end must not fill the memory.
"""

import http.client
import socket
import ssl
import threading
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from kubestow.cluster.http.proxy import Proxy, endpoint_of
from kubestow.cluster.http.tls import TlsContexts
from kubestow.errors import ConfigError, ExtenderError

OK: Final = 200


class Answer(NamedTuple):
    """`body` is empty unless the code is 200."""

    code: int
    body: bytes


def post_json(
    url: str,
    body: bytes,
    *,
    timeout_s: float,
    body_bytes_max: int,
    tls: TlsContexts,
    proxy: Proxy | None,
) -> Answer:
    """Raises ExtenderError, which says what was asked and why there is no answer."""
    with _Deadline(timeout_s) as deadline:
        try:
            return _exchange(url, body, deadline, body_bytes_max, tls, proxy)
        except (OSError, http.client.HTTPException, ConfigError, ValueError) as error:
            if deadline.is_over or isinstance(error, TimeoutError):
                raise ExtenderError(f'Post "{url}": no answer within {timeout_s:g} s') from error
            raise ExtenderError(f'Post "{url}": {_words(error)}') from error


class _Deadline:
    """Shuts a socket down when the time is up, which ends whoever waits for it."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s: Final = timeout_s
        self.is_over = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(timeout_s, self._end)
        self._timer.daemon = True

    def __enter__(self) -> "_Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._socket is not None:
            self._socket.close()

    def guard(self, sock: socket.socket) -> None:
        self._socket = sock
        if self.is_over:
            raise TimeoutError

    def _end(self) -> None:
        self.is_over = True
        sock = self._socket
        if sock is not None:
            # Not `sock.shutdown`: that of a TLS socket would pull the session from under the
            # thread that reads. It may be closed already.
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _exchange(
    url: str,
    body: bytes,
    deadline: _Deadline,
    body_bytes_max: int,
    tls: TlsContexts,
    proxy: Proxy | None,
) -> Answer:
    endpoint, is_secure = endpoint_of(url), url.startswith("https:")
    if proxy is not None and proxy.scheme != "http":
        raise ConfigError(f"a proxy of scheme {proxy.scheme} is not supported for extenders")
    nearest = endpoint if proxy is None else proxy.endpoint
    connection = http.client.HTTPConnection(nearest.host, nearest.port, timeout=deadline.timeout_s)
    headers = {"Content-Type": "application/json", "Connection": "close"}
    target = _path(url)
    if proxy is not None:
        authorization = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
        if is_secure:
            connection.set_tunnel(endpoint.host, endpoint.port, authorization)
        else:
            target, headers = url, headers | authorization
    headers["Host"] = urlsplit(url).netloc.rpartition("@")[2]
    connection.connect()
    deadline.guard(connection.sock)
    if is_secure:
        connection.sock = _secured(connection.sock, tls, endpoint.host, deadline)
    connection.request("POST", target, body, headers)
    with connection.getresponse() as response:
        if response.status != OK:
            return Answer(response.status, b"")
        received = response.read(body_bytes_max + 1)
    if deadline.is_over:
        raise TimeoutError
    if len(received) > body_bytes_max:
        raise ValueError(f"the answer has more than {body_bytes_max} bytes")
    return Answer(response.status, received)


def _secured(
    sock: socket.socket, tls: TlsContexts, host: str, deadline: _Deadline
) -> ssl.SSLSocket:
    secured = tls.current().wrap_socket(
        sock, server_hostname=tls.server_name or host, do_handshake_on_connect=False
    )
    deadline.guard(secured)
    secured.do_handshake()
    return secured


def _path(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {error.verify_message}"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection was closed before an answer came"
    if isinstance(error, http.client.HTTPException):
        return f"the answer is no HTTP: {type(error).__name__} {error}".rstrip()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
