"""Connections: with TLS both ways, and through proxies."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kubestow.cluster.http.credentials import FixedCredentials, Identity
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.proxy import parse_proxy
from kubestow.cluster.http.tls import CertificatePair, TlsSettings
from kubestow.errors import ConfigError, UnreachableError


def server_context(certificates: Any, *, wants_client: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server, certificates.server_key)
    if wants_client:
        context.load_verify_locations(certificates.ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def answer_with_client_name(request: web.Request) -> web.StreamResponse:
    """Answers with the name in the client's certificate."""
    assert request.transport is not None
    peer = request.transport.get_extra_info("peercert") or {"subject": ()}
    names = [value for part in peer["subject"] for key, value in part if key == "commonName"]
    return web.json_response({"names": names})


def test_server_and_client_are_verified(serve: Any, connect: Any, certificates: Any):
    settings = TlsSettings(
        ca_file=str(certificates.ca),
        certificate_file=str(certificates.client),
        key_file=str(certificates.client_key),
    )

    async def main() -> None:
        tls = server_context(certificates, wants_client=True)
        async with serve(answer_with_client_name, tls=tls) as server:
            client = connect("", config=ServerConfig(server=server.url, tls=settings))
            assert await client.get_document("/x") == {"names": ["ann"]}
            client.close()

    asyncio.run(main())


def test_a_server_without_a_trusted_certificate_is_refused(
    serve: Any, connect: Any, certificates: Any
):
    settings = TlsSettings(ca_file=str(certificates.other_ca))

    async def main() -> None:
        async with serve(answer_with_client_name, tls=server_context(certificates)) as server:
            client = connect("", config=ServerConfig(server=server.url, tls=settings))
            with pytest.raises(UnreachableError, match="certificate is not accepted"):
                await client.get_document("/x")
            assert server.requests == []

    asyncio.run(main())


@pytest.mark.parametrize(
    ("host", "server_name", "accepted"),
    [
        pytest.param("127.0.0.1", "", True, id="address"),
        pytest.param("localhost", "", True, id="name"),
        pytest.param("127.0.0.1", "localhost", True, id="another-name"),
        pytest.param("127.0.0.1", "elsewhere", False, id="wrong-name"),
    ],
)
def test_the_certificate_is_for_the_name_expected(
    serve: Any, connect: Any, certificates: Any, host: str, server_name: str, accepted: bool
):
    settings = TlsSettings(ca_data=certificates.ca.read_bytes(), server_name=server_name)

    async def main() -> None:
        async with serve(answer_with_client_name, tls=server_context(certificates)) as server:
            url = server.url.replace("127.0.0.1", host)
            client = connect("", config=ServerConfig(server=url, tls=settings))
            if accepted:
                assert await client.get_document("/x") == {"names": []}
            else:
                with pytest.raises(UnreachableError, match="certificate is not accepted"):
                    await client.get_document("/x")
            client.close()

    asyncio.run(main())


def test_a_certificate_of_a_plugin_is_shown(serve: Any, connect: Any, certificates: Any):
    class Plugin(FixedCredentials):
        async def identify(self) -> Identity:
            pair = CertificatePair(
                certificates.client.read_bytes(), certificates.client_key.read_bytes()
            )
            return Identity((), pair)

    async def main() -> None:
        tls = server_context(certificates, wants_client=True)
        async with serve(answer_with_client_name, tls=tls) as server:
            config = ServerConfig(
                server=server.url,
                tls=TlsSettings(ca_file=str(certificates.ca)),
                credentials=Plugin(),
            )
            client = connect("", config=config)
            assert await client.get_document("/x") == {"names": ["ann"]}
            client.close()

    asyncio.run(main())


def test_a_server_that_requires_a_certificate_is_not_asked_repeatedly(
    serve_raw: Any, connect: Any, pauses: Any, certificates: Any
):
    context = server_context(certificates, wants_client=True)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A handshake as of other servers: it ends with an alert that gives the reason."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        has_failed = False
        while data := await reader.read(65536):
            if has_failed:
                continue
            incoming.write(data)
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                has_failed = True
            writer.write(outgoing.read())

    async def main() -> None:
        async with serve_raw(talk) as server:
            settings = TlsSettings(ca_file=str(certificates.ca))
            url = server.url.replace("http:", "https:")
            client = connect("", config=ServerConfig(server=url, tls=settings))
            with pytest.raises(UnreachableError, match=r"(?i)certificate.required"):
                await client.get_document("/x")
            assert pauses.delays_s == []

    asyncio.run(main())


