"""What is counted while pods are scheduled (spec 02 §16, 03 §11.8, 04 §2.9)."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import numpy as np
import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_group import PodGroup
from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.config.profile import PluginConfig, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.errors import ApiError
from kubestow.framework.metrics import Timing
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.instruments import UNEXPECTED
from kubestow.service.metrics.recorders import QueueRecorder, SchedulerRecorder
from kubestow.service.metrics.registry import MetricsRegistry, parse_allowed_labels
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.testing import ManualClock, make_node, make_pod, make_pod_group
from kubestow.testing.handles import RecordedEvents
from kubestow.testing.topology import make_spread

PROFILE = "default-scheduler"


class FakeServer:
    """Binds every pod after a moment."""

    def __init__(self) -> None:
        self.refusal: ApiError | None = None

    async def bind(self, pod: Pod, node_name: str) -> None:
        await asyncio.sleep(0.25)
        if self.refusal is not None:
            raise self.refusal

    async def patch_pod_status(self, pod: Pod, **changes: object) -> None: ...

    async def patch(self, *arguments: object, **options: object) -> None: ...


class World:
    def __init__(
        self,
        *nodes: Node,
        gates: FeatureGates = DEFAULT_GATES,
        allowed: Mapping[str, str] | None = None,
        config: SchedulerConfig | None = None,
    ) -> None:
        """`allowed`: the values of labels as the command line has them."""
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.registry = MetricsRegistry(allowed_labels=parse_allowed_labels(allowed or {}))
        catalogue = SchedulerCatalogue(self.registry, gates)
        rng = np.random.default_rng(1)
        recorder = SchedulerRecorder(catalogue, self.clock, rng)
        self.server = FakeServer()
        self.objects = ClusterObjects()
        rules = rules_of(gates.edition)
        self.scheduler = rules.factory(
            config=config or SchedulerConfig(),
            registry=rules.registry,
            client=self.server,  # type: ignore[arg-type]
            objects=self.objects,
            events=lambda _: RecordedEvents(),
            clock=self.clock,
            queue_metrics=QueueRecorder(catalogue, rng),
            metrics=recorder,
            gates=gates,
        ).build()
        recorder.observe(self.scheduler)
        for node in nodes:
            self.scheduler.handlers.node_added(node)

    def create(self, pod: Pod) -> None:
        self.objects.pods.put(pod)
        self.scheduler.handlers.pod_added(pod)

    async def schedule(self, *pods: Pod) -> None:
        """Try the pods, one after the other, and let their bindings end."""
        for pod in pods:
            self.create(pod)
        while (queued_pod := self.scheduler.queue.pop_nowait()) is not None:
            self.scheduler.schedule_one(queued_pod)
        await asyncio.sleep(1)

    def value(self, name: str, *labels: str) -> float:
        family = self.registry.family(f"scheduler_{name}")
        assert family is not None
        family.text()  # brings it up to date
        child = family.children().get(labels)
        assert child is not None, (name, labels, list(family.children()))
        return child.count if family.kind == "histogram" else child.value

    def series(self, name: str) -> set[tuple[str, ...]]:
        family = self.registry.family(f"scheduler_{name}")
        assert family is not None
        return set(family.children())


def scenario(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        run_in_virtual_time(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@scenario
async def test_a_bound_pod_counts_once_everywhere() -> None:
    world = World(make_node("n1"), make_node("n2"))
    await world.schedule(make_pod("a", cpu="1"))
    assert world.value("schedule_attempts_total", "scheduled", PROFILE) == 1
    assert world.value("schedule_attempts_total", "unschedulable", PROFILE) == 0
    assert world.value("scheduling_attempt_duration_seconds", "scheduled", PROFILE) == 1
    assert world.value("scheduling_algorithm_duration_seconds") == 1
    assert world.value("pod_scheduling_attempts") == 1
    assert world.value("pod_scheduling_sli_duration_seconds", "1") == 1
    assert world.value("queue_incoming_pods_total", "active", "UnschedulablePodAdd") == 1
    assert world.value("batch_attempts_total", PROFILE, "no_hint") == 1
    for point in ("PreEnqueue", "PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit"):
        name = "framework_extension_point_duration_seconds"
        assert world.value(name, point, "Success", PROFILE) == 1, point
    name = "framework_extension_point_duration_seconds"
    assert world.value(name, "PreBindPreFlight", "Skip", PROFILE) == 1
    assert world.value(name, "Bind", "Success", PROFILE) == 1
    assert world.value(name, "PostBind", "Success", PROFILE) == 1
    # Measured although all plugins were skipped, as by kube-scheduler v1.36.4 and v1.37.0-rc.1.
    assert world.value(name, "PreBind", "Success", PROFILE) == 1


@scenario
async def test_the_duration_of_an_attempt_includes_its_binding() -> None:
    world = World(make_node("n1"))
    await world.schedule(make_pod("a"))
    family = world.registry.family("scheduler_scheduling_attempt_duration_seconds")
    assert family is not None
    assert family.labels("scheduled", PROFILE).sum == pytest.approx(0.25)
    points = world.registry.family("scheduler_framework_extension_point_duration_seconds")
    assert points is not None
    assert points.labels("Bind", "Success", PROFILE).sum == pytest.approx(0.25)


@scenario
async def test_a_rejected_pod_counts_by_plugin() -> None:
    world = World(make_node("n1", cpu="1"), make_node("n2", cpu="1"))
    await world.schedule(make_pod("a", cpu="2"))
    assert world.value("schedule_attempts_total", "unschedulable", PROFILE) == 1
    assert world.value("unschedulable_pods", "NodeResourcesFit", PROFILE) == 1
    assert world.value("pending_pods", "unschedulable") == 1
    assert world.value("pending_pods", "active") == 0
    assert world.value("preemption_attempts_total") == 1
    assert (
        world.value(
            "framework_extension_point_duration_seconds", "PostFilter", "Unschedulable", PROFILE
        )
        == 1
    )
    assert world.value("queue_incoming_pods_total", "unschedulable", "ScheduleAttemptFailure") == 1


@scenario
async def test_a_refused_binding_counts_as_an_error() -> None:
    world = World(make_node("n1"))
    world.server.refusal = ApiError("no")
    await world.schedule(make_pod("a"))
    assert world.value("schedule_attempts_total", "error", PROFILE) == 1
    assert world.value("schedule_attempts_total", "scheduled", PROFILE) == 0
    name = "framework_extension_point_duration_seconds"
    assert world.value(name, "Bind", "Error", PROFILE) == 1
    assert world.value(name, "Unreserve", "Success", PROFILE) == 1


@scenario
async def test_evaluations_count_nodes_and_leave_out_skipped_plugins() -> None:
    world = World(make_node("n1"), make_node("n2", cpu="1"), make_node("n3", unschedulable=True))
    name = "plugin_evaluation_total"
    assert world.value(name, "NodeName", "Filter", PROFILE) == 0  # there from the start
    await world.schedule(make_pod("a", cpu="2"))
    # NodeUnschedulable rejects n3, NodeResourcesFit n2; later filters get the rest.
    assert world.value(name, "NodeUnschedulable", "Filter", PROFILE) == 3
    assert world.value(name, "NodeName", "Filter", PROFILE) == 2
    assert world.value(name, "NodeResourcesFit", "Filter", PROFILE) == 2
    assert world.value(name, "PodTopologySpread", "Filter", PROFILE) == 0
    assert world.value(name, "PodTopologySpread", "PreFilter", PROFILE) == 0
    assert world.value(name, "NodeResourcesFit", "PreFilter", PROFILE) == 1
    # One node is left, so nothing is scored.
    assert world.value(name, "NodeResourcesFit", "Score", PROFILE) == 0
    await world.schedule(make_pod("b", cpu="100m"))
    assert world.value(name, "NodeResourcesFit", "Score", PROFILE) == 2
    assert world.value(name, "NodeResourcesFit", "PreScore", PROFILE) == 1
    assert world.value("batch_attempts_total", PROFILE, "no_hint") == 2
    world.registry.reset()
    assert world.value(name, "NodeUnschedulable", "Filter", PROFILE) == 0
    assert world.value("batch_attempts_total", PROFILE, "no_hint") == 0


@scenario
async def test_evaluations_of_plugins_that_are_not_allowed_are_added_up() -> None:
    name = "scheduler_plugin_evaluation_total"
    world = World(make_node("n1"), make_node("n2"), allowed={f"{name},plugin": "NodeName"})
    skipped: list[frozenset[str]] = []
    world.scheduler.listeners = [lambda decision, _: skipped.append(decision.state.skip_filter)]
    await world.schedule(make_pod("a"))
    family = world.registry.family(name)
    assert family is not None
    filters = {step.name for step in world.scheduler.profiles[PROFILE].filter_steps}
    unexpected = filters - skipped[0] - {"NodeName"}
    assert len(unexpected) > 1
    for _ in range(2):  # Reading again counts nothing twice.
        text = family.text()
        assert _count(text, plugin="NodeName", point="Filter") == 2
        assert _count(text, plugin=UNEXPECTED, point="Filter") == 2 * len(unexpected)


def _count(text: str, *, plugin: str, point: str) -> float:
    (line,) = (
        line
        for line in text.splitlines()
        if f'plugin="{plugin}"' in line and f'extension_point="{point}"' in line
    )
    return float(line.rpartition(" ")[2])


# Equal pods are placed in batches.
LIST = SchedulerConfig(
    profiles=(
        ProfileConfig(
            plugin_config=(
                PluginConfig(
                    name="PodTopologySpread", args=PodTopologySpreadArgs(defaulting_type="List")
                ),
            )
        ),
    )
)


def batch_world(version: str, *off: str) -> World:
    gates = FeatureGates(dict.fromkeys(off, False), edition_named(version))
    return World(
        *(make_node(f"n{number}", cpu="1") for number in range(4)), gates=gates, config=LIST
    )


@scenario
async def test_hints_are_counted_by_how_they_were_used() -> None:
    world = batch_world("v1.36")
    await world.schedule(*(make_pod(f"p{number}", cpu="800m") for number in range(3)))
    name = "batch_attempts_total"
    assert world.value(name, PROFILE, "no_hint") == 1
    assert world.value(name, PROFILE, "hint_used") == 2
    # Four nodes, then for each other pod the node of the one before and the hint.
    assert world.value("plugin_evaluation_total", "NodeName", "Filter", PROFILE) == 4 + 2 + 2
    await world.schedule(make_pod("small", cpu="100m"))
    assert world.value(name, PROFILE, "no_hint") == 2
    flushed = "batch_cache_flushed_total"
    assert world.value(flushed, PROFILE, "pod_incompatible") == 1


@scenario
async def test_rescoring_is_counted_and_timed() -> None:
    world = batch_world("v1.37")
    await world.schedule(*(make_pod(f"p{number}", cpu="100m") for number in range(3)))
    assert world.value("batch_rescore_attempts_total", PROFILE) == 2
    assert world.value("batch_rescore_duration_seconds", PROFILE) == 2
    assert world.value("batch_attempts_total", PROFILE, "hint_used") == 2
    name = "plugin_evaluation_total"
    assert world.value(name, "NodeResourcesFit", "Score", PROFILE) == 4 + 1 + 1
    assert world.value(name, "NodeResourcesFit", "PreScore", PROFILE) == 3
    assert world.series("batch_cache_flushed_total") == set()


@scenario
async def test_pods_without_signatures_leave_nothing() -> None:
    world = World(make_node("a"), make_node("b"))
    await world.schedule(make_pod("a", node_selector={"no": "node"}), make_pod("b"), make_pod("c"))
    assert world.value("batch_attempts_total", PROFILE, "no_hint") == 3
    assert world.value("batch_cache_flushed_total", PROFILE, "pod_not_batchable") == 2


@scenario
async def test_without_the_gate_no_hint_is_counted() -> None:
    world = batch_world("v1.36", "OpportunisticBatching")
    await world.schedule(make_pod("a", cpu="800m"), make_pod("b", cpu="800m"))
    assert world.series("batch_attempts_total") == set()
    assert world.series("batch_cache_flushed_total") == set()


@scenario
async def test_equal_pods_are_counted_like_unequal_ones() -> None:
    world = World(*(make_node(f"n{index}") for index in range(5)))
    await world.schedule(*(make_pod(f"p{index}", cpu="100m") for index in range(6)))
    assert world.value("plugin_evaluation_total", "NodeName", "Filter", PROFILE) == 30
    assert world.value("plugin_evaluation_total", "NodeResourcesFit", "Score", PROFILE) == 30
    name = "framework_extension_point_duration_seconds"
    for point in ("PreFilter", "Filter", "PreScore", "Score"):
        assert world.value(name, point, "Success", PROFILE) == 6, point


@scenario
async def test_plugins_are_timed_in_one_attempt_of_ten() -> None:
    world = World(*(make_node(f"n{index}") for index in range(3)))
    pods = [make_pod(f"p{index}", labels={"app": f"{index}"}) for index in range(300)]
    await world.schedule(*pods)
    name = "plugin_execution_duration_seconds"
    assert 10 < world.value(name, "DefaultBinder", "Bind", "Success") < 60


@scenario
async def test_plugins_that_are_asked_about_every_pod_are_timed_beside_what_is_kept() -> None:
    world = World(*(make_node(f"n{index}", zone=f"z{index}") for index in range(3)))
    spread = [make_spread("topology.kubernetes.io/zone", "app=web")]
    pods = [make_pod(f"p{index}", labels={"app": "web"}, spread=spread) for index in range(200)]
    await world.schedule(*pods)
    name = "plugin_execution_duration_seconds"
    assert 5 < world.value(name, "PodTopologySpread", "PreFilter", "Success") < 50


@scenario
async def test_a_frozen_decision_has_the_timings_of_its_attempt() -> None:
    world = World(make_node("n1"), make_node("n2"))
    kept: list[FrozenDecision] = []
    world.scheduler.listeners = [lambda decision, _: kept.append(decision.freeze())]
    await world.schedule(make_pod("small", cpu="1"))
    await world.schedule(*(make_pod(f"large-{index}", cpu="9") for index in range(40)))
    points = [[each.point for each in one.timings if not each.plugin] for one in kept]
    assert points[0] == ["PreFilter", "Filter", "PreScore", "Score"]
    assert points[1:] == [["PreFilter", "Filter", "PostFilter"]] * 40
    # Single plugins are timed in sampled attempts.
    preempting = [any(each.plugin == "DefaultPreemption" for each in one.timings) for one in kept]
    assert 0 < sum(preempting) < 20


def group_world(*nodes: Node) -> World:
    names = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")
    world = World(*nodes, gates=FeatureGates(dict.fromkeys(names, True)))
    world.objects.store(PodGroup).put(make_pod_group("g", min_count=2, topology_key="zone"))
    return world


@scenario
async def test_a_group_that_is_placed_counts_once_and_its_members_each() -> None:
    world = group_world(*(make_node(name, labels={"zone": name}) for name in ("z1", "z2")))
    await world.schedule(*(make_pod(name, cpu="1", group="g") for name in "ab"))
    assert world.value("podgroup_schedule_attempts_total", "scheduled", PROFILE) == 1
    assert world.value("podgroup_scheduling_algorithm_duration_seconds") == 1
    assert world.value("schedule_attempts_total", "scheduled", PROFILE) == 2
    name = "framework_extension_point_duration_seconds"
    # Placements are generated once and scored once; there is one for each zone.
    assert world.value(name, "PlacementGenerate", "Success", PROFILE) == 1
    assert world.value(name, "PlacementScore", "Success", PROFILE) == 1
    # Both members are tried in both zones, and then placed. The first waits for the other.
    assert world.value(name, "Reserve", "Success", PROFILE) == 4 + 2
    assert world.value(name, "Permit", "Wait", PROFILE) == 2 + 1
    assert world.value(name, "Permit", "Success", PROFILE) == 2 + 1


@scenario
async def test_a_group_without_a_place_counts_as_unschedulable() -> None:
    world = group_world(make_node("n1"))
    await world.schedule(*(make_pod(name, cpu="1", group="g") for name in "ab"))
    assert world.value("podgroup_schedule_attempts_total", "unschedulable", PROFILE) == 1
    name = "framework_extension_point_duration_seconds"
    assert ("PlacementScore", "Success", PROFILE) not in world.series(name)


def test_a_meter_keeps_timings_on_request() -> None:
    clock = ManualClock()
    catalogue = SchedulerCatalogue(MetricsRegistry(), DEFAULT_GATES)
    recorder = SchedulerRecorder(catalogue, clock, np.random.default_rng(1))
    for keeps_timings in (True, False):
        meter = recorder.start_attempt(PROFILE, keeps_timings=keeps_timings)
        clock.advance_s(1)
        meter.resume()
        clock.advance_s(2)
        meter.plugin_ended("NodeName", "Filter")
        clock.advance_s(3)
        meter.point_ended("Filter")
        kept = [Timing("Filter", 2, "NodeName"), Timing("Filter", 5)]
        assert list(meter.timings) == (kept if keeps_timings else [])
    assert catalogue.point_duration.labels("Filter", "Success", PROFILE).sum == 10


@scenario
async def test_events_are_timed_by_what_they_were() -> None:
    world = World(make_node("n1"))
    name = "event_handling_duration_seconds"
    handlers = world.scheduler.handlers
    assert world.value(name, "NodeAdd") == 1
    handlers.node_updated(make_node("n1"), make_node("n1", labels={"a": "b"}))
    assert world.value(name, "NodeUpdateNodeLabel") == 1
    waiting = make_pod("a", uid="a")
    handlers.pod_added(waiting)
    assert world.value(name, "UnschedulablePodAdd") == 1
    handlers.pod_deleted(waiting)
    assert world.value(name, "UnschedulablePodDelete") == 1
    running = make_pod("b", uid="b", node="n1")
    handlers.pod_added(running)
    assert world.value(name, "AssignedPodAdd") == 1
    handlers.pod_updated(running, make_pod("b", uid="b", node="n1", labels={"x": "y"}))
    assert world.value(name, "AssignedPodUpdatePodLabel") == 1
    assert world.value(name, "AssignedPodUpdate") == 1
    handlers.node_deleted(make_node("n1"))
    assert world.value(name, "NodeDelete") == 1


@scenario
async def test_sizes_are_computed_on_each_scrape() -> None:
    world = World(make_node("n1"), make_node("n2"))
    assert world.value("cache_size", "nodes") == 2
    assert world.value("cache_size", "assumed_pods") == 0
    world.create(make_pod("a"))
    queued_pod = world.scheduler.queue.pop_nowait()
    assert queued_pod is not None
    world.scheduler.schedule_one(queued_pod)
    await asyncio.sleep(0)
    assert world.value("cache_size", "assumed_pods") == 1
    assert world.value("goroutines", "binding") == 1
    await asyncio.sleep(1)
    assert world.value("goroutines", "binding") == 0


@scenario
async def test_attempts_are_labelled_up_to_fifteen() -> None:
    """Spec 09 §8.3, example 6."""
    world = World(make_node("n1"))
    world.create(make_pod("a"))
    queued_pod = world.scheduler.queue.pop_nowait()
    assert queued_pod is not None
    queued_pod.attempts = 16
    world.scheduler.schedule_one(queued_pod)
    await asyncio.sleep(1)
    assert world.value("pod_scheduling_sli_duration_seconds", "15+") == 1
    attempts = world.registry.family("scheduler_pod_scheduling_attempts")
    assert attempts is not None
    assert 'scheduler_pod_scheduling_attempts_bucket{le="16"} 1\n' in attempts.text()
    assert 'scheduler_pod_scheduling_attempts_bucket{le="8"} 0\n' in attempts.text()


def test_waits_for_devices_are_measured_and_counted_apart() -> None:
    """Spec 08 B10: the duration once per device, the total once per device with conditions."""
    catalogue = SchedulerCatalogue(MetricsRegistry(), DEFAULT_GATES)
    recorder = SchedulerRecorder(catalogue, ManualClock(), np.random.default_rng(1))
    recorder.device_wait_ended(PROFILE, "d.com", "success", 2.5)
    recorder.device_wait_ended(PROFILE, "d.com", "success", 2.5)
    recorder.device_conditions_ended(PROFILE, "d.com", "success")
    labels = (PROFILE, "d.com", "success")
    assert catalogue.device_wait_duration.labels(*labels).sum == 5
    assert catalogue.device_allocations.labels(*labels).value == 1
