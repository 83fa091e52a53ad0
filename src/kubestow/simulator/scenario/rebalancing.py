"""Actions that evict pods by a plan of `kubestow rebalance`, or by a policy of the descheduler."""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from kubestow.api.files import Document
from kubestow.apiserver.store import StoredObject
from kubestow.clock import NANOSECONDS
from kubestow.cluster.resources import PODS
from kubestow.errors import ApiError, InputError
from kubestow.plugins.registry import REGISTRY
from kubestow.plural import counted
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.rebalance import RebalanceOptions, read_goal
from kubestow.simulator.rebalance.descheduler.judging import chosen_once
from kubestow.simulator.rebalance.descheduler.policy import DeschedulerPolicy
from kubestow.simulator.rebalance.ground import Ground, standing_ground
from kubestow.simulator.rebalance.plan import PlanStep
from kubestow.simulator.rebalance.planning import Planner
from kubestow.simulator.rebalance.stopping import Stopping
from kubestow.simulator.scenario import actions
from kubestow.simulator.scenario.world import ScenarioWorld
from kubestow.simulator.store_documents import documents_of


def rebalance(world: ScenarioWorld, goal: str, max_moves: int) -> None:
    """Make a plan for the cluster as it is now, and carry it out at the times that it foretells.

    A pod or node that is no longer as the plan has it is left alone.
    """
    options = RebalanceOptions(max_moves=max_moves)
    # Virtual time stands still while it is made: only the number of moves limits it.
    stopping = Stopping(world.clock, options.time_limit_s)
    ground = _ground(world, documents_of(world.store))
    plan = Planner(ground, read_goal(goal), options, stopping).plan()
    before, after = plan.figure_before, plan.figure_after
    world.note("rebalance", goal, f"{counted(plan.moves, 'move')}, {before:g} to {after:g}")
    for step in plan.steps:
        world.later(step.starts_at_s, partial(_carry_out, world, step), is_work=True)


def figures(world: ScenarioWorld, goals: Iterable[str]) -> dict[str, float]:
    """The figure of each goal for the cluster as it is now; without those that have none now.

    That of `defragment` has none while no node has the resource.
    """
    ground = _ground(world, documents_of(world.store))
    found: dict[str, float] = {}
    for text in goals:
        goal = read_goal(text)
        with suppress(InputError):
            goal.start(ground)
            found[text] = round(goal.figure(), 6)
    return found


def _carry_out(world: ScenarioWorld, step: PlanStep) -> None:
    if step.action == "cordon":
        actions.cordon(world, step.node)
    elif step.action == "uncordon":
        actions.uncordon(world, step.node)
    elif step.pod is not None:
        _evict(world, step.pod.namespace, step.pod.name, step.pod.uid)


def run_policy(world: ScenarioWorld, policy: DeschedulerPolicy) -> None:
    """One run of the descheduler. Evictions that a budget refuses are left to the next run."""
    documents = documents_of(world.store)
    now_s = world.clock.now_ns() / NANOSECONDS
    chosen = chosen_once(_ground(world, documents), documents, policy, now_s)
    count = sum(_evict(world, pod.namespace, pod.name, pod.uid) for _, pod in chosen)
    world.note("descheduler", "policy", counted(count, "eviction"))


def _evict(world: ScenarioWorld, namespace: str, name: str, uid: str) -> bool:
    """Evict a pod if it is still there and a budget allows it; whether it was."""
    pod = world.store.find(PODS, namespace, name)
    if pod is None or pod.uid != uid or _is_ending(pod):
        return False
    try:
        world.evict(pod)
    except ApiError:
        return False
    return True


def _is_ending(pod: StoredObject) -> bool:
    return "deletionTimestamp" in pod.metadata


def _ground(world: ScenarioWorld, documents: list[Document]) -> Ground:
    config, registry, gates = world.scheduler
    setup = PlacingSetup(config, REGISTRY if registry is None else registry, gates)
    return standing_ground(documents, setup, world.clock)
