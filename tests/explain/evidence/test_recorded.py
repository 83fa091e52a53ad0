"""Evidence is consistent with the verdicts of kube-scheduler v1.36 in all recordings.

For each rejection there are facts, they are true when they are read again from the objects
(`slow_reading`), and each of them has something that is missing or in the way. A sixteenth of the
scenarios of each file is taken, with HYPOTHESIS_PROFILE=thorough all of them.
"""

import asyncio
import os
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from tests.explain.evidence.slow_reading import SlowReading

from kubestow.api.meta import JsonObject
from kubestow.explain.attempt import explain_attempt
from kubestow.explain.evidence.context import EvidenceContext
from kubestow.explain.evidence.facts import Fact
from kubestow.explain.evidence.registry import FAMILIES, facts_of
from kubestow.explain.explanation import Explanation, ReasonGroup
from kubestow.explain.with_evidence import with_evidence
from kubestow.simulator.conformance import Recording, Report, load_recording
from kubestow.simulator.conformance.devices import (
    bind_devices,
    compare_given_up,
    take_recorded_devices,
)
from kubestow.simulator.conformance.replay import advance
from kubestow.simulator.conformance.world import World
from kubestow.simulator.virtual_time import VirtualClock, VirtualTimeLoop

RECORDINGS = Path(__file__).parents[3] / "conformance"
DECISIONS = sorted(RECORDINGS.glob("*.json.gz"))
STEP = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 16
# Nodes of one attempt that are read again, of each reason.
NODES_READ = 4


def family(path: Path) -> str:
    return path.name.partition(".")[0]


def sampled(path: Path) -> Recording:
    recording = load_recording(path)
    return msgspec.structs.replace(recording, scenarios=recording.scenarios[STEP // 2 :: STEP])


def check_all(recording: Recording) -> Counter[str]:
    """How many rejections were checked, by code."""
    checked: Counter[str] = Counter()
    loop = VirtualTimeLoop()
    asyncio.set_event_loop(loop)
    try:
        for scenario in recording.scenarios:
            check_scenario(scenario, VirtualClock(loop), checked)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return checked


def check_scenario(scenario: JsonObject, clock: VirtualClock, checked: Counter[str]) -> None:
    world = World(scenario, clock=clock)
    comparer = Report().comparer(scenario["family"], scenario["name"])
    has_devices = scenario["family"] == "dra"
    for expected in scenario["expected"]:
        pod = world.incoming[expected["pod"]]
        world.snapshot.refresh(world.cache)
        world.decider.next_start_index = expected["startNodeIndex"]
        decision = world.decider.decide(world.profile_of(pod), pod)
        explanation = explain_attempt(decision.freeze())
        context = EvidenceContext(
            pod,
            world.profile_of(pod),
            world.snapshot,
            world.objects,
            nominated=world.nominator.nominated_pods_for_node,
        )
        where = f"{scenario['name']} {expected['pod']} {expected['attempt']}"
        check_attempt(context, explanation, where, checked)
        if has_devices:
            compare_given_up(comparer, expected, world, decision)
        world.run_spawned()
        advance(scenario, expected, world, decision)
        if has_devices:
            take_recorded_devices(expected, world, decision)
            bind_devices(comparer, expected, world, decision)


def check_attempt(
    context: EvidenceContext, explanation: Explanation, where: str, checked: Counter[str]
) -> None:
    for group in with_evidence(context, explanation).reasons:
        place = f"{where}: {group.reason}"
        if group.reason_code not in FAMILIES:
            assert group.reason_code in ("Other", "NoNodes", "PodAffinityInvalid"), place
            continue
        evidence = group.evidence
        assert evidence, f"{place}: no evidence"
        assert evidence.text, place
        assert evidence.examined <= group.count, place
        for each in evidence.groups:
            assert each.count >= len(each.nodes) > 0, place
            for name in each.nodes[:NODES_READ]:
                check_node(context, name, group, each.facts, place)
        checked[group.reason_code] += group.count


def check_node(
    context: EvidenceContext, name: str, group: ReasonGroup, facts: tuple[Fact, ...], place: str
) -> None:
    row = context.snapshot.row_of(name)
    # What is said of many nodes at once holds for each of them.
    assert facts_of(context, row, group.reason, group.reason_code) == facts, f"{place} {name}"
    assert facts, f"{place} {name}: no facts"
    slow = SlowReading(context.pod, context.snapshot, context.objects, context.ahead_on(name))
    try:
        slow.check(name, facts)
    except AssertionError as error:
        raise AssertionError(f"{place} {name}: {facts}") from error


@pytest.mark.parametrize("path", DECISIONS, ids=family)
def test_facts_are_true_and_reject(path: Path) -> None:
    checked = check_all(sampled(path))
    # Where only images differ, every node fits.
    assert checked or family(path) == "images"
