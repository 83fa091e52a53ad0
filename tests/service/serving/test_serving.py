"""The HTTPS port from the outside: TLS, access and answers (spec 09 §7)."""

import asyncio
import gzip
import io
import json
import ssl
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import numpy as np
import pytest
from cryptography import x509
from prometheus_client.parser import text_string_to_metric_families

from kubestow import __version__
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import NANOSECONDS, SystemClock
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import ConfigError, NotFoundError
from kubestow.explain.cluster import StillCluster
from kubestow.explain.history import KeptAttempt
from kubestow.explain.running_pod import RunningPod
from kubestow.service.connections import Connections
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.service.serving.application import peer_certificate
from kubestow.service.serving.certificates import cipher_names
from kubestow.service.serving.reviews import REVIEWS_MAX
from kubestow.service.serving.server import bind_socket
from kubestow.service.serving.serving import Serving
from kubestow.testing import ManualClock, make_node, make_pod

TOKEN = "good"
REVIEWS = ["TokenReview", "SubjectAccessReview"]


class Reviewer:
    """The reviews of an API server: one token, whose owner may do everything."""

    def __init__(self, config_map: JsonObject | None = None) -> None:
        self._config_map = config_map

    async def create_document(self, path: str, document: JsonObject) -> JsonObject:
        if path.endswith("tokenreviews"):
            is_good = document["spec"]["token"] == TOKEN
            return {"status": {"authenticated": is_good, "user": {"username": "monitor"}}}
        return {"status": {"allowed": document["spec"]["user"] in ("monitor", "admin")}}

    async def get_document(self, path: str) -> JsonObject:
        if self._config_map is None:
            raise NotFoundError('configmaps "extension-apiserver-authentication" not found')
        return {"data": self._config_map}


class Process:
    """What the pages show."""

    def __init__(self) -> None:
        self.is_stopping = False
        self.has_synced = True
        self.is_active = True
        self.stall: str | None = None
        self.verbosity = 0

    def pods(self) -> Iterable[Pod]:
        return [make_pod("a", cpu="1")]

    def conditions(self) -> tuple[()]:
        return ()

    def kept_attempts(self, namespace: str) -> tuple[()]:
        return ()

    def running_pod(self, namespace: str, name: str) -> RunningPod | None:
        """`waiting` was tried once, `new` was not, `gated` is held back, others are not known."""
        if name not in ("waiting", "new", "gated"):
            return None
        clock = ManualClock()
        client = MemoryClient(MemoryCluster(clock))
        cluster = StillCluster(SchedulerConfig(), client, clock)
        pod = make_pod(name, namespace=namespace, cpu="9")
        cluster.load([make_node("a", cpu="1"), pod])
        frozen = cluster.decide(pod).freeze()
        return RunningPod(
            pod=pod,
            kept=KeptAttempt(frozen, 0, 3, 1) if name == "waiting" else None,
            gate="SchedulingGates" if name == "gated" else "",
            place="active" if name == "new" else "unschedulable",
            next_try_ns=300 * NANOSECONDS,
            hint_map=(),
            priorities={},
        )

    def page_site(self, port: object) -> None:
        return None

    def set_verbosity(self, verbosity: int) -> None:
        self.verbosity = verbosity


class Site:
    """A serving process, and a client without credentials."""

    def __init__(
        self, *flags: str, reviewer: Reviewer | None = None, has_reviewer: bool = True
    ) -> None:
        options = parse_options(["--bind-address=127.0.0.1", "--secure-port=1", *flags])
        assert isinstance(options, SchedulerOptions)
        self.options = _on_a_free_port(options)
        self.process = Process()
        clock, rng = SystemClock(), np.random.default_rng(0)
        reviewer = (reviewer or Reviewer()) if has_reviewer else None
        client: Any = None  # nothing here talks to the cluster itself
        self.metrics = ProcessMetrics(options, clock, rng)
        self.serving = Serving(
            self.options,
            self.options.config,
            Connections(client, client, client, reviewer, reviewer),
            self.metrics,
            clock,
            rng,
            set_verbosity=self.process.set_verbosity,
        )

    async def __aenter__(self) -> "Site":
        await self.serving.start(self.process)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.serving.close()

    async def ask(
        self,
        path: str,
        *,
        token: str = TOKEN,
        method: str = "GET",
        tls: ssl.SSLContext | None = None,
        data: bytes | io.BytesIO | None = None,
        **headers: str,
    ) -> tuple[int, str, str]:
        """Status, content type and text."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connector = aiohttp.TCPConnector(ssl=tls or trusting())
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(
                method, f"https://{self.serving.address}{path}", headers=headers, data=data
            ) as response,
        ):
            return response.status, response.headers["Content-Type"], await response.text()


def _on_a_free_port(options: SchedulerOptions) -> SchedulerOptions:
    # Port 0 means "do not serve" on the command line, but to a socket it means any free port.
    serving = msgspec.structs.replace(options.serving, port=0)
    return msgspec.structs.replace(options, serving=serving)


def trusting() -> ssl.SSLContext:
    """Trusts any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def showing(pair: Any, folder: Path) -> ssl.SSLContext:
    """Trusts any server and has a certificate."""
    path = folder / "client.pem"
    path.write_bytes(pair.pem + pair.key_pem)
    context = trusting()
    context.load_cert_chain(path)
    return context


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(300):
            await work()

    asyncio.run(limited())


