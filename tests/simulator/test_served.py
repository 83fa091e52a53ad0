"""An embedded cluster over HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import yaml

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.clock import SystemClock
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import load_kubeconfig
from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.resources import PODS
from kubestow.recording.file import RecordingReader
from kubestow.recording.format import RecordedAttempt
from kubestow.recording.recording import RecordTo
from kubestow.simulator.served import ServedCluster, ServedOptions

T = TypeVar("T")

QUICK = {"start_delay_s": 0.0, "stop_s": 0.0}


def serve(
    path: Path, options: ServedOptions, work: Callable[[ServedCluster, HttpClient], Awaitable[T]]
) -> T:
    async def inside() -> T:
        clock = SystemClock()
        cluster = ServedCluster(options, clock)
        async with asyncio.timeout(300), cluster.serving(path):
            session = ApiSession(load_kubeconfig(str(path), clock, environ={}), clock)
            try:
                return await work(cluster, HttpClient(session, rng=np.random.default_rng(0)))
            finally:
                session.close()

    return asyncio.run(inside())


async def until(watch: Any, is_done: Callable[[dict[str, Pod]], bool]) -> dict[str, Pod]:
    """Follow the pods until the condition holds."""
    pods: dict[str, Pod] = {}
    while True:
        for event in await watch.next_batch():
            if event.type == "DELETED":
                pods.pop(event.object.metadata.name, None)
            elif event.type != "BOOKMARK":
                pods[event.object.metadata.name] = event.object
        if is_done(pods):
            return pods


def test_a_deployment_becomes_pods_that_run_and_go(tmp_path: Path):
    async def work(cluster: ServedCluster, client: HttpClient):
        nodes = await client.list(Node)
        listing = await client.list_and_watch(Pod)
        labels = {"app": "web"}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        }
        deployments = cluster.store.resources.named("deployments.apps")
        spec = {"replicas": 4, "selector": {"matchLabels": labels}, "template": template}
        cluster.store.create(deployments, {"metadata": {"name": "web"}, "spec": spec})
        running = await until(
            listing.watch,
            lambda pods: (
                len(pods) == 4 and all(pod.status.phase == "Running" for pod in pods.values())
            ),
        )
        cluster.store.delete(deployments, "default", "web")
        await until(listing.watch, lambda _: not list(cluster.store.objects_of(PODS)))
        listing.watch.close()
        return nodes, running

    path = tmp_path / "kubeconfig"
    nodes, running = serve(path, ServedOptions(nodes=3, **QUICK), work)
    assert [node.metadata.name for node in nodes] == ["node-0", "node-1", "node-2"]
    assert {pod.spec.node_name for pod in running.values()} <= {"node-0", "node-1", "node-2"}
    assert not path.exists()


def test_what_is_served_can_be_recorded(tmp_path: Path):
    record = tmp_path / "served.rec"

    async def work(cluster: ServedCluster, client: HttpClient):
        listing = await client.list_and_watch(Pod)
        for number in range(3):
            containers = [{"name": "main", "image": "nginx"}]
            document = {"metadata": {"name": f"p{number}"}, "spec": {"containers": containers}}
            cluster.store.create(PODS, document)
        await until(
            listing.watch,
            lambda pods: len(pods) == 3 and all(pod.spec.node_name for pod in pods.values()),
        )
        listing.watch.close()

    options = ServedOptions(nodes=2, record=RecordTo(record, "demo"), **QUICK)
    serve(tmp_path / "kubeconfig", options, work)
    attempts = [each for each in RecordingReader(record) if isinstance(each, RecordedAttempt)]
    assert {each.pod for each in attempts} == {"default/p0", "default/p1", "default/p2"}
    assert all(each.node for each in attempts)


def test_without_a_scheduler_pods_wait_for_one(tmp_path: Path):
    async def work(cluster: ServedCluster, client: HttpClient):
        document = {
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        }
        listing = await client.list_and_watch(Pod)
        cluster.store.create(PODS, document)
        waiting = await until(listing.watch, lambda pods: "p" in pods)
        await client.bind(waiting["p"], "node-0")
        running = await until(
            listing.watch, lambda pods: "p" in pods and pods["p"].status.phase == "Running"
        )
        listing.watch.close()
        return running["p"]

    options = ServedOptions(nodes=1, has_scheduler=False, **QUICK)
    assert serve(tmp_path / "kubeconfig", options, work).spec.node_name == "node-0"


def test_the_kubeconfig_is_sufficient(tmp_path: Path):
    path = tmp_path / "kubeconfig"

    async def work(cluster: ServedCluster, _client: HttpClient):
        return cluster.url, yaml.safe_load(path.read_text())

    url, config = serve(path, ServedOptions(nodes=0), work)
    assert config["clusters"][0]["cluster"]["server"] == url
    assert len(config["users"][0]["user"]["token"]) > 20


@pytest.mark.parametrize("nodes", [0, 4])
def test_there_are_as_many_nodes_as_asked_for(tmp_path: Path, nodes: int):
    async def work(_cluster: ServedCluster, client: HttpClient):
        return await client.list(Node)

    assert len(serve(tmp_path / "kubeconfig", ServedOptions(nodes=nodes), work)) == nodes
