"""What v1.17 and v1.20 report of failed attempts (spec 04 §19.2)."""

from typing import Any

import pytest

from kubestow.api.coordination import Event
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.errors import ApiError
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.virtual_time import run_in_virtual_time


class Refusing(MemoryClient):
    """An API server that refuses bindings."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        raise ApiError("no bindings today")


def node(cpu: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }


def pod(name: str, priority: int = 0, node_name: str = "") -> JsonObject:
    resources = {"requests": {"cpu": "2"}}
    spec: JsonObject = {
        "containers": [{"name": "c", "image": "i", "resources": resources}],
        "priority": priority,
    }
    if node_name:
        spec["nodeName"] = node_name
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def simulation(version: str, documents: list[JsonObject], limit_s: float = LIMIT_S) -> Simulation:
    options = parse_options([f"--compatibility={version}"])
    assert isinstance(options, SchedulerOptions)
    rules = rules_of(edition_named(version))
    scenario = placing(documents, limit_s=limit_s)
    return Simulation(scenario, options.config, rules.registry, factory=rules.factory)


@pytest.mark.parametrize("version", ["v1.17", "v1.20"])
def test_the_text_has_the_reasons_of_filters_only(version: str) -> None:
    async def run() -> Any:
        return await simulation(version, [node("1"), pod("a")]).run()

    (outcome,) = run_in_virtual_time(run()).pods
    assert outcome.message == "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("v1.17", "Binding rejected: no bindings today"),
        ("v1.20", 'binding rejected: running Bind plugin "DefaultBinder": no bindings today'),
    ],
)
def test_a_refused_binding_has_the_text_of_its_time(
    version: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryClient, "bind", Refusing.bind)

    async def run() -> Any:
        return await simulation(version, [node("4"), pod("a")], 0.5).run()

    (outcome,) = run_in_virtual_time(run()).pods
    assert outcome.message == text
    assert outcome.reason == "SchedulerError"


@pytest.mark.parametrize("version", ["v1.17", "v1.20"])
def test_a_victim_is_named_after_the_pod_that_takes_its_place(version: str) -> None:
    async def run() -> tuple[Any, list[str]]:
        made = simulation(version, [node("2"), pod("low", node_name="n1"), pod("high", 10)])
        result = await made.run()
        events = await MemoryClient(store_of(made.cluster)).list(Event)
        return result, [event.note for event in events if event.reason == "Preempted"]

    result, notes = run_in_virtual_time(run())
    (outcome,) = result.pods
    assert outcome.node == "n1"
    assert notes == ["Preempted by default/high on node n1"]


def store_of(cluster: EmbeddedCluster) -> MemoryCluster:
    return cluster.store
