"""Bursts and faults on a real kube-apiserver: what is not lost, and what is not evicted.

Counts are asserted, not times: those depend on the machine.
"""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubestow.api.meta import JsonObject
from kubestow.clock import SystemClock

CREATORS = 32
DEVICES_SINCE = 34
EVENTS_PATH = "/apis/events.k8s.io/v1/namespaces/default/events"
PODS_PATH = "/api/v1/namespaces/default/pods"
PRIORITY_CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1000,
}
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["delete", "patch"], "resources": [{"group": ""}]},
        {"level": "None"},
    ],
}


def node(name: str, cpu: int) -> JsonObject:
    resources = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
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


def pod(name: str, **spec: Any) -> JsonObject:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def config_file(folder: Path, kubeconfig: Path) -> str:
    """A configuration whose rate limit is not what limits these tests."""
    path = folder / "config.yaml"
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000},
    }
    path.write_text(json.dumps(document))
    return f"--config={path}"


async def create_all(bench: Any, documents: Iterable[JsonObject]) -> None:
    waiting = iter(documents)

    async def create() -> None:
        for document in waiting:
            await bench.create(document)

    await asyncio.gather(*(create() for _ in range(CREATORS)))


async def pods_of(bench: Any, prefix: str) -> list[JsonObject]:
    items = (await bench.client.get_document(PODS_PATH))["items"]
    return [item for item in items if item["metadata"]["name"].startswith(prefix)]


async def wait_all_bound(bench: Any, prefix: str) -> None:
    while True:
        found = await pods_of(bench, prefix)
        if all(item["spec"].get("nodeName") for item in found):
            return
        await asyncio.sleep(0.5)


async def fill(bench: Any, node_count: int, pods_per_node: int) -> None:
    await create_all(
        bench,
        (
            pod(f"low-{index}-{number}", nodeName=f"n{index}")
            for index, number in itertools.product(range(node_count), range(pods_per_node))
        ),
    )


async def remove_pods(bench: Any) -> None:
    await bench.send("DELETE", PODS_PATH, {"gracePeriodSeconds": 0})


def audited(folder: Path) -> tuple[str, ...]:
    """Flags of an API server that writes down the deletions."""
    policy = folder / "policy.yaml"
    policy.write_text(json.dumps(AUDIT_POLICY))
    return f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}"


def requests_of_pods(folder: Path) -> Counter[tuple[str, str, int]]:
    """What the scheduler has requested of pods of which kind, and how it was answered."""
    lines = (folder / "audit.log").read_bytes().splitlines()
    entries = [msgspec.json.decode(line) for line in lines]
    return Counter(
        (
            entry["verb"],
            entry["objectRef"]["name"].partition("-")[0],
            entry["responseStatus"]["code"],
        )
        for entry in entries
        if entry["userAgent"].endswith("/scheduler") and entry["objectRef"]["resource"] == "pods"
    )


def test_preemptors_that_share_victims_are_all_bound(run_alone: Any, tmp_path: Path) -> None:
    round_count, urgent_count = 4, 12

    async def main(bench: Any) -> None:
        kubeconfig = bench.plane.kubeconfig("kubestow")
        await bench.create(PRIORITY_CLASS, *(node(f"n{index}", 8) for index in range(4)))
        async with bench.scheduler(config_file(tmp_path, kubeconfig)):
            for round_number in range(round_count):
                await fill(bench, 4, 8)
                prefix = f"high-{round_number}-"
                urgent = (
                    pod(f"{prefix}{i}", priorityClassName="urgent") for i in range(urgent_count)
                )
                await create_all(bench, urgent)
                # A pod that no event queues is tried again after five minutes only.
                async with asyncio.timeout(30):
                    await wait_all_bound(bench, prefix)
                await remove_pods(bench)
        counts = requests_of_pods(tmp_path)
        print(dict(counts))
        victim_count = counts["delete", "low", 200]
        assert victim_count <= round_count * (urgent_count + 1)
        # One request for each victim, and none for a pod that is gone.
        assert +counts - Counter({key: n for key, n in counts.items() if key[2] == 200}) == {}
        assert counts["patch", "low", 200] == victim_count

    run_alone(main, *audited(tmp_path), limit_s=180)


def test_a_burst_of_preemptors_evicts_what_it_needs(run_alone: Any, tmp_path: Path) -> None:
    node_count, urgent_count = 120, 250

    async def main(bench: Any) -> None:
        kubeconfig = bench.plane.kubeconfig("kubestow")
        await bench.create(PRIORITY_CLASS)
        await create_all(bench, (node(f"n{index}", 8) for index in range(node_count)))
        await fill(bench, node_count, 8)
        async with bench.scheduler(config_file(tmp_path, kubeconfig)) as scheduler:
            await scheduler.wait_for_line("Starting Kubernetes Scheduler")
            urgent = (pod(f"high-{i}", priorityClassName="urgent") for i in range(urgent_count))
            await create_all(bench, urgent)
            async with asyncio.timeout(120):
                await wait_all_bound(bench, "high-")
            assert await scheduler.end() == 1  # as upstream without leader election
        victim_count = node_count * 8 - len(await pods_of(bench, "low-"))
        counts = requests_of_pods(tmp_path)
        print(f"{victim_count} victims, requests {dict(counts)}")
        # As many as kube-scheduler v1.36 takes.
        assert urgent_count <= victim_count <= urgent_count + 1
        assert counts["delete", "low", 200] == counts["patch", "low", 200] == victim_count
        # None was for a pod that is gone.
        assert {code for _, _, code in counts} == {200}

    run_alone(main, *audited(tmp_path), limit_s=240)


