"""Older schedulers as services, in virtual time against a cluster in memory."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kubestow.api.config_map import ConfigMap
from kubestow.api.coordination import Event
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.shared.policy import provider_policy
from kubestow.editions.starting import edition_parts
from kubestow.editions.v1_9.engine.algorithm import build_algorithm
from kubestow.editions.v1_9.service.process import ProcessV19
from kubestow.editions.v1_9.simulator.embedded import cluster_maker
from kubestow.editions.v1_20.engine.factory import FactoryV120
from kubestow.editions.v1_20.engine.reservoir import ReservoirSelector
from kubestow.errors import ConfigError
from kubestow.service.connections import Connections
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.service.process_parts import ProcessParts
from kubestow.service.run import RunError, SchedulerProcess, ServiceProcess
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from tools.edition_workload import older_nodes, older_pods

VERSIONS = ("v1.9", "v1.17", "v1.20")


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.store = MemoryCluster(self.clock)
        self.client = MemoryClient(self.store)

    async def process(
        self, version: str, *flags: str, hostname: str = "host"
    ) -> tuple[ServiceProcess, ProcessParts]:
        options = parse_options(["--secure-port=0", f"--compatibility={version}", *flags])
        assert isinstance(options, SchedulerOptions)
        rng = np.random.default_rng(sum(hostname.encode()))
        parts = edition_parts(options, self.clock, rng)
        connections = Connections(main=self.client, events=self.client, election=self.client)
        return await parts.build(connections, hostname=hostname), parts

    async def start(
        self, version: str, *flags: str
    ) -> tuple[ServiceProcess, "asyncio.Task[int]", ProcessParts]:
        process, parts = await self.process(version, *flags)
        running = asyncio.create_task(process.run())
        await until(lambda: process.is_active and process.has_synced)
        return process, running, parts

    async def placements(self) -> dict[str, str]:
        pods = await self.client.list(Pod)
        return {pod.metadata.name: pod.spec.node_name for pod in pods}

    async def pod(self, name: str) -> Pod:
        return await self.client.get(Pod, "default", name)


async def until(condition: Callable[[], bool | Awaitable[bool]], limit_s: float = 120) -> None:
    """Let virtual time pass until the condition holds."""
    for _ in range(int(limit_s * 10)):
        outcome = condition()
        if await outcome if isinstance(outcome, Awaitable) else outcome:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it never happened")


def in_world(test: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        await test(World())

    run_in_virtual_time(run())


async def stop(process: ServiceProcess, running: "asyncio.Task[int]") -> None:
    process.request_stop()
    assert await running == 0


def pod(name: str, cpu: str = "1", **spec: Any) -> JsonObject:
    resources = {"requests": {"cpu": cpu}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}], **spec},
    }


def node(name: str, cpu: str = "4", **labels: str) -> JsonObject:
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def simulated(version: str, documents: list[JsonObject]) -> dict[str, str]:
    """Where a simulation puts the pods; empty for those that wait."""

    scenario = placing(documents)
    if version == "v1.9":
        algorithm = build_algorithm(provider_policy("DefaultProvider"))
        make_cluster = cluster_maker(algorithm)
        run = run_scenario(scenario, SchedulerConfig(), make_cluster=make_cluster)
    else:
        rules = rules_of(edition_named(version))
        options = parse_options([f"--compatibility={version}"])
        assert isinstance(options, SchedulerOptions)
        run = run_scenario(scenario, options.config, rules.registry, factory=rules.factory)
    return {pod.name: pod.node for pod in run.pods}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_service_decides_as_a_simulation(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Among the best nodes both choose at random: with the same numbers they choose the same.
    selector = lambda factory: ReservoirSelector(np.random.default_rng(7))  # noqa: E731
    monkeypatch.setattr(FactoryV120, "make_selector", selector)
    documents = [*older_nodes(), *older_pods()]
    expected = simulated(version, documents)

    async def test(world: World) -> None:
        world.store.load(documents)
        process, running, _ = await world.start(version)
        placed_count = sum(map(bool, expected.values()))

        async def is_done() -> bool:
            return sum(map(bool, (await world.placements()).values())) == placed_count

        await until(is_done)
        assert await world.placements() == expected
        await stop(process, running)

    in_world(test)
    assert 0 < sum(not node_name for node_name in expected.values()) < len(expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pod_that_does_not_fit_has_a_condition_and_an_event_and_is_tried_again(
    version: str,
) -> None:
    async def test(world: World) -> None:
        world.store.load([node("small", cpu="1"), pod("large", cpu="3")])
        process, running, _ = await world.start(version)

        async def has_condition() -> bool:
            return bool((await world.pod("large")).status.conditions)

        await until(has_condition)
        (condition,) = (await world.pod("large")).status.conditions
        assert condition.reason == "Unschedulable"
        assert condition.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
        world.store.load([node("large-node", cpu="8")])

        async def is_bound() -> bool:
            return (await world.pod("large")).spec.node_name == "large-node"

        await until(is_bound)
        await stop(process, running)
        events = {(event.reason, event.note) for event in await world.client.list(Event)}
        place = "large" if version == "v1.9" else "default/large"
        assert ("Scheduled", f"Successfully assigned {place} to large-node") in events
        assert any(reason == "FailedScheduling" for reason, _ in events)

    in_world(test)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_standby_takes_over(version: str) -> None:
    async def test(world: World) -> None:
        world.store.load([node("n1")])
        first, _ = await world.process(version, hostname="a")
        first_run = asyncio.create_task(first.run())
        await until(lambda: first.is_active)
        second, _ = await world.process(version, hostname="b")
        second_run = asyncio.create_task(second.run())
        await until(lambda: second.has_synced)
        assert not second.is_active
        await stop(first, first_run)
        await until(lambda: second.is_active)
        world.store.load([pod("late")])

        async def is_bound() -> bool:
            return (await world.pod("late")).spec.node_name == "n1"

        await until(is_bound)
        await stop(second, second_run)

    in_world(test)


@pytest.mark.parametrize("version", VERSIONS)
def test_only_pods_of_its_name_are_placed_and_gated_ones_wait(version: str) -> None:
    async def test(world: World) -> None:
        world.store.load(
            [
                node("n1"),
                pod("ours", schedulerName="second"),
                pod("others"),
                pod("gated", schedulerName="second", schedulingGates=[{"name": "example.com/g"}]),
            ]
        )
        process, running, _ = await world.start(version, "--scheduler-name=second")

        async def is_bound() -> bool:
            return (await world.pod("ours")).spec.node_name == "n1"

        await until(is_bound)
        await asyncio.sleep(10)
        assert (await world.pod("others")).spec.node_name == ""
        assert (await world.pod("gated")).spec.node_name == ""
        gate_gone = {"spec": {"schedulingGates": None}}
        await world.client.patch(Pod, "default", "gated", gate_gone, "merge")

        async def is_ungated() -> bool:
            return (await world.pod("gated")).spec.node_name == "n1"

        await until(is_ungated)
        await stop(process, running)

    in_world(test)


POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [
        {"name": "PodFitsResources"},
        {"name": "HasSsd", "argument": {"labelsPresence": {"labels": ["ssd"], "presence": True}}},
    ],
    "priorities": [{"name": "LeastRequestedPriority", "weight": 1}],
}


def test_the_policy_of_a_config_map_decides_and_its_change_ends_the_process() -> None:
    async def test(world: World) -> None:
        world.store.load([node("plain"), node("fast", ssd="yes"), pod("a"), policy_map(POLICY)])
        _, running, _ = await world.start("v1.9", "--policy-configmap=policy")

        async def is_bound() -> bool:
            return (await world.pod("a")).spec.node_name == "fast"

        await until(is_bound)
        # A label of the ConfigMap is no change of the Policy.
        labels = {"metadata": {"labels": {"a": "b"}}}
        await world.client.patch(ConfigMap, "kube-system", "policy", labels, "merge")
        await asyncio.sleep(10)
        assert not running.done()
        data = {"data": {"policy.cfg": json.dumps({**POLICY, "predicates": []})}}
        await world.client.patch(ConfigMap, "kube-system", "policy", data, "merge")
        with pytest.raises(RunError, match="kube-system/policy has changed"):
            await running

    in_world(test)


def policy_map(policy: JsonObject) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "policy", "namespace": "kube-system"},
        "data": {"policy.cfg": json.dumps(policy)},
    }


def test_a_deleted_config_map_ends_the_process() -> None:
    async def test(world: World) -> None:
        world.store.load([policy_map(POLICY)])
        _, running, _ = await world.start("v1.9", "--policy-configmap=policy")
        await world.client.delete(ConfigMap, "kube-system", "policy")
        with pytest.raises(RunError, match="was deleted"):
            await running

    in_world(test)


def test_a_config_map_must_be_there_at_the_start() -> None:
    async def test(world: World) -> None:
        with pytest.raises(ConfigError, match='config map kube-system/policy: configmaps "policy"'):
            await world.process("v1.9", "--policy-configmap=policy")

    in_world(test)


def test_a_policy_file_and_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"

    async def test(world: World) -> None:
        path.write_text(json.dumps(POLICY))
        world.store.load([node("plain"), node("fast", ssd="yes"), pod("a")])
        process, running, _ = await world.start("v1.9", f"--policy-config-file={path}")

        async def is_bound() -> bool:
            return (await world.pod("a")).spec.node_name == "fast"

        await until(is_bound)
        await stop(process, running)
        path.write_text(json.dumps({"kind": "Policy", "predicates": [{"name": "NoSuchRule"}]}))
        with pytest.raises(ConfigError, match="Predicate type not found for NoSuchRule"):
            await world.process("v1.9", f"--policy-config-file={path}")

    in_world(test)


def test_the_equivalence_cache_follows_live_events() -> None:
    """Pods of one controller share verdicts; a pod deleted frees its node for the next one."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": "u1",
        "controller": True,
    }

    def owned(name: str) -> JsonObject:
        document = pod(name, cpu="3")
        document["metadata"]["ownerReferences"] = [owner]
        return document

    async def test(world: World) -> None:
        world.store.load([node("n1"), node("n2"), *map(owned, "abc")])
        gate = "--feature-gates=EnableEquivalenceClassCache=true"
        process, running, _ = await world.start("v1.9", gate)
        assert isinstance(process, ProcessV19)

        async def two_are_bound() -> bool:
            return sum(map(bool, (await world.placements()).values())) == 2

        await until(two_are_bound)
        placed = await world.placements()
        (waiting,) = (name for name, node_name in placed.items() if not node_name)
        freed = next(name for name, node_name in placed.items() if node_name)
        await world.client.delete(Pod, "default", freed, grace_period_s=0)

        async def is_bound() -> bool:
            return (await world.pod(waiting)).spec.node_name == placed[freed]

        await until(is_bound)
        assert process.scheduler.equivalence_cache is not None
        assert process.scheduler.equivalence_cache.statistics().hits > 0
        await stop(process, running)

    in_world(test)


