"""Authentication: tokens, reviews, and a certificate that clients can check."""

import asyncio
import gzip
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import NANOSECONDS, SystemClock
from kubestow.cluster.self_signed import self_signed

Serve = Callable[..., Any]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        pytest.param("Bearer secret", 200, id="right"),
        pytest.param("bearer secret", 200, id="scheme-in-lower-case"),
        pytest.param("Bearer wrong", 401, id="wrong"),
        pytest.param("Basic c2VjcmV0", 401, id="other-scheme"),
        pytest.param("", 401, id="none"),
    ],
)
def test_only_requests_with_the_token_are_accepted(serve: Serve, header: str, status: int):
    async def work(client: Any):
        headers = {"Authorization": header} if header else {}
        return await client.call("GET", "/api/v1/pods", headers=headers)

    reply = serve(work, token="secret")
    assert reply.status == status
    if status == 401:
        assert reply.body["reason"] == "Unauthorized"


def test_a_watch_needs_the_token_too(serve: Serve):
    async def work(client: Any):
        async with client.watch("/api/v1/pods") as lines:
            return lines.status

    assert serve(work, token="secret") == 401


@pytest.mark.parametrize(
    ("plural", "group", "spec", "field", "expected"),
    [
        pytest.param(
            "tokenreviews",
            "authentication.k8s.io",
            {"token": "secret"},
            "authenticated",
            True,
            id="good-token",
        ),
        pytest.param(
            "tokenreviews",
            "authentication.k8s.io",
            {"token": "guess"},
            "authenticated",
            False,
            id="bad-token",
        ),
        pytest.param(
            "selfsubjectaccessreviews",
            "authorization.k8s.io",
            {"resourceAttributes": {"verb": "create", "resource": "pods"}},
            "allowed",
            True,
            id="may-i",
        ),
        pytest.param(
            "subjectaccessreviews",
            "authorization.k8s.io",
            {"user": "jane", "resourceAttributes": {"verb": "create", "resource": "pods"}},
            "allowed",
            False,
            id="may-she",
        ),
        pytest.param(
            "selfsubjectrulesreviews",
            "authorization.k8s.io",
            {"namespace": "default"},
            "incomplete",
            False,
            id="what-may-i",
        ),
    ],
)
def test_reviews_are_answered_in_their_status(
    serve: Serve, plural: str, group: str, spec: dict[str, Any], field: str, expected: bool
):
    async def work(client: Any):
        return await client.post(f"/apis/{group}/v1/{plural}", {"spec": spec})

    reply = serve(work, token="secret", headers={"Authorization": "Bearer secret"})
    assert reply.status == 201
    assert reply.body["status"][field] is expected
    assert reply.body["spec"] == spec


def test_a_self_subject_review_names_the_user(serve: Serve):
    async def work(client: Any):
        return await client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})

    assert serve(work).body["status"]["userInfo"]["username"] == "kubernetes-admin"


# --- TLS and the kubeconfig -------------------------------------------------------------------


def strict_context(authority: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_certificate_passes_the_strictest_check(cluster: MemoryCluster, host: str):
    clock = SystemClock()
    made = self_signed(now_ns=clock.now_ns())

    async def run() -> int:
        server = ApiServer(cluster, clock)
        port = await server.start(tls=made.server_context())
        try:
            connector = aiohttp.TCPConnector(ssl=strict_context(made.authority))
            async with (
                aiohttp.ClientSession(connector=connector) as session,
                session.get(f"https://{host}:{port}/version") as response,
            ):
                return response.status
        finally:
            await server.close()

    assert asyncio.run(run()) == 200


def test_a_certificate_for_another_name_is_not_trusted(cluster: MemoryCluster):
    clock = SystemClock()
    made = self_signed(["elsewhere.example"], now_ns=clock.now_ns())

    async def run() -> None:
        server = ApiServer(cluster, clock)
        port = await server.start(tls=made.server_context())
        try:
            connector = aiohttp.TCPConnector(ssl=strict_context(made.authority))
            async with aiohttp.ClientSession(connector=connector) as session:
                with pytest.raises(aiohttp.ClientConnectorCertificateError):
                    await session.get(f"https://127.0.0.1:{port}/version")
        finally:
            await server.close()

    asyncio.run(run())


def test_a_certificate_is_valid_for_as_long_as_asked(tmp_path: Path):
    now_s = 1_800_000_000
    made = self_signed(["a.example"], now_ns=now_s * NANOSECONDS, valid_days=365)
    path = tmp_path / "certificate.pem"
    path.write_bytes(made.certificate)
    # There is no public way to read a certificate in the standard library but through a connection.
    found = ssl._ssl._test_decode_cert(str(path))
    assert ssl.cert_time_to_seconds(found["notAfter"]) == now_s + 365 * 24 * 3600
    assert ssl.cert_time_to_seconds(found["notBefore"]) <= now_s
    assert found["subjectAltName"] == (("DNS", "a.example"),)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:1", 200),
        ("localhost:6443", 200),
        ("[::1]:6443", 200),
        ("evil.example", 421),
        ("evil.example:80", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost:x", 421),
        ("", 421),
    ],
)
@pytest.mark.parametrize("token", ["", "secret"])
def test_on_a_loopback_address_the_host_has_to_be_one(
    serve: Serve, host: str, status: int, token: str
):
    headers = {"Host": host, "Authorization": f"Bearer {token}"}

    async def work(client: Any) -> None:
        reply = await client.call("GET", "/api/v1/namespaces", headers=headers)
        assert reply.status == status

    serve(work, token=token)


def test_a_packed_body_is_refused_before_anything_else(serve: Serve):
    async def work(client: Any) -> None:
        body = gzip.compress(b'{"metadata": {"name": "a"}}')
        headers = {"Content-Encoding": "gzip"}
        for path in ("/api/v1/namespaces", "/healthz", "/nowhere"):
            assert (await client.call("POST", path, body, headers=headers)).status == 415
        reply = await client.call("GET", "/api/v1/namespaces/a", headers=AUTHORIZED)
        assert reply.status == 404

    serve(work, token="secret")


AUTHORIZED = {"Authorization": "Bearer secret"}
