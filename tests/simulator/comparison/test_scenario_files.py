"""A scenario travels with the files that it names."""

from pathlib import Path

import msgspec
import pytest

from kubestow.errors import InputError
from kubestow.simulator.comparison.scenario_files import pack_scenario, unpacked
from kubestow.simulator.comparison.task import Material, PackedFiles, SchedulerVariant, Task
from kubestow.simulator.comparison.work import outcome_of

SCENARIO = """
apiVersion: kubestow.dev/v1alpha1
kind: Scenario
name: short
until: 1h
sampleEvery: 10m
cluster: [../clusters]
arrivals:
  - name: batch
    every: 10m
    duration: 25m
    template:
      apiVersion: v1
      kind: Pod
      spec: {containers: [{name: c, image: c, resources: {requests: {cpu: "2"}}}]}
"""
NODES = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: b}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "10"}}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    for folder in ("clusters", "days"):
        (tmp_path / folder).mkdir()
    (tmp_path / "clusters" / "nodes.yaml").write_text(NODES)
    path = tmp_path / "days" / "day.yaml"
    path.write_text(SCENARIO)
    return path


def test_files_in_other_folders_are_packed(scenario: Path, tmp_path: Path) -> None:
    packed, read = pack_scenario(scenario)
    assert read.name == "short"
    assert packed.main == "days/day.yaml"
    assert packed.files.keys() == {"days/day.yaml", "clusters/nodes.yaml"}
    copy = msgspec.json.decode(msgspec.json.encode(packed), type=PackedFiles)
    (tmp_path / "clusters" / "nodes.yaml").unlink()
    with unpacked(copy, []) as unpacked_scenario:
        assert len(unpacked_scenario.documents) == 2


def test_an_unknown_field_is_named_with_file_and_line(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("sampleEvery", "sampleEach"))
    with pytest.raises(InputError, match=r"day.yaml, line 6: sampleEach: .*sampleEvery"):
        pack_scenario(scenario)


def test_errors_of_a_run_name_the_original_file(scenario: Path) -> None:
    step = "actions:\n  - {at: 5m, drain: no-such-node}\n"
    scenario.write_text(SCENARIO + step)
    packed, _ = pack_scenario(scenario)
    material = Material(name="short", scenario=packed)
    failure = outcome_of(material, Task(variant=SchedulerVariant(name="base"), seed=0)).failure
    assert failure is not None
    assert failure.kind == "input"
    assert failure.message.startswith(f"{scenario}, line 17")


POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- {name: p, plugins: {balance: {enabled: [RemoveDuplicates]}}}
"""


def test_a_variant_without_an_action_is_played(scenario: Path) -> None:
    """The policy of the action travels as well."""
    (scenario.parent / "policy.yaml").write_text(POLICY)
    scenario.write_text(SCENARIO + "actions:\n  - {every: 10m, descheduler: policy.yaml}\n")
    packed, _ = pack_scenario(scenario)
    material = Material(name="short", scenario=packed)
    changes: list[int] = []
    for without in ((), ("descheduler",)):
        task = Task(variant=SchedulerVariant(name="each", without=without), seed=0)
        run = outcome_of(material, task).run
        assert run is not None
        changes.append(sum(change.kind == "descheduler" for change in run.changes))
    assert changes == [6, 0]


def test_only_a_scenario_has_actions_to_leave_out() -> None:
    task = Task(variant=SchedulerVariant(name="each", without=("drain",)), seed=0)
    failure = outcome_of(Material(name="cluster"), task).failure
    assert failure is not None
    assert "without:drain leaves out an action" in failure.message


@pytest.mark.parametrize("version", ["v1.36", "v1.20", "v1.9"])
def test_every_version_plays_a_scenario(scenario: Path, version: str) -> None:
    packed, _ = pack_scenario(scenario)
    task = Task(variant=SchedulerVariant(name="each", version=version), seed=0)
    outcome = outcome_of(Material(name="short", scenario=packed), task)
    assert outcome.failure is None
    assert outcome.run is not None
    assert {pod.node for pod in outcome.run.pods} == {"a", "b"}
    assert outcome.run.samples[-1].placed == len(outcome.run.pods) == 6
    assert outcome.run.samples[-1].ended == 4
