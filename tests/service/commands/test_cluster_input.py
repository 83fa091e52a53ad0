"""Where a command gets its cluster from, and what it reports about it."""

import asyncio
import io
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubestow import read_cluster
from kubestow.apiserver.http.kubeconfig_file import KubeconfigFile, kubeconfig
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import SystemClock
from kubestow.cluster.self_signed import self_signed
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import DecodeError, InputError
from kubestow.service.commands.cluster_input import (
    InputRequest,
    changes_of,
    load_input,
)
from kubestow.simulator.input.changes import InputChanges, NodesLike
from kubestow.simulator.simulation import SimulationResult, place

CONTAINERS = [
    {
        "name": "c",
        "image": "c",
        "env": [{"name": "TOKEN", "value": "hunter2"}],
        "resources": {"requests": {"cpu": "1"}},
    }
]


def objects() -> Iterator[dict[str, Any]]:
    for name in ("small", "large"):
        capacity = {"cpu": "2" if name == "small" else "8", "memory": "8Gi", "pods": "10"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"capacity": capacity, "allocatable": capacity},
        }
    for index in range(7):
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"web-{index}", "namespace": "shop", "labels": {"app": "web"}},
            "spec": {"containers": CONTAINERS, **({"nodeName": "large"} if index < 2 else {})},
        }
    yield {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key", "namespace": "shop"},
        "stringData": {"key": "hunter2"},
    }


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of a server that runs beside the test."""
    path = tmp_path / "kubeconfig"
    started, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        clock = SystemClock()
        cluster = MemoryCluster(clock)
        cluster.load(objects())
        made = self_signed(now_ns=clock.now_ns())
        api = ApiServer(cluster, clock, token="secret")
        port = await api.start(tls=made.server_context())
        url = f"https://127.0.0.1:{port}"
        KubeconfigFile(path).add(kubeconfig(url=url, authority=made.authority, token="secret"))
        started.set()
        await asyncio.to_thread(ended.wait)
        await api.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(300)
    yield path
    ended.set()
    thread.join()


def simulated(documents: list[Any]) -> SimulationResult:
    return place(documents, SchedulerConfig())


def test_standard_input_without_objects_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(InputError, match="no objects in standard input"):
        load_input(InputRequest(files=("-",)), command="simulate")


@pytest.mark.parametrize("name", ["saved", "saved.json", "saved.yaml"])
def test_a_saved_cluster_simulates_the_same(server: Path, name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    live = load_input(
        InputRequest(is_live=True, kubeconfig=str(server), save=place), command="simulate"
    )
    saved = load_input(InputRequest(files=[str(place)]), command="simulate")
    expected = simulated(live.documents)
    assert len(expected.scheduled) == 5
    assert expected.running_count == 2
    assert simulated(saved.documents) == expected
    files = [place] if place.is_file() else list(place.iterdir())
    assert "hunter2" not in "".join(file.read_text() for file in files)


def test_a_script_reads_the_same_cluster(server: Path) -> None:
    found = read_cluster(kubeconfig=server)
    live = load_input(InputRequest(is_live=True, kubeconfig=str(server)), command="simulate")
    assert found == [document.raw for document in live.documents]
    assert "hunter2" not in json.dumps(found)


def test_files_and_changes_go_on_top_of_a_live_cluster(
    server: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = tmp_path / "more.json"
    more.write_text(json.dumps({**next(objects()), "metadata": {"name": "third"}}))
    loaded = load_input(
        InputRequest(
            is_live=True,
            kubeconfig=str(server),
            files=[str(more)],
            changes=InputChanges(remove_pods=("app=web",)),
        ),
        command="simulate",
    )
    kinds = [document.raw["kind"] for document in loaded.documents]
    assert kinds.count("Node") == 3
    assert "Pod" not in kinds
    assert capsys.readouterr().err == '7 pods with "app=web" removed\n'


def test_a_directory_as_people_have_it_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text("resources: [all.json]\nnamePrefix: x-\n")
    (folder / "settings.yaml").write_text("name: x\n")
    more: list[dict[str, Any]] = [
        {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}},
        {"apiVersion": "example.com/v1", "kind": "Service", "metadata": {"name": "c"}},
    ]
    content = {"apiVersion": "v1", "kind": "List", "items": [*objects(), *more]}
    (folder / "all.json").write_text(json.dumps(content))
    loaded = load_input(InputRequest(files=[str(folder)]), command="simulate")
    assert len(loaded.documents) == 9
    assert capsys.readouterr().err.splitlines() == [
        f"ignored, no Kubernetes objects: {folder}/settings.yaml#1",
        "ignored: 1 Ingress, 1 Kustomization, 1 Secret, 1 Service.example.com",
        f"{folder}/kustomization.yaml is not applied; to have it applied, give -f the output of: "
        f"kubectl kustomize {folder}",
    ]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (InputRequest(), "nothing to simulate: name files with -f, .*, or read the cluster of you"),
        (InputRequest(files=["a"], context="b"), "--kubeconfig and --context need --from-cluster"),
        (InputRequest(files=["https://a/b"]), r"curl -sSL https://a/b \| kubestow simulate -f -"),
        (InputRequest(is_live=True, kubeconfig="gone"), "gone"),
    ],
)
def test_wrong_requests_are_refused(request_: InputRequest, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_input(request_, command="simulate")


def test_numbers_and_nodes_go_together() -> None:
    options: dict[str, Any] = {
        "reschedule": False,
        "cordon": None,
        "drain": ["a"],
        "remove_pods": None,
    }
    changes = changes_of(add_nodes=[1, 2], like=["a", "b"], **options)
    assert changes.add_nodes == (NodesLike(1, "a"), NodesLike(2, "b"))
    assert changes.drain == ("a",)
    with pytest.raises(InputError, match="--add-nodes and --like go together"):
        changes_of(add_nodes=[1, 2], like=["a"], **options)


def test_single_objects_that_cannot_be_used_are_skipped_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kata", "namespace": "shop", "uid": "u"},
        "spec": {
            "containers": CONTAINERS,
            "nodeName": "large",
            "runtimeClassName": "kata",
            "priorityClassName": "gold",
            "priority": 5,
        },
    }
    new = {**running, "metadata": {"name": "new"}}
    broken = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "broken"},
        "spec": {"containers": "none"},
    }
    content = {"apiVersion": "v1", "kind": "List", "items": [*objects(), running, new, broken]}
    file = tmp_path / "all.json"
    file.write_text(json.dumps(content))
    request = InputRequest(files=[str(file)])
    loaded = load_input(request, command="simulate")
    # All but the secret and the two that cannot be used.
    assert len(loaded.documents) == 10
    errors = capsys.readouterr().err.splitlines()
    assert errors[1].startswith(f'skipped: {file}#1.items[12]: cannot decode Pod "broken"')
    assert errors[2] == (
        f'skipped: {file}#1.items[11]: pods "new" is forbidden: pod rejected: RuntimeClass "kata" '
        "not found"
    )
    assert errors[3:] == ["warning: 2 objects were skipped; --strict refuses such input"]
    with pytest.raises(DecodeError, match='cannot decode Pod "broken"'):
        load_input(InputRequest(files=[str(file)], is_strict=True), command="simulate")


def test_input_of_which_nothing_can_be_used_is_refused(tmp_path: Path) -> None:
    for index, spec in enumerate(({"containers": "none"}, {"runtimeClassName": "kata"})):
        file = tmp_path / f"{index}.json"
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        file.write_text(json.dumps(pod))
        with pytest.raises(InputError, match=rf"{index}.json#1: "):
            load_input(InputRequest(files=[str(file)]), command="simulate")


SCENARIO = "apiVersion: kubestow.dev/v1alpha1\nkind: Scenario\nname: day\nuntil: 1h\n"


@pytest.mark.parametrize(
    ("command", "player"),
    [("simulate", "simulate"), ("compare", "compare"), ("explain", "simulate")],
)
def test_a_scenario_is_no_cluster(
    command: str, player: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, cluster = tmp_path / "day.yaml", tmp_path / "cluster.json"
    scenario.write_text(SCENARIO)
    with pytest.raises(InputError) as caught:
        load_input(InputRequest(files=(str(scenario),)), command=command)
    hint = f"kubestow {player} --scenario {scenario}"
    assert str(caught.value) == f"{scenario} is a scenario, not a cluster; play it: {hint}"
    # Beside a cluster in a folder, it is left out.
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects()]}))
    loaded = load_input(InputRequest(files=(str(tmp_path),)), command=command)
    assert len(loaded.documents) > 5
    assert f"ignored: {scenario} is a scenario, which {hint} plays" in capsys.readouterr().err
