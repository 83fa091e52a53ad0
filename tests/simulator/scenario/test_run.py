"""Runs of scenarios: equal inputs give equal bytes, and memory is for what exists."""

import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.apiserver.store import StoredObject
from kubestow.config.defaults import complete_config
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import InputError
from kubestow.plugin import NodeFilter
from kubestow.plugins.registry import REGISTRY
from kubestow.simulator.node_shapes import NodeShape, node_documents
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario import Arrival, Progress, Scenario
from kubestow.simulator.scenario.arrivals import When, exponential, generated
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.run import run_scenario

CONFIG = complete_config(SchedulerConfig())
EXAMPLE = Path(__file__).parents[3] / "examples/day.yaml"
Play = Callable[..., RunResult]


def pod(cpu: str = "1", **spec: Any) -> JsonObject:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container], **spec}}


def scenario(*arrivals: Arrival, until_s: float = 600.0, nodes: int = 2, **more: Any) -> Scenario:
    shape = NodeShape(capacity={"cpu": "4"})
    documents = [Document(node, "test") for node in node_documents([shape], nodes)]
    source: Callable[[int], Iterator[Arrival]] = lambda seed: iter(arrivals)  # noqa: E731
    return Scenario(name="test", until_s=until_s, documents=documents, arrivals=[source], **more)


def outcomes(result: RunResult) -> Counter[str]:
    return Counter(row.outcome for row in result.pods)


# --- Equal inputs -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example_bytes() -> bytes:
    part = msgspec.structs.replace(read_scenario(EXAMPLE), until_s=4 * 3600)
    return msgspec.json.encode(run_scenario(part, CONFIG))


def test_the_example_plays(example_bytes: bytes) -> None:
    result = msgspec.json.decode(example_bytes, type=RunResult)
    assert {row.owner for row in result.pods} == {"batch", "report", "Deployment/web"}
    assert outcomes(result).keys() == {"Running", "Ended"}
    assert result.failed_attempts == 0


def test_the_same_input_gives_the_same_bytes(example_bytes: bytes) -> None:
    """Also in another process, whose sets and dictionaries of texts have another order, and with
    progress that is reported."""
    script = """
import sys
from pathlib import Path
import msgspec
from kubestow.config.defaults import complete_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.run import run_scenario

part = msgspec.structs.replace(read_scenario(Path(sys.argv[1])), until_s=4 * 3600)
result = run_scenario(part, complete_config(SchedulerConfig()), on_progress=lambda each: None)
sys.stdout.buffer.write(msgspec.json.encode(result))
"""
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(EXAMPLE)],
        env=environment, capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout == example_bytes


def test_another_seed_gives_another_run() -> None:
    source = generated("batch", pod(), When(rate=0.05), duration=exponential(60))
    plan = msgspec.structs.replace(scenario(), arrivals=[source])
    runs = [run_scenario(plan, CONFIG, seed=seed) for seed in (1, 1, 2)]
    assert [run.seed for run in runs] == [1, 1, 2]
    assert runs[0] == runs[1]
    assert [row.created_s for row in runs[0].pods] != [row.created_s for row in runs[2].pods]


# --- Pods ---------------------------------------------------------------------------------------


def test_a_pod_runs_for_its_duration_from_when_it_starts() -> None:
    plan = scenario(Arrival(10.0, pod(), 60.0, "batch"), start_delay_s=5.0)
    (row,) = run_scenario(plan, CONFIG).pods
    assert (row.name, row.owner, row.outcome) == ("batch-1", "batch", "Ended")
    assert (row.created_s, row.scheduled_s, row.ended_s) == (10.0, 10.0, 75.0)
    assert (row.requests, row.attempts) == ({"cpu": 1000}, 1)


def test_a_pod_leaves_whether_it_runs_or_waits() -> None:
    plan = scenario(
        Arrival(10.0, pod(), None, "service", 60.0),
        Arrival(10.0, pod("40"), None, "huge", 60.0),
        Arrival(20.0, pod("40"), None, "waiting"),
    )
    service, huge, waiting = run_scenario(plan, CONFIG).pods
    assert (service.outcome, service.ended_s) == ("Ended", 70.0)
    assert (huge.outcome, huge.ended_s, huge.node) == ("Removed", 70.0, "")
    assert (waiting.outcome, waiting.reason) == ("Pending", "Unschedulable")
    assert waiting.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_jobs_that_arrive_are_their_entry_and_are_deleted_when_done() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"parallelism": 2, "completions": 2, "template": {
            "spec": {**pod()["spec"], "restartPolicy": "Never"}
        }},
    }  # fmt: skip
    plan = scenario(Arrival(0.0, job, 60.0, "batch"), Arrival(100.0, job, 60.0, "batch"))
    rows = run_scenario(plan, CONFIG).pods
    assert [(row.owner, row.outcome) for row in rows] == [("batch", "Ended")] * 4
    assert [round(row.ended_s or 0) for row in rows] == [61, 61, 161, 161]


