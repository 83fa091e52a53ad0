"""A recording as input: its cluster at the start, and pods as they arrived."""

from pathlib import Path

import pytest

from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import InputError
from kubestow.recording.recording import RecordTo
from kubestow.simulator.comparison.material import read_material
from kubestow.simulator.comparison.moved import placements_of
from kubestow.simulator.comparison.played import scenario_of
from kubestow.simulator.comparison.recorded import read_recording, recorded_scenario
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.usage.results import RunUsage

SCENARIO = """
apiVersion: kubestow.dev/v1alpha1
kind: Scenario
name: recorded
until: 1h
nodes:
  - {name: worker, count: 2, capacity: {cpu: 4, memory: 16Gi}}
objects:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: c, image: c, resources: {requests: {cpu: "1"}}}]}
arrivals:
  - name: batch
    every: 5m
    duration: 13m
    template:
      apiVersion: v1
      kind: Pod
      spec: {containers: [{name: c, image: c, resources: {requests: {cpu: "2"}}}]}
actions:
  - {at: 20m, scale: {kind: Deployment, name: web, replicas: 1}}
  - {at: 30m, join: {name: new, capacity: {cpu: 4, memory: 16Gi}}}
  - {at: 40m, taint: {nodes: worker-0, taints: ["k:NoSchedule"]}}
"""


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[RunResult, Path]:
    """A run and its recording."""
    scenario = tmp_path / "day.yaml"
    scenario.write_text(SCENARIO)
    file = tmp_path / "run.rec"
    return run_scenario(
        read_scenario(scenario), SchedulerConfig(), record=RecordTo(file, "simulate")
    ), file


def test_the_same_scheduler_places_the_pods_of_a_recording_as_before(
    recorded: tuple[RunResult, Path],
) -> None:
    run, file = recorded
    again = run_scenario(recorded_scenario("again", read_recording(file)), SchedulerConfig())
    before, after = placements_of(run.pods), placements_of(again.pods)
    assert {each.pod: each.node for each in after.values()} == {
        each.pod: each.node for each in before.values()
    }
    arrived = {pod.name: pod.created_s for pod in run.pods}
    assert {pod.name: pytest.approx(pod.created_s, abs=0.1) for pod in again.pods} == arrived
    ended = [pod.name for pod in run.pods if pod.outcome == "Ended"]
    # One of the web servers was deleted, the others ended by themselves.
    assert [pod.name for pod in again.pods if pod.outcome == "Ended"] == ended
    assert len(ended) > 5


def test_nothing_that_was_decided_is_part_of_the_input(recorded: tuple[RunResult, Path]) -> None:
    found = read_recording(recorded[1])
    pods = [each for each in found.changes if each.document["kind"] == "Pod"]
    arriving = [each.document for each in pods if not each.is_removed]
    assert arriving
    for document in arriving:
        assert "nodeName" not in document["spec"]
        assert "status" not in document
    nodes = [each.document for each in found.changes if each.document["kind"] == "Node"]
    assert {node["metadata"]["name"] for node in nodes} >= {"new", "worker-0"}
    assert [each.time_s for each in found.changes] == sorted(e.time_s for e in found.changes)


def test_another_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.rec"
    file.write_text("nodes: []")
    with pytest.raises(InputError, match="is no recording"):
        read_recording(file)


def test_measurements_of_the_pods_of_a_recording_are_their_use(
    recorded: tuple[RunResult, Path], tmp_path: Path
) -> None:
    run, file = recorded
    measured = tmp_path / "usage.csv"
    lines = [f"0,default,{pod.name},3,1Gi" for pod in run.pods]
    measured.write_text("\n".join(["time,namespace,pod,cpu,memory", *lines]))
    read = read_material(
        [], name="", scenario=None, recording=file, gates=(), limit_s=1.0, usage=measured
    )
    with scenario_of(read.material, SchedulerConfig()) as scenario:
        again = run_scenario(scenario, SchedulerConfig())
    assert isinstance(again.usage, RunUsage)
    assert again.usage.demanded_cpu_s > 0
    # Two pods of 3 cores are more than a node has.
    assert again.usage.lost_cpu_s > 0
    measured.write_text("time,namespace,pod,cpu,memory\n0,default,web,much,1Gi\n")
    with pytest.raises(InputError, match=r"usage.csv, line 2"):
        read_material(
            [], name="", scenario=None, recording=file, gates=(), limit_s=1.0, usage=measured
        )
    with pytest.raises(InputError, match="are for a recording"):
        read_material(
            [], name="", scenario=None, recording=None, gates=(), limit_s=1.0, usage=measured
        )
