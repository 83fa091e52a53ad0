"""A cluster in memory behind HTTPS, for tests that run `kubestow run` as a process of its own."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

from kubestow.api.coordination import Lease
from kubestow.api.pod import Pod
from kubestow.apiserver.http.kubeconfig_file import KubeconfigFile, kubeconfig
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import SystemClock
from kubestow.cluster.self_signed import self_signed
from tools.scheduler_process import SchedulerProcessRun, running_scheduler

TOKEN: Final = "let-me-in"


class HttpsCluster:
    """An API server on a free port, and the file that says how to reach it."""

    def __init__(self, folder: Path) -> None:
        self.clock: Final = SystemClock()
        self.store = MemoryCluster(self.clock)
        self.client = MemoryClient(self.store)
        self.server = ApiServer(self.store, self.clock, token=TOKEN)
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator["HttpsCluster", None]:
        certificate = self_signed(now_ns=self.clock.now_ns())
        port = await self.server.start(tls=certificate.server_context())
        url = f"https://127.0.0.1:{port}"
        config = kubeconfig(url=url, authority=certificate.authority, token=TOKEN)
        KubeconfigFile(self.kubeconfig).add(config)
        try:
            yield self
        finally:
            await self.server.close()

    def scheduler(
        self, *flags: str, import_from: Path | None = None
    ) -> AbstractAsyncContextManager[SchedulerProcessRun]:
        """A scheduler for this cluster; killed at the end if it still runs."""
        kubeconfig = f"--kubeconfig={self.kubeconfig}"
        return running_scheduler(kubeconfig, *flags, import_from=import_from)

    async def wait_for_pod(self, name: str, condition: Callable[[Pod], bool]) -> Pod:
        """The pod as soon as the condition holds."""
        listing = await self.client.list_and_watch(Pod)
        for pod in listing.items:
            if pod.metadata.name == name and condition(pod):
                return pod
        while True:
            for event in await listing.watch.next_batch():
                if event.object.metadata.name == name and condition(event.object):
                    return event.object

    async def holder(self) -> str:
        lease = await self.client.get(Lease, "kube-system", "kube-scheduler")
        return lease.spec.holder_identity or ""

    async def wait_for_renewals(self, count: int) -> None:
        """Return after this many changes of the lease from now on."""
        listing = await self.client.list_and_watch(Lease)
        while count > 0:
            count -= len(await listing.watch.next_batch())

    async def pods(self) -> list[Pod]:
        return [*(await self.client.list_and_watch(Pod)).items]
