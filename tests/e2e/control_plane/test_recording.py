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
        assert sum(report["counts"].values()) == PODS + 1
        assert set(report["counts"]) <= {"same", "tie"}, report["cases"]

    run_alone(main, limit_s=120)


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
