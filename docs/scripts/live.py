"""Measures `kubestow run` on a real API server: pods bound a second, CPU a pod, events written.

    KUBEBUILDER_ASSETS=folder python docs/scripts/live.py --nodes 5000 --pods 5000 --repeat 3

The folder has etcd and kube-apiserver (`setup-envtest use -p path` prints one); both run on
loopback until the end. All pods wait when a run starts. Runs of the scheduler alternate with runs
of a client that binds every pod to the next node and writes the same event, without deciding
anything: what it reaches is what this API server allows. One line of JSON for each run. Linux only.
"""

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.clock import SystemClock
from kubestow.cluster.client import ObjectWatch
from kubestow.cluster.events import EventRecorder
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import load_kubeconfig
from kubestow.cluster.http.session import ApiSession
from kubestow.errors import ApiError
from kubestow.service.cli import main as kubestow_main
from kubestow.service.commands.run.process import event_loop_factory

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/events"
AT_ONCE = 48  # requests that set up a run
BINDING_AT_ONCE = 32
START_LIMIT_S = 60
RUN_LIMIT_S = 600
RUN = (
    *("run", "--leader-elect=false", "--secure-port=0"),
    *("--kube-api-qps=5000", "--kube-api-burst=5000", "--kubeconfig"),
)
SCHEDULER = (sys.executable, "-m", "kubestow", *RUN)
CLIENT = (sys.executable, __file__, "--only-bind")
SAMPLE_S = 0.001  # of CPU time


# --- The control plane ------------------------------------------------------------------------


@contextlib.contextmanager
def control_plane(assets: Path) -> Iterator[str]:
    """etcd and kube-apiserver; the path of a kubeconfig."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as processes:
        folder = Path(name)
        etcd, peer, port = (_free_port() for _ in range(3))
        token, key = secrets.token_hex(16), folder / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (folder / "tokens").write_text(f'{token},admin,1,"system:masters"\n')
        clients, peers = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peer}"
        commands = (
            (
                assets / "etcd",
                f"--data-dir={folder / 'etcd'}",
                "--unsafe-no-fsync",
                f"--listen-client-urls={clients}",
                f"--advertise-client-urls={clients}",
                f"--listen-peer-urls={peers}",
                f"--initial-advertise-peer-urls={peers}",
                f"--initial-cluster=default={peers}",
            ),
            (
                assets / "kube-apiserver",
                f"--etcd-servers={clients}",
                f"--secure-port={port}",
                "--bind-address=127.0.0.1",
                f"--cert-dir={folder / 'certificates'}",
                f"--token-auth-file={folder / 'tokens'}",
                "--authorization-mode=RBAC",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--service-account-issuer=https://local",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
                "--max-requests-inflight=3000",
                "--max-mutating-requests-inflight=3000",
            ),
        )
        for command in commands:
            processes.callback(stop, started(command))
        server = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": server}],
            "users": [{"name": "u", "user": {"token": token}}],
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(kubeconfig))
        yield str(path)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def started(command: Sequence[str | Path]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    process.wait(30)


def connect(kubeconfig: str) -> HttpClient:
    clock = SystemClock()
    session = ApiSession(load_kubeconfig(kubeconfig, clock), clock, qps=-1)
    return HttpClient(session, rng=np.random.default_rng())


# --- Measuring --------------------------------------------------------------------------------


async def measure(kubeconfig: str, options: argparse.Namespace) -> None:
    client = connect(kubeconfig)
    await wait_ready(client)
    node: dict[str, Any] = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"node-{number}",
                "labels": {"topology.kubernetes.io/zone": f"zone-{number % 3}"},
            },
            "status": {"capacity": node, "allocatable": node},
        }
        for number in range(options.nodes)
    ]
    await create(client, "/api/v1/nodes", nodes)
    scheduler = SCHEDULER
    if options.profile:
        scheduler = (sys.executable, __file__, "--profile", options.profile, "--run-profiled")
    runs: dict[str, Sequence[str]] = {
        "kubestow": [*scheduler, kubeconfig],
        "binds only": [*CLIENT, kubeconfig],
    }
    if options.record:
        runs["recorded"] = [*SCHEDULER, kubeconfig, "--record", options.record, "--force"]
    for what, command in [*runs.items()] * options.repeat:
        await create(client, PODS, [pod(name) for name in range(options.pods)])
        result = await run_once(client, command, options.pods)
        print(json.dumps({"what": what, "nodes": options.nodes, **result}), flush=True)
        await delete(client, options.pods)


async def wait_ready(client: HttpClient) -> None:
    async with asyncio.timeout(START_LIMIT_S):
        while True:
            with contextlib.suppress(ApiError):
                await client.get_document("/api/v1/namespaces/default")
                return
            await asyncio.sleep(0.2)


def pod(number: int) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "500Mi"}
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "labels": {"app": f"a{number % 10}"}},
        "spec": {"containers": [{**container, "resources": {"requests": requests}}]},
    }


async def create(client: HttpClient, path: str, documents: list[dict[str, Any]]) -> None:
    waiting = iter(documents)

    async def work() -> None:
        for document in waiting:
            await client.create_document(path, document)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def delete(client: HttpClient, pod_count: int) -> None:
    numbers = iter(range(pod_count))

    async def work() -> None:
        for number in numbers:
            await client.delete(Pod, "default", f"pod-{number}", grace_period_s=0)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def run_once(client: HttpClient, command: Sequence[str], pod_count: int) -> dict[str, Any]:
    clock = SystemClock()
    events_before = await count(client, EVENTS)
    listed = await client.get_document(f"{PODS}?limit=1")
    version = listed["metadata"]["resourceVersion"]
    watch = await watch_bound(client, version)
    process = started(command)
    try:
        async with asyncio.timeout(RUN_LIMIT_S):
            bound: set[str] = set()
            started_s, cpu_before_s = 0.0, 0.0
            while len(bound) < pod_count:
                batch = await watch.next_batch()
                if not batch:  # The server has ended it, as that of a reader that is too slow.
                    watch = await watch_bound(client, version)
                for event in batch:
                    if event.type != "BOOKMARK":
                        bound.add(event.object.metadata.name)
                if bound and not started_s:
                    started_s, cpu_before_s = clock.monotonic_s(), cpu_s(process.pid)
            bound_s = clock.monotonic_s() - started_s
            events_then = await count(client, EVENTS) - events_before
            while await count(client, EVENTS) - events_before < pod_count:  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.1)
            written_s = clock.monotonic_s() - started_s
        cpu_after_s = cpu_s(process.pid)
    finally:
        watch.close()
        stop(process)
    return {
        "pods": pod_count,
        "pods_per_s": round(pod_count / bound_s, 1),
        "pods_per_s_with_events": round(pod_count / written_s, 1),
        "events_at_last_binding": events_then,
        "events": await count(client, EVENTS) - events_before,
        "cpu_ms_per_pod": round((cpu_after_s - cpu_before_s) / pod_count * 1e3, 3),
        "cpu_ms_per_pod_from_start": round(cpu_after_s / pod_count * 1e3, 3),
    }


async def watch_bound(client: HttpClient, version: str) -> ObjectWatch[Pod]:
    return await client.watch(Pod, resource_version=version, field_selector="spec.nodeName!=")


async def count(client: HttpClient, path: str) -> int:
    listed = await client.get_document(f"{path}?limit=1")
    return len(listed["items"]) + listed["metadata"].get("remainingItemCount", 0)


def cpu_s(pid: int) -> float:
    """CPU time of a process so far, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- The client that only binds ---------------------------------------------------------------


