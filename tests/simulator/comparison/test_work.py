"""One task: the same placements as a simulation has, and failures as part of the outcome."""

import re
from typing import Any

import msgspec
import pytest

from kubestow.api.files import Document
from kubestow.config.feature_gates import parse_gates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.simulator.comparison.task import Material, SchedulerVariant, Task
from kubestow.simulator.comparison.work import outcome_of, run_task
from kubestow.simulator.results import RunResult
from kubestow.simulator.simulation import place


def run_of(material: Material, variant: SchedulerVariant) -> RunResult:
    outcome = outcome_of(material, Task(variant=variant, seed=0))
    assert outcome.failure is None
    assert outcome.run is not None
    return outcome.run


def nodes_of(run: RunResult) -> dict[str, str]:
    return {pod.name: pod.node for pod in run.pods}


def test_pods_are_placed_as_by_simulate(material: Material, base: SchedulerVariant) -> None:
    gates = parse_gates((), edition_named(base.version))
    expected = place(material.documents, SchedulerConfig(), gates=gates)
    run = run_of(material, base)
    assert nodes_of(run) == {pod.name: pod.node for pod in expected.pods}
    assert run.samples[-1].placed == 4
    assert run.samples[-1].requested["cpu"] == 4000
    (pending,) = [pod for pod in run.pods if pod.outcome == "Pending"]
    assert (pending.name, pending.message) == ("large", expected.pending[0].message)


def test_a_configuration_decides(
    material: Material, base: SchedulerVariant, packed: SchedulerVariant
) -> None:
    assert set(nodes_of(run_of(material, base)).values()) == {"a", "b", ""}
    assert len(set(nodes_of(run_of(material, packed)).values())) == 2


@pytest.mark.parametrize("version", ["", "v1.9"])
def test_the_first_sample_is_taken_after_pods_were_placed(material: Material, version: str) -> None:
    variant = SchedulerVariant(name="x", version=version) if version else SchedulerVariant(name="x")
    run = outcome_of(material, Task(variant=variant, seed=0)).run
    assert run is not None
    placed = sum(pod.scheduled_s is not None for pod in run.pods)
    assert run.samples[0].running == placed > 0


@pytest.mark.parametrize("version", ["v1.9", "v1.17", "v1.20"])
def test_older_versions_run(material: Material, version: str) -> None:
    run = run_of(material, SchedulerVariant(name="old", version=version))
    assert sum(bool(pod.node) for pod in run.pods) == 4
    assert run.samples[-1].placed == 4
    (pending,) = [pod for pod in run.pods if not pod.node]
    assert pending.attempts >= 1
    assert "Insufficient cpu" in pending.message


def test_a_policy_configures_an_older_version(material: Material) -> None:
    policy = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "HostName"}]}'
    for version in ("v1.9", "v1.17"):
        variant = SchedulerVariant(
            name="old", version=version, config=policy, config_name="policy.json"
        )
        # Without a rule about resources every pod fits.
        assert all(nodes_of(run_of(material, variant)).values())


@pytest.mark.parametrize("version", ["v1.36", "v1.9"])
def test_groups_that_a_variant_does_not_read_are_left_out(material: Material, version: str) -> None:
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 2},
    }
    documents = [*material.documents, Document(group, "test")]
    with_group = msgspec.structs.replace(material, documents=documents)
    assert run_of(with_group, SchedulerVariant(name="each", version=version)).pods


def test_the_same_task_gives_the_same_bytes(material: Material, base: SchedulerVariant) -> None:
    task = msgspec.json.encode(Task(variant=base, seed=0))
    encoded = msgspec.json.encode(material)

    def virtual() -> Any:
        outcome = msgspec.json.decode(run_task(encoded, task))
        del outcome["durationS"]
        return outcome

    assert virtual() == virtual()


