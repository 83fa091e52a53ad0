"""A cluster given as a file, as `kubectl get -o json` writes it, is decided on as it stands.

The objects of each recorded scenario are written to a file and read again, as by `kubestow explain
-f`. The first recorded attempt then is ours: no admission and no controller has changed anything
before. An eighth of the scenarios of each file is taken, with HYPOTHESIS_PROFILE=thorough all.
"""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kubestow.api.files import Document, load_documents
from kubestow.api.meta import JsonObject
from kubestow.clock import SystemClock
from kubestow.config.decoding import decode_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.engine.scheduler import Scheduler
from kubestow.simulator.conformance import Recording, Report, load_recording
from kubestow.simulator.conformance.compare import compare_attempt, compare_world
from kubestow.simulator.conformance.replay import SAMPLING
from kubestow.simulator.conformance.sampled import compare_sampled_attempt
from kubestow.simulator.manifests import select_manifests
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.still import still_cluster
from kubestow.simulator.virtual_time import run_in_virtual_time

RECORDINGS = Path(__file__).parents[3] / "conformance"
FILES = sorted(RECORDINGS.glob("*.json.gz"))
STEP = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 8


def family(path: Path) -> str:
    return path.name.partition(".")[0]


def sampled(path: Path) -> Recording:
    recording = load_recording(path)
    return msgspec.structs.replace(recording, scenarios=recording.scenarios[STEP // 2 :: STEP])


def config_of(scenario: JsonObject) -> SchedulerConfig:
    percentage = scenario.get("scheduler", {}).get("percentageOfNodesToScore", 100)
    profile = {"schedulerName": "default-scheduler", **scenario.get("config", {})}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": percentage,
        "profiles": [profile, *scenario.get("otherProfiles", ())],
    }
    return decode_config(msgspec.json.encode(document))


def documents_of(scenario: JsonObject, file: Path, *, is_alone: bool = False) -> list[Document]:
    """The objects of a scenario, by way of a file; alone: without the pods that are tried later.

    Pods that are tried although they name their node are left out: in a cluster they have it.
    """
    items = [each for listed in scenario["objects"].values() for each in listed]
    for pod in scenario["incoming"]:
        is_first = key_of(pod) == scenario["expected"][0]["pod"]
        if not pod["spec"].get("nodeName") and (is_first or not is_alone):
            items.append(pod)
    dump = {"apiVersion": "v1", "kind": "List", "items": items}
    file.write_bytes(msgspec.json.encode(dump))
    return select_manifests(load_documents([str(file)])).documents


def key_of(pod: JsonObject) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def names_its_node(scenario: JsonObject) -> bool:
    """Whether the first pod that is tried has a node by its spec."""
    first = scenario["expected"][0]["pod"]
    pods = {key_of(pod): pod for pod in scenario["incoming"]}
    return bool(pods[first]["spec"].get("nodeName"))


def as_world(scheduler: Scheduler) -> Any:
    """What the comparison reads of a scheduler."""
    scheduler.snapshot.refresh(scheduler.cache)
    return SimpleNamespace(
        snapshot=scheduler.snapshot,
        profiles=scheduler.profiles,
        profile_of=lambda info: scheduler.profiles[info.pod.spec.scheduler_name],
        nominator=scheduler.queue.nominator,
        decider=scheduler.decider,
    )


def compare(scenario: JsonObject, report: Report, world: Any, decision: Decision) -> None:
    expected = scenario["expected"][0]
    comparer = report.comparer(scenario["family"], scenario["name"], expected["pod"])
    comparer.count_pod()
    if scenario["family"] == SAMPLING:
        compare_sampled_attempt(comparer, expected, world, decision)
    else:
        compare_attempt(comparer, expected, world, decision)


def count_of(report: Report, recording: Recording) -> int:
    return report.counts(recording.family, "pods").compared


# --- explained ---


def compare_still(scenario: JsonObject, report: Report, file: Path) -> None:
    cluster = still_cluster(documents_of(scenario, file), config_of(scenario), SystemClock())
    world, expected = as_world(cluster.scheduler), scenario["expected"][0]
    compare_world(report.comparer(scenario["family"], scenario["name"]), scenario, world)
    if names_its_node(scenario):
        return
    namespace, _, name = expected["pod"].partition("/")
    pod = cluster.objects.pods.get(namespace, name)
    assert pod is not None
    decision = cluster.decide(pod, start_index=expected["startNodeIndex"])
    compare(scenario, report, world, decision)


@pytest.mark.parametrize("path", FILES, ids=family)
def test_a_dump_is_explained_as_it_stands(path: Path, tmp_path: Path) -> None:
    recording, report = sampled(path), Report()
    for scenario in recording.scenarios:
        compare_still(scenario, report, tmp_path / "dump.json")
    assert report.differences == []
    left_out = sum(map(names_its_node, recording.scenarios))
    assert count_of(report, recording) == len(recording.scenarios) - left_out > 0


# --- simulated ---


def is_popped_first(scenario: JsonObject) -> bool:
    """Whether a queue without the other pods pops the first one, in the same state."""
    return (
        not names_its_node(scenario)
        and "preEnqueue" not in scenario["expected"][0]
        and not any(pod["status"].get("nominatedNodeName") for pod in scenario["incoming"])
    )


def compare_simulated(scenario: JsonObject, report: Report, file: Path) -> None:
    documents = documents_of(scenario, file, is_alone=True)
    runs: list[Simulation] = []
    is_first = True

    def decided(decision: Decision) -> None:
        nonlocal is_first
        if is_first:
            is_first = False
            compare(scenario, report, as_world(runs[0].cluster.scheduler), decision)

    async def run() -> None:
        placed = placing(documents, limit_s=1)
        runs.append(Simulation(placed, config_of(scenario), on_decision=decided))
        await runs[0].run()

    run_in_virtual_time(run())


@pytest.mark.parametrize("path", FILES, ids=family)
def test_a_dump_is_simulated_as_it_stands(path: Path, tmp_path: Path) -> None:
    recording, report = sampled(path), Report()
    scenarios = [each for each in recording.scenarios if is_popped_first(each)]
    for scenario in scenarios:
        compare_simulated(scenario, report, tmp_path / "dump.json")
    assert report.differences == []
    assert count_of(report, recording) == len(scenarios) > 0
