"""The pod groups of a plan, in a share of the seeds (spec 11).

They come from random numbers of their own, so that the rest of a plan does not depend on them.
"""

from typing import Final

import numpy as np

from tools.faults.planned import PlannedAction, PlannedGroup, PlannedPod

SHARE: Final = 0.25
GANGS: Final = ("GenericWorkload", "GangScheduling")
TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"
PREEMPTION: Final = "WorkloadAwarePreemption"
LATEST_S: Final = 90.0


def make_groups(rng: np.random.Generator) -> tuple[tuple[str, ...], list[PlannedAction]]:
    """The feature gates of a seed, and what happens to its groups; nothing in most seeds."""
    if rng.random() >= SHARE:
        return (), []
    gates = GANGS
    if rng.random() < 0.3:
        gates = (*gates, TOPOLOGY)
    if rng.random() < 0.4:
        gates = (*gates, PREEMPTION)
    actions: list[PlannedAction] = []
    for number in range(int(rng.integers(3, 8))):
        actions += _group(rng, f"gang-{number}")
    return gates, actions


def _group(rng: np.random.Generator, name: str) -> list[PlannedAction]:
    at_s = LATEST_S * float(rng.random())
    size = int(rng.integers(2, 10))
    priority = int(rng.choice([0, 0, 10, 100]))
    group = PlannedGroup(
        min_count=None if rng.random() < 0.15 else size - int(rng.random() < 0.2),
        topology_key="topology.kubernetes.io/zone" if rng.random() < 0.3 else "",
        priority=priority,
        is_evicted_whole=bool(rng.random() < 0.3),
    )
    pod = PlannedPod(
        cpu_milli=100 * int(rng.integers(1, 9)),
        priority=priority,
        app="gang",
        grace_s=int(rng.choice([0, 0, 2])),
        prepare_s=round(2.0 * float(rng.random()), 1) if rng.random() < 0.3 else 0.0,
        group=name,
    )
    # The object comes first, or while its members wait for it.
    late_s = 10.0 * float(rng.random()) if rng.random() < 0.3 else 0.0
    actions = [_action(at_s + late_s, "add_group", name, group)]
    for number in range(size):
        member = f"{name}-{number}"
        member_s = at_s if rng.random() < 0.7 else at_s + 5.0 * float(rng.random())
        actions.append(_action(member_s, "add_pod", member, pod))
        if rng.random() < 0.04:
            # Its controller replaces it.
            deleted_s = member_s + 20.0 * float(rng.random())
            actions.append(_action(deleted_s, "delete_pod", member))
            actions.append(_action(deleted_s + 3.0, "add_pod", f"{member}-again", pod))
    return actions


def _action(
    at_s: float, what: str, name: str, value: PlannedPod | PlannedGroup | None = None
) -> PlannedAction:
    return PlannedAction(round(at_s, 3), what, name, value)
