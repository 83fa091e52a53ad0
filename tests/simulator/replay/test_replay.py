"""What was recorded is decided again in the same way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import PODS
from kubestow.config.decoding import decode_config
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.plugins.registry import REGISTRY
from kubestow.recording.file import RecordingReader
from kubestow.recording.format import SETTLED_TURNS, Put, RecordedAttempt, TurnsPassed
from kubestow.recording.recording import RecordTo, RunRecording
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.replay.replay import RecordedAnswers, Replay
from kubestow.simulator.replay.report import ReplayReport
from kubestow.simulator.replay.why import AttemptViews, explain_report
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from tools.faults import replica
from tools.faults.plan import make_plan
from tools.faults.simulation import run_plan


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
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


PACKING = decode_config(
    b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
)
CLUSTER = [node("small", "2"), node("large", "6")]


def recorded(path: Path, documents: list[JsonObject]) -> None:
    run_scenario(placing(documents), SchedulerConfig(), record=RecordTo(path, "simulate"))


def test_a_simulation_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "r"
    recorded(path, [*CLUSTER, *(pod(f"p{i}") for i in range(10)), pod("huge", "50")])
    report = replayed(path)
    assert report.attempts >= 11
    assert report.differing == 0


def test_another_configuration_decides_otherwise_and_later_pods_as_recorded(tmp_path: Path) -> None:
    path = tmp_path / "r"
    recorded(path, [*CLUSTER, *(pod(f"p{i}") for i in range(6))])
    report = replayed(path, config=PACKING, is_other=True)
    assert report.attempts == 6
    assert report.differing > 0
    assert report.by_what["totals"] == report.differing
    moved = [each for each in report.differences if "node" in each.what]
    assert moved
    assert all({each.recorded, each.replayed} == {"small", "large"} for each in moved)
    # Where nothing differs but the scores, the recorded pods fill the nodes as they did.
    assert not any(each.what == ("not waiting",) for each in report.differences)


def test_members_of_a_group_are_explained_after_their_cycle(tmp_path: Path) -> None:
    path = tmp_path / "r"
    gates = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    members = [pod(f"p{i}", schedulingGroup={"podGroupName": "g"}) for i in range(3)]
    scenario = placing([*CLUSTER, group, *members])
    run_scenario(scenario, SchedulerConfig(), gates=gates, record=RecordTo(path, "simulate"))
    reader = RecordingReader(path)
    answers = RecordedAnswers.of(reader)
    views = AttemptViews(limit=2)

    async def replay() -> ReplayReport:
        other = Replay(reader.header, PACKING, gates, REGISTRY, answers, is_other=True, views=views)
        return await other.run(reader)

    report = run_in_virtual_time(replay())
    explain_report(report, views.found, {})
    assert report.attempts == 3
    assert report.differing >= 2
    explained = [each for each in report.differences if each.why is not None]
    assert len(explained) == 2
    assert report.unexplained == report.differing - 2


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


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_scheduler_whose_cache_is_corrupted_ends(tmp_path: Path, goes_on: bool) -> None:
    """As `run` does. If the recorded one did not, that is a difference."""
    path = tmp_path / "r"
    recorded(path, [*CLUSTER, pod("p"), pod("q")])
    reader = RecordingReader(path)
    answers = RecordedAnswers.of(reader)
    pods = [each for each in reader if isinstance(each, Put) and b'"name":"p"' in each.text]
    attempts = [each for each in reader if isinstance(each, RecordedAttempt)]
    # A version from before the binding, as a list of a server that is behind gives it.
    contradiction = msgspec.structs.replace(pods[0], at_ns=pods[-1].at_ns)
    later = [TurnsPassed(pods[-1].at_ns, SETTLED_TURNS), *attempts] if goes_on else []
    records = [*reader, contradiction, *later]

    async def run() -> ReplayReport:
        replay = Replay(reader.header, SchedulerConfig(), FeatureGates(), REGISTRY, answers)
        return await replay.run(records)

    report = run_in_virtual_time(run())
    assert report.ended.startswith("Pod updated on a different node than previously added to.")
    assert [each.what for each in report.differences] == [("ended",)] * goes_on
    assert report.attempts == 2 + goes_on


# Restarts, preemption, volumes, lost answers, broken watches, clocks that are set: whatever happens
# to a scheduler, its recording explains its decisions. Plugins that fail at random are left out.
# With an extender that is late, silent or wrong, bindings end while a cycle waits for it, and a
# process that ends cancels the cycle.
@pytest.mark.parametrize(
    ("seed", "extender"),
    [
        (3, ""),
        (8, ""),
        (12, ""),
        (34, ""),
        (61, ""),
        (5, "required"),
        (8, "required"),
        (43, "required"),
        (34, "ignorable"),
    ],
)
def test_every_process_of_a_disturbed_cluster_is_replayed(
    seed: int,
    extender: Literal["", "required", "ignorable"],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan(seed)
    setup = msgspec.structs.replace(plan.setup, has_plugin=False, extender=extender)
    plan = plan._replace(setup=setup)
    recordings: dict[Path, RunRecording] = {}
    start = replica.Replica._start

    def recording_start(self: Any, ended: "asyncio.Future[int | str]") -> None:
        path = tmp_path / str(len(recordings))
        self._options = msgspec.structs.replace(self._options, record=str(path))
        start(self, ended)
        process = self.process
        recordings[path] = process.recording
        process.recording.observe_extenders(process.scheduler)  # The replica has its own.

    monkeypatch.setattr(replica.Replica, "_start", recording_start)
    assert run_plan(plan).broken == []
    for recording in recordings.values():
        recording.close()  # Processes that are killed do not.
    reports = [replayed(path) for path in recordings]
    assert sum(report.attempts for report in reports) > 20
    assert [report.differences for report in reports if report.differing] == []


@asynccontextmanager
async def limited(cluster: EmbeddedCluster) -> AsyncIterator[None]:
    """The file may have a byte, so another one begins every second."""
    recording = cluster.recording
    assert recording is not None
    recording._to = recording._to._replace(bytes_max=1)
    writing = asyncio.create_task(recording.run(cluster.scheduler))
    yield
    assert not writing.done()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)


def wait_written(cluster: EmbeddedCluster) -> None:
    """What is written is counted by a thread, in real time."""
    assert cluster.recording is not None
    for block in cluster.recording._writer._blocks:
        block.exception()


def test_a_recording_that_goes_on_in_a_second_file_is_replayed_in_two_parts(tmp_path: Path) -> None:
    path = tmp_path / "r"

    async def run() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        store = MemoryCluster(clock)
        store.load([node(f"n{i}", str(2 + i % 3), zone=f"z{i % 2}") for i in range(7)])
        cluster = EmbeddedCluster(store, SchedulerConfig(), clock, record=RecordTo(path, "test"))
        assert cluster.recording is not None
        async with cluster.running():
            for number in range(40):
                if number == 20:
                    cluster.recording._go_on_in_a_new_file(cluster.scheduler, 1)
                store.create(PODS, pod(f"p{number}", f"{100 + number * 7 % 300}m"))
                await asyncio.sleep(0.3)

    run_in_virtual_time(run())
    parts = [replayed(part) for part in (tmp_path / "r.1", path)]
    assert [part.attempts for part in parts] == [20, 20]
    assert [part.differences for part in parts] == [[], []]
    # The second part begins with the nodes and pods that the first left.
    assert parts[1].changes > 7 + 20


def test_a_second_file_that_cannot_be_begun_ends_the_recording_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "r"
    (tmp_path / "r.1" / "in-the-way").mkdir(parents=True)

    async def run() -> int:
        clock = VirtualClock(asyncio.get_running_loop())
        store = MemoryCluster(clock)
        store.load([node("n", "8")])
        cluster = EmbeddedCluster(store, SchedulerConfig(), clock, record=RecordTo(path, "test"))
        async with cluster.running(), limited(cluster):
            for number in range(6):
                store.create(PODS, pod(f"p{number}", "100m"))
                await asyncio.sleep(2)
                wait_written(cluster)
        return sum(bool(each.document["spec"].get("nodeName")) for each in store.objects_of(PODS))

    assert run_in_virtual_time(run()) == 6
    assert "The recording has ended" in caplog.text
