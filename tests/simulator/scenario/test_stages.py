"""One placement is a scenario: rows, facts and times of what files have."""

import csv
import pickle
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubestow import InputError, simulate, write_report
from kubestow.api.meta import JsonObject
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.reports.figures import figures_of
from kubestow.simulator.results import PlacingFacts, RunResult
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.simulation import SimulationResult


def node(name: str, cpu: str = "4") -> JsonObject:
    capacity = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": capacity},
    }


def spec(cpu: str, **fields: Any) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"containers": [container], **fields}


def pod(name: str, cpu: str = "1", *, phase: str = "", **fields: Any) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        # What was read from a server has a UID, and keeps its status.
        "metadata": {"name": name, "namespace": "default", **({"uid": name} if phase else {})},
        "spec": spec(cpu, **fields),
        **({"status": {"phase": phase}} if phase else {}),
    }


def deployment(name: str, replicas: int) -> JsonObject:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec("500m")},
        },
    }


CLUSTER = [
    node("b"),
    node("a"),
    pod("old", "3", nodeName="a", terminationGracePeriodSeconds=5),
    pod("stays", "3", nodeName="b", priority=1000),
    pod("done", nodeName="a", phase="Succeeded"),
    pod("lost", phase="Failed"),
    pod("nowhere", nodeName="gone"),
    pod("vip", "4", priority=100),
    pod("huge", "64"),
    deployment("web", 2),
]


def run_of(documents: list[JsonObject], **options: Any) -> RunResult:
    return run_scenario(placing(documents, **options), SchedulerConfig())


def facts_of(run: RunResult) -> PlacingFacts:
    assert isinstance(run.placing, PlacingFacts)
    return run.placing


def test_rows_are_of_pods_that_waited() -> None:
    run = run_of(CLUSTER)
    assert [(row.name.partition("-")[0], row.outcome, row.node) for row in run.pods] == [
        ("vip", "Running", "a"),
        ("huge", "Pending", ""),
        ("web", "Running", "b"),
        ("web", "Running", "b"),
    ]
    assert run.samples == []
    # In the order in which the scheduler visits them.
    assert [(row.name, row.pods) for row in run.nodes] == [("b", 3), ("a", 1)]


def test_what_became_of_pods_that_ran_is_known_with_its_time() -> None:
    run = run_of(CLUSTER)
    facts = facts_of(run)
    assert facts.running_count == 1
    assert facts.evicted == ["default/old"]
    assert facts.on_missing_nodes == ["default/nowhere (gone)"]
    (change,) = run.changes
    assert (change.kind, change.subject, change.detail) == ("preemption", "default/old", "on a")
    # It is asked to go at once, and the pod that needs its place is there after it went.
    assert change.time_s == 0.0
    assert run.pods[0].scheduled_s == 5.0


def test_with_a_course_all_pods_have_rows_and_samples_are_taken() -> None:
    run = run_of(CLUSTER, has_course=True)
    outcomes = {row.name.partition("-")[0]: row.outcome for row in run.pods}
    assert outcomes == {
        "old": "Preempted",
        "stays": "Running",
        "done": "Ended",
        "lost": "Removed",
        "nowhere": "Running",
        "vip": "Running",
        "huge": "Pending",
        "web": "Running",
    }
    assert run.samples[0].time_s == 0.0
    assert run.samples[-1].time_s == run.virtual_duration_s
    assert facts_of(run) == facts_of(run_of(CLUSTER))


def test_a_report_has_owners_and_requests(tmp_path: Path) -> None:
    files = write_report(simulate(CLUSTER), tmp_path / "run.csv")
    by_table = {
        path.name.split(".")[1]: list(csv.DictReader(path.read_text().splitlines()))
        for path in files
    }
    pods = by_table["pods"]
    assert [row["owner"] for row in pods] == ["", "", "Deployment/web", "Deployment/web"]
    assert [row["requests.cpu"] for row in pods] == ["4000", "64000", "500", "500"]
    owners = [(row["owner"], row["pods"], row["placed"]) for row in by_table["owners"]]
    assert owners == [("", "2", "1"), ("Deployment/web", "2", "2")]


def test_pods_of_equally_named_workloads_have_owners_of_their_own() -> None:
    def owned(name: str, namespace: str, kind: str, hash_label: str = "") -> JsonObject:
        made = pod(name, "1m")
        made["metadata"] |= {
            "namespace": namespace,
            "labels": {"pod-template-hash": hash_label} if hash_label else {},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": kind, "name": "web-5f", "controller": True}
            ],
        }
        return made

    run = run_of(
        [
            node("a"),
            owned("p", "default", "ReplicaSet", "5f"),
            owned("q", "default", "ReplicaSet"),
            owned("r", "default", "StatefulSet"),
            owned("s", "other", "ReplicaSet", "5f"),
        ]
    )
    assert {row.name: row.owner for row in run.pods} == {
        "p": "Deployment/web",
        "q": "ReplicaSet/web-5f",
        "r": "StatefulSet/web-5f",
        "s": "Deployment/web",
    }


def test_figures_of_a_placement_are_those_at_the_end() -> None:
    figures = figures_of(run_of(CLUSTER))
    assert figures.outcomes == {"Pending": 1, "Running": 3}
    assert figures.waiting is not None
    assert figures.waiting.max_s == 5.0
    cpu = figures.resources[0]
    assert (cpu.used_share, cpu.mean_used_share) == (1.0, None)


def test_what_is_printed_is_made_of_the_run() -> None:
    result = simulate(CLUSTER)
    assert result == SimulationResult.of(result.run)
    assert list(msgspec.to_builtins(result)) == [
        "pods",
        "nodes",
        "runningCount",
        "evicted",
        "virtualDurationS",
        "hasSettled",
        "failedAttempts",
        "refusedPods",
        "refusals",
        "onMissingNodes",
    ]
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert again.run == result.run


def test_a_result_that_was_read_from_json_has_no_rows(tmp_path: Path) -> None:
    decoded = msgspec.json.decode(msgspec.json.encode(simulate(CLUSTER)), type=SimulationResult)
    with pytest.raises(InputError, match="not made by a simulation"):
        write_report(decoded, tmp_path / "run.csv")


def test_only_one_placement_has_its_facts_in_json() -> None:
    run = run_of(CLUSTER)
    assert msgspec.json.decode(msgspec.json.encode(run), type=RunResult) == run
    played = msgspec.structs.replace(run, placing=msgspec.UNSET)
    assert "placing" not in msgspec.to_builtins(played)


@pytest.mark.parametrize("has_course", [False, True])
def test_a_placement_can_end_at_once(has_course: bool) -> None:
    # What waits for the first attempt is stopped in the turn in which that is made.
    run = run_of(CLUSTER, limit_s=0, has_course=has_course)
    assert run.is_partial
    assert run.virtual_duration_s == 0.0


def test_the_limit_ends_a_placement() -> None:
    run = run_of([pod("p")], limit_s=1)
    assert run.is_partial
    assert not SimulationResult.of(run).has_settled
    assert not run_of([pod("p")]).is_partial
