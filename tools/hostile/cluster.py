"""The cluster beside the scheduler: an API server in a process of its own, with ordinary pods.

The process is controlled by a pipe: it answers each request of `ClusterProcess` in turn. Ordinary
pods are created at a steady rate and deleted once they are bound; how long each waited, and the
time between two renewals of the lease, is measured here, as the cluster sees it.
"""

import asyncio
import logging
import multiprocessing
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Final

import msgspec

from kubestow import collector
from kubestow.api.coordination import Lease
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import SystemClock
from kubestow.cluster.documents import removed_at
from kubestow.cluster.resources import NAMESPACES, NODES, PODS
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import NotFoundError
from tools.hostile.cases import find_case
from tools.hostile.objects import Case

# For the cases of pod groups; other pods are not treated differently.
GATES: Final = ("GenericWorkload", "GangScheduling")
CANARY: Final = "canary-"
CANARIES_PER_S: Final = 20
ZONES: Final = 10
_NESTING_MAX: Final = 200_000
_STACK_BYTES: Final = 512 * 1024 * 1024


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the cluster saw since the last reading."""

    canary_count: int
    canary_longest_s: float
    lease_longest_s: float
    # Pods that were deleted by requests of the scheduler.
    evicted_count: int


class ClusterProcess:
    """A cluster in another process. Each method waits for its answer."""

    def __init__(self, nodes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(theirs, nodes), daemon=True)
        self._process.start()
        self.port: Final[int] = self._pipe.recv()

    def create(self, case: Case, size: int) -> None:
        """The objects are made there: some are too deep for a pipe."""
        self._ask("create", (case.name, size))

    def remove(self) -> None:
        """Delete all that `create` made."""
        self._ask("remove")

    def read(self) -> Seen:
        return self._ask("read")

    def is_settled(self) -> bool:
        """Whether every hostile pod is bound, was refused or was evicted."""
        return self._ask("settled")

    def close(self) -> None:
        self._pipe.send(("close", None))
        self._process.join()

    def _ask(self, verb: str, content: Any = None) -> Any:
        self._pipe.send((verb, content))
        answer = self._pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


def _main(pipe: Connection, nodes: int) -> None:
    logging.disable(logging.CRITICAL)
    # Documents may be nested as deeply as a real API server allows.
    sys.setrecursionlimit(_NESTING_MAX)
    threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=lambda: asyncio.run(_Cluster(nodes).run(pipe)))
    thread.start()
    thread.join()


class _Cluster:
    def __init__(self, nodes: int) -> None:
        self._clock = SystemClock()
        gates = FeatureGates(dict.fromkeys(GATES, True))
        self._store = MemoryCluster(self._clock, gates=gates)
        self._hostile: list[tuple[str, str, str]] = []
        self._created_s: dict[str, float] = {}
        self._longest_s = self._lease_longest_s = 0.0
        self._renewed_s: float | None = None
        self._canary_count = self._evicted_count = self._numbers = 0
        for namespace in ("default", "kube-system"):
            self._store.create(NAMESPACES, {"metadata": {"name": namespace}})
        with collector.paused():
            for number in range(nodes):
                self._store.create(NODES, _node(number))

    async def run(self, pipe: Connection) -> None:
        server = ApiServer(self._store, self._clock)
        pipe.send(await server.start())
        loop = asyncio.get_running_loop()
        parts = [
            loop.create_task(part)
            for part in (self._add_canaries(), self._follow_pods(), self._follow_lease())
        ]
        try:
            while True:
                verb, content = await loop.run_in_executor(None, pipe.recv)
                if verb == "close":
                    return
                try:
                    if verb == "create":
                        pipe.send(await self._create(*content))
                    else:
                        pipe.send(self._answer(verb))
                except Exception as error:  # Raised again by the process that asked.
                    pipe.send(error)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            await server.close()

    # --- requests ---

    def _answer(self, verb: str) -> Any:
        match verb:
            case "remove":
                return self._remove()
            case "settled":
                return all(map(self._is_settled, self._hostile))
            case "read":
                return self._read()
            case _:
                raise ValueError(verb)

    async def _create(self, name: str, size: int) -> None:
        for resource_name, document in find_case(name).make(size):
            # The lease and ordinary pods are served as well.
            await asyncio.sleep(0)
            resource = self._store.resources.named(resource_name)
            stored = self._store.create(resource, document)
            self._hostile.append((resource_name, *stored.key))

    def _remove(self) -> None:
        for resource_name, namespace, name in reversed(self._hostile):
            resource = self._store.resources.named(resource_name)
            try:
                stored = self._store.get(resource, namespace, name)
                if "finalizers" in stored.metadata:
                    # No controller runs here that releases a claim the scheduler allocated.
                    self._store.change(resource, namespace, name, _without_finalizers)
                self._store.delete(resource, namespace, name, grace_period_s=0)
            except NotFoundError:
                continue
        self._hostile.clear()

    def _read(self) -> Seen:
        now_s = self._clock.monotonic_s()
        # What still waits counts with the time until now.
        waiting_s = [now_s - created_s for created_s in self._created_s.values()]
        renewed_s = 0.0 if self._renewed_s is None else now_s - self._renewed_s
        seen = Seen(
            canary_count=self._canary_count,
            canary_longest_s=max(self._longest_s, *waiting_s, 0.0),
            lease_longest_s=max(self._lease_longest_s, renewed_s),
            evicted_count=self._evicted_count,
        )
        self._longest_s = self._lease_longest_s = 0.0
        self._canary_count = self._evicted_count = 0
        return seen

    def _is_settled(self, key: tuple[str, str, str]) -> bool:
        resource_name, namespace, name = key
        if resource_name != PODS.qualified_name:
            return True
        try:
            document: Any = self._store.get(PODS, namespace, name).document
        except NotFoundError:
            return True  # It was evicted.
        if "nodeName" in document["spec"]:
            return True
        status = document.get("status", {})
        if status.get("nominatedNodeName"):
            return False  # Others leave for it; it is bound then.
        return any(each["type"] == "PodScheduled" for each in status.get("conditions", ()))

    # --- what goes on by itself ---

    async def _add_canaries(self) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        while True:
            name = f"{CANARY}{self._numbers}"
            self._numbers += 1
            self._created_s[name] = self._clock.monotonic_s()
            self._store.create(PODS, _canary(name, self._numbers))
            due_s = max(due_s + 1 / CANARIES_PER_S, loop.time())
            await asyncio.sleep(due_s - loop.time())

    async def _follow_pods(self) -> None:
        listing = await MemoryClient(self._store).list_and_watch(Pod)
        while batch := await listing.watch.next_batch():
            for event in batch:
                name = event.object.metadata.name
                if event.type == "MODIFIED" and event.object.metadata.deletion_timestamp:
                    self._end_evicted(name)
                    continue
                if event.type != "MODIFIED" or not event.object.spec.node_name:
                    continue
                created_s = self._created_s.pop(name, None)
                if created_s is not None:
                    self._canary_count += 1
                    waited_s = self._clock.monotonic_s() - created_s
                    self._longest_s = max(self._longest_s, waited_s)
                    self._store.delete(PODS, "default", name, grace_period_s=0)

    def _end_evicted(self, name: str) -> None:
        """As a kubelet does when the containers have ended."""
        with suppress(NotFoundError):  # Removed with its case.
            self._store.delete(PODS, "default", name, grace_period_s=0)
            self._evicted_count += 1

    async def _follow_lease(self) -> None:
        listing = await MemoryClient(self._store).list_and_watch(Lease)
        while await listing.watch.next_batch():
            now_s = self._clock.monotonic_s()
            if self._renewed_s is not None:
                self._lease_longest_s = max(self._lease_longest_s, now_s - self._renewed_s)
            self._renewed_s = now_s


def _without_finalizers(document: JsonObject) -> JsonObject:
    return removed_at(document, ("metadata", "finalizers"))


def _node(number: int) -> JsonObject:
    name = f"node-{number}"
    resources = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{number % ZONES}",
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": resources, "allocatable": resources},
    }


def _canary(name: str, number: int) -> JsonObject:
    """A small pod; every other one has labels of its own, as a StatefulSet gives them."""
    labels = {"app": f"canary-{number % 4}"}
    if number % 2:
        labels["statefulset.kubernetes.io/pod-name"] = name
    resources = {"requests": {"cpu": "10m", "memory": "16Mi"}}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "canary", "resources": resources}]},
    }