def test_a_refused_connection(connect: Any, serve: Any):
    async def main() -> None:
        async with serve(answer_with_client_name) as server:
            url = server.url
        client: HttpClient = connect(url)
        with pytest.raises(UnreachableError, match="connection refused") as caught:
            await client.get_document("/x")
        assert caught.value.cause == "refused"

    asyncio.run(main())


# --- Proxies ----------------------------------------------------------------------------------


class ScriptedProxy:
    """Accepts CONNECT and SOCKS5, and passes the bytes on."""

    def __init__(self, target_port: Callable[[], int]) -> None:
        self.asked: list[bytes] = []
        self._target_port = target_port

    async def talk_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await self._pass_on(reader, writer)

    async def talk_socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        version, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        writer.write(bytes([version, methods[0]]))
        if methods[0] == 2:
            await reader.readexactly(1)
            user = await reader.readexactly((await reader.readexactly(1))[0])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            self.asked.append(user + b":" + password)
            writer.write(b"\x01\x00")
        head = await reader.readexactly(4)
        size = 4 if head[3] == 1 else (await reader.readexactly(1))[0]
        self.asked.append((await reader.readexactly(size + 2))[:-2])
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        await self._pass_on(reader, writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, downstream = await asyncio.open_connection("127.0.0.1", self._target_port())

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        try:
            await asyncio.gather(pump(reader, downstream), pump(upstream, writer))
        finally:
            downstream.close()


@pytest.mark.parametrize(
    ("scheme", "is_secure"),
    [
        pytest.param("http", True, id="http-tunnel"),
        pytest.param("https", True, id="https-tunnel"),
        pytest.param("socks5", True, id="socks-tls"),
        pytest.param("socks5", False, id="socks-plain"),
    ],
)
def test_through_a_proxy(
    serve: Any, serve_raw: Any, connect: Any, certificates: Any, scheme: str, is_secure: bool
):
    async def main() -> None:
        tls = server_context(certificates) if is_secure else None
        async with serve(web.json_response({"ok": True}), tls=tls) as server:
            port = int(server.url.rpartition(":")[2])
            proxy = ScriptedProxy(lambda: port)
            talk = proxy.talk_socks if scheme == "socks5" else proxy.talk_http
            proxy_tls = server_context(certificates) if scheme == "https" else None
            async with serve_raw(talk, proxy_tls) as raw:
                config = ServerConfig(
                    # The name is resolved by the proxy alone.
                    server=f"{'https' if is_secure else 'http'}://api.invalid:{port}",
                    tls=TlsSettings(ca_file=str(certificates.ca), server_name="localhost"),
                    proxy=parse_proxy(f"{scheme}://ann:pw@127.0.0.1:{raw.port}"),
                )
                client = connect("", config=config)
                assert await client.get_document("/x") == {"ok": True}
                client.close()
            assert server.requests[0].path == "/x"
            if scheme == "socks5":
                assert proxy.asked == [b"ann:pw", b"api.invalid"]
            else:
                head = proxy.asked[0].decode()
                assert head.startswith(f"CONNECT api.invalid:{port} HTTP/1.1\r\n")
                assert "Proxy-Authorization: Basic YW5uOnB3\r\n" in head

    asyncio.run(main())


def test_a_plain_request_goes_to_the_proxy_with_its_whole_url(serve: Any, connect: Any):
    async def main() -> None:
        async with serve(web.json_response({})) as proxy:
            config = ServerConfig(
                server="http://api.invalid:8080/base",
                proxy=parse_proxy(proxy.url.replace("//", "//ann:pw@")),
            )
            client = connect("", config=config)
            await client.get_document("/x")
            client.close()
            (seen,) = proxy.requests
            assert seen.path == "/base/x"
            assert seen.headers["Host"] == "api.invalid:8080"
            assert seen.headers["Proxy-Authorization"] == "Basic YW5uOnB3"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("scheme", "answer", "message"),
    [
        pytest.param("http", b"HTTP/1.1 407 Auth\r\n\r\n", "answered with 407", id="http-no"),
        pytest.param("http", b"nonsense\r\n\r\n", "expected an HTTP", id="http-nonsense"),
        pytest.param("http", b"HTTP/1.1", "ended the handshake", id="http-silent"),
        pytest.param("socks5", b"\x05\xff", "our authentication method", id="socks-no"),
        pytest.param("socks5", b"\x05\x00\x05\x05\x00\x01", "SOCKS error 5", id="socks-refused"),
    ],
)
def test_a_proxy_that_fails(serve_raw: Any, connect: Any, scheme: str, answer: bytes, message: str):
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(3)
        writer.write(answer)
        writer.write_eof()
        await reader.read()

    async def main() -> None:
        async with serve_raw(talk) as raw:
            proxy = parse_proxy(f"{scheme}://127.0.0.1:{raw.port}")
            config = ServerConfig(server="https://api.invalid", proxy=proxy)
            with pytest.raises(UnreachableError, match=message):
                await connect("", config=config).get_document("/x")

    asyncio.run(main())


