"""From the start of a process to its first binding in a large cluster, beside kube-scheduler.

E2E_START_NODES=5000 E2E_START_PODS=50000 is the full size. The limits hold there, too, where the
machine has two cores for this test; E2E_START_S_MAX gives another one for a busy machine.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.clock import SystemClock

NODE_COUNT = int(os.environ.get("E2E_START_NODES", "500"))
POD_COUNT = int(os.environ.get("E2E_START_PODS", "5000"))
START_S_MAX = float(os.environ.get("E2E_START_S_MAX", "10"))
RSS_MIB_MAX = 1536
UPSTREAM = Path(os.environ.get("KUBEBUILDER_ASSETS", "")) / "kube-scheduler"
CREATORS = 32
MIB = 1024  # in KiB
CLOCK = SystemClock()


class Start(NamedTuple):
    """What a process had used when its first pod was bound."""

    wall_s: float
    cpu_s: float
    rss_mib: float

    def __str__(self) -> str:
        return f"{self.wall_s:.1f} s, CPU {self.cpu_s:.1f} s, {self.rss_mib:.0f} MiB at most"


def test_the_first_binding_in_a_large_cluster(run_alone: Any) -> None:
    async def main(bench: Any) -> None:
        await create_all(bench, (node(index) for index in range(NODE_COUNT)))
        await create_all(bench, (bound_pod(index) for index in range(POD_COUNT)))
        print(f"{NODE_COUNT} nodes, {POD_COUNT} bound pods")
        ours = await measured(bench, "kubestow", kubestow(bench))
        if UPSTREAM.is_file():
            await measured(bench, "kube-scheduler", kube_scheduler(bench))
        assert ours.wall_s <= START_S_MAX
        assert ours.rss_mib <= RSS_MIB_MAX

    run_alone(main, limit_s=1800)


async def measured(
    bench: Any, name: str, scheduler: contextlib.AbstractAsyncContextManager[int]
) -> Start:
    """Start the scheduler, which gives its process, with one pod that waits."""
    await bench.create(pod(name))
    started_s = CLOCK.monotonic_s()
    async with scheduler as process_id:
        await bound(bench, name)
        wall_s = CLOCK.monotonic_s() - started_s
        found = Start(wall_s, *used(process_id))
    print(f"{name}: {found}")
    return found


async def bound(bench: Any, name: str) -> None:
    """Wait for one pod; the others are not read, which would disturb what is measured."""
    listing = await bench.client.list_and_watch(Pod, field_selector=f"metadata.name={name}")
    try:
        while batch := await listing.watch.next_batch():
            if any(event.object.spec.node_name for event in batch):
                return
    finally:
        listing.watch.close()
    raise AssertionError("the watch ended")


@contextlib.asynccontextmanager
async def kubestow(bench: Any) -> AsyncIterator[int]:
    async with bench.scheduler("--leader-elect=false") as run:
        yield run.process.pid


@contextlib.asynccontextmanager
async def kube_scheduler(bench: Any, config: Path | None = None) -> AsyncIterator[int]:
    """`config` names the kubeconfig itself."""
    kubeconfig = bench.plane.kubeconfig("admin")
    source = f"--kubeconfig={kubeconfig}" if config is None else f"--config={config}"
    flags = (source, "--leader-elect=false", "--secure-port=0")
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(UPSTREAM, *flags, stdout=quiet, stderr=quiet)
    try:
        yield process.pid
    finally:
        process.kill()
        await process.wait()


def used(process_id: int) -> tuple[float, float]:
    """CPU seconds and peak memory in MiB."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])  # user and system
    status = Path(f"/proc/{process_id}/status").read_text().splitlines()
    peak_kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return ticks / os.sysconf("SC_CLK_TCK"), peak_kib / MIB


# --- A cluster as they are: objects of some kilobytes -------------------------------------------


async def create_all(bench: Any, documents: Iterable[JsonObject]) -> None:
    waiting = iter(documents)

    async def create() -> None:
        for document in waiting:
            await bench.create(document)

    await asyncio.gather(*(create() for _ in range(CREATORS)))


def node(index: int) -> JsonObject:
    name = f"node-{index:04}"
    zone = f"zone-{index % 3}"
    resources = {
        "cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "100Gi",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    }  # fmt: skip
    conditions = [
        {"type": kind, "status": "False", "reason": f"Kubelet{kind}", "message": "kubelet is fine"}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    images = [
        {"names": [f"registry.example/app-{number}:v{index % 7}"], "sizeBytes": 50_000_000 + number}
        for number in range(20)
    ]
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "m5.8xlarge",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": "region",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"cloud:///{zone}/{name}", "podCIDR": f"10.{index % 250}.0.0/24"},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [*conditions, {"type": "Ready", "status": "True"}],
            "images": images,
            "addresses": [{"type": "Hostname", "address": name}],
        },
    }


def bound_pod(index: int) -> JsonObject:
    return pod(f"app-{index % 500:03}-{index:05}", nodeName=f"node-{index % NODE_COUNT:04}")


def pod(name: str, **spec: Any) -> JsonObject:
    app = name.rpartition("-")[0] or name
    container: JsonObject = {
        "name": "main",
        "image": "registry.example/app-1:v1",
        "args": ["--port=8080", "--log-level=info"],
        "ports": [{"containerPort": 8080, "name": "http"}],
        "env": [{"name": f"SETTING_{number}", "value": f"value {number}"} for number in range(8)],
        "resources": {
            "requests": {"cpu": "250m", "memory": "512Mi"},
            "limits": {"memory": "1Gi"},
        },
        "livenessProbe": {"httpGet": {"path": "/livez", "port": 8080}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 5},
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}],
    }
    labels = {"app": app, "pod-template-hash": "5d4f8c7b9", "tier": "backend"}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": app,
        "uid": "6e1c1f0e-8c1f-4b0c-9d5e-0a1b2c3d4e5f",
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels,
            "annotations": {"checksum/settings": "0123456789abcdef" * 4},
            "ownerReferences": [owner],
        },
        "spec": {
            "containers": [container],
            "volumes": [{"name": "settings", "configMap": {"name": app}}],
            **spec,
        },
    }
