"""Plans of random clusters do in virtual time what they foretell; `tools.rebalance` checks more."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.simulator.rebalance import RebalanceOptions
from tools.rebalance.__main__ import check
from tools.rebalance.clusters import GOALS, RandomCluster
from tools.rebalance.virtual_run import carry_out

TRIALS = RebalanceOptions().exhaustive_trials
# Of several goals; gangs of two to four members move.
GANG_SEEDS = (1, 8, 40, 41, 57)
# Of several goals; among them a plan with two surges.
SURGE_SEEDS = (52, 67, 77, 91, 99)


@pytest.mark.slow
@given(seed=st.integers(0, 100_000), goal=st.sampled_from(GOALS))
@settings(max_examples=12)
def test_a_plan_does_what_it_foretells(seed: int, goal: str) -> None:
    assert check(seed, goal, exhaustive_trials=TRIALS).problems == []


@pytest.mark.slow
def test_plans_with_gangs_do_what_they_foretell() -> None:
    """Among these clusters are ones in which a gang moves."""
    found = [
        check(seed, GOALS[seed % len(GOALS)], exhaustive_trials=TRIALS, has_gangs=True)
        for seed in GANG_SEEDS
    ]
    assert [each.problems for each in found] == [[] for _ in found]
    assert sum(bool(unit[0].gang) for each in found for unit in each.plan.units) >= 3


@pytest.mark.slow
def test_plans_with_surges_do_what_they_foretell() -> None:
    """Of Deployments and of ReplicaSets: no pod is down at any moment."""
    found = [
        check(seed, GOALS[seed % len(GOALS)], exhaustive_trials=TRIALS, surges=True)
        for seed in SURGE_SEEDS
    ]
    assert [each.problems for each in found] == [[] for _ in found]
    scaled = [step.scaled.kind for each in found for step in each.plan.steps if step.scaled]
    assert scaled.count("Deployment") >= 2
    assert scaled.count("ReplicaSet") >= 2


@pytest.mark.slow
@pytest.mark.parametrize("trials", [pytest.param(TRIALS, id="all"), pytest.param(0, id="climbing")])
def test_plans_of_three_moves_are_as_good_as_brute_force(trials: int) -> None:
    found = [
        check(seed, GOALS[seed % len(GOALS)], exhaustive_trials=trials).is_best
        for seed in range(24)
    ]
    assert sum(found) >= 0.95 * len(found)


def surprises_of_other_step(**change: Any) -> list[str]:
    """What the run of a plan finds whose first step was changed."""
    seed = next(
        seed for seed in range(100) if check(seed, "balance", exhaustive_trials=0).plan.moves
    )
    plan = check(seed, "balance", exhaustive_trials=0).plan
    first = msgspec.structs.replace(plan.steps[0], **change)
    other = msgspec.structs.replace(plan, steps=(first, *plan.steps[1:]))
    return [each.text for each in carry_out(RandomCluster(seed).documents, other).surprises]


def test_a_replacement_that_goes_elsewhere_is_noticed() -> None:
    assert "foretold was elsewhere" in surprises_of_other_step(to_node="elsewhere")[0]


def test_a_figure_that_is_not_the_promised_one_is_noticed() -> None:
    """After each step, not only after the last."""
    (text,) = surprises_of_other_step(figure_after=-1.0)
    assert text.endswith(", promised was -1")
