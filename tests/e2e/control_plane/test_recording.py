"""A cluster that kube-scheduler schedules is recorded, and replayed."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.control_plane.test_real_cluster import node, pod
from tests.e2e.control_plane.test_start_up import UPSTREAM, create_all, kube_scheduler

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod

PODS = 60


async def command(*arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubestow", *arguments, stdout=pipe, stderr=pipe
    )


@pytest.mark.skipif(not UPSTREAM.is_file(), reason="there is no kube-scheduler in the folder")
def test_agreement_with_kube_scheduler(run_alone: Any, tmp_path: Path) -> None:
    path = tmp_path / "cluster.rec"

    async def main(bench: Any) -> None:
        # Of different sizes, so that few nodes have equal scores.
        await create_all(bench, (node(f"n{i}", cpu=str(4 + i)) for i in range(8)))
        kubeconfig = str(bench.plane.kubeconfig("admin"))
        recording = await command("record", str(path), "--kubeconfig", kubeconfig)
        assert recording.stderr is not None
        assert b"Recording" in await recording.stderr.readline()
        async with kube_scheduler(bench):
            for number in range(PODS):
                await bench.create(pod(f"p{number}", cpu=f"{100 + 10 * (number % 7)}m"))
                await placed(bench, number + 1)
            await bench.create(pod("huge", cpu="500"))
            await condition_of(bench, "huge")
        recording.terminate()
        assert await recording.wait() == 0
        replay = await command("replay", str(path), "-o", "json")
        output, errors = await replay.communicate()
        report = json.loads(output)
        assert not errors
        # Pods come one at a time, so both see the same cluster; only ties are broken at random.
        assert report["verdicts"] == {"agrees": PODS + 1}, report["cases"]

    run_alone(main, limit_s=120)


PACKING = {
    "name": "NodeResourcesFit",
    "args": {
        "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    },
}


@pytest.mark.skipif(not UPSTREAM.is_file(), reason="there is no kube-scheduler in the folder")
@pytest.mark.parametrize("rate", [15, 60])
@pytest.mark.parametrize("kind", ["all nodes", "default", "packing"])
def test_what_is_in_flight_is_no_difference_and_other_rules_are(
    run_alone: Any, tmp_path: Path, kind: str, rate: int
) -> None:
    """A mixed workload at a rate, with overtaking, deletions, a cordon and a new node."""
    path, config = tmp_path / "cluster.rec", tmp_path / "config.json"
    count = 200

    async def main(bench: Any) -> None:
        kubeconfig = str(bench.plane.kubeconfig("admin"))
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": 0 if kind == "default" else 100,
            "clientConnection": {"kubeconfig": kubeconfig, "qps": 1000, "burst": 1000},
            "profiles": [{"pluginConfig": [PACKING] if kind == "packing" else []}],
        }
        config.write_text(json.dumps(document))
        told = tmp_path / "told.json"
        told.write_text(json.dumps(document | {"profiles": []}))
        await create_all(bench, (node(f"n{i}", cpu=str(4 + i % 9)) for i in range(150)))
        for name, value in PRIORITIES.items():
            await bench.create(priority_class(name, value))
        async with kube_scheduler(bench, config):
            recording = await command(
                "record", str(path), "--kubeconfig", kubeconfig, "--config", str(told)
            )
            assert recording.stderr is not None
            assert b"Recording" in await recording.stderr.readline()
            await bench.create(pod("first"))
            await placed(bench, 1)
            await asyncio.sleep(6)  # Nodes are known for longer than a change may be unseen.
            started_s, creating = asyncio.get_running_loop().time(), []
            for number in range(count):
                await asyncio.sleep(started_s + number / rate - asyncio.get_running_loop().time())
                creating.append(asyncio.create_task(bench.create(mixed_pod(number))))
                if number == count // 2:
                    creating += [
                        asyncio.create_task(bench.client.delete(Pod, "default", f"p{i}"))
                        for i in range(0, count // 3, 5)
                    ]
                    creating.append(asyncio.create_task(bench.create(node("new", cpu="16"))))
            await asyncio.gather(*creating)
            await placed(bench, count + 1 - len(range(0, count // 3, 5)))
        recording.terminate()
        assert await recording.wait() == 0
        replay = await command("replay", str(path), "-o", "json")
        output, errors = await replay.communicate()
        report = json.loads(output)
        assert not errors
        # Pods that are deleted before they are bound have no decision that is seen.
        assert sum(report["verdicts"].values()) >= count - len(range(0, count // 3, 5))
        if kind == "packing":
            assert replay.returncode == 1
            assert report["verdicts"]["other rules"] > count / 2
            assert report["plugins"][0]["plugin"] == "NodeResourcesFit"
            assert report["plugins"][0]["pointsMax"] > 10
        else:
            assert set(report["verdicts"]) <= ALLOWED, report["cases"][:3]
            assert replay.returncode == 0

    run_alone(main, limit_s=180)


PRIORITIES = {"low": 1, "high": 1000}
ALLOWED = {"agrees", "explained by timing", "explained by sampling"}


def priority_class(name: str, value: int) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def mixed_pod(number: int) -> JsonObject:
    document = pod(f"p{number}", cpu=f"{100 + 37 * (number % 29)}m")
    document["metadata"]["labels"] = {"app": f"a{number % 7}"}
    if number % 10 == 3:
        document["spec"]["priorityClassName"] = "high"
    if number % 10 == 6:
        document["spec"]["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": f"a{number % 7}"}},
            }
        ]
    return document


async def placed(bench: Any, count: int) -> None:
    """Wait until so many pods have a node."""
    await seen(bench, lambda pods: sum(bool(each.spec.node_name) for each in pods) >= count)


async def condition_of(bench: Any, name: str) -> None:
    await seen(
        bench,
        lambda pods: any(each.metadata.name == name and each.status.conditions for each in pods),
    )


async def seen(bench: Any, is_so: Callable[[Sequence[Pod]], bool]) -> None:
    while True:
        if is_so(await bench.client.list(Pod)):
            return
        await asyncio.sleep(0.05)
