"""The form of the page that looks for a plan of evictions; nothing is changed by it."""

from typing import Annotated, Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import Clock, SystemClock
from kubestow.plural import counted
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.live.forms import FormInput, done
from kubestow.simulator.rebalance.goals.reading import read_goal
from kubestow.simulator.rebalance.ground import standing_ground
from kubestow.simulator.rebalance.options import RebalanceOptions
from kubestow.simulator.rebalance.planning import Planner
from kubestow.simulator.rebalance.stopping import Stopping
from kubestow.simulator.rebalance.view import view_of
from kubestow.simulator.store_documents import documents_of

_MOST_MOVES: Final = 200
# The cluster stands still meanwhile, so not all sequences of three moves are tried.
TIME_LIMIT_S: Final = 3.0
_TRIALS: Final = 400


class PlanForm(FormInput, frozen=True, kw_only=True):
    goal: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    max_moves: Annotated[int, msgspec.Meta(ge=1, le=_MOST_MOVES)] = 20


def plan_of(store: MemoryCluster, clock: Clock, setup: PlacingSetup, form: PlanForm) -> JsonObject:
    """The picture of a plan for the cluster as it is, in `view`; InputError for a wrong goal."""
    goal = read_goal(form.goal)
    options = RebalanceOptions(max_moves=form.max_moves, exhaustive_trials=_TRIALS)
    stopping = Stopping(SystemClock(), TIME_LIMIT_S)
    planner = Planner(standing_ground(documents_of(store), setup, clock), goal, options, stopping)
    plan = planner.plan()
    message = f"{plan.goal}: {plan.figure_before:g} {plan.unit}"
    if plan.moves:
        message += f" before, {plan.figure_after:g} after {counted(plan.moves, 'move')}"
    elif plan.limits:
        message += f", and no move helps: {plan.limits[0].reason}"
    else:
        message += ", and no move helps"
    if plan.stopped:
        message += f"; the search was ended after {TIME_LIMIT_S:g} s"
    return {**done(message, plan.moves), "view": msgspec.to_builtins(view_of(planner, plan))}
