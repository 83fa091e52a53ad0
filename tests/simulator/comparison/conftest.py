"""A small cluster, schedulers that differ on it, and a runner without processes."""

from collections.abc import Generator, Sequence
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from kubestow import collector
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.simulator.comparison.pool import Finished
from kubestow.simulator.comparison.task import Material, SchedulerVariant
from kubestow.simulator.comparison.work import run_task

PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
PLUGINS = """
import os

from kubestow.plugin import NodeFilter


class Fails(NodeFilter):
    name = "Fails"

    def filter_node(self, pod, node):
        raise ValueError("broken")


class Dies(NodeFilter):
    name = "Dies"

    def filter_node(self, pod, node):
        os._exit(7)


class CannotBeMade(NodeFilter):
    name = "CannotBeMade"

    def __init__(self, args, handle):
        raise KeyError("zone")

    def filter_node(self, pod, node):
        return None
"""


def node(name: str, cpu: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": {"cpu": cpu, "memory": "16Gi", "pods": "20"}},
    }


def pod(name: str, cpu: str) -> JsonObject:
    requests = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "c", "image": "c", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


@pytest.fixture(autouse=True)
def without_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many small runs would collect the garbage of the whole test process first."""
    monkeypatch.setattr(collector, "settled", nullcontext)


@pytest.fixture
def documents() -> list[Document]:
    """Two nodes on which four pods are spread or packed, and a pod that fits nowhere."""
    objects = [node("a", "4"), node("b", "4"), *(pod(f"p-{each}", "1") for each in range(4))]
    return [Document(each, "test") for each in [*objects, pod("large", "8")]]


@pytest.fixture
def material(documents: list[Document]) -> Material:
    return Material(name="test", documents=documents)


@pytest.fixture
def base() -> SchedulerVariant:
    return SchedulerVariant(name="base")


@pytest.fixture
def packed() -> SchedulerVariant:
    return SchedulerVariant(name="packed", config=PACKED, config_name="packed.yaml")


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The module of plugins that fail."""
    (tmp_path / "failing_plugins.py").write_text(PLUGINS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "failing_plugins"


class InProcess:
    """Runs tasks here; the last result comes first. `interrupted_after` is as Ctrl-C."""

    def __init__(self, material: Material, interrupted_after: int | None = None) -> None:
        self._material = msgspec.json.encode(material)
        self._interrupted_after = interrupted_after
        self.runs = 0

    def run(self, tasks: Sequence[bytes]) -> Generator[Finished, None, None]:
        for index in reversed(range(len(tasks))):
            if self.runs == self._interrupted_after:
                raise KeyboardInterrupt
            self.runs += 1
            yield Finished(index, run_task(self._material, tasks[index]))


@pytest.fixture
def in_process() -> type[InProcess]:
    return InProcess
