"""A scheduler process whose choice follows the load that metrics.k8s.io reports."""

import asyncio

import pytest
import yaml
from tests.service.test_run_process import is_bound, node, pod, reviews

from kubestow.usage.measurement import Amounts, Measurement
from kubestow.usage.store import UsageStore
from tools.https_cluster import TOKEN
from tools.https_cluster import HttpsCluster as Cluster
from tools.scheduler_process import ask_scheduler

LIMIT_S = 90


def configuration(cluster, folder):
    args = {
        "historySeconds": 1,
        "maxAgeSeconds": 5,
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


def log_count(scheduler):
    return scheduler.log.count('"Load-aware placement" active=false')


@pytest.mark.slow
def test_the_choice_follows_the_load(tmp_path):
    async def main():
        async with Cluster(tmp_path).serving() as cluster:
            usage = cluster.server.usage = UsageStore()
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
                # Until the scheduler has read it: the load before it is a second old.
                await asyncio.sleep(3)
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
        while log_count(scheduler) < 2:  # noqa: ASYNC110 - another process writes the log
            await asyncio.sleep(0.1)

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