# --- answers ---


def test_pages() -> None:
    async def main() -> None:
        async with Site() as site:
            assert await site.ask("/healthz", token="") == (200, "text/plain; charset=utf-8", "ok")
            status, kind, text = await site.ask("/metrics")
            assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
            names = {family.name for family in text_string_to_metric_families(text)}
            assert {"scheduler_pending_pods", "process_cpu_seconds", "python_info"} <= names
            status, kind, text = await site.ask("/configz")
            assert (status, kind) == (200, "application/json")
            assert json.loads(text)["componentconfig"]["kind"] == "KubeSchedulerConfiguration"
            for path in ("/nowhere", "/page/", "/page/state"):
                assert (await site.ask(path))[::2] == (404, "404 page not found\n")
            _, _, text = await site.ask("/metrics/resources")
            assert "kube_pod_resource_request{" in text
            site.process.is_active = False
            assert (await site.ask("/metrics/resources"))[::2] == (200, "")
            _, _, text = await site.ask("/metrics/slis")
            assert 'kubernetes_healthcheck{name="leaderElection",type="healthz"} 1' in text
            assert (await site.ask("/readyz/shutdown"))[::2] == (200, "ok")
            site.process.is_stopping = True
            status, _, text = await site.ask("/readyz/shutdown")
            assert (status, text) == (500, "internal server error: process is shutting down\n")
            assert (await site.ask("/readyz", token=""))[0] == 500
            assert (await site.ask("/livez", token=""))[0] == 200
            site.process.stall = "the scheduling loop has not moved for 21s"
            assert (await site.ask("/livez", token=""))[0] == 500
            text = "internal server error: the scheduling loop has not moved for 21s\n"
            assert (await site.ask("/livez/scheduling-loop"))[2] == text

    run(main)


@pytest.mark.parametrize("token", ["", TOKEN])
@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/debug/flags/v", "/page/session"])
def test_a_packed_body_is_refused_before_anything_else(path: str, token: str) -> None:
    async def main() -> None:
        async with Site() as site:
            headers = {"Content-Encoding": "gzip"}
            body = gzip.compress(b"5")
            answer = await site.ask(path, token=token, method="PUT", data=body, **headers)
            assert answer[0] == 415
            assert site.process.verbosity == 0

    run(main)


class SilentReviewer(Reviewer):
    """Answers no review."""

    async def create_document(self, path: str, document: JsonObject) -> JsonObject:
        await asyncio.Event().wait()
        raise AssertionError


def test_requests_wait_for_a_limited_number_of_reviews_and_probes_for_none() -> None:
    async def main() -> None:
        async with Site(reviewer=SilentReviewer()) as site:
            unknown = [
                asyncio.create_task(site.ask("/metrics", token=f"unknown-{number}"))
                for number in range(REVIEWS_MAX + 4)
            ]
            done, waiting = await asyncio.wait(unknown, timeout=1)
            while len(done) < 4:
                done, waiting = await asyncio.wait(unknown, timeout=1)
            assert [task.result()[0] for task in done] == [429] * 4
            assert (await site.ask("/livez", token=""))[0] == 200
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    run(main)


class LostTls:
    """TLS of a client that has left."""

    def getpeercert(self, binary: bool) -> bytes:
        raise ValueError("handshake not done yet")


class LostRequest:
    def __init__(self) -> None:
        self.transport = self

    def get_extra_info(self, name: str) -> LostTls:
        return LostTls()


