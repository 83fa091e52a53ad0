"""A pod is explained as it is tried in a simulation, after the pods before it in the queue."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubestow.api.files import Document, load_documents
from kubestow.api.meta import object_ref
from kubestow.clock import SystemClock
from kubestow.config.decoding import decode_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.simulator.attempted import cluster_at_attempt
from kubestow.simulator.conformance import load_recording
from kubestow.simulator.input.pods import PodKey
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.simulation import SimulationResult

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "conformance").glob("*.json.gz"))
IS_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
STEP = 4 if IS_THOROUGH else 40


class Followed:
    """What a simulation decides for each pod: at its last attempt, or at the one that evicts."""

    def __init__(self, documents: list[Document], config: SchedulerConfig, **options: Any) -> None:
        self.decisions: dict[str, FrozenDecision] = {}
        self._evicting: set[str] = set()

        scenario = placing(documents, **options)
        run = run_scenario(scenario, config, on_decision=self.note)
        self.result = SimulationResult.of(run)

    def note(self, decision: Decision) -> None:
        key = object_ref(decision.pod.pod.metadata)
        if key not in self._evicting:
            self.decisions[key] = decision.freeze()
        if decision.post_filter and decision.post_filter.nominated_node_name:
            self._evicting.add(key)


def comparable(decision: FrozenDecision) -> dict[str, Any]:
    document = decision.to_document()
    return {key: value for key, value in document.items() if key not in ("pod", "timings")}


def attempted(documents: list[Document], config: SchedulerConfig, key: str) -> dict[str, Any]:
    namespace, _, name = key.partition("/")
    found = cluster_at_attempt(documents, PodKey(namespace, name), config, SystemClock())
    return comparable(found.cluster.decide(found.pod).freeze())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_the_attempt_is_that_of_the_simulation(path: Path) -> None:
    compared = 0
    for scenario in load_recording(path).scenarios[3::STEP]:
        profile = {"schedulerName": "default-scheduler", **scenario.get("config", {})}
        config = decode_config(
            msgspec.json.encode(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "profiles": [profile, *scenario.get("otherProfiles", ())],
                }
            )
        )
        objects = [each for listed in scenario["objects"].values() for each in listed]
        documents = [Document(each, "dump") for each in [*objects, *scenario["incoming"]]]
        followed = Followed(documents, config, stays=True)
        keys = list(followed.decisions)
        for key in keys if IS_THOROUGH else keys[-2:]:
            got = attempted(documents, config, key)
            assert got == comparable(followed.decisions[key]), (scenario["name"], key)
            compared += 1
    assert compared


def test_every_row_of_a_simulation_is_explained_as_it_says() -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 9,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
                    ]
                },
            },
        },
    }
    documents = load_documents([ROOT / "examples" / "cluster.yaml"])
    documents += [Document(deployment, "web.yaml#1")]
    followed = Followed(documents, SchedulerConfig())
    assert {pod.outcome for pod in followed.result.pods} == {"Scheduled", "Pending"}
    for pod in followed.result.pods:
        got = attempted(documents, SchedulerConfig(), f"{pod.namespace}/{pod.name}")
        message = "".join(got.get("status", {}).get("reasons", ()))
        assert got.get("node", "") == pod.node
        assert message in pod.message
        assert bool(message) == (pod.outcome == "Pending")


def small_node(**spec: Any) -> Document:
    capacity = {"cpu": "2", "memory": "8Gi", "pods": "10"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": spec}
    return Document({**node, "status": {"allocatable": capacity}}, "node")


def pod(name: str, **spec: Any) -> Document:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]
    metadata = {"name": name, "uid": name}
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **spec},
    }
    return Document(raw, name)


def test_the_attempt_that_evicts_is_explained() -> None:
    documents = [small_node(), pod("low", nodeName="n", priority=0), pod("high", priority=9)]
    got = cluster_at_attempt(documents, PodKey("default", "high"), SchedulerConfig(), SystemClock())
    decision = got.cluster.decide(got.pod)
    assert not decision.is_scheduled
    assert decision.post_filter is not None
    assert decision.post_filter.nominated_node_name == "n"


def test_pods_that_wait_behind_it_are_not_placed() -> None:
    documents = [small_node(), pod("first"), pod("second")]
    for name, node in (("first", "n"), ("second", "")):
        got = cluster_at_attempt(
            documents, PodKey("default", name), SchedulerConfig(), SystemClock()
        )
        assert (got.cluster.decide(got.pod).node_name, got.placed_count) == (node, int(not node))
        assert got.other_count == 1


def test_a_pod_that_is_not_tried_sees_all_others_placed() -> None:
    gated = pod("gated", schedulingGates=[{"name": "g"}])
    documents = [small_node(), gated, pod("other")]
    got = cluster_at_attempt(
        documents, PodKey("default", "gated"), SchedulerConfig(), SystemClock()
    )
    assert got.placed_count == 1
    assert [each.metadata.name for each in got.cluster.objects.pods if each.spec.node_name] == [
        "other"
    ]
