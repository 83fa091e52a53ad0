"""A process in the middle of a cycle that does not end: lease, health and signals go on.

The cycle computes, so it also competes for the interpreter. It goes on until a file is there.
"""

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from tools.free_port import free_port
from tools.https_cluster import HttpsCluster
from tools.scheduler_process import SchedulerProcessRun, ask_scheduler

pytestmark = pytest.mark.slow

LIMIT_S = 300
# Each was asked for and answered while the cycle went on: it keeps none of them waiting.
RENEWALS = 10
PLUGIN = """
import logging
from pathlib import Path
from kubestow.framework.node_plugin import NodeFilter

class Slow(NodeFilter):
    name = "Slow"

    def filter_node(self, pod, node):
        logging.getLogger(__name__).warning("in the plugin")
        while pod.metadata.name == "slow" and not Path({go_on!r}).exists():
            pass
        return True
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: {kubeconfig}
leaderElection:
  leaseDuration: 60s
  renewDeadline: 50s
  retryPeriod: 200ms
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: slow_plugin:Slow
"""
NODE: JsonObject = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
POD: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "slow", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": "pause"}]},
}


class StuckScheduler:
    """A leader in the middle of a cycle."""

    def __init__(self, folder: Path, cluster: HttpsCluster, run: SchedulerProcessRun) -> None:
        self.cluster = cluster
        self.run = run
        self._go_on = folder / "go-on"

    def go_on(self) -> None:
        self._go_on.touch()


class LateExtender:
    """An extender that keeps its callers waiting, and then refuses no node."""

    def __init__(self) -> None:
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[str, None]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.is_asked.set()
        await self.may_answer.wait()
        body = b'{"NodeNames": ["n1"]}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()


@asynccontextmanager
async def stuck_scheduler(folder: Path, *flags: str) -> AsyncGenerator[StuckScheduler, None]:
    (folder / "slow_plugin.py").write_text(PLUGIN.format(go_on=str(folder / "go-on")))
    config = folder / "config.yaml"
    cluster = HttpsCluster(folder)
    config.write_text(CONFIG.format(kubeconfig=cluster.kubeconfig))
    async with cluster.serving():
        flags = (f"--config={config}", *flags)
        async with cluster.scheduler(*flags, import_from=folder) as run:
            await run.wait_for_line("Successfully acquired lease")
            cluster.store.load([NODE, POD])
            await run.wait_for_line("in the plugin")
            yield StuckScheduler(folder, cluster, run)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await main()

    asyncio.run(limited())


def test_a_cycle_keeps_neither_the_lease_nor_health_waiting(tmp_path: Path) -> None:
    async def main() -> None:
        flags = ("--bind-address=127.0.0.1", f"--secure-port={free_port()}")
        async with stuck_scheduler(tmp_path, *flags) as scheduler:
            address = await scheduler.run.address()
            for path in ("/livez", "/healthz", "/readyz"):
                assert await ask_scheduler(address, path) == (200, "ok")
            await scheduler.cluster.wait_for_renewals(RENEWALS)
            scheduler.go_on()
            await scheduler.cluster.wait_for_pod("slow", lambda pod: bool(pod.spec.node_name))
            assert "Failed to renew lease" not in scheduler.run.log
            assert await scheduler.run.end() == 0
            assert await scheduler.cluster.holder() == ""

    run(main)


def test_waiting_for_an_extender_does_not_lose_the_lease(tmp_path: Path) -> None:
    async def main() -> None:
        extender, cluster = LateExtender(), HttpsCluster(tmp_path)
        config = tmp_path / "config.yaml"
        async with extender.serving() as url, cluster.serving():
            config.write_text(
                CONFIG.partition("profiles:")[0].format(kubeconfig=cluster.kubeconfig)
                + f"extenders:\n- urlPrefix: {url}\n  filterVerb: filter\n"
                "  nodeCacheCapable: true\n  httpTimeout: 60s\n"
            )
            async with cluster.scheduler(f"--config={config}", "--secure-port=0") as run:
                await run.wait_for_line("Successfully acquired lease")
                cluster.store.load([NODE, POD])
                await extender.is_asked.wait()
                await cluster.wait_for_renewals(RENEWALS)
                extender.may_answer.set()
                await cluster.wait_for_pod("slow", lambda pod: bool(pod.spec.node_name))
                assert await run.end() == 0

    run(main)


def test_a_stop_does_not_wait_for_the_cycle(tmp_path: Path) -> None:
    async def main() -> None:
        async with stuck_scheduler(tmp_path, "--secure-port=0") as scheduler:
            assert await scheduler.run.end() == 0
            assert "The scheduling loop did not stop in time" in scheduler.run.log
            assert "Requested to terminate, exiting" in scheduler.run.log
            assert await scheduler.cluster.holder() == ""
            pods = await scheduler.cluster.pods()
            assert [pod.spec.node_name for pod in pods] == [""]

    run(main)


def test_the_second_signal_ends_the_process_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with stuck_scheduler(tmp_path, "--secure-port=0") as scheduler:
            scheduler.run.process.send_signal(signal.SIGTERM)
            scheduler.run.process.send_signal(signal.SIGINT)
            assert await scheduler.run.exit_code() == 1
            assert "did not stop in time" not in scheduler.run.log
            assert await scheduler.cluster.holder() != ""

    run(main)
