"""Replicas under load on a control plane of their own, and three witnesses of what they did.

    the audit log   every binding and every write of the lease: when, by which replica, the answer
    a watch         every change of a pod's node
    the end         where the pods are

Each process has a token of its own, as each pod has; the audit log names the token. Sizes are small
by default. The variables below give others; docs/reliability.md has the commands.
"""

import asyncio
import base64
import contextlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.clock import SystemClock
from kubestow.errors import ApiError
from tools.scheduler_process import SchedulerProcessRun

POD_COUNT = int(os.environ.get("E2E_PODS", "2500"))
SEED = int(os.environ.get("E2E_SEED", "1"))
QPS = int(os.environ.get("E2E_QPS", "100"))  # requests of a scheduler a second
CREATORS = 16
# Nodes are full when nearly all pods are bound: one pod too many on a node would be seen.
PODS_PER_NODE = 100
SPARE_NODES = 2
RESTART_S = 1.0
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Request",
            "verbs": ["create"],
            "resources": [{"group": "", "resources": ["pods/binding"]}],
        },
        {
            "level": "Metadata",
            "verbs": ["create", "update"],
            "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
        },
        {"level": "None"},
    ],
}
CREDENTIAL = "authentication.kubernetes.io/credential-id"
CLOCK = SystemClock()


def now_s() -> float:
    return CLOCK.now_ns() / 1e9


# --- Witnesses --------------------------------------------------------------------------------


class Request(NamedTuple):
    """One request in the audit log."""

    arrived_s: float
    answered_s: float
    sender: str
    name: str
    node: str  # empty for a lease
    code: int

    @property
    def is_success(self) -> bool:
        return self.code in (200, 201)


