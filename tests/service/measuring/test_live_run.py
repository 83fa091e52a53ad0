"""A scheduler process whose choice follows the load that metrics.k8s.io reports."""

import asyncio

import pytest
import yaml
from tests.service.test_run_process import is_bound, node, pod, reviews

from kubestow.clock import NANOSECONDS
from kubestow.usage.measurement import Amounts, Measurement
from kubestow.usage.store import UsageStore
from tools.https_cluster import TOKEN
from tools.https_cluster import HttpsCluster as Cluster
from tools.scheduler_process import ask_scheduler

LIMIT_S = 300
# Loads of this time are averaged.
HISTORY_S = 1
# Longer than a busy machine keeps the scheduler or its server from running.
MAX_AGE_S = 10


class ReadUsage(UsageStore):
    """Usage of two nodes, and when what each answer has was measured."""

    def __init__(self):
        super().__init__()
        self._answered_ns = asyncio.Queue()

    def node_names(self):
        names = super().node_names()  # as each answer begins
        slots = self.slots_of(names)
        self._answered_ns.put_nowait(int(self.nodes.time_ns[slots].min()) if names else 0)
        return names

    async def wait_taken(self, time_ns):
        """Return when the scheduler has the load of this time: it asks for one answer after the
        other."""
        while await self._answered_ns.get() < time_ns:
            pass
        await self._answered_ns.get()


def configuration(cluster, folder):
    args = {
        "historySeconds": HISTORY_S,
        "maxAgeSeconds": MAX_AGE_S,
        "source": {"type": "MetricsAPI", "intervalSeconds": 1},
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig)},
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"multiPoint": {"enabled": [{"name": "LoadAware", "weight": 20}]}},
                "pluginConfig": [{"name": "LoadAware", "args": args}],
            }
        ],
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(document))
    return f"--config={path}"


@pytest.mark.slow
def test_the_choice_follows_the_load(tmp_path):
    async def main():
        async with Cluster(tmp_path).serving() as cluster:
            usage = cluster.server.usage = ReadUsage()
            flags = (configuration(cluster, tmp_path), *reviews(cluster))
            async with cluster.scheduler(*flags) as scheduler:
                await follow(cluster, usage, scheduler)
                assert await scheduler.end() == 0

    async def follow(cluster, usage, scheduler):
        cluster.store.load([node("n1"), node("n2"), pod("first")])
        await cluster.wait_for_pod("first", is_bound)
        await scheduler.wait_for_line('"Load-aware placement" active=false')
        measuring = None
        try:
            for number, (busy, idle) in enumerate([("n1", "n2"), ("n2", "n1")]):
                if measuring is not None:
                    measuring.cancel()
                measuring = asyncio.create_task(measure(cluster, usage, busy, idle))
                # The load before it is not averaged any more then.
                await usage.wait_taken(cluster.clock.now_ns() + 2 * HISTORY_S * NANOSECONDS)
                cluster.store.load([pod(f"p{number}", cpu="100m")])
                bound = await cluster.wait_for_pod(f"p{number}", is_bound)
                assert bound.spec.node_name == idle
            address = await scheduler.address()
            _, text = await ask_scheduler(address, "/metrics", token=TOKEN)
            assert "kubestow_load_aware_active 1\n" in text
            assert 'kubestow_load_nodes{state="usable"} 2\n' in text
            _, text = await ask_scheduler(address, "/statusz", token=TOKEN)
            assert "Condition: LoadAware=True Measured since" in text
        finally:
            if measuring is not None:
                measuring.cancel()
        # Twice: before the first measurement, and after the last one.
        await scheduler.wait_for_lines('"Load-aware placement" active=false', 2)

    async def measure(cluster, usage, busy, idle):
        while True:
            now_ns = cluster.clock.now_ns()
            usage.add(
                Measurement(now_ns, Amounts(cpu, 1 << 30), node=name)
                for name, cpu in ((busy, 3900), (idle, 100))
            )
            await asyncio.sleep(0.3)

    async def limited():
        async with asyncio.timeout(LIMIT_S):
            await main()

    asyncio.run(limited())
