"""`kubestow rebalance --run` as a process of its own, on a served cluster in real time."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from tests.simulator.rebalance.rebalance_clusters import Raw, budget, documents, node, owner, pod

from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import SystemClock
from kubestow.cluster.resources import NODES, PODS
from kubestow.simulator.cluster_file import load_cluster_files
from kubestow.simulator.controllers.pods import DELETION_COST
from kubestow.simulator.rebalance.surge_run import MARK
from kubestow.simulator.served import ServedCluster, ServedOptions

pytestmark = pytest.mark.slow


def crowded() -> list[Raw]:
    """Four pods on one of three nodes; they end in a second."""
    made = owner("web", 4, cpu="500m")
    made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    pods = [
        pod(
            f"web-{number}",
            "a",
            cpu="500m",
            terminationGracePeriodSeconds=1,
            restartPolicy="Always",
        )
        for number in range(4)
    ]
    return [node("a"), node("b"), node("c"), made, *pods]


@contextmanager
def served(
    folder: Path, *more: Raw
) -> Generator[tuple[Path, MemoryCluster, asyncio.AbstractEventLoop]]:
    """A cluster with all controllers on a thread of its own."""
    path, is_up = folder / "kubeconfig", threading.Event()
    loop, is_over = asyncio.new_event_loop(), asyncio.Event()
    stores: list[MemoryCluster] = []

    async def run() -> None:
        options = ServedOptions(nodes=0, start_delay_s=0.2, stop_s=0.5)
        cluster = ServedCluster(options, SystemClock())
        load_cluster_files(cluster.store, documents(*crowded(), *more))
        stores.append(cluster.store)
        async with cluster.serving(path):
            is_up.set()
            await is_over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    assert is_up.wait(300)
    try:
        yield path, stores[0], loop
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join()
        loop.close()


def command_of(*arguments: str) -> list[str]:
    command = [sys.executable, "-m", "kubestow", "rebalance", "--from-cluster", "--goal", "balance"]
    return [*command, *arguments]


def environment(path: Path) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(path), "PYTHONPATH": os.pathsep.join(sys.path)}


def rebalance(path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command_of(*arguments),
        env=environment(path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def placements(store: MemoryCluster) -> list[str]:
    pods = [stored.typed for stored in store.objects_of(PODS)]
    return sorted(each.spec.node_name for each in pods if isinstance(each, Pod))


def after_first_eviction(
    store: MemoryCluster, loop: asyncio.AbstractEventLoop, act: Callable[[], None]
) -> None:
    """Do something in the loop of the cluster as soon as a pod is ending."""
    done: list[bool] = []

    def seen(event: object) -> None:
        stored = event.stored  # type: ignore[attr-defined]
        if not done and "deletionTimestamp" in stored.metadata:
            done.append(True)
            loop.call_soon(act)

    loop.call_soon_threadsafe(lambda: store.observe(PODS, seen))


def test_a_plan_is_carried_out_as_foretold(tmp_path: Path) -> None:
    metrics, other = tmp_path / "metrics.prom", tmp_path / "other"
    other.write_text("mine")
    metrics.symlink_to(other)
    with served(tmp_path) as (path, store, _):
        done = rebalance(path, "--run", "--yes", "-o", "json", "--metrics-file", str(metrics))
        assert done.returncode == 0, done.stderr
        run = json.loads(done.stdout)
        assert [move["actual"] == move["foretold"] for move in run["done"]] == [True, True]
        assert placements(store) == ["a", "a", "b", "c"]
        events = store.objects_of(store.resources.named("events.events.k8s.io"))
        notes = [each.document.get("reason") for each in events]
        assert notes.count("Rebalance") == 2
    assert 'kubestow_rebalance_evictions{goal="balance"} 2' in metrics.read_text()
    assert other.read_text() == "mine"
    assert metrics.stat().st_mode & 0o777 == 0o644  # its reader is another user


def test_a_node_that_is_closed_meanwhile_ends_it(tmp_path: Path) -> None:
    with served(tmp_path) as (path, store, loop):

        def close() -> None:
            for name in ("b", "c"):
                store.patch(NODES, "", name, {"spec": {"unschedulable": True}}, "merge")

        after_first_eviction(store, loop, close)
        done = rebalance(path, "--run", "--yes", "-o", "json")
        assert done.returncode == 1, done.stderr
        run = json.loads(done.stdout)
        assert len(run["done"]) == 1
        assert run["surprise"]


PROTECTED = budget("web", maxUnavailable=0)


def replicas(store: MemoryCluster) -> int:
    sets = store.resources.named("replicasets.apps")
    return int(store.get(sets, "default", "web").document["spec"]["replicas"])


def test_a_surge_is_carried_out(tmp_path: Path) -> None:
    with served(tmp_path, PROTECTED) as (path, store, _):
        done = rebalance(path, "--run", "--yes", "-o", "json", "--surge", "--max-moves", "1")
        assert done.returncode == 0, done.stderr
        run = json.loads(done.stdout)
        assert [move["actual"] == move["foretold"] for move in run["done"]] == [True]
        assert len(placements(store)) == 4
        assert placements(store)[:3] == ["a", "a", "a"]
        assert replicas(store) == 4


def close_all(store: MemoryCluster) -> None:
    for name in ("a", "b", "c"):
        store.patch(NODES, "", name, {"spec": {"unschedulable": True}}, "merge")


def begun_surge(
    path: Path, store: MemoryCluster, loop: asyncio.AbstractEventLoop
) -> "subprocess.Popen[str]":
    """A run that has scaled up, and whose new pod finds no node."""
    is_scaled = threading.Event()

    def marked(event: object) -> None:
        if MARK in str(event.stored.metadata.get("annotations")) and replicas(store) == 4:  # type: ignore[attr-defined]
            loop.call_soon(lambda: close_all(store))

    def scaled(_: object) -> None:
        if replicas(store) == 5:
            is_scaled.set()

    def follow() -> None:
        store.observe(PODS, marked)
        store.observe(store.resources.named("replicasets.apps"), scaled)

    loop.call_soon_threadsafe(follow)
    process = subprocess.Popen(
        command_of("--run", "--yes", "-o", "json", "--surge"),
        env=environment(path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert is_scaled.wait(300)
    return process


def marks(store: MemoryCluster) -> list[str]:
    found = (stored.metadata.get("annotations") for stored in store.objects_of(PODS))
    return [name for each in found for name in each or ()]


def test_a_surge_that_is_ended_is_taken_back(tmp_path: Path) -> None:
    """By SIGTERM, which is how a Job is ended."""
    with served(tmp_path, PROTECTED) as (path, store, loop):
        process = begun_surge(path, store, loop)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 1, err
        assert json.loads(out)["surprise"] == "interrupted"
        assert json.loads(out)["done"] == []
        assert replicas(store) == 4
        assert marks(store) == []


def test_a_surge_of_a_killed_process_is_taken_back_by_the_next_run(tmp_path: Path) -> None:
    with served(tmp_path, PROTECTED) as (path, store, loop):
        process = begun_surge(path, store, loop)
        process.kill()
        process.communicate(timeout=300)
        assert replicas(store) == 5
        assert sorted(marks(store)) == [DELETION_COST, MARK]
        done = rebalance(path, "--run", "--yes", "-o", "json", "--surge")
        assert "took back a surge for default/web-" in done.stderr
        assert replicas(store) == 4
        assert marks(store) == []


def test_what_is_autoscaled_is_not_scaled(tmp_path: Path) -> None:
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"},
            "maxReplicas": 9,
        },
    }
    with served(tmp_path, PROTECTED, scaler) as (path, _, _):
        done = rebalance(path, "-o", "json", "--surge")
        assert done.returncode == 1, done.stderr
        (kept,) = json.loads(done.stdout)["kept"]
        assert kept["reason"].endswith("; no surge: a HorizontalPodAutoscaler scales it")


def test_it_asks_first(tmp_path: Path) -> None:
    with served(tmp_path) as (path, store, _):
        done = rebalance(path, "--run")
        assert done.returncode == 2
        assert "--run asks before it evicts, and there is no terminal; give --yes" in done.stderr
        assert placements(store) == ["a", "a", "a", "a"]


def test_without_rights_nothing_is_evicted(tmp_path: Path) -> None:
    """A server that refuses the token: one line, and nothing happens."""
    with served(tmp_path) as (path, store, _):
        path.write_text(path.read_text().replace("token: ", "token: x"))
        done = rebalance(path, "--run", "--yes")
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) <= 2
        assert placements(store) == ["a", "a", "a", "a"]


class Expired(BaseHTTPRequestHandler):
    """Nodes are listed, and every version of the list of pods is too old."""

    evictions: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        kind, code = "NodeList", 200
        if self.path.startswith("/api/v1/pods"):
            kind, code = "Status", 410
        answer = {
            "kind": kind,
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "7"},
            "gitVersion": "v1.36.0",
            "items": [node("a")] if self.path.startswith("/api/v1/nodes") else [],
            "status": "Failure",
            "message": "The resourceVersion for the provided list is too old.",
            "reason": "Expired",
            "code": code,
        }
        body = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.evictions.append(self.path)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_cluster_that_cannot_be_listed_at_one_version_is_one_line(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Expired)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    path = tmp_path / "kubeconfig"
    cluster = {"server": f"http://127.0.0.1:{server.server_port}"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {}}],
        "current-context": "c",
    }
    path.write_text(json.dumps(config))
    try:
        done = rebalance(path, "--run", "--yes")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert done.returncode == 2
    assert done.stdout == ""
    error, hint = done.stderr.splitlines()
    assert error.startswith("kubestow: error: cannot list pods of ")
    assert error.endswith("The resourceVersion for the provided list is too old.")
    assert hint == "run 'kubestow rebalance --help' for its options"
    assert Expired.evictions == []
