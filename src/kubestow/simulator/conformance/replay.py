"""Replays a recorded scenario pod by pod (the sequence is described with the recordings).

Every attempt starts from the state of the recording, not from our own last choice, so that one
difference does not affect later pods.
"""

from datetime import datetime

import msgspec

from kubestow.api.meta import Condition, JsonObject
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.clock import Clock
from kubestow.editions import CORE
from kubestow.editions.edition import Edition
from kubestow.engine.decision import Decision
from kubestow.engine.profiles import Registry
from kubestow.framework.runner import run_reserve
from kubestow.framework.status import Status
from kubestow.simulator.conformance.compare import compare_attempt, compare_reserve, compare_world
from kubestow.simulator.conformance.devices import FAMILY as DEVICES_FAMILY
from kubestow.simulator.conformance.devices import (
    bind_devices,
    compare_devices,
    compare_given_up,
    compare_reserved_devices,
    take_recorded_devices,
)
from kubestow.simulator.conformance.report import Report
from kubestow.simulator.conformance.sampled import compare_sampled_attempt
from kubestow.simulator.conformance.world import World

SAMPLING = "sampling"


def replay_scenario(
    scenario: JsonObject,
    report: Report,
    *,
    clock: Clock,
    edition: Edition = CORE,
    registry: Registry | None = None,
) -> None:
    """Replay one scenario of single decisions and count what differs. `registry` has other plugins
    than those of the edition."""
    family, name = scenario["family"], scenario["name"]
    world = World(scenario, clock=clock, edition=edition, registry=registry)
    world.snapshot.refresh(world.cache)
    compare_world(report.comparer(family, name), scenario, world)
    for expected in scenario["expected"]:
        comparer = report.comparer(family, name, expected["pod"], expected["attempt"])
        comparer.count_pod()
        pod = world.incoming[expected["pod"]]
        world.snapshot.refresh(world.cache)
        world.decider.next_start_index = expected["startNodeIndex"]
        decision = world.decider.decide(world.profile_of(pod), pod)
        if family == SAMPLING:
            compare_sampled_attempt(comparer, expected, world, decision)
        else:
            compare_attempt(comparer, expected, world, decision)
        if family == DEVICES_FAMILY:
            compare_devices(comparer, expected, world, decision)
            compare_given_up(comparer, expected, world, decision)
        world.run_spawned()
        status = advance(scenario, expected, world, decision)
        if family != SAMPLING:
            compare_reserve(comparer, expected, world, decision, status)
        if family == DEVICES_FAMILY:
            compare_reserved_devices(comparer, expected, decision)
            take_recorded_devices(expected, world, decision)
            bind_devices(comparer, expected, world, decision)


def advance(
    scenario: JsonObject, expected: JsonObject, world: World, decision: Decision
) -> Status | None:
    """Bring the cluster into the state in which the next pod was tried.

    Returns the status of Reserve where the pod was placed.
    """
    pod = world.incoming[expected["pod"]]
    result = expected.get("result")
    post_filter: JsonObject = expected.get("postFilter") or {}
    if result is not None:
        return _place(world, pod, result["node"], decision)
    if post_filter.get("nominatedNode"):
        _preempt(scenario, world, pod, post_filter)
    elif "error" in expected or post_filter.get("nominatedNode") == "":
        _nominate(world, pod, "")
    else:
        # The nomination stays; handling the failure adds it again, behind the others.
        world.nominator.add(pod.pod)
    return None


def _place(world: World, pod: PodInfo, node_name: str, decision: Decision) -> Status | None:
    assumed = world.assume(pod, node_name)
    return run_reserve(world.profile_of(pod), decision.state, assumed, node_name)


def _preempt(scenario: JsonObject, world: World, pod: PodInfo, post_filter: JsonObject) -> None:
    node_name = post_filter["nominatedNode"]
    for key in post_filter.get("clearedNominations", ()):
        _nominate(world, world.incoming[key], "")
    _nominate(world, pod, node_name)
    for key in post_filter.get("victims", ()):
        _evict(world, key, node_name, removed=scenario.get("afterPreemption", "remove") == "remove")


def _nominate(world: World, pod: PodInfo, node_name: str) -> None:
    """Set or clear the pod's nominated node, in its status and with the nominator."""
    world.nominator.delete(pod.pod)
    status = msgspec.structs.replace(pod.pod.status, nominated_node_name=node_name)
    changed = msgspec.structs.replace(pod.pod, status=status)
    world.replace_incoming(changed)
    if node_name:
        world.nominator.add(changed)


def _evict(world: World, key: str, node_name: str, *, removed: bool) -> None:
    victim = next(pod.pod for pod in world.cache.node(node_name).pods if pod.key == key)
    if removed:
        world.remove_running(victim)
    elif victim.metadata.deletion_timestamp is None:
        world.replace_running(victim, _terminating(victim, world.now))


def _terminating(pod: Pod, now: datetime) -> Pod:
    condition = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=now),
        status=msgspec.structs.replace(pod.status, conditions=(*pod.status.conditions, condition)),
    )
