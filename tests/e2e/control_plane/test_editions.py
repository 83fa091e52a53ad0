"""Older schedulers as services against a real kube-apiserver.

Pods exist before the scheduler starts, so that it tries them in the order of a list, as a
simulation of the same documents does.
"""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, first_condition
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.shared.policy import provider_policy
from kubestow.editions.v1_9.engine.algorithm import build_algorithm
from kubestow.editions.v1_9.simulator.embedded import cluster_maker
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.stages import placing
from tools.edition_workload import older_nodes, older_pods
from tools.free_port import free_port
from tools.scheduler_process import ask_scheduler

VERSIONS = ("v1.9", "v1.17", "v1.20")
NO_ELECTION = "--leader-elect=false"
QUICK_ELECTION = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)


def simulated(version: str, documents: list[JsonObject]) -> tuple[dict[str, str], set[str]]:
    """Where a simulation puts the pods, and those that had several best nodes."""
    tied: set[str] = set()

    def note(decision: Any) -> None:
        scores = decision.scores
        if decision.is_scheduled and scores is not None:
            total = scores.total
            if (total == total.max()).sum() > 1:
                tied.add(decision.pod.name)

    scenario = placing(documents)
    if version == "v1.9":
        algorithm = build_algorithm(provider_policy("DefaultProvider"))
        make_cluster = cluster_maker(algorithm)
        run = run_scenario(scenario, SchedulerConfig(), make_cluster=make_cluster)
    else:
        rules = rules_of(edition_named(version))
        options = parse_options([f"--compatibility={version}"])
        assert isinstance(options, SchedulerOptions)
        run = run_scenario(
            scenario, options.config, rules.registry, factory=rules.factory, on_decision=note
        )
    return {pod.name: pod.node for pod in run.pods}, tied


def message_of(pod: Pod) -> str:
    condition = first_condition(pod.status.conditions, "PodScheduled")
    return condition.message if condition is not None else ""


async def placements(bench: Any, names: set[str]) -> dict[str, str]:
    """Where the pods are, as soon as each is placed or has a reason why not."""
    while True:
        pods = {pod.metadata.name: pod for pod in await bench.client.list(Pod)}
        if all(pods[name].spec.node_name or message_of(pods[name]) for name in names):
            return {name: pods[name].spec.node_name for name in names}
        await asyncio.sleep(0.2)


@pytest.mark.parametrize("version", VERSIONS)
def test_200_mixed_pods_are_placed_as_in_a_simulation(version: str, run: Any) -> None:
    documents = [*older_nodes(), *older_pods(prefers_nodes=version != "v1.9")]
    expected, tied = simulated(version, documents)
    assert not tied  # Among several best nodes the choice is random.

    async def main(bench: Any) -> None:
        await bench.create(*documents)
        async with bench.scheduler(NO_ELECTION, f"--compatibility={version}") as scheduler:
            assert await placements(bench, set(expected)) == expected
            await scheduler.end()

    run(main)
    assert len(expected) == 200
    assert 0 < sum(not node for node in expected.values()) < 20


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pod_is_tried_again(version: str, run: Any) -> None:
    (node, *_), (pod, *_) = older_nodes(), older_pods(1)
    pod["spec"]["nodeSelector"] = {"disk": "tape"}

    async def main(bench: Any) -> None:
        await bench.create(node, pod)
        async with bench.scheduler(NO_ELECTION, f"--compatibility={version}"):
            waiting = await bench.pod("pod-000", lambda pod: bool(message_of(pod)))
            reason = {
                "v1.9": "1 MatchNodeSelector",
                "v1.17": "1 node(s) didn't match node selector",
                "v1.20": "1 node(s) didn't match Pod's node affinity",
            }[version]
            assert message_of(waiting) == f"0/1 nodes are available: {reason}."
            path = "/api/v1/nodes/node-00"
            await bench.send("PATCH", path, {"metadata": {"labels": {"disk": "tape"}}})
            assert await bench.bound("pod-000") == "node-00"

    run(main)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_standby_takes_over(version: str, run: Any) -> None:
    nodes, pods = older_nodes(), older_pods(2)

    async def main(bench: Any) -> None:
        await bench.create(*nodes, pods[0])
        flags = (*QUICK_ELECTION, f"--compatibility={version}")
        async with bench.scheduler(*flags) as first:
            await bench.bound("pod-000")
            async with bench.scheduler(*flags) as second:
                await second.wait_for_line("attempting to acquire leader lease|Attempting")
                first.process.send_signal(signal.SIGKILL)
                await bench.create(pods[1])
                await bench.bound("pod-001")
                assert await second.end() == 0

    run(main, 90)


POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [{"name": "PodFitsResources"}],
    "priorities": [{"name": "MostRequestedPriority", "weight": 1}],
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_policy_decides(version: str, run: Any, tmp_path: Path) -> None:
    """It fills nodes, though their selector does not match: that rule is not in the Policy."""
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(POLICY))
    pods = older_pods(3)
    for pod in pods:
        pod["spec"]["nodeSelector"] = {"disk": "tape"}
        # Large enough to make a difference among ten scores.
        requests = {"cpu": "2", "memory": "4Gi"}
        pod["spec"]["containers"][0]["resources"] = {"requests": requests}

    async def main(bench: Any) -> None:
        await bench.create(*older_nodes()[:3], *pods)
        flags = (f"--compatibility={version}", f"--policy-config-file={path}")
        async with bench.scheduler(NO_ELECTION, *flags):
            found = {await bench.bound(f"pod-00{number}") for number in range(3)}
            assert len(found) == 1

    run(main)


def test_the_policy_of_a_config_map_ends_the_process_when_it_changes(run: Any) -> None:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "scheduler-policy", "namespace": "kube-system"},
        "data": {"policy.cfg": json.dumps(POLICY)},
    }
    path = "/api/v1/namespaces/kube-system/configmaps/scheduler-policy"

    async def main(bench: Any) -> None:
        await bench.create(*older_nodes()[:3], *older_pods(1), config_map)
        flags = ("--compatibility=v1.9", "--policy-configmap=scheduler-policy")
        # The rights of the usual account do not include a ConfigMap.
        async with bench.scheduler(NO_ELECTION, *flags) as refused:
            assert await refused.exit_code() == 1
            assert "needs the right to get and watch it" in refused.log
        try:
            async with bench.scheduler(NO_ELECTION, *flags, user="admin") as scheduler:
                await bench.bound("pod-000")
                changed = {"data": {"policy.cfg": json.dumps({**POLICY, "priorities": []})}}
                await bench.send("PATCH", path, changed)
                assert await scheduler.exit_code() == 1
                assert "policy config map kube-system/scheduler-policy has changed" in scheduler.log
        finally:
            await bench.send("DELETE", path)

    run(main)


def test_v1_9_serves_its_metrics_and_its_rules(run: Any) -> None:
    async def main(bench: Any) -> None:
        await bench.create(*older_nodes()[:3], *older_pods(1))
        kubeconfig = bench.plane.kubeconfig("admin")
        flags = (
            "--compatibility=v1.9",
            "--feature-gates=EnableEquivalenceClassCache=true",
            "--secure-port=0",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
        )
        port = f"--secure-port={free_port()}"
        async with bench.scheduler(NO_ELECTION, *flags, port) as scheduler:
            await bench.bound("pod-000")
            address = await scheduler.address()
            token = bench.plane.tokens["admin"]
            assert await ask_scheduler(address, "/healthz") == (200, "ok")
            status, text = await ask_scheduler(address, "/metrics", token=token)
            assert status == 200
            assert "scheduler_e2e_scheduling_latency_microseconds_count 1\n" in text
            status, text = await ask_scheduler(address, "/configz", token=token)
            shown = json.loads(text)["componentconfig"]
            assert shown["featureGates"] == {"EnableEquivalenceClassCache": True}
            assert shown["priorities"]["NodePreferAvoidPodsPriority"] == 10000

    run(main)