def test_a_preempted_pod_is_told_from_one_that_ended() -> None:
    classes = [
        Document(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "urgent"},
                "value": 100,
            },
            "test",
        )
    ]
    plan = scenario(
        *(Arrival(0.0, pod("4"), None, "low") for _ in range(2)),
        Arrival(60.0, pod("4", priorityClassName="urgent"), None, "urgent"),
    )
    plan = msgspec.structs.replace(plan, documents=[*plan.documents, *classes])
    result = run_scenario(plan, CONFIG)
    assert outcomes(result) == {"Running": 2, "Preempted": 1}
    assert [change.kind for change in result.changes] == ["preemption"]
    assert result.samples[-1].preempted == 1
    assert {row.priority for row in result.pods if row.owner == "urgent"} == {100}


def test_a_pod_of_another_scheduler_waits_for_it() -> None:
    plan = scenario(Arrival(0.0, pod(schedulerName="other"), None, "a"))
    (row,) = run_scenario(plan, CONFIG).pods
    assert (row.outcome, row.message) == ("OtherScheduler", 'no profile for scheduler "other"')


# --- Samples ------------------------------------------------------------------------------------


def test_samples_have_sums_over_the_cluster() -> None:
    plan = scenario(*(Arrival(0.0, pod("3"), None, "a") for _ in range(3)), sample_s=300.0)
    samples = run_scenario(plan, CONFIG).samples
    assert [sample.time_s for sample in samples] == [0.0, 300.0, 600.0]
    last = samples[-1]
    assert (last.nodes, last.running, last.unschedulable) == (2, 2, 1)
    assert (last.arrived, last.placed) == (3, 2)
    assert (last.allocatable["cpu"], last.requested["cpu"]) == (8000, 6000)
    # A core is left on each node, and every pod asks for three.
    assert last.stranded == {"cpu": 2000}
    assert last.imbalance["cpu"] == 0.0


def test_a_sample_is_taken_after_the_first_attempts() -> None:
    arrivals = [Arrival(time_s, pod("1"), None, "a") for time_s in (0.0, 0.0, 300.0)]
    samples = run_scenario(scenario(*arrivals, sample_s=300.0), CONFIG).samples
    assert [sample.time_s for sample in samples] == [0.0, 300.0, 600.0]
    assert [(sample.placed, sample.active) for sample in samples] == [(2, 0), (3, 0), (3, 0)]


def test_the_number_of_samples_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubestow.simulator.scenario.run.SAMPLES_MAX", 10)
    samples = run_scenario(scenario(sample_s=1.0), CONFIG).samples
    assert [sample.time_s for sample in samples] == [60.0 * number for number in range(11)]


# --- Ends before the end ------------------------------------------------------------------------


def test_a_run_that_is_stopped_has_what_there_was() -> None:
    seen: list[Progress] = []
    plan = scenario(*(Arrival(60.0 * number, pod("100m"), None, "a") for number in range(10)))
    result = run_scenario(
        plan, CONFIG, on_progress=seen.append, stop=lambda: bool(seen) and seen[-1].time_s > 150
    )
    assert result.is_partial
    assert 150 < result.virtual_duration_s < 190
    assert outcomes(result) in ({"Running": 3}, {"Running": 4})
    assert result.samples[-1].time_s == result.virtual_duration_s
    assert not run_scenario(plan, CONFIG).is_partial


def test_a_run_can_be_stopped_while_time_stands_still() -> None:
    plan = scenario(*(Arrival(0.0, pod("10m"), None, "a") for _ in range(300)))
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls > 20

    result = run_scenario(plan, CONFIG, stop=stop)
    assert (result.is_partial, result.virtual_duration_s) == (True, 0.0)
    assert outcomes(result)["Pending"] > 100


def test_an_object_that_is_refused_ends_the_run_with_its_place() -> None:
    plan = scenario(Arrival(5.0, pod(priorityClassName="none"), None, "a"), places={"a": "f:3"})
    with pytest.raises(InputError, match=r"f:3: after 5 s: .*none"):
        run_scenario(plan, CONFIG)


class Broken(NodeFilter):
    name = "Broken"

    def filter_node(self, pod: Any, node: Any) -> bool:
        raise KeyError("nope")


def test_a_plugin_that_fails_is_counted_by_owner() -> None:
    enabled = PluginSet(enabled=(PluginRef("Broken"),))
    config = complete_config(
        SchedulerConfig(profiles=(ProfileConfig(plugins=Plugins(multi_point=enabled)),))
    )
    plan = scenario(Arrival(0.0, pod(), None, "batch"), until_s=20.0)
    result = run_scenario(plan, config, {**REGISTRY, "Broken": Broken})
    (failure,) = result.failures
    assert failure.owner == "batch"
    assert failure.message.startswith('running "Broken" filter plugin: KeyError')
    assert failure.attempts == result.failed_attempts > 1


# --- Memory -------------------------------------------------------------------------------------


def test_memory_is_for_what_exists() -> None:
    """Four times as long with as many pods at a time: no more objects of the store."""

    def most_objects(until_s: float) -> int:
        found = 0

        def count(progress: Progress) -> None:
            nonlocal found
            if not found and progress.time_s > until_s * 0.99:
                found = sum(isinstance(each, StoredObject) for each in gc.get_objects())

        source = generated("batch", pod("100m"), When(rate=0.5), duration=exponential(20))
        plan = msgspec.structs.replace(scenario(until_s=until_s), arrivals=[source])
        assert len(run_scenario(plan, CONFIG, on_progress=count).pods) > until_s / 3
        return found

    # What is kept is history, of which there is a fixed number of versions.
    assert most_objects(1_600) < most_objects(400) * 1.3
