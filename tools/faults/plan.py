"""What happens in a run, and when: made from a seed, so that it can be repeated and shortened.

Every action is complete by itself and does nothing if what it names is not there. So any part of a
plan can be left out, and the rest is still a plan.
"""

from typing import Final, NamedTuple

import msgspec
import numpy as np

from kubestow.editions import edition_named
from kubestow.editions.edition import Version
from tools.faults.fault import (
    EXTENDER_FAULTS,
    PLUGIN_FAULTS,
    PROVISION_FAULTS,
    REQUEST_FAULTS,
    WATCH_FAULTS,
    WIRE_FAULTS,
    Fault,
)
from tools.faults.moments import Moment
from tools.faults.plan_groups import make_groups
from tools.faults.planned import (
    PlannedAction,
    PlannedNode,
    PlannedPod,
    PlannedValue,
    Setup,
)

DURATION_S: Final = 120.0
REPLICAS: Final = ("a", "b", "c")
# The target of faults that do not belong to a replica.
CLUSTER: Final = "cluster"
# The target of faults that all replicas have.
EVERY: Final = "every"
# Classes of volumes: bound when a pod is placed, and at once.
LATE, AT_ONCE = "late", "at-once"
_APPS: Final = ("web", "db", "batch")
_ZONES: Final = ("z1", "z2", "z3")
_STRIKES: Final = ("delete_pod", "delete_node", "bind_elsewhere", "kill", "pause", "cut_off")


class Plan(NamedTuple):
    seed: int
    replicas: tuple[str, ...]
    actions: tuple[PlannedAction, ...]
    setup: Setup = Setup()

    def without(self, left_out: set[int]) -> "Plan":
        """A copy of the plan without these actions, by their position."""
        kept = (action for index, action in enumerate(self.actions) if index not in left_out)
        return self._replace(actions=tuple(kept))


def make_plan(seed: int, edition: Version = Version.V1_36) -> Plan:
    """The plan of a seed: the same actions in every edition."""
    rng = np.random.default_rng(seed)
    maker = _Maker(rng)
    replicas = REPLICAS[: 1 + int(rng.integers(3))]
    setup = Setup(
        has_plugin=bool(rng.random() < 0.6),
        extender=("", "", "", "ignorable", "required")[rng.integers(5)],
        uses_wire=bool(rng.random() < 0.2),
    )
    maker.cluster()
    maker.disturbances(replicas, setup)
    maker.strikes(setup)
    gates, groups = make_groups(np.random.default_rng([seed, 2]))
    known = edition_named(edition).gates
    gates = tuple(gate for gate in gates if gate in known)
    setup = msgspec.structs.replace(setup, gates=gates, edition=edition)
    maker.actions += groups
    actions = tuple(sorted(maker.actions, key=lambda action: action.at_s))
    return Plan(seed, replicas, actions, setup)