@pytest.mark.parametrize("server", ["https://api.invalid", "http://api.invalid"])
def test_a_proxy_that_is_away_is_named(connect: Any, server: str):
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as bound:
            where = f"127.0.0.1:{bound.getsockname()[1]}"
        config = ServerConfig(server=server, proxy=parse_proxy(f"http://{where}"))
        with pytest.raises(UnreachableError) as caught:
            await connect("", config=config).get_document("/x")
        assert str(caught.value).endswith(f": the proxy {where}: connection refused")
        assert caught.value.cause == "refused"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(ConnectionRefusedError(111, "Connect call failed"), "connection refused"),
        pytest.param(
            ConnectionResetError(104, "Connection reset by peer"), "connection reset by peer"
        ),
        pytest.param(socket.gaierror(-2, "Name or service not known"), "name or service not known"),
        pytest.param(
            OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] the same"),
            "connection refused",
        ),
    ],
)
def test_reasons_have_no_numbers_of_the_system(connect: Any, error: OSError, reason: str):
    async def main() -> None:
        async def fail(*_: object, **__: object) -> None:
            raise error

        asyncio.get_running_loop().create_connection = fail  # type: ignore[method-assign]
        with pytest.raises(UnreachableError) as caught:
            await connect("http://api.invalid:80").get_document("/x")
        assert str(caught.value) == f"cannot connect to api.invalid:80: {reason}"

    asyncio.run(main())


def test_a_server_without_tls_is_said_to_be_one(serve: Any, connect: Any):
    async def main() -> None:
        async with serve(web.json_response({})) as server:
            with pytest.raises(UnreachableError, match="it does not answer with TLS"):
                await connect(server.url.replace("http:", "https:")).get_document("/x")

    asyncio.run(main())


def test_a_certificate_replaced_on_disk_is_used_for_the_next_connection(
    serve: Any, connect: Any, certificates: Any, tmp_path: Path
):
    ca = tmp_path / "ca.crt"
    ca.write_bytes(certificates.other_ca.read_bytes())

    async def main() -> None:
        async with serve(answer_with_client_name, tls=server_context(certificates)) as server:
            settings = TlsSettings(ca_file=str(ca))
            client = connect("", config=ServerConfig(server=server.url, tls=settings))
            with pytest.raises(UnreachableError):
                await client.get_document("/x")
            ca.write_bytes(certificates.ca.read_bytes() + b"\n")
            assert await client.get_document("/x") == {"names": []}
            client.close()

    asyncio.run(main())


def test_an_invalid_certificate_is_a_config_error_at_first_and_unreachable_later(
    serve: Any, connect: Any, certificates: Any, tmp_path: Path
):
    ca = tmp_path / "ca.crt"
    ca.write_bytes(b"not yet")

    async def main() -> None:
        async with serve(answer_with_client_name, tls=server_context(certificates)) as server:
            config = ServerConfig(server=server.url, tls=TlsSettings(ca_file=str(ca)))
            with pytest.raises(ConfigError, match="cannot use the certificate authority"):
                connect("", config=config)
            ca.write_bytes(certificates.ca.read_bytes())
            client = connect("", config=config)
            ca.write_bytes(b"")
            with pytest.raises(UnreachableError, match="cannot use the certificate authority"):
                await client.get_document("/x")

    asyncio.run(main())


def test_a_host_that_cannot_be_a_name_is_unreachable(connect: Any):
    async def main() -> None:
        client = connect(f"http://{'9' * 5000}:80")
        with pytest.raises(UnreachableError, match="cannot connect to 999"):
            await client.get_document("/x")

    asyncio.run(main())
