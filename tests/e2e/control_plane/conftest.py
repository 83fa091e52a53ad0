"""A real control plane for tests: etcd and kube-apiserver on loopback, from a folder of binaries.

The folder is named by KUBEBUILDER_ASSETS (`setup-envtest use -p path` prints one). Without it these
tests are skipped. There is no controller and no kubelet: tests do their work where needed.
Schedulers run as the account of `deploy/base`, with its rights and no others.
"""

import asyncio
import contextlib
import os
import secrets
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import numpy as np
import pytest
import yaml
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kubestow.api.deep_json import read_json
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.clock import SystemClock
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import load_kubeconfig
from kubestow.cluster.http.session import ApiSession
from kubestow.errors import ApiError, NotFoundError
from tools.control_plane import missing_programs, server_minor
from tools.free_port import free_port
from tools.scheduler_process import SchedulerProcessRun, running_scheduler

HERE = Path(__file__).parent
DEPLOY = HERE.parents[2] / "deploy" / "base"
ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
START_LIMIT_S = 60
TEST_LIMIT_S = 60
DEVICES_SINCE = 34
WITHOUT_ADMISSION = ("ServiceAccount", "TaintNodesByCondition", "StorageObjectInUseProtection")
# Users with tokens: name → groups.
USERS = {
    "admin": "system:masters",
    "system:kube-scheduler": "",
    "nobody": "",
    "half-allowed": "",
    "explainer": "",
    "rebalancer": "",
}
# The account of `deploy/base`; its token is made by the API server.
ACCOUNT = "kubestow"
LEASE_FLAGS = (
    f"--leader-elect-resource-name={ACCOUNT}",
    f"--leader-elect-resource-namespace={ACCOUNT}",
)
# What `deploy/base` needs before there are pods, in this order.
ACCESS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = missing_programs(ASSETS)
    reason = f"needs a control plane: KUBEBUILDER_ASSETS is no folder with {', '.join(missing)}"
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)
            if missing:
                item.add_marker(pytest.mark.skip(reason=reason))


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips tests that run more of a control plane than the folder may have."""
    missing = missing_programs(ASSETS, programs)
    reason = f"KUBEBUILDER_ASSETS has no {', '.join(missing)}"
    return pytest.mark.skipif(bool(missing), reason=reason)


class ControlPlane:
    """etcd and an API server. Tokens, addresses and certificates stay the same over restarts."""

    def __init__(self, folder: Path, extra_flags: Sequence[str] = ()) -> None:
        self.folder = folder
        self._extra_flags = tuple(extra_flags)
        self._etcd: subprocess.Popen[bytes] | None = None
        self._api_server: subprocess.Popen[bytes] | None = None
        self._etcd_port, self._peer_port, self._api_port = (free_port() for _ in range(3))
        self.url = f"https://127.0.0.1:{self._api_port}"
        self.tokens = {name: secrets.token_hex(16) for name in USERS}
        self._write_files()

    # --- life ---

    def start(self) -> None:
        self.start_etcd()
        self.start_api_server()

    def start_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        self._etcd = self._spawn(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )

    def start_api_server(self) -> None:
        key = self.folder / "sa.key"
        self._api_server = self._spawn(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._api_port}",
            f"--cert-dir={self.folder / 'certs'}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            # No controller makes service accounts here, or removes the taints of new nodes and the
            # finalizers of claims and volumes.
            f"--disable-admission-plugins={','.join(WITHOUT_ADMISSION)}",
            "--allow-privileged",
            *self._extra_flags,
        )

    def stop_api_server(self) -> None:
        end(self._api_server)
        self._api_server = None

    def kill_api_server(self) -> None:
        assert self._api_server is not None
        self._api_server.kill()
        self._api_server.wait()
        self._api_server = None

    def kill_etcd(self) -> None:
        assert self._etcd is not None
        self._etcd.kill()
        self._etcd.wait()
        self._etcd = None

    def stop(self) -> None:
        end(self._api_server)
        end(self._etcd)

    async def wait_ready(self) -> None:
        async with asyncio.timeout(START_LIMIT_S):
            while not await self._is_ready():  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0.1)

    async def add_account(self) -> None:
        """Create the account of `deploy/base` with its roles, and a token as its pod gets one."""
        command = [str(Path(ASSETS) / "kubectl"), "kustomize", str(DEPLOY)]
        made = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: ASYNC221
        objects = [found for found in yaml.safe_load_all(made.stdout) if found["kind"] in ACCESS]
        client = self.client()
        try:
            for document in sorted(objects, key=lambda found: list(ACCESS).index(found["kind"])):
                await client.create_document(collection_path(document), document)
            self.tokens[ACCOUNT] = await new_token(client)
        finally:
            client.close()

    async def _is_ready(self) -> bool:
        assert self._api_server is not None
        if self._api_server.poll() is not None:
            raise AssertionError((self.folder / "kube-apiserver.log").read_text()[-3000:])
        client = self.client()
        try:
            return await client.session.request("GET", "/readyz") == b"ok"
        except ApiError:
            return False
        finally:
            client.close()

    # --- access ---

    def kubeconfig(self, user: str = "admin", *, token: str = "") -> Path:
        """A file for one of the users, with another token if one is given."""
        path = self.folder / f"kubeconfig-{user}{token[-8:]}".replace(":", "-")
        cluster = {"server": self.url, "insecure-skip-tls-verify": True}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token or self.tokens[user]}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": user}}],
        }
        path.write_text(yaml.safe_dump(document))
        return path

    def client(self) -> HttpClient:
        clock = SystemClock()
        config = load_kubeconfig(str(self.kubeconfig()), clock)
        return HttpClient(ApiSession(config, clock, qps=-1), rng=np.random.default_rng(0))

    # --- inside ---

    def _spawn(self, name: str, *flags: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen([str(Path(ASSETS) / name), *flags], stdout=log, stderr=log)

    def _write_files(self) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        (self.folder / "sa.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        lines = [
            f'{self.tokens[name]},{name},{name},"{groups}"\n' for name, groups in USERS.items()
        ]
        (self.folder / "tokens.csv").write_text("".join(lines))


class Bench:
    """What a test works with: the control plane, a client with all rights, and schedulers."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.client = plane.client()
        self._runs: list[SchedulerProcessRun] = []

    @contextlib.asynccontextmanager
    async def scheduler(
        self, *flags: str, user: str = ACCOUNT, token: str = ""
    ) -> AsyncIterator[SchedulerProcessRun]:
        """A scheduler as that user, by default with the rights of `deploy/base`."""
        kubeconfig = self.plane.kubeconfig(user, token=token)
        async with running_scheduler(
            f"--kubeconfig={kubeconfig}", "--secure-port=0", "-v=2", *LEASE_FLAGS, *flags
        ) as run:
            self._runs.append(run)
            yield run

    async def new_token(self) -> str:
        """Another token of the scheduler's account, as each of its pods gets one."""
        return await new_token(self.client)

    def proxy(self, fault: "Fault") -> "Proxy":
        """Between a scheduler and the API server, with the scheduler's rights."""
        return Proxy(self.plane.url, self.plane.tokens[ACCOUNT], fault)

    def print_logs(self) -> None:
        for run in self._runs:
            print(f"--- log of scheduler {run.process.pid}\n{run.log}")

    async def create(self, *documents: JsonObject) -> None:
        for document in documents:
            await self.client.create_document(collection_path(document), document)

    async def send(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        """Any other request; patches are merge patches."""
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        raw = await self.client.session.request(
            method, path, msgspec.json.encode(body or {}), content_type=content_type
        )
        return read_json(raw)  # pyright: ignore - an object

    async def pod(self, name: str, condition: Callable[[Pod], bool]) -> Pod:
        """The pod as soon as the condition holds."""
        while True:
            with contextlib.suppress(ApiError):  # the server may be away for a while
                return await self._watched_pod(name, condition)
            await asyncio.sleep(0.2)

    async def bound(self, name: str) -> str:
        """The node of a pod, as soon as it has one."""
        return (await self.pod(name, lambda pod: bool(pod.spec.node_name))).spec.node_name

    async def clear(self) -> None:
        """Remove the objects of earlier tests."""
        for path in (
            "/api/v1/namespaces/default/pods",
            "/api/v1/namespaces/default/persistentvolumeclaims",
            "/api/v1/namespaces/default/events",
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
            f"/apis/coordination.k8s.io/v1/namespaces/{ACCOUNT}/leases",
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
            # Commands that read the cluster make the pods of these.
            f"/apis/apps/v1/namespaces/{ACCOUNT}/deployments",
        ):
            await self._delete(path, {"gracePeriodSeconds": 0})
        for path in (
            "/api/v1/nodes",
            "/api/v1/persistentvolumes",
            "/apis/resource.k8s.io/v1/deviceclasses",
            "/apis/resource.k8s.io/v1/resourceslices",
        ):
            await self._delete(path)
        for group in ("storage.k8s.io/v1/storageclasses", "scheduling.k8s.io/v1/priorityclasses"):
            for item in (await self.client.get_document(f"/apis/{group}"))["items"]:
                if not item["metadata"]["name"].startswith("system-"):
                    await self.send("DELETE", f"/apis/{group}/{item['metadata']['name']}")

    async def _delete(self, path: str, body: JsonObject | None = None) -> None:
        with contextlib.suppress(NotFoundError):  # an older server does not have every kind
            await self.send("DELETE", path, body)

    async def _watched_pod(self, name: str, condition: Callable[[Pod], bool]) -> Pod:
        listing = await self.client.list_and_watch(Pod)
        try:
            for pod in listing.items:
                if pod.metadata.name == name and condition(pod):
                    return pod
            while batch := await listing.watch.next_batch():
                for event in batch:
                    if event.object.metadata.name == name and condition(event.object):
                        return event.object
        finally:
            listing.watch.close()
        raise ApiError("the watch ended")


# Changes the parameters of a request in place; returns a status to answer with instead of the API
# server's answer, CUT to close the connection after the API server has answered, or 0.
Fault = Callable[[web.BaseRequest, dict[str, str]], int]
CUT = -1


class Proxy:
    def __init__(self, target: str, token: str, fault: Fault) -> None:
        self._target = target
        # What aiohttp would say by itself: newer API servers compress watches, too.
        self._headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}
        self._fault = fault
        self.url = ""

    async def __aenter__(self) -> "Proxy":
        connector = aiohttp.TCPConnector(ssl=False, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        server = web.Server(self._pass_on, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        # First the requests, which use connections of the session; those left to it are aborted,
        # since nothing waits for the end of TLS here.
        await self._runner.cleanup()
        assert self._session.connector is not None
        await self._session.connector.close(abort_ssl=True)
        await self._session.close()
        await asyncio.sleep(0)  # sockets are closed in the next turn of the loop

    async def _pass_on(self, request: web.BaseRequest) -> web.StreamResponse:
        query = dict(request.query)
        fault = self._fault(request, query)
        if fault > 0:
            return web.Response(status=fault)
        headers = {**self._headers, "Content-Type": request.headers.get("Content-Type", "")}
        url = f"{self._target}{request.path}"
        async with self._session.request(
            request.method, url, params=query, headers=headers, data=await request.read()
        ) as found:
            kind = found.headers.get("Content-Type", "application/json")
            response = web.StreamResponse(status=found.status, headers={"Content-Type": kind})
            if fault == CUT:
                assert request.transport is not None
                request.transport.close()
                return response
            await response.prepare(request)
            try:
                async for chunk in found.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
            except ConnectionError:
                pass  # The scheduler has closed the connection.
            finally:
                abort_unread(found)
            return response


def abort_unread(response: aiohttp.ClientResponse) -> None:
    """End the connection of a response that was not read to its end, such as a watch.

    Closing it would wait for the end of TLS, longer than the loop of a test runs, and the session
    no longer has it: the socket would be left open.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


async def new_token(client: HttpClient) -> str:
    path = f"/api/v1/namespaces/{ACCOUNT}/serviceaccounts/{ACCOUNT}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return (await client.create_document(path, request))["status"]["token"]


def collection_path(document: JsonObject) -> str:
    kind = document["kind"].lower()
    plural = f"{kind}es" if kind.endswith("s") else f"{kind}s"
    version = document["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = document["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def end(process: subprocess.Popen[bytes] | None) -> None:
    if process is None:
        return
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


Test = Callable[[Bench], Coroutine[Any, Any, None]]


@contextlib.contextmanager
def control_plane(*extra_flags: str) -> Iterator[ControlPlane]:
    with tempfile.TemporaryDirectory(prefix="kubestow-e2e-", ignore_cleanup_errors=True) as folder:
        plane = ControlPlane(Path(folder), extra_flags)
        plane.start()
        try:
            asyncio.run(ready_with_account(plane))
            yield plane
        finally:
            plane.stop()


async def ready_with_account(plane: ControlPlane) -> None:
    await plane.wait_ready()
    await plane.add_account()


def run_on(plane: ControlPlane, test: Test, limit_s: float = TEST_LIMIT_S) -> None:
    """Run a test's coroutine, with a limit, on an empty cluster."""

    async def main() -> None:
        bench = Bench(plane)
        try:
            async with asyncio.timeout(limit_s):
                # Not at the end of the test before: its server may be gone by then.
                await bench.clear()
                await test(bench)
        except BaseException:
            bench.print_logs()
            raise
        finally:
            bench.client.close()

    asyncio.run(main())


@pytest.fixture(scope="session", name="server_minor")
def _server_minor() -> int:
    """34 for an API server of Kubernetes 1.34."""
    command = [str(Path(ASSETS) / "kube-apiserver"), "--version"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return server_minor(printed)


@pytest.fixture
def with_devices(server_minor: int) -> None:
    """For tests that need `resource.k8s.io/v1`."""
    if server_minor < DEVICES_SINCE:
        pytest.skip(f"needs Kubernetes 1.{DEVICES_SINCE}")


@pytest.fixture(scope="session")
def shared_plane() -> Iterator[ControlPlane]:
    with control_plane() as plane:
        yield plane


@pytest.fixture
def run(shared_plane: ControlPlane) -> Callable[..., None]:
    """Runs a test on the control plane that all tests share."""
    return partial(run_on, shared_plane)


@pytest.fixture
def run_alone() -> Callable[..., None]:
    """Runs a test on a control plane of its own, whose API server has more flags."""

    def run(test: Test, *extra_flags: str, limit_s: float = TEST_LIMIT_S) -> None:
        with control_plane(*extra_flags) as plane:
            run_on(plane, test, limit_s)

    return run
