"""Names of pods and nodes, of files and of a cluster."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubestow.apiserver.http.kubeconfig_file import KubeconfigFile, kubeconfig
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import SystemClock
from kubestow.cluster.self_signed import self_signed
from kubestow.service.completion.objects import object_names
from kubestow.service.completion.table import NODES, PODS
from kubestow.service.completion.words import TypedLine

EXAMPLES = str(Path(__file__).parents[3] / "examples")
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def pod(namespace: str, name: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The kubeconfig of a cluster that answers meanwhile."""
    path, started, ended = tmp_path / "kubeconfig", threading.Event(), threading.Event()

    async def serve() -> None:
        clock = SystemClock()
        store = MemoryCluster(clock)
        store.load([NODE, pod("default", "web-0"), pod("shop", "till-0")])
        api = ApiServer(store, clock, token="secret")
        made = self_signed(now_ns=clock.now_ns())
        port = await api.start(tls=made.server_context())
        url = f"https://127.0.0.1:{port}"
        KubeconfigFile(path).add(kubeconfig(url=url, authority=made.authority, token="secret"))
        started.set()
        await asyncio.to_thread(ended.wait)
        await api.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(300)
    yield str(path)
    ended.set()
    thread.join()


def line(**values: str) -> TypedLine:
    return TypedLine({f"--{name}": [value] for name, value in values.items()}, [])


def test_pods_of_files_are_called_as_commands_call_them() -> None:
    pods = object_names(PODS, line(filename=EXAMPLES), "")
    assert {"cache-0", "reports-0", "web-6d3d19e4-0"} <= set(pods)
    assert "default/cache-0" in object_names(PODS, line(filename=EXAMPLES), "default/")
    assert object_names(PODS, line(filename=EXAMPLES, namespace="others"), "") == []


def test_nodes_of_files() -> None:
    nodes = object_names(NODES, line(filename=EXAMPLES), "")
    assert nodes == ["node-a-1", "node-a-2", "node-b-1", "node-b-2"]


def test_objects_of_a_cluster(server: str) -> None:
    assert object_names(NODES, line(kubeconfig=server), "") == ["n1"]
    assert object_names(PODS, line(kubeconfig=server), "") == ["web-0"]
    assert object_names(PODS, line(kubeconfig=server, namespace="shop"), "") == ["till-0"]
    everywhere = object_names(PODS, line(kubeconfig=server), "shop/")
    assert everywhere == ["default/web-0", "shop/till-0"]


@pytest.mark.parametrize("given", [{"filename": "/nowhere"}, {"kubeconfig": "/nowhere"}])
def test_what_cannot_be_read_is_not_completed(given: dict[str, str]) -> None:
    assert object_names(PODS, line(**given), "") == ()