async def only_bind(kubeconfig: str) -> None:
    """Bind all pods and write an event for each, then wait to be stopped."""
    client, clock = connect(kubeconfig), SystemClock()
    recorder = EventRecorder(connect(kubeconfig), clock, hostname="client")
    recording = asyncio.create_task(recorder.run())
    names = [node.metadata.name for node in await client.list(Node)]
    pods = enumerate(await client.list(Pod))

    async def work() -> None:
        for number, waiting in pods:
            name = names[number % len(names)]
            await client.bind(waiting, name)
            recorder.record(
                waiting,
                reporter="client",
                type="Normal",
                reason="Scheduled",
                action="Binding",
                note=f"Successfully assigned {waiting.metadata.name} to {name}",
            )

    await asyncio.gather(*(work() for _ in range(BINDING_AT_ONCE)))
    await recording


def run_profiled(kubeconfig: str, profile: Path) -> None:
    """Run the scheduler, and write where its CPU time goes as folded stacks when it is stopped."""
    stacks = Counter[str]()

    def sample(_signal: int, frame: FrameType | None) -> None:
        calls: list[str] = []
        while frame is not None:
            calls.append(f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}")
            frame = frame.f_back
        stacks[";".join(reversed(calls))] += 1

    signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
    sys.argv = ["kubestow", *RUN, kubeconfig]
    try:
        kubestow_main()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        profile.write_text("".join(f"{stack} {count}\n" for stack, count in stacks.most_common()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure kubestow on a real API server.")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=3, help="how often each is run")
    parser.add_argument("--profile", metavar="FILE", help="write where kubestow's CPU time goes")
    parser.add_argument("--record", metavar="FILE", help="also measure runs that are recorded")
    parser.add_argument("--only-bind", metavar="KUBECONFIG", help=argparse.SUPPRESS)
    parser.add_argument("--run-profiled", metavar="KUBECONFIG", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run_profiled:
        run_profiled(options.run_profiled, Path(options.profile))
        return
    with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
        if options.only_bind:
            runner.run(only_bind(options.only_bind))
            return
        assets = os.environ.get("KUBEBUILDER_ASSETS")
        if not assets:
            parser.error("set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver")
        with control_plane(Path(assets)) as kubeconfig:
            runner.run(measure(kubeconfig, options))


if __name__ == "__main__":
    main()