def test_metrics_have_the_names_of_v1_9() -> None:
    async def test(world: World) -> None:
        world.store.load([node("n1"), pod("a")])
        process, running, parts = await world.start("v1.9")

        async def is_bound() -> bool:
            return bool((await world.pod("a")).spec.node_name)

        await until(is_bound)
        await stop(process, running)
        text = "".join(parts.metrics.registry.texts())
        for name in ("e2e_scheduling", "scheduling_algorithm", "binding"):
            assert f"scheduler_{name}_latency_microseconds_count 1\n" in text
            assert f'scheduler_{name}_latency_microseconds_bucket{{le="1000"}} 1\n' in text
        assert "scheduler_pending_pods" not in text

    in_world(test)


@pytest.mark.parametrize(
    ("version", "victims"),
    [("v1.17", "scheduler_pod_preemption_victims"), ("v1.20", "scheduler_preemption_victims")],
)
def test_metrics_of_schedulers_with_plugins_have_their_older_names(
    version: str, victims: str
) -> None:
    async def test(world: World) -> None:
        world.store.load([node("n1"), pod("a")])
        process, running, parts = await world.start(version)

        async def is_bound() -> bool:
            return bool((await world.pod("a")).spec.node_name)

        await until(is_bound)
        await stop(process, running)
        names = parts.metrics.registry.names()
        assert victims in names
        assert "scheduler_scheduler_cache_size" in names
        assert not {"scheduler_cache_size", "scheduler_inflight_events"} & set(names)
        text = "".join(parts.metrics.registry.texts())
        count = 'scheduler_e2e_scheduling_duration_seconds_count{profile="default-scheduler",'
        assert f'{count}result="scheduled"}} 1\n' in text

    in_world(test)


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        pytest.param(["--compatibility=v1.8"], 'is "v1.8", expected one of v1.17', id="version"),
        pytest.param(["--policy-configmap=p"], "needs --compatibility", id="today"),
        pytest.param(["--compatibility=v1.9", "--config=c"], "newer than v1.9", id="config"),
        pytest.param(
            ["--compatibility=v1.9", "--write-config-to=c"], "newer than v1.9", id="write-config"
        ),
        pytest.param(
            ["--compatibility=v1.9", "--feature-gates=PodPriority=true"],
            "unrecognized feature gate: PodPriority; with v1.9 it can be EnableEquivalence",
            id="gate",
        ),
        pytest.param(
            ["--compatibility=v1.20", "--config=c", "--scheduler-name=x"],
            "--config replaces",
            id="both",
        ),
    ],
)
def test_flags_that_do_not_fit_are_refused(flags: list[str], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        parse_options(flags)


def test_the_lock_has_its_older_names() -> None:
    flags = ["--compatibility=v1.9", "--lock-object-name=l", "--lock-object-namespace=n"]
    options = parse_options(flags)
    assert isinstance(options, SchedulerOptions)
    election = options.config.leader_election
    assert (election.resource_namespace, election.resource_name) == ("n", "l")


def test_a_configuration_changes_the_plugins_of_its_version(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: old, plugins: {score: {disabled: [{name: ImageLocality}]}}}]\n"
    )

    async def test(world: World) -> None:
        process, _ = await world.process("v1.20", f"--config={path}")
        assert isinstance(process, SchedulerProcess)
        (profile,) = process.scheduler.profiles.values()
        assert profile.name == "old"
        names = {plugin.name for plugin in profile.plugins.values()}
        assert {"NodeResourcesLeastAllocated", "NodePreferAvoidPods"} <= names
        assert names.isdisjoint({"ImageLocality", "SchedulingGates", "DynamicResources"})

    in_world(test)


def test_a_gate_of_v1_20_brings_selector_spread_back() -> None:
    async def test(world: World) -> None:
        gate = "--feature-gates=DefaultPodTopologySpread=false"
        process, _ = await world.process("v1.20", gate)
        assert isinstance(process, SchedulerProcess)
        (profile,) = process.scheduler.profiles.values()
        assert "SelectorSpread" in profile.plugins

    in_world(test)


@pytest.mark.parametrize("version", ["v1.17", "v1.20"])
def test_a_provider_can_fill_nodes(version: str) -> None:
    async def test(world: World) -> None:
        flag = "--algorithm-provider=ClusterAutoscalerProvider"
        process, _ = await world.process(version, flag)
        assert isinstance(process, SchedulerProcess)
        (profile,) = process.scheduler.profiles.values()
        assert "NodeResourcesMostAllocated" in profile.plugins
        assert "NodeResourcesLeastAllocated" not in profile.plugins

    in_world(test)
    with pytest.raises(ConfigError, match='provider "No" is not registered'):
        parse_options([f"--compatibility={version}", "--algorithm-provider=No"])
