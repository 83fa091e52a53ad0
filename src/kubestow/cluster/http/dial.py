"""Making connections: directly to the server or through a proxy, with TLS or without.

Through an HTTP proxy an encrypted connection is tunnelled (CONNECT), a plain one is not: the proxy
gets the request itself, with the whole URL in it. Through a SOCKS5 proxy both are tunnelled.
"""

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, cast

from kubestow.cluster.http.connection import Connection
from kubestow.cluster.http.proxy import Endpoint, Proxy, endpoint_of
from kubestow.cluster.http.tls import TlsContexts
from kubestow.cluster.http.wire import Head, WireError
from kubestow.errors import ConfigError, UnreachableError

DIAL_TIMEOUT_S: Final = 30.0
TLS_TIMEOUT_S: Final = 10.0
# A lost peer is detected within a minute; otherwise a watch would wait for it until its time limit.
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
_HEAD_BYTES_MAX: Final = 16 * 1024


class Dialer:
    """Makes connections to one server."""

    def __init__(self, server: str, tls: TlsContexts, proxy: Proxy | None = None) -> None:
        self.endpoint: Final = endpoint_of(server)
        self._is_secure = server.startswith("https:")
        self._tls = tls
        self._server_name = tls.server_name or self.endpoint.host
        self._proxy = proxy

    def check(self) -> None:
        """ConfigError if the certificates given cannot be used."""
        if self._is_secure:
            self._tls.current()

    @property
    def asks_proxy(self) -> bool:
        """Whether requests go to a proxy that needs the whole URL in them."""
        return self._proxy is not None and not self._is_secure and not self._proxy.is_socks

    @property
    def proxy_authorization(self) -> str:
        """The value of the Proxy-Authorization header of such requests."""
        return self._proxy.authorization if self._proxy is not None else ""

    async def dial(self) -> Connection:
        """A new connection, ready for a request; raises UnreachableError."""
        peer = self.endpoint.authority
        connection = Connection(peer)
        try:
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                await self._connect(connection)
        except ConfigError as error:
            # The certificate was valid at the start: it is being replaced, or became invalid.
            raise UnreachableError(f"cannot connect to {peer}: {error}") from error
        except TimeoutError as error:
            raise UnreachableError(f"no connection to {peer} within {DIAL_TIMEOUT_S} s") from error
        except (OSError, UnicodeError) as error:  # UnicodeError: the host cannot be a name in DNS
            raise UnreachableError(
                f"cannot connect to {peer}: {_reason(error)}",
                cause="refused" if _is_refusal(error) else "other",
            ) from error
        return connection

    async def _connect(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        context = self._tls.current() if self._is_secure else None
        if self._proxy is None or self.asks_proxy:
            target = self.endpoint if self._proxy is None else self._proxy.endpoint
            secured = context if self._proxy is None else self._proxy_context(self._proxy)
            name = self._server_name if self._proxy is None else target.host
            with _naming(self._proxy):
                transport, _ = await loop.create_connection(
                    lambda: connection,
                    target.host,
                    target.port,
                    ssl=secured,
                    server_hostname=name if secured is not None else None,
                    ssl_handshake_timeout=TLS_TIMEOUT_S if secured is not None else None,
                )
            _keep_alive(transport)
            return
        transport = await self._tunnel(self._proxy)
        if context is None:
            transport.set_protocol(connection)
            connection.connection_made(transport)
            return
        secured_transport = await loop.start_tls(
            transport,
            connection,
            context,
            server_hostname=self._server_name,
            ssl_handshake_timeout=TLS_TIMEOUT_S,
        )
        if secured_transport is None:
            raise OSError("the connection was closed while it was being secured")
        connection.connection_made(secured_transport)

    async def _tunnel(self, proxy: Proxy) -> asyncio.Transport:
        """A connection through the proxy on which nothing has been sent yet."""
        context = self._proxy_context(proxy)
        with _naming(proxy):
            transport, handshake = await asyncio.get_running_loop().create_connection(
                _Handshake,
                proxy.endpoint.host,
                proxy.endpoint.port,
                ssl=context,
                ssl_handshake_timeout=TLS_TIMEOUT_S if context is not None else None,
            )
        _keep_alive(transport)
        try:
            if proxy.is_socks:
                await _ask_socks(transport, handshake, proxy, self.endpoint)
            else:
                await _ask_http(transport, handshake, proxy, self.endpoint)
        except BaseException:
            transport.abort()
            raise
        return transport

    def _proxy_context(self, proxy: Proxy) -> ssl.SSLContext | None:
        # As with other clients, one set of authorities is used for the proxy and the server.
        return self._tls.current() if proxy.scheme == "https" else None


class _Handshake(asyncio.Protocol):
    """The handshake with a proxy: reads exactly as many bytes as asked for."""

    def __init__(self) -> None:
        self._arrived = bytearray()
        self._has_ended = False
        self._wakeup = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._arrived += data
        self._wakeup.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended = True
        self._wakeup.set()

    async def read(self, count: int) -> bytes:
        await self._wait_for(lambda: count if len(self._arrived) >= count else 0)
        return self._take(count)

    async def read_head(self) -> bytes:
        end = b"\r\n\r\n"
        length = await self._wait_for(lambda: self._arrived.find(end) + 1)
        head = self._take(length - 1)
        self._take(len(end))
        return head

    async def _wait_for(self, length: Callable[[], int]) -> int:
        while not (found := length()):
            if self._has_ended or len(self._arrived) > _HEAD_BYTES_MAX:
                raise OSError("the proxy ended the handshake")
            self._wakeup.clear()
            await self._wakeup.wait()
        return found

    def _take(self, count: int) -> bytes:
        taken = bytes(self._arrived[:count])
        del self._arrived[:count]
        return taken


async def _ask_http(
    transport: asyncio.Transport, handshake: _Handshake, proxy: Proxy, target: Endpoint
) -> None:
    lines = [f"CONNECT {target.authority} HTTP/1.1", f"Host: {target.authority}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    transport.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    try:
        head = Head(await handshake.read_head())
    except WireError as error:
        raise OSError(f"the proxy {proxy.endpoint.authority}: {error}") from error
    if head.status // 100 != 2:
        raise OSError(f"the proxy {proxy.endpoint.authority} answered with {head.status}")


_SOCKS_VERSION: Final = 5
_SOCKS_NO_AUTHENTICATION: Final = 0
_SOCKS_PASSWORD: Final = 2
_SOCKS_CONNECT: Final = 1
_SOCKS_ADDRESS_LENGTHS: Final = {1: 4, 4: 16}  # IPv4 and IPv6; a name (3) starts with its length


async def _ask_socks(
    transport: asyncio.Transport, handshake: _Handshake, proxy: Proxy, target: Endpoint
) -> None:
    """RFC 1928, with names resolved by the proxy, and RFC 1929 for a password."""
    where = f"the proxy {proxy.endpoint.authority}"
    methods = bytes([_SOCKS_PASSWORD if proxy.user else _SOCKS_NO_AUTHENTICATION])
    transport.write(bytes([_SOCKS_VERSION, len(methods)]) + methods)
    version, method = await handshake.read(2)
    if version != _SOCKS_VERSION or method != methods[0]:
        raise OSError(f"{where} does not accept our authentication method")
    if proxy.user:
        user, password = proxy.user.encode(), proxy.password.encode()
        transport.write(b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password)
        if (await handshake.read(2))[1] != 0:
            raise OSError(f"{where} does not accept our user or password")
    port = target.port.to_bytes(2, "big")
    transport.write(bytes([_SOCKS_VERSION, _SOCKS_CONNECT, 0]) + _socks_address(target.host) + port)
    _, code, _, kind = await handshake.read(4)
    if code != 0:
        raise OSError(f"{where} cannot connect to {target.authority}: SOCKS error {code}")
    length = _SOCKS_ADDRESS_LENGTHS.get(kind) or (await handshake.read(1))[0]
    await handshake.read(length + len(port))


def _socks_address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna")
        return bytes([3, len(name)]) + name
    return bytes([1 if address.version == 4 else 4]) + address.packed


def _keep_alive(transport: asyncio.BaseTransport) -> None:
    # asyncio returns a wrapper with the same methods.
    found = cast("socket.socket | None", transport.get_extra_info("socket"))
    if found is None:
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):  # not every system has all of them
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _is_refusal(error: Exception) -> bool:
    """Whether the connection was refused: the request has certainly not been carried out."""
    # A name with several addresses gives one error that only joins their texts.
    return isinstance(error, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(
        error
    )


@contextmanager
def _naming(proxy: Proxy | None) -> Generator[None, None, None]:
    """An error of a connection to a proxy names it: it is not that of the server."""
    try:
        yield
    except OSError as error:
        if proxy is None:
            raise
        kind = ConnectionRefusedError if _is_refusal(error) else OSError
        raise kind(f"the proxy {proxy.endpoint.authority}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        is_plain = error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST")
        return "it does not answer with TLS" if is_plain else str(error)
    if isinstance(error, OSError) and error.strerror:
        return "connection refused" if _is_refusal(error) else error.strerror.lower()
    # One error for all addresses of a name, or one of ours.
    if str(error).startswith("Multiple exceptions") and _is_refusal(error):
        return "connection refused"
    return str(error) or type(error).__name__