def test_every_pod_of_a_backlog_has_its_event(run_alone: Any, tmp_path: Path) -> None:
    pod_count = 3000

    async def main(bench: Any) -> None:
        kubeconfig = bench.plane.kubeconfig("kubestow")
        await create_all(bench, (node(f"n{index}", 32) for index in range(100)))
        await create_all(bench, (pod(f"p-{index}") for index in range(pod_count)))
        async with bench.scheduler(config_file(tmp_path, kubeconfig)):
            await wait_all_bound(bench, "p-")
            async with asyncio.timeout(60):
                while (found := await scheduled_events(bench)) < pod_count:
                    print(f"{found} of {pod_count} events")
                    await asyncio.sleep(2)

    run_alone(main, limit_s=300)


def test_a_bound_pod_never_keeps_the_condition_of_a_failed_attempt(
    run: Any, tmp_path: Path
) -> None:
    """A pod fails and fits milliseconds later: status and binding are written one after the
    other."""
    pair_count = 60

    async def main(bench: Any) -> None:
        kubeconfig = bench.plane.kubeconfig("kubestow")
        await create_all(bench, (node(f"n{index}", 1) for index in range(pair_count)))
        async with bench.scheduler(config_file(tmp_path, kubeconfig)) as scheduler:
            await scheduler.wait_for_line("Starting Kubernetes Scheduler")
            await fill(bench, pair_count, 1)

            async def replace(index: int) -> None:
                wanted = {"kubernetes.io/hostname": f"n{index}"}
                await bench.create(pod(f"new-{index}", nodeSelector=wanted))
                await bench.send("DELETE", f"{PODS_PATH}/low-{index}-0", {"gracePeriodSeconds": 0})

            await asyncio.gather(*map(replace, range(pair_count)))
            async with asyncio.timeout(60):
                await wait_all_bound(bench, "new-")
            await asyncio.sleep(3)  # longer than any request that is under way
            conditions = [
                (condition["type"], condition["status"])
                for found in await pods_of(bench, "new-")
                for condition in found["status"]["conditions"]
            ]
        assert conditions == [("PodScheduled", "True")] * pair_count

    run(main, limit_s=180)


async def scheduled_events(bench: Any) -> int:
    items = (await bench.client.get_document(EVENTS_PATH))["items"]
    return sum(1 for item in items if item["reason"] == "Scheduled")


def test_binding_goes_on_soon_after_each_of_several_restarts(run_alone: Any) -> None:
    """Two minutes after the last reset, delays begin at the base again, although watches failed."""
    clock = SystemClock()

    async def main(bench: Any) -> None:
        await bench.create(node("n1", 32))
        delays_s: list[float] = []
        async with bench.scheduler("--leader-elect=false") as scheduler:
            started_s = clock.monotonic_s()
            for index, at_s in enumerate((5, 50, 95, 140)):
                await asyncio.sleep(max(0.0, started_s + at_s - clock.monotonic_s()))
                bench.plane.kill_api_server()
                await asyncio.sleep(3)
                bench.plane.start_api_server()
                await bench.plane.wait_ready()
                ready_s = clock.monotonic_s()
                await bench.create(pod(f"p{index}"))
                await bench.bound(f"p{index}")
                delays_s.append(clock.monotonic_s() - ready_s)
            assert scheduler.process.returncode is None
        print("first binding after each restart:", [f"{delay_s:.1f} s" for delay_s in delays_s])
        # The delay is at most twice that of the attempts made while the server was away.
        assert delays_s[-1] < 25

    run_alone(main, limit_s=300)


@pytest.mark.parametrize("disabled", ["", "policy/v1=false"], ids=["devices", "budgets as well"])
def test_pods_are_scheduled_without_some_groups(
    run_alone: Any, disabled: str, server_minor: int
) -> None:
    async def main(bench: Any) -> None:
        await bench.create(node("n1", 4), pod("a"))
        async with bench.scheduler("--leader-elect=false") as scheduler:
            assert await bench.bound("a") == "n1"
            await scheduler.wait_for_line(r"does not serve DeviceClass, .*ResourceSlice: going on")

    groups = [disabled] if disabled else []
    if server_minor >= DEVICES_SINCE:  # older ones do not have this version
        groups.append("resource.k8s.io/v1=false")
    run_alone(main, *(f"--runtime-config={group}" for group in groups))


def test_a_server_that_refuses_has_one_line_for_all_lists_in_the_log(run: Any) -> None:
    async def main(bench: Any) -> None:
        kubeconfig = bench.plane.kubeconfig("nobody", token="wrong-token")
        # Without the last one it would wait until the server has told its version.
        flags = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--compatibility=v1.36")
        async with bench.scheduler(*flags) as found:
            await found.wait_for_line(r"cannot list 1\d kinds at .*: Unauthorized; trying again")
            refused = [line for line in found.lines if "cannot list" in line]
            assert len(refused) == 1

    run(main)