@pytest.mark.parametrize("version", ["v1.36", "v1.9"])
def test_watched_nodes_are_seen_as_the_attempt_saw_them(material: Material, version: str) -> None:
    variant = SchedulerVariant(name="each", version=version)
    placed = nodes_of(run_of(material, variant))["p-0"]
    watched = {"default/p-0": ["a", "b", "gone"], "default/large": ["a"]}
    outcome = outcome_of(material, Task(variant=variant, seed=0, watched=watched))
    assert outcome.choices.keys() == {"default/p-0"}
    choice = outcome.choices["default/p-0"]
    assert choice.node == placed
    assert choice.views["gone"].verdict == "Absent"
    assert {choice.views[name].verdict for name in ("a", "b")} == {"Feasible"}
    totals = {name: choice.views[name].total or 0 for name in ("a", "b")}
    assert totals[placed] == max(totals.values())
    if version == "v1.36":
        assert sum(choice.views["a"].scores.values()) == totals["a"]


def test_a_rejected_node_has_the_plugin_and_its_reason(
    material: Material, base: SchedulerVariant
) -> None:
    full = [*material.documents[:1], *material.documents[2:6]]
    tainted = msgspec.json.decode(msgspec.json.encode(material.documents[1]))["raw"]
    tainted["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    changed = msgspec.structs.replace(material, documents=[*full, type(full[0])(tainted, "test")])
    task = Task(variant=base, seed=0, watched={"default/p-0": ["b"]})
    view = outcome_of(changed, task).choices["default/p-0"].views["b"]
    assert (view.verdict, view.plugin) == ("Rejected", "TaintToleration")
    assert "untolerated taint" in view.reason


def test_times_are_measured_only_if_asked_for(material: Material, base: SchedulerVariant) -> None:
    assert outcome_of(material, Task(variant=base, seed=0)).times == []
    times = outcome_of(material, Task(variant=base, seed=0, has_times=True)).times
    assert "NodeResourcesFit" in {row.plugin for row in times}
    assert all(row.calls > 0 for row in times)


# --- failures ---


@pytest.mark.parametrize(
    ("variant", "kind", "message", "has_run"),
    [
        pytest.param(
            SchedulerVariant(name="v", plugins=("failing_plugins:Fails",)),
            "plugin",
            r"\d+ attempts failed: .*ValueError: broken \(failing_plugins.py:11\)",
            True,
            id="plugin that fails",
        ),
        pytest.param(
            SchedulerVariant(name="v", plugins=("failing_plugins:CannotBeMade",)),
            "input",
            r".*CannotBeMade.*KeyError: 'zone'.*failing_plugins.py:25",
            False,
            id="plugin that cannot be made",
        ),
        pytest.param(
            SchedulerVariant(name="v", plugins=("failing_plugins:Missing",)),
            "input",
            r'cannot load plugin .* has no "Missing"',
            False,
            id="plugin that is not there",
        ),
        pytest.param(
            SchedulerVariant(
                name="v",
                config="apiVersion: kubescheduler.config.k8s.io/v1\n"
                "kind: KubeSchedulerConfiguration\nprofile: []\n",
                config_name="c.yaml",
            ),
            "input",
            r'configuration "c.yaml": line 3: .*unknown field "profile"',
            False,
            id="unknown field",
        ),
        pytest.param(
            SchedulerVariant(name="v", version="v1.9", plugins=("failing_plugins:Fails",)),
            "input",
            "v1.9 has no plugins",
            False,
            id="plugin for v1.9",
        ),
    ],
)
@pytest.mark.usefixtures("plugins")
def test_failures_name_what_and_where(
    material: Material, variant: SchedulerVariant, kind: str, message: str, has_run: bool
) -> None:
    outcome = outcome_of(material, Task(variant=variant, seed=0))
    assert outcome.failure is not None
    assert outcome.failure.kind == kind
    assert re.match(message, outcome.failure.message), outcome.failure.message
    assert (outcome.run is not None) is has_run
