"""Checks plans of random clusters, and prints a line for each goal."""

import argparse
import sys
from collections import Counter
from typing import Final, NamedTuple

from kubestow.config.feature_gates import DEFAULT_GATES, parse_gates
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.rebalance import RebalanceOptions, RebalancePlan, make_plan, read_goal
from kubestow.simulator.rebalance.goals.goal import TOLERANCE
from tools.rebalance.brute_force import DEPTH, best_figure
from tools.rebalance.clusters import GOALS, RandomCluster
from tools.rebalance.virtual_run import carry_out

GANG_GATES: Final = parse_gates(["GenericWorkload=true", "GangScheduling=true"])


class CheckedPlan(NamedTuple):
    """What one plan came to."""

    plan: RebalancePlan
    problems: list[str]
    best: float

    @property
    def is_best(self) -> bool:
        sign = -1 if self.plan.more_is_better else 1
        return sign * self.plan.figure_after <= sign * self.best + 1e-5


def check(
    seed: int,
    goal: str,
    *,
    exhaustive_trials: int,
    has_gangs: bool = False,
    surges: bool = False,
) -> CheckedPlan:
    """Make a plan of up to three moves; carry it out; compare with brute force.

    With gangs of up to six moves, because each member is one.
    """
    documents = RandomCluster(seed, has_gangs=has_gangs, has_deployments=surges).documents
    gates = GANG_GATES if has_gangs else DEFAULT_GATES
    moves = 2 * DEPTH if has_gangs else DEPTH
    options = RebalanceOptions(max_moves=moves, exhaustive_trials=exhaustive_trials, surges=surges)
    plan = make_plan(documents, read_goal(goal), options, PlacingSetup(gates=gates))
    run = carry_out(documents, plan, gates)
    problems = [f"step {each.step}: {each.text}" for each in run.surprises]
    problems += [
        f"step {step.number}: it is on its node again"
        for step in plan.evictions
        if step.to_node == step.node and not step.gang
    ]
    problems += [
        f"step {unit[0].number}: the gang is on its nodes again"
        for unit in plan.units
        if unit[0].gang and all(step.to_node == step.node for step in unit)
    ]
    sign = -1 if plan.more_is_better else 1
    if plan.moves and sign * plan.figure_after >= sign * plan.figure_before - TOLERANCE:
        problems.append("the figure is not better")
    best = plan.figure_after if has_gangs else best_figure(documents, goal, options)
    return CheckedPlan(plan, problems, best)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.rebalance")
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--exhaustive-trials", type=int, default=RebalanceOptions().exhaustive_trials
    )
    parser.add_argument(
        "--gangs", action="store_true", help="with groups of pods, and without brute force"
    )
    parser.add_argument(
        "--surge", action="store_true", help="with Deployments, and surges where a budget refuses"
    )
    given = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    for seed in range(given.seed, given.seed + given.clusters):
        goal = GOALS[seed % len(GOALS)]
        found = check(
            seed,
            goal,
            exhaustive_trials=given.exhaustive_trials,
            has_gangs=given.gangs,
            surges=given.surge,
        )
        count = counts.setdefault(goal, Counter())
        count["plans"] += 1
        count["moves"] += found.plan.moves
        count["with moves"] += bool(found.plan.moves)
        count["gangs"] += sum(bool(unit[0].gang) for unit in found.plan.units)
        count["surges"] += sum(step.action == "surge" for step in found.plan.steps)
        count["with problems"] += bool(found.problems)
        count["best"] += found.is_best
        for problem in found.problems:
            print(f"seed {seed}, {goal}: {problem}")
        if not found.is_best:
            after, best = found.plan.figure_after, found.best
            print(f"seed {seed}, {goal}: {after:g}, brute force reaches {best:g}")
    for goal, count in counts.items():
        print(f"{goal}: " + ", ".join(f"{number} {name}" for name, number in count.items()))
    total = sum(counts.values(), Counter[str]())
    print(f"all: {dict(total)}, best in {100 * total['best'] / max(total['plans'], 1):.1f} %")
    return 1 if total["with problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