class _Maker:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.actions: list[PlannedAction] = []

    # --- what users and machines do ---

    def cluster(self) -> None:
        rng = self._rng
        nodes = int(rng.integers(3, 12))
        for number in range(nodes):
            self._add(0.0, "add_node", f"node-{number}", self._node())
        for number in range(int(rng.integers(25, 90))):
            # Half of the pods come in bursts.
            at_s = self._time() if rng.random() < 0.5 else 10.0 * float(rng.integers(1, 10))
            name = f"pod-{number}"
            shape = self._pod()
            self._add(at_s, "add_pod", name, shape)
            if shape.is_gated:
                self._add(at_s + 20.0 * float(rng.random()), "ungate_pod", name)
            if rng.random() < 0.25:
                self._add(at_s + 30.0 * float(rng.random()), "delete_pod", name)
            if rng.random() < 0.06:
                self._add(at_s + 15.0 * float(rng.random()), "add_pod", name, self._pod())
            if rng.random() < 0.05:
                node = f"node-{rng.integers(nodes)}"
                self._add(at_s + 5.0 * float(rng.random()), "bind_elsewhere", name, node)
        for number in range(int(rng.integers(0, 4))):
            self._add(self._time(), "add_node", f"late-{number}", self._node())
        for _ in range(int(rng.integers(0, 4))):
            name = f"node-{rng.integers(nodes)}"
            self._add(self._time(), "delete_node", name)
            if rng.random() < 0.7:
                self._add(self._time(), "add_node", name, self._node())
        for _ in range(int(rng.integers(0, 5))):
            self._add(self._time(), "cordon_node", f"node-{rng.integers(nodes)}")
            self._add(self._time(), "uncordon_node", f"node-{rng.integers(nodes)}")

    def _node(self) -> PlannedNode:
        rng = self._rng
        return PlannedNode(
            cpu_milli=1000 * int(rng.integers(2, 6)),
            pods=int(rng.integers(4, 20)),
            zone=_ZONES[rng.integers(len(_ZONES))],
        )

    def _pod(self) -> PlannedPod:
        rng = self._rng
        return PlannedPod(
            cpu_milli=100 * int(rng.integers(1, 15)),
            priority=int(rng.choice([0, 0, 0, 10, 100])),
            app=_APPS[rng.integers(len(_APPS))],
            zone=_ZONES[rng.integers(len(_ZONES))] if rng.random() < 0.15 else "",
            is_apart=bool(rng.random() < 0.1),
            is_spread=bool(rng.random() < 0.15),
            is_gated=bool(rng.random() < 0.08),
            volume_class=str(rng.choice([LATE, LATE, AT_ONCE])) if rng.random() < 0.18 else "",
            grace_s=int(rng.choice([0, 0, 2, 10])),
            hold_s=round(4.0 * float(rng.random()), 1) if rng.random() < 0.2 else 0.0,
            prepare_s=round(2.0 * float(rng.random()), 1) if rng.random() < 0.2 else 0.0,
        )

    # --- what goes wrong ---

    def disturbances(self, replicas: tuple[str, ...], setup: Setup) -> None:
        rng = self._rng
        requests = REQUEST_FAULTS
        if not setup.uses_wire:
            # What a client does with the header is in its HTTP part.
            requests = tuple(fault for fault in requests if fault is not Fault.RETRY_AFTER)
        groups = [requests, requests, WATCH_FAULTS, PROVISION_FAULTS]
        if setup.uses_wire:
            groups.append(WIRE_FAULTS)
        if setup.has_plugin:
            groups.append(PLUGIN_FAULTS)
        if setup.extender:
            groups.append(EXTENDER_FAULTS)
        for _ in range(int(rng.integers(5, 15))):
            group = groups[rng.integers(len(groups))]
            # The trouble is on the way to one replica, or at the server.
            replica = replicas[rng.integers(len(replicas))] if rng.random() < 0.6 else EVERY
            self._add(
                self._time(),
                "disturb",
                CLUSTER if group is PROVISION_FAULTS else replica,
                group[rng.integers(len(group))],
                seconds=2.0 + 30.0 * float(rng.random()),
                rate=float(rng.choice([0.05, 0.2, 0.5])),
            )
        for what, most, longest_s in (("kill", 3, 0.0), ("pause", 3, 25.0), ("cut_off", 3, 30.0)):
            for _ in range(int(rng.integers(0, most))):
                name = replicas[rng.integers(len(replicas))]
                seconds = 1.0 + longest_s * float(rng.random()) if longest_s else 0.0
                self._add(self._time(), what, name, seconds=seconds)
        if rng.random() < 0.3:
            seconds = float(rng.choice([-3600.0, -5.0, 5.0, 3600.0]))
            self._add(self._time(), "move_clock", replicas[rng.integers(len(replicas))], seconds)

    def strikes(self, setup: Setup) -> None:
        """What happens exactly when a pod is at a certain step."""
        rng = self._rng
        # Only the plugin reports the other moments.
        moments = list(Moment) if setup.has_plugin else [Moment.BIND]
        for _ in range(int(rng.integers(0, 6))):
            what = _STRIKES[rng.integers(len(_STRIKES))]
            delay_s = 0.006 * float(rng.random()) if rng.random() < 0.7 else 0.0
            moment = moments[rng.integers(len(moments))]
            self._add(self._time(), "strike", moment, what, seconds=delay_s)

    def _time(self) -> float:
        return round(float(self._rng.random()) * DURATION_S, 3)

    def _add(
        self,
        at_s: float,
        what: str,
        name: str,
        value: PlannedValue = None,
        *,
        seconds: float = 0.0,
        rate: float = 0.0,
    ) -> None:
        self.actions.append(
            PlannedAction(round(at_s, 3), what, name, value, round(seconds, 3), rate)
        )