def test_a_client_that_leaves_before_its_certificate_is_read_is_gone() -> None:
    request: Any = LostRequest()
    with pytest.raises(ConnectionResetError):
        peer_certificate(request)


def test_the_last_attempt_of_a_pod_is_explained() -> None:
    async def main() -> None:
        async with Site() as site:
            status, kind, text = await site.ask("/explain?namespace=shop&pod=waiting")
            assert (status, kind) == (200, "application/json")
            found = json.loads(text)
            assert found["pod"]["namespace"] == "shop"
            assert found["outcome"] == "Unschedulable"
            assert found["attempt"] == {
                "at": "1970-01-01T00:00:00Z",
                "attempts": 3,
                "nextTry": "1970-01-01T00:05:00Z",
                "place": "unschedulable",
            }
            status, _, text = await site.ask("/explain?pod=gated")
            assert json.loads(text)["outcome"] == "Gated"

    run(main)


@pytest.mark.parametrize(
    ("path", "method", "token", "status", "message"),
    [
        pytest.param("/explain?pod=x", "GET", "", 403, "cannot get path", id="no-credentials"),
        pytest.param("/explain", "GET", TOKEN, 400, "name a pod", id="no-pod"),
        pytest.param("/explain?pod=x", "POST", TOKEN, 405, "only GET", id="not-a-get"),
        pytest.param(
            "/explain?pod=x", "GET", TOKEN, 404, '"default/x" is not known', id="no-such-pod"
        ),
        pytest.param(
            "/explain?pod=new", "GET", TOKEN, 404, "waits for its first attempt", id="not-tried"
        ),
    ],
)
def test_explanations_that_are_refused(
    path: str, method: str, token: str, status: int, message: str
) -> None:
    async def main() -> None:
        async with Site() as site:
            code, _, text = await site.ask(path, method=method, token=token)
            assert code == status
            assert message in json.loads(text)["message"]

    run(main)


def test_flags_and_status() -> None:
    async def main() -> None:
        async with Site("--v=3") as site:
            _, _, text = await site.ask("/flagz")
            lines = text.splitlines()
            assert lines[1] == "kube-scheduler flagz"
            assert any(line.startswith("v") and line.endswith("3") for line in lines)
            accept = "application/json;as=Flagz;v=v1beta1;g=config.k8s.io"
            _, _, text = await site.ask("/flagz", Accept=accept)
            assert json.loads(text)["flags"]["v"] == "3"
            _, _, text = await site.ask("/statusz")
            assert f"Binary version: 1.36.4\nKubestow version: {__version__}\n" in text
            assert "Paths: /configz /debug /flagz /healthz /livez /metrics /readyz /statusz" in text
            accept = "application/json;as=Statusz;v=v1beta1;g=config.k8s.io"
            _, _, text = await site.ask("/statusz", Accept=accept)
            assert json.loads(text)["binaryVersion"] == "1.36.4"

    run(main)


@pytest.mark.parametrize(
    ("flags", "missing"),
    [
        pytest.param(
            (), ["client-ca-file", "requestheader-client-ca-file", *REVIEWS], id="no-flag"
        ),
        pytest.param(("--authentication-skip-lookup",), REVIEWS, id="no-lookup"),
    ],
)
def test_without_an_api_server_for_reviews_the_log_has_what_does_not_work(
    flags: tuple[str, ...], missing: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Site(*flags, has_reviewer=False) as site:
            assert (await site.ask("/metrics"))[0] == 403

    run(main)
    texts = [text for text in caplog.messages if text.startswith("No auth")]
    assert len(texts) == len(missing)
    assert all(name in text for text, name in zip(texts, missing, strict=True))


def test_verbosity_can_be_set() -> None:
    async def main() -> None:
        async with Site() as site:
            assert (await site.ask("/debug/flags/v", method="PUT", data=b"5"))[0] == 200
            assert site.process.verbosity == 5
            assert (await site.ask("/debug/flags/v"))[::2] == (406, "unsupported http method\n")
        async with Site("--profiling=false") as site:
            assert (await site.ask("/debug/flags/v", method="PUT", data=b"5"))[0] == 404

    run(main)


PARSE_UINT = "strconv.ParseUint: parsing"
PARSE_INT = "strconv.ParseInt: parsing"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(b"x", f'{PARSE_UINT} "x": invalid syntax', id="word"),
        pytest.param(b"", f'{PARSE_UINT} "": invalid syntax', id="empty"),
        pytest.param(b"-1", f'{PARSE_UINT} "-1": invalid syntax', id="negative"),
        pytest.param(b"5\n", f'{PARSE_UINT} "5\n": invalid syntax', id="line"),
        pytest.param("\u0663".encode(), f'{PARSE_UINT} "\u0663": invalid syntax', id="digit"),
        pytest.param(b"\xff", f'{PARSE_UINT} "\ufffd": invalid syntax', id="not-utf-8"),
        pytest.param(
            b"2147483648",
            "failed set klog.logging.verbosity 2147483648: "
            f'{PARSE_INT} "2147483648": value out of range',
            id="beyond-int32",
        ),
        pytest.param(
            b"4294967296", f'{PARSE_UINT} "4294967296": value out of range', id="beyond-uint32"
        ),
        pytest.param(
            b"9" * 1024, f'{PARSE_UINT} "{"9" * 1024}": value out of range', id="1024-digits"
        ),
        pytest.param(
            b"9" * 5000, "error reading request body: it is longer than 1024 bytes", id="5000"
        ),
        pytest.param(
            b"9" * 5_000_000, "error reading request body: it is longer than 1024 bytes", id="5-MB"
        ),
    ],
)
def test_what_is_no_verbosity_is_refused(body: bytes, problem: str) -> None:
    async def main() -> None:
        async with Site() as site:
            sent = io.BytesIO(body)
            status, _, text = await site.ask("/debug/flags/v", method="PUT", data=sent)
            assert (status, text) == (400, f"{problem}\n")
            assert site.process.verbosity == 0

    run(main)


