"""What was recorded is decided again in the same way."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubestow.api.meta import JsonObject
from kubestow.config.decoding import decode_config
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.plugins.registry import REGISTRY
from kubestow.recording.file import RecordingReader
from kubestow.recording.format import RecordedAttempt
from kubestow.recording.recording import RunRecording
from kubestow.simulator.replay.replay import RecordedAnswers, Replay
from kubestow.simulator.replay.report import ReplayReport
from kubestow.simulator.simulation import Simulation
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing.faults import replica
from kubestow.testing.faults.plan import make_plan
from kubestow.testing.faults.simulation import run_plan


def replayed(
    path: Path, *, config: SchedulerConfig | None = None, is_other: bool = False
) -> ReplayReport:
    reader = RecordingReader(path)
    answers = RecordedAnswers.of(reader)
    gates = FeatureGates(reader.header.gates)
    chosen = config or decode_config(reader.header.config.encode(), gates)

    async def run() -> ReplayReport:
        replay = Replay(reader.header, chosen, gates, REGISTRY, answers, is_other=is_other)
        return await replay.run(reader)

    return run_in_virtual_time(run())


def node(name: str, cpu: str, **labels: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "20"}},
    }


def pod(name: str, cpu: str = "500m", **spec: Any) -> JsonObject:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


CLUSTER = [node("small", "2"), node("large", "6")]


def recorded(path: Path, documents: list[JsonObject]) -> None:
    async def run() -> None:
        await Simulation(documents, SchedulerConfig(), record=path).run()

    run_in_virtual_time(run())


def test_a_simulation_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "r"
    recorded(path, [*CLUSTER, *(pod(f"p{i}") for i in range(10)), pod("huge", "50")])
    report = replayed(path)
    assert report.attempts >= 11
    assert report.differing == 0


def test_another_configuration_decides_otherwise_and_later_pods_as_recorded(tmp_path: Path) -> None:
    path = tmp_path / "r"
    recorded(path, [*CLUSTER, *(pod(f"p{i}") for i in range(6))])
    config = decode_config(
        b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
    )
    report = replayed(path, config=config, is_other=True)
    assert report.attempts == 6
    assert report.differing > 0
    assert report.by_what["totals"] == report.differing
    moved = [each for each in report.differences if "node" in each.what]
    assert moved
    assert all({each.recorded, each.replayed} == {"small", "large"} for each in moved)
    # Where nothing differs but the scores, the recorded pods fill the nodes as they did.
    assert not any(each.what == ("not waiting",) for each in report.differences)


def test_a_pod_that_is_not_in_the_recording_is_said(tmp_path: Path) -> None:
    path = tmp_path / "r"
    recorded(path, [*CLUSTER, pod("p")])
    reader = RecordingReader(path)
    answers = RecordedAnswers.of(reader)
    gates = FeatureGates()
    records = [
        msgspec.structs.replace(each, uid="another") if isinstance(each, RecordedAttempt) else each
        for each in reader
    ]

    async def run() -> ReplayReport:
        replay = Replay(reader.header, SchedulerConfig(), gates, REGISTRY, answers)
        return await replay.run(records)

    report = run_in_virtual_time(run())
    assert [each.what for each in report.differences] == [("not waiting",)]
    assert report.differences[0].replayed == "the pod was not waiting"


# Restarts, preemption, volumes, lost answers, broken watches, clocks that are set: whatever happens
# to a scheduler, its recording explains its decisions. Plugins that fail at random are left out.
@pytest.mark.parametrize("seed", [8, 34, 61])
def test_every_process_of_a_disturbed_cluster_is_replayed(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(seed)
    plan = plan._replace(setup=msgspec.structs.replace(plan.setup, has_plugin=False, extender=""))
    recordings: dict[Path, RunRecording] = {}
    start = replica.Replica._start

    def recording_start(self: Any, ended: "asyncio.Future[int | str]") -> None:
        path = tmp_path / str(len(recordings))
        self._options = msgspec.structs.replace(self._options, record=str(path))
        start(self, ended)
        process = self.process
        recordings[path] = process.recording
        process.scheduler.listeners += (process.recording.recorder.decided,)

    monkeypatch.setattr(replica.Replica, "_start", recording_start)
    assert run_plan(plan).broken == []
    for recording in recordings.values():
        recording.close()  # Processes that are killed do not.
    reports = [replayed(path) for path in recordings]
    assert sum(report.attempts for report in reports) > 20
    assert [report.differences for report in reports if report.differing] == []
