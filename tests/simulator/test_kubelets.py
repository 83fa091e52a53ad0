"""Fake kubelets: the status they write for bound pods."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import NODES, PODS
from kubestow.simulator.event_log import EventLog
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.node_registration import NodeRegistration
from kubestow.simulator.pretended_process import Run, run_of
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time


def pod(*, command: list[str] | None = None, annotations: Any = None, **spec: Any) -> JsonObject:
    container = {"name": "main", "image": "nginx", **({"command": command} if command else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "annotations": annotations or {}},
        "spec": {"nodeName": "n1", "containers": [container], **spec},
    }


def play(
    work: Callable[[MemoryCluster], Awaitable[None]], *, registers: bool = False, **options: Any
) -> MemoryCluster:
    async def inside() -> MemoryCluster:
        clock = VirtualClock(asyncio.get_running_loop())
        cluster = MemoryCluster(clock)
        runners: list[Any] = [FakeKubelets(cluster, clock, log=EventLog(cluster, clock), **options)]
        if registers:
            runners.append(NodeRegistration(cluster, clock))
        tasks = [asyncio.create_task(runner.run()) for runner in runners]
        await work(cluster)
        for task in tasks:
            assert not task.done()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        return cluster

    return run_in_virtual_time(inside())


def status(cluster: MemoryCluster) -> JsonObject:
    return cluster.get(PODS, "default", "p").document["status"]


def test_a_bound_pod_runs_after_the_delay_and_is_ready():
    async def work(cluster: MemoryCluster) -> None:
        cluster.create(PODS, pod())
        await asyncio.sleep(1)
        assert status(cluster)["phase"] == "Pending"
        await asyncio.sleep(2)
        found = status(cluster)
        assert found["phase"] == "Running"
        assert found["startTime"] == "2026-01-01T00:00:02Z"
        assert found["podIP"].startswith("10.244.")
        (container,) = found["containerStatuses"]
        assert (container["name"], container["ready"]) == ("main", True)
        conditions = {one["type"]: one["status"] for one in found["conditions"]}
        assert conditions["Ready"] == conditions["ContainersReady"] == "True"

    play(work, start_delay_s=2)


def test_a_pod_without_a_node_is_ignored():
    async def work(cluster: MemoryCluster) -> None:
        cluster.create(PODS, pod(nodeName=""))
        await asyncio.sleep(60)
        assert status(cluster)["phase"] == "Pending"

    play(work)


def test_pods_are_not_started_with_starts_pods_off():
    async def work(cluster: MemoryCluster) -> None:
        cluster.create(PODS, pod())
        await asyncio.sleep(60)
        assert status(cluster)["phase"] == "Pending"

    play(work, starts_pods=False)


@pytest.mark.parametrize(
    ("command", "policy", "phase", "exit_code"),
    [
        pytest.param(["sleep", "20"], "Never", "Succeeded", 0, id="ends-well"),
        pytest.param(["sh", "-c", "sleep 20; exit 3"], "Never", "Failed", 3, id="fails"),
        pytest.param(["sleep", "20"], "OnFailure", "Succeeded", 0, id="need-not-restart"),
    ],
)
def test_a_run_ends(command: list[str], policy: str, phase: str, exit_code: int):
    async def work(cluster: MemoryCluster) -> None:
        cluster.create(PODS, pod(command=command, restartPolicy=policy))
        await asyncio.sleep(19)
        assert status(cluster)["phase"] == "Running"
        await asyncio.sleep(2)
        assert status(cluster)["phase"] == phase
        terminated = status(cluster)["containerStatuses"][0]["state"]["terminated"]
        assert terminated["exitCode"] == exit_code
        assert terminated["startedAt"] == "2026-01-01T00:00:00Z"
        assert terminated["finishedAt"] == "2026-01-01T00:00:20Z"

    play(work)


def test_a_failing_pod_is_restarted_with_growing_delays():
    async def work(cluster: MemoryCluster) -> None:
        cluster.create(
            PODS, pod(command=["sh", "-c", "sleep 5; exit 1"], restartPolicy="OnFailure")
        )
        await asyncio.sleep(6)
        (container,) = status(cluster)["containerStatuses"]
        assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert container["lastState"]["terminated"]["exitCode"] == 1
        await asyncio.sleep(10)
        (container,) = status(cluster)["containerStatuses"]
        assert (container["restartCount"], "running" in container["state"]) == (1, True)
        await asyncio.sleep(300)
        # Runs end after 5 s; the pauses are 10, 20, 40, 80 and then 160 s.
        assert status(cluster)["containerStatuses"][0]["restartCount"] == 4

    play(work)


@pytest.mark.parametrize(
    ("stop_s", "expected_s"), [(None, 30), (2, 2), (100, 30)], ids=["grace", "faster", "not-later"]
)
def test_a_deleted_pod_ends_after_its_grace_period(stop_s: float | None, expected_s: float):
    async def work(cluster: MemoryCluster) -> None:
        cluster.create(PODS, pod())
        await asyncio.sleep(1)
        cluster.delete(PODS, "default", "p")
        await asyncio.sleep(expected_s - 0.5)
        assert cluster.find(PODS, "default", "p") is not None
        await asyncio.sleep(1)
        assert cluster.find(PODS, "default", "p") is None

    play(work, stop_s=stop_s)


def test_a_pod_deleted_while_it_runs_does_not_succeed_afterwards():
    async def work(cluster: MemoryCluster) -> None:
        cluster.create(PODS, pod(command=["sleep", "20"], restartPolicy="Never"))
        await asyncio.sleep(15)
        cluster.delete(PODS, "default", "p")
        await asyncio.sleep(10)
        assert status(cluster)["phase"] == "Running"
        await asyncio.sleep(30)
        assert cluster.find(PODS, "default", "p") is None

    play(work)


def test_a_pod_of_the_same_name_is_another_pod():
    async def work(cluster: MemoryCluster) -> None:
        cluster.create(PODS, pod(command=["sleep", "20"], restartPolicy="Never"))
        await asyncio.sleep(10)
        cluster.delete(PODS, "default", "p", grace_period_s=0)
        cluster.create(PODS, pod(command=["sleep", "20"], restartPolicy="Never"))
        await asyncio.sleep(15)
        assert status(cluster)["phase"] == "Running"
        await asyncio.sleep(10)
        assert status(cluster)["phase"] == "Succeeded"

    play(work)


# --- How long a pod runs ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(pod(), None, id="until-stopped"),
        pytest.param(pod(restartPolicy="Never"), Run(5.0, 0), id="a-few-seconds"),
        pytest.param(
            pod(restartPolicy="Never", command=["sleep", "2.5"]), Run(2.5, 0), id="sleeps"
        ),
        pytest.param(pod(restartPolicy="Never", command=["false"]), Run(0.0, 1), id="false"),
        pytest.param(pod(restartPolicy="Never", command=["true"]), Run(0.0, 0), id="true"),
        pytest.param(
            pod(restartPolicy="Never", command=["sh", "-c", "exit 7"]), Run(5.0, 7), id="exits"
        ),
        pytest.param(
            pod(annotations={"kubestow.io/run-seconds": "9"}), Run(9.0, 0), id="annotated"
        ),
        pytest.param(
            pod(restartPolicy="Never", annotations={"kubestow.io/exit-code": "4"}),
            Run(5.0, 4),
            id="annotated-code",
        ),
        pytest.param(
            pod(restartPolicy="Never", annotations={"kubestow.io/run-seconds": "soon"}),
            Run(5.0, 0),
            id="nonsense",
        ),
    ],
)
def test_how_a_pod_runs(document: JsonObject, expected: Run | None):
    assert run_of(document) == expected


# --- Nodes ------------------------------------------------------------------------------------


def test_a_node_with_nothing_but_capacity_becomes_ready():
    async def work(cluster: MemoryCluster) -> None:
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        cluster.create(NODES, {"metadata": {"name": "n1"}, "status": {"capacity": capacity}})
        await asyncio.sleep(1)
        document = cluster.get(NODES, "", "n1").document
        conditions = {one["type"]: one["status"] for one in document["status"]["conditions"]}
        assert conditions["Ready"] == "True"
        assert conditions["MemoryPressure"] == "False"
        assert document["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
        assert document["status"]["allocatable"] == capacity
        version = cluster.version
        await asyncio.sleep(600)
        assert cluster.version == version

    play(work, registers=True)


def test_given_values_of_a_node_are_kept():
    async def work(cluster: MemoryCluster) -> None:
        given = {"type": "Ready", "status": "False"}
        addresses = [{"type": "InternalIP", "address": "1.2.3.4"}]
        node_status = {"conditions": [given], "addresses": addresses}
        cluster.create(NODES, {"metadata": {"name": "n1"}, "status": node_status})
        cluster.create(PODS, pod())
        await asyncio.sleep(1)
        document = cluster.get(NODES, "", "n1").document
        conditions = {one["type"]: one["status"] for one in document["status"]["conditions"]}
        assert conditions["Ready"] == "False"
        assert status(cluster)["hostIP"] == "1.2.3.4"

    play(work, registers=True, start_delay_s=0.5)


def test_kubelets_read_nodes_as_they_are():
    def node(address: str, **annotations: str) -> JsonObject:
        return {
            "metadata": {"name": "n1", "annotations": annotations},
            "status": {"addresses": [{"type": "InternalIP", "address": address}]},
        }

    async def work(cluster: MemoryCluster) -> None:
        cluster.create(NODES, node("10.0.0.1"))
        for address, patch in (
            ("10.0.0.1", {}),
            (
                "10.0.0.2",
                {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]}},
            ),
        ):
            cluster.patch(NODES, "", "n1", patch, "merge", subresource="status")
            cluster.create(PODS, pod())
            await asyncio.sleep(1)
            assert status(cluster)["hostIP"] == address
            cluster.delete(PODS, "default", "p", grace_period_s=0)
        stopped = {"metadata": {"annotations": {"kubestow.io/kubelet": "stopped"}}}
        cluster.patch(NODES, "", "n1", stopped, "merge")
        cluster.create(PODS, pod())
        await asyncio.sleep(1)
        assert status(cluster)["phase"] == "Pending"
        cluster.delete(NODES, "", "n1")
        await asyncio.sleep(1)
        assert status(cluster)["hostIP"] == "127.0.0.1"

    play(work)