def test_refused_connections_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with Site() as site:
            server: Any = site.serving._server  # pyright: ignore[reportPrivateUsage]
            monkeypatch.setattr(server._port, "_connections_max", 1)
            host, _, port = site.serving.address.rpartition(":")
            _, silent = await asyncio.open_connection(host, int(port))
            silent.write(b"\x16")  # the first byte of a handshake
            while not server._port._open:  # noqa: ASYNC110 - some turns of the loop later
                await asyncio.sleep(0)
            _, _, text = await site.ask("/metrics")
            silent.close()
            assert "\nkubestow_serving_connections_refused_total 1\n" in text

    run(main)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        pytest.param(
            b"GET /metrics HTTP/1.1\r\nAuthorization: Bearer \xff\xfe\r\n", 401, id="token-bytes"
        ),
        pytest.param(
            "GET /metrics HTTP/1.1\r\nAuthorization: Bearer \u00fc\r\n".encode(), 401, id="token"
        ),
        pytest.param(b"BREW /healthz HTTP/1.1\r\n", 400, id="method"),
        pytest.param(b"PATCH /healthz HTTP/1.1\r\n", 200, id="other-method"),
        pytest.param(b"PATCH /metrics HTTP/1.1\r\n", 403, id="method-denied"),
        pytest.param(b"GET /healthz?exclude=%ff&verbose HTTP/1.1\r\n", 200, id="query"),
        pytest.param(b"GET /healthz/%ff HTTP/1.1\r\n", 403, id="path"),
        pytest.param(b"GET /metrics HTTP/1.1\r\nAccept: \xff\r\n", 403, id="accept"),
        pytest.param(b"GET http://[/ HTTP/1.1\r\n", 400, id="target"),
        pytest.param(b"GET / HTTP/9.9.9\r\n", 400, id="version"),
        pytest.param(b"GET / HTTP/1.1\r\nContent-Length: x\r\n", 400, id="length"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n", 400, id="header"),
    ],
)
def test_hostile_requests_are_refused(
    request_bytes: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Site() as site:
            host, _, port = site.serving.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port), ssl=trusting())
            writer.write(request_bytes + b"Host: a\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            writer.close()
            assert int(head.split()[1]) == status
        assert "Traceback" not in caplog.text

    run(main)


def test_metrics_can_be_reset() -> None:
    async def main() -> None:
        async with Site() as site:
            catalogue = site.metrics.scheduler.catalogue
            catalogue.preemption_attempts.only.inc()
            assert (await site.ask("/metrics", method="DELETE"))[::2] == (200, "metrics reset\n")
            assert catalogue.preemption_attempts.only.value == 0

    run(main)


def test_a_bug_is_a_500() -> None:
    async def main() -> None:
        async with Site() as site:
            family = site.metrics.scheduler.catalogue.pending_pods

            def broken() -> None:
                raise ZeroDivisionError

            site.process.pods = broken  # type: ignore[method-assign,assignment]
            assert (await site.ask("/metrics/resources"))[0] == 500
            assert family.text()
            assert (await site.ask("/healthz", token=""))[0] == 200

    run(main)


# --- who may ---


def test_who_has_access() -> None:
    async def main() -> None:
        async with Site() as site:
            status, kind, text = await site.ask("/metrics", token="")
            assert (status, kind) == (403, "application/json")
            assert json.loads(text)["message"] == (
                'forbidden: User "system:anonymous" cannot get path "/metrics"'
            )
            status, _, text = await site.ask("/metrics", token="bad")
            assert status == 401
            assert json.loads(text)["reason"] == "Unauthorized"
            assert (await site.ask("/readyz/shutdown", token=""))[0] == 403

    run(main)


def test_client_certificates(authority: Any, stranger: Any, tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "ca.crt"
        path.write_bytes(authority.pem)
        async with Site(f"--client-ca-file={path}") as site:
            good = showing(authority.client("admin"), tmp_path)
            assert (await site.ask("/metrics", token="", tls=good))[0] == 200
            masters = showing(authority.client("x", "system:masters"), tmp_path)
            assert (await site.ask("/metrics", token="", tls=masters))[0] == 200
            unknown = showing(authority.client("unknown"), tmp_path)
            assert (await site.ask("/metrics", token="", tls=unknown))[0] == 403
            with pytest.raises(aiohttp.ClientError):
                await site.ask("/metrics", tls=showing(stranger.client("admin"), tmp_path))

    run(main)


def test_authorities_are_looked_up_in_the_cluster(
    authority: Any, proxy_authority: Any, tmp_path: Path
) -> None:
    config_map = {
        "client-ca-file": authority.pem.decode(),
        "requestheader-client-ca-file": proxy_authority.pem.decode(),
        "requestheader-allowed-names": '["front-proxy"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }

    async def main() -> None:
        async with Site(reviewer=Reviewer(config_map)) as site:
            admin = showing(authority.client("admin"), tmp_path)
            assert (await site.ask("/metrics", token="", tls=admin))[0] == 200
            proxy = showing(proxy_authority.client("front-proxy"), tmp_path)
            headers = {"X-Remote-User": "monitor"}
            assert (await site.ask("/metrics", token="", tls=proxy, **headers))[0] == 200
            assert (await site.ask("/metrics", token="", tls=proxy))[0] == 403
            assert (await site.ask("/metrics", token="", **headers))[0] == 403

    run(main)


def test_a_failed_look_up_may_be_an_error() -> None:
    async def main() -> None:
        site = Site("--authentication-tolerate-lookup-failure=false")
        with pytest.raises(ConfigError, match="unable to load configmap"):
            await site.serving.start(site.process)
        await site.serving.close()
        flags = ("--authentication-tolerate-lookup-failure=false", "--authentication-skip-lookup")
        async with Site(*flags) as site:
            assert (await site.ask("/metrics"))[0] == 200

    run(main)


# --- certificates ---


async def presented(site: Site, name: str = "") -> bytes:
    """The certificate a client is shown that asks for this name."""
    host, _, port = site.serving.address.rpartition(":")
    _, writer = await asyncio.open_connection(
        host, int(port), ssl=trusting(), server_hostname=name or "localhost"
    )
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(True)
    writer.close()
    await writer.wait_closed()
    return found


def test_a_certificate_is_made_and_kept_in_the_directory(tmp_path: Path) -> None:
    async def main() -> None:
        folder = tmp_path / "certs"
        async with Site(f"--cert-dir={folder}") as site:
            first = await presented(site)
        assert (folder / "kube-scheduler.crt").exists()
        assert (folder / "kube-scheduler.key").stat().st_mode & 0o077 == 0
        async with Site(f"--cert-dir={folder}") as site:
            assert await presented(site) == first
        async with Site() as site:
            assert await presented(site) != first

    run(main)


def test_own_certificates_are_for_localhost() -> None:
    async def main() -> None:
        async with Site() as site:
            certificate = x509.load_der_x509_certificate(await presented(site))
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            assert names.value.get_values_for_type(x509.DNSName) == ["localhost"]
            assert [str(ip) for ip in names.value.get_values_for_type(x509.IPAddress)] == [
                "127.0.0.1"
            ]

    run(main)


def write_pair(pair: Any, folder: Path, name: str) -> tuple[Path, Path]:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    certificate.write_bytes(pair.pem)
    key.write_bytes(pair.key_pem)
    return certificate, key


def test_given_certificates_are_chosen_by_name_and_read_again(
    authority: Any, tmp_path: Path
) -> None:
    async def main() -> None:
        main_pair, special = authority.server("main.test"), authority.server("special.test")
        wild = authority.server("x.wild.test")
        certificate, key = write_pair(main_pair, tmp_path, "main")
        special_files = write_pair(special, tmp_path, "special")
        wild_files = write_pair(wild, tmp_path, "wild")
        async with Site(
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--tls-sni-cert-key={special_files[0]},{special_files[1]}",
            f"--tls-sni-cert-key={wild_files[0]},{wild_files[1]}:*.wild.test",
        ) as site:
            assert await presented(site, "main.test") == main_pair.der
            assert await presented(site, "special.test") == special.der
            assert await presented(site, "a.wild.test") == wild.der
            replaced = authority.server("main.test")
            write_pair(replaced, tmp_path, "main")
            assert await presented(site, "main.test") == replaced.der
            # During the next replacement the old one is used.
            certificate.write_bytes(authority.server("main.test").pem)
            assert await presented(site, "main.test") == replaced.der

    run(main)


def test_old_tls_versions_are_refused() -> None:
    async def main() -> None:
        async with Site("--tls-min-version=VersionTLS13") as site:
            old = trusting()
            old.maximum_version = ssl.TLSVersion.TLSv1_2
            with pytest.raises(aiohttp.ClientError):
                await site.ask("/healthz", tls=old)
            assert (await site.ask("/healthz"))[0] == 200

    run(main)


@pytest.mark.parametrize(
    ("suite", "flags", "is_accepted"),
    [
        pytest.param("ECDHE-ECDSA-AES128-GCM-SHA256", [], True, id="go-has-it"),
        pytest.param("ECDHE-ECDSA-AES256-SHA", [], True, id="go-has-it-too"),
        pytest.param("ECDHE-ECDSA-AES128-SHA256", [], False, id="go-leaves-it-out"),
        pytest.param("ECDHE-ECDSA-AES256-SHA384", [], False, id="go-does-not-know-it"),
        pytest.param(
            "ECDHE-ECDSA-AES128-GCM-SHA256",
            ["--tls-cipher-suites=TLS_AES_128_GCM_SHA256"],
            False,
            id="only-tls-1.3-is-configured",
        ),
        pytest.param(
            "ECDHE-ECDSA-AES128-SHA256",
            ["--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"],
            True,
            id="configured",
        ),
    ],
)
def test_cipher_suites_of_tls_1_2(suite: str, flags: list[str], is_accepted: bool) -> None:
    async def main() -> None:
        async with Site(*flags) as site:
            client = trusting()
            client.maximum_version = ssl.TLSVersion.TLSv1_2
            client.set_ciphers(suite)
            if is_accepted:
                assert (await site.ask("/healthz", tls=client))[0] == 200
            else:
                with pytest.raises(aiohttp.ClientError):
                    await site.ask("/healthz", tls=client)

    run(main)


def test_cipher_suites_by_their_go_names() -> None:
    assert cipher_names(["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"]) == [
        "ECDHE-RSA-AES128-GCM-SHA256"
    ]
    with pytest.raises(ConfigError, match="Cipher suite X not supported or doesn't exist"):
        cipher_names(["X"])


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--tls-cert-file=/nowhere"], "go together"),
        (
            ["--tls-cert-file=/nowhere", "--tls-private-key-file=/nowhere"],
            'cannot use the certificate "/nowhere" with key "/nowhere": No such file or directory',
        ),
        (["--client-ca-file=/nowhere"], 'cannot read --client-ca-file "/nowhere"'),
        (["--tls-cipher-suites=X"], "Cipher suite X"),
    ],
)
def test_unusable_settings_fail_before_anything_runs(flags: list[str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Site(*flags)


def test_a_port_in_use_is_named() -> None:
    async def main() -> None:
        async with Site() as site:
            port = site.serving.address.rpartition(":")[2]
            options = parse_options(["--bind-address=127.0.0.1", f"--secure-port={port}"])
            assert isinstance(options, SchedulerOptions)
            with pytest.raises(ConfigError) as raised:
                bind_socket(options.serving)
            assert str(raised.value) == (
                f"failed to create listener: failed to listen on 127.0.0.1:{port}: "
                f"listen tcp 127.0.0.1:{port}: bind: address already in use"
            )

    run(main)