class Audit:
    def __init__(self, folder: Path) -> None:
        self._log = folder / "audit.log"
        policy = folder / "policy.yaml"
        policy.write_text(json.dumps(AUDIT_POLICY))
        self.flags = (f"--audit-policy-file={policy}", f"--audit-log-path={self._log}")

    def bindings(self) -> list[Request]:
        return self._requests("pods")

    def lease_writes(self) -> list[Request]:
        """Successful ones."""
        return [found for found in self._requests("leases") if found.is_success]

    def first_binding(self, after_s: float, *, not_by: str = "") -> Request | None:
        """The first pod that was bound by a request that arrived after a time."""
        return next(
            (
                found
                for found in self.bindings()
                if found.is_success and found.arrived_s > after_s and found.sender != not_by
            ),
            None,
        )

    async def wait_first_binding(self, after_s: float, *, not_by: str = "") -> Request:
        # Nothing can be waited for: the log is a file of another process.
        while (found := self.first_binding(after_s, not_by=not_by)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        return found

    def leader_at(self, time_s: float) -> str:
        """The sender that had written the lease last."""
        senders = [found.sender for found in self.lease_writes() if found.answered_s <= time_s]
        return senders[-1] if senders else ""

    def _requests(self, resource: str) -> list[Request]:
        if not self._log.exists():
            return []
        found = [
            _request(entry)
            for entry in _entries(self._log.read_bytes())
            if entry["objectRef"]["resource"] == resource and CREDENTIAL in _extra(entry)
        ]
        return sorted(found)


def _entries(log: bytes) -> Iterator[JsonObject]:
    for line in log.splitlines():
        # Of a line that is being written, or whose API server was killed, there may be a part.
        with contextlib.suppress(msgspec.DecodeError):
            yield msgspec.json.decode(line)


def _extra(entry: JsonObject) -> JsonObject:
    return entry["user"].get("extra", {})


def _request(entry: JsonObject) -> Request:
    return Request(
        arrived_s=datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp(),
        answered_s=datetime.fromisoformat(entry["stageTimestamp"]).timestamp(),
        sender=_extra(entry)[CREDENTIAL][0].removeprefix("JTI="),
        name=entry["objectRef"]["name"],
        node=entry.get("requestObject", {}).get("target", {}).get("name", ""),
        code=entry["responseStatus"]["code"],
    )


def token_id(token: str) -> str:
    claims = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["jti"]


class PodWatch:
    """Records every node that a pod has ever had."""

    def __init__(self, bench: Any) -> None:
        self._bench = bench
        self._news = asyncio.Event()
        self.nodes: dict[str, list[str]] = defaultdict(list)

    async def run(self) -> None:
        while True:
            with contextlib.suppress(ApiError):  # the server may be away for a while
                listing = await self._bench.client.list_and_watch(Pod)
                try:
                    self._record(listing.items)
                    while batch := await listing.watch.next_batch():
                        self._record(event.object for event in batch if event.type != "BOOKMARK")
                finally:
                    listing.watch.close()
            await asyncio.sleep(0.2)

    async def wait_bound(self, count: int) -> None:
        while len(self.nodes) < count:
            self._news.clear()
            await self._news.wait()

    def _record(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            node, nodes = pod.spec.node_name, self.nodes.get(pod.metadata.name, [])
            if node != (nodes[-1] if nodes else ""):
                self.nodes[pod.metadata.name].append(node)
        self._news.set()


# --- Load -------------------------------------------------------------------------------------


class Place:
    """Where a replica runs: when its process ends, the next one is started."""

    def __init__(self, bench: Any, flags: Iterable[str]) -> None:
        self._bench = bench
        self._flags = tuple(flags)
        self._started = asyncio.Event()
        self.process: SchedulerProcessRun | None = None
        self.sender = ""
        self.exit_codes: list[int] = []

    @property
    def is_leading(self) -> bool:
        return self.process is not None and "Successfully acquired lease" in self.process.log

    async def running(self) -> SchedulerProcessRun:
        while self.process is None:
            await self._started.wait()
        return self.process

    def kill(self) -> None:
        if self.process is not None:
            self.process.process.kill()

    async def run(self) -> None:
        while True:
            try:
                token = await self._bench.new_token()
            except ApiError:
                await asyncio.sleep(RESTART_S)
                continue
            async with self._bench.scheduler(*self._flags, token=token) as run:
                self.process, self.sender = run, token_id(token)
                self._started.set()
                self.exit_codes.append(await run.exit_code())
            self.process = None
            self._started.clear()
            await asyncio.sleep(RESTART_S)


class Load:
    """Two replicas, nodes that are nearly full in the end, and the witnesses.

    network   what is between the replicas and the API server; None if nothing is
    """

    def __init__(
        self, bench: Any, audit: Audit, pod_count: int, flags: Iterable[str], network: Any
    ) -> None:
        self.network = network
        self.bench = bench
        self.audit = audit
        self.pod_count = pod_count
        self.node_count = -(-pod_count // PODS_PER_NODE) + SPARE_NODES
        self.watch = PodWatch(bench)
        self.places = [Place(bench, flags) for _ in range(2)]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Create the nodes and start everything; pods are created meanwhile."""
        await self._create(node(f"n{index}") for index in range(self.node_count))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.watch.run())]
            for place in self.places:
                tasks.append(group.create_task(place.run()))
                process = await place.running()
                await process.wait_for_line("Attempting to acquire leader lease")
            creating = group.create_task(
                self._create(pod(f"p{index}") for index in range(self.pod_count))
            )
            yield
            await creating
            for task in tasks:
                task.cancel()

    async def add_pod(self, name: str) -> None:
        """One more pod, for which nodes are kept free."""
        self.pod_count += 1
        await create_surely(self.bench, pod(name))

    async def wait_all_bound(self) -> None:
        await self.watch.wait_bound(self.pod_count)

    def now_s(self) -> float:
        """The time in the audit log."""
        return now_s()

    def leading(self) -> Place | None:
        return next((place for place in self.places if place.is_leading), None)

    async def check(self) -> None:
        """No pod is lost, none was bound twice, no node has too many."""
        items = (await self.bench.client.get_document("/api/v1/namespaces/default/pods"))["items"]
        final = {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in items}
        assert len(final) == self.pod_count
        assert all(final.values()), "pods without a node"
        assert max(Counter(final.values()).values()) <= PODS_PER_NODE, "an overcommitted node"
        assert {name: nodes[-1] for name, nodes in self.watch.nodes.items()} == final
        assert all(len(nodes) == 1 for nodes in self.watch.nodes.values()), "a pod moved"
        bindings = self.audit.bindings()
        bound = [found for found in bindings if found.is_success]
        assert len(bound) == len({found.name for found in bound}), "bound twice"
        assert all(final[found.name] == found.node for found in bound)
        self._check_order(bindings)
        refused = Counter(found.code for found in bindings if not found.is_success)
        print(
            f"{len(bound)} bindings answered 201 of {self.pod_count} pods, others {dict(refused)}"
        )

    def _check_order(self, bindings: list[Request]) -> None:
        """No replica sends a binding after another one has written the lease."""
        writes = iter(self.audit.lease_writes())
        write, leader = next(writes, None), ""
        for found in bindings:
            while write is not None and write.answered_s <= found.arrived_s:
                leader, write = write.sender, next(writes, None)
            assert found.sender == leader, f"{found} while {leader} led"

    async def _create(self, documents: Iterable[JsonObject]) -> None:
        waiting = iter(documents)

        async def create() -> None:
            for document in waiting:
                await create_surely(self.bench, document)

        await asyncio.gather(*(create() for _ in range(CREATORS)))


async def create_surely(bench: Any, document: JsonObject) -> None:
    """Create an object; the server may be away."""
    while True:
        try:
            await bench.create(document)
            return
        except ApiError as error:
            if error.code == 409:  # created, but the answer was lost
                return
        await asyncio.sleep(0.5)


def node(name: str) -> JsonObject:
    resources = {"cpu": str(PODS_PER_NODE), "memory": "256Gi", "pods": "250"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str) -> JsonObject:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


@pytest.fixture
def run_load(run_alone: Any, tmp_path: Path) -> Callable[..., None]:
    """Runs a test with a `Load`, which is checked afterwards."""

    def run(
        test: Any,
        *,
        pod_count: int = POD_COUNT,
        qps: int = QPS,
        limit_s: float,
        between: Callable[[str], Any] = lambda url: contextlib.nullcontext(),
    ) -> None:
        """`between` opens a network in front of the API server with this address."""
        audit = Audit(tmp_path)

        async def main(bench: Any) -> None:
            flags = [f"--kube-api-qps={qps}", f"--kube-api-burst={qps}"]
            async with between(bench.plane.url) as network:
                if network is not None:
                    flags.append(f"--master={network.url}")
                load = Load(bench, audit, pod_count, flags, network)
                async with load.running():
                    await test(load)
            await load.check()

        run_alone(main, *audit.flags, limit_s=limit_s)

    return run


@pytest.fixture
def seed() -> int:
    return SEED
