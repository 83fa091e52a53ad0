"""Carries a plan out in virtual time, with kubelets and all controllers, and compares.

Evictions go through the eviction of the API server, which asks the disruption budgets. What the
budgets count is read at every change. After each step the goal's figure is counted on what the
server has then, and compared with what the plan promised for that step.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from kubestow.api.files import Document
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, first_condition, is_terminal
from kubestow.apiserver.eviction import TOO_MANY_REQUESTS, evict
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.documents import value_at, whole_seconds
from kubestow.cluster.resources import NODES, PODS
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import ApiError
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.controllers.pods import DELETION_COST
from kubestow.simulator.manifests import READ_KINDS
from kubestow.simulator.placement_tests.history import History
from kubestow.simulator.rebalance.carrying_out import BUDGET_PATIENCE_S
from kubestow.simulator.rebalance.goals.reading import read_goal
from kubestow.simulator.rebalance.ground import standing_ground
from kubestow.simulator.rebalance.plan import PlanStep, PlanUnit, RebalancePlan, ScaledOwner
from kubestow.simulator.rebalance.proving import opened
from kubestow.simulator.rebalance.surging import LOWEST_COST
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.scenario.stages import PlayedStage
from kubestow.simulator.virtual_time import run_in_virtual_time

START_DELAY_S: Final = 3.0
_STEP_S: Final = 0.5
_PATIENCE_S: Final = 300.0
# Figures of a plan are rounded.
_ROUNDING: Final = 1e-6


class RunSurprise(NamedTuple):
    """Where the run differs from the plan."""

    step: int
    text: str


class VirtualRun(NamedTuple):
    surprises: Sequence[RunSurprise]
    # Where all pods are in the end: how many of each controller are on each node.
    placements: dict[tuple[str, str], int]


def carry_out(
    documents: Sequence[Document], plan: RebalancePlan, gates: FeatureGates = DEFAULT_GATES
) -> VirtualRun:
    """Do every step of a plan, each after the one before has ended; those of a gang together."""
    return run_in_virtual_time(_Run(documents, plan, gates).run())


class _Run:
    def __init__(
        self, documents: Sequence[Document], plan: RebalancePlan, gates: FeatureGates
    ) -> None:
        self._documents = documents
        self._gates = gates
        self._plan = plan
        self._surprises: list[RunSurprise] = []
        self._closed: set[str] = set()

    async def run(self) -> VirtualRun:
        scenario = Scenario(
            name="plan",
            until_s=math.inf,
            documents=self._documents,
            start_delay_s=START_DELAY_S,
            stop_s=math.inf,
            stops_repeating=True,
        )
        simulation = Simulation(scenario, SchedulerConfig(), gates=self._gates)
        stage, self._clock = simulation.stage, simulation.clock
        assert isinstance(stage, PlayedStage), stage
        history = History(stage.store, simulation.clock)
        async with simulation.running():
            await asyncio.sleep(_STEP_S)
            for unit in self._plan.units:
                await self._do(stage.store, unit)
                self._compare_figure(stage.store, unit[-1])
            for key, record in history.budgets.items():
                if record.violated_s is not None:
                    self._surprises.append(RunSurprise(0, f"budget {key} was violated"))
        return VirtualRun(self._surprises, _placements(stage.store))

    async def _do(self, store: MemoryCluster, unit: PlanUnit) -> None:
        first = unit[0]
        if first.pod is None:
            closed = first.action == "cordon"
            store.patch(NODES, "", first.node, {"spec": {"unschedulable": closed}}, "merge")
            (self._closed.add if closed else self._closed.discard)(first.node)
            return
        owners = {step.pod.owner for step in unit if step.pod is not None}
        before = {uid for owner in owners for uid, _ in _pods_of(store, owner)}
        if first.scaled is not None:
            if not await self._brought_up(store, first, first.scaled):
                return
        else:
            for step in unit:
                if not await self._evicted(store, step):
                    return
        nodes = await self._replaced(store, unit, before)
        foretold = sorted(step.to_node for step in unit)
        if nodes != foretold:
            where = ", ".join(nodes)
            self._note(first, f"the replacement is on {where}, foretold was {', '.join(foretold)}")

    async def _brought_up(self, store: MemoryCluster, step: PlanStep, scaled: ScaledOwner) -> bool:
        """Have one pod more; once all are ready, one less, which is the one with the lowest cost.

        The number of ready pods is compared at every step of the wait.
        """
        assert step.pod is not None
        kind = store.resources.named(f"{scaled.kind.lower()}s.apps")
        key = (step.pod.namespace, scaled.name)
        if value_at(store.get(kind, *key).document, "spec", "replicas") != scaled.replicas:
            self._note(step, f"{scaled.kind} {scaled.name} has other replicas than planned")
            return False
        cost = {"metadata": {"annotations": {DELETION_COST: str(LOWEST_COST)}}}
        store.patch(PODS, step.pod.namespace, step.pod.name, cost, "merge")
        store.patch(kind, *key, {"spec": {"replicas": scaled.replicas + 1}}, "merge")
        waited_s = 0.0
        while waited_s < _PATIENCE_S:
            await asyncio.sleep(_STEP_S)
            waited_s += _STEP_S
            ready = [pod for _, pod in _pods_of(store, step.pod.owner) if _is_ready(pod)]
            if len(ready) < scaled.replicas:
                self._note(step, f"only {len(ready)} of {scaled.replicas} pods are ready")
                return False
            if len(ready) == scaled.replicas + 1:
                store.patch(kind, *key, {"spec": {"replicas": scaled.replicas}}, "merge")
                return True
        self._note(step, "no pod was brought up")
        return False

    async def _evicted(self, store: MemoryCluster, step: PlanStep) -> bool:
        """Whether the pod was evicted; a budget is asked again for as long as `--run` asks."""
        assert step.pod is not None
        stored = store.find(PODS, step.pod.namespace, step.pod.name)
        if stored is None or stored.uid != step.pod.uid:
            self._note(step, "the pod is not there")
            return False
        clock = self._clock
        end_s = clock.monotonic_s() + BUDGET_PATIENCE_S
        while True:
            try:
                evict(store, stored, now=whole_seconds(clock.now_ns()), uid=stored.uid)
                return True
            except ApiError as error:
                if error.code != TOO_MANY_REQUESTS or clock.monotonic_s() >= end_s:
                    self._note(step, f"the eviction was refused: {error}")
                    return False
            await asyncio.sleep(_STEP_S)

    async def _replaced(self, store: MemoryCluster, unit: PlanUnit, before: set[str]) -> list[str]:
        """The nodes of the replacements, once they are ready and the pods are gone."""
        evicted = [step.pod for step in unit if step.pod is not None]
        owners, gone = {pod.owner for pod in evicted}, {pod.uid for pod in evicted}
        waited_s = 0.0
        while waited_s < _PATIENCE_S:
            await asyncio.sleep(_STEP_S)
            waited_s += _STEP_S
            pods = dict(pair for owner in owners for pair in _pods_of(store, owner))
            new = [pod for uid, pod in pods.items() if uid not in before]
            if len(new) >= len(unit) and all(map(_is_ready, new)) and gone.isdisjoint(pods):
                return sorted(pod.spec.node_name for pod in new)
        return []

    def _compare_figure(self, store: MemoryCluster, step: PlanStep) -> None:
        """Figures are those of nodes that are as open as before the plan."""
        goal = read_goal(self._plan.goal)
        setup = PlacingSetup(gates=self._gates)
        goal.start(standing_ground(opened(_read(store), self._closed), setup))
        figure = goal.figure()
        if abs(figure - step.figure_after) > _ROUNDING:
            self._note(step, f"the figure is {figure:g}, promised was {step.figure_after:g}")

    def _note(self, step: PlanStep, text: str) -> None:
        self._surprises.append(RunSurprise(step.number, text))


def _read(store: MemoryCluster) -> list[Document]:
    return [
        Document(stored.document, f"{resource.qualified_name} {stored.name}")
        for resource in store.resources
        if resource.kind in READ_KINDS
        for stored in store.objects_of(resource)
    ]


def _pods_of(store: MemoryCluster, owner: str) -> list[tuple[str, Pod]]:
    """The pods of a controller that have not ended, by UID."""
    found: list[tuple[str, Pod]] = []
    for stored in store.objects_of(PODS):
        pod = stored.typed
        assert isinstance(pod, Pod), pod
        reference = controller_of(pod)
        if reference is not None and f"{reference.kind}/{reference.name}" == owner:
            found += [] if is_terminal(pod) else [(stored.uid, pod)]
    return found


def _is_ready(pod: Pod) -> bool:
    ready = first_condition(pod.status.conditions, "Ready")
    return ready is not None and ready.status == "True"


def _placements(store: MemoryCluster) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for stored in store.objects_of(PODS):
        pod = stored.typed
        assert isinstance(pod, Pod), pod
        owner = controller_of(pod)
        key = ("" if owner is None else owner.name, pod.spec.node_name)
        counts[key] = counts.get(key, 0) + 1
    return counts
