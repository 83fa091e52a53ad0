"""How long a step takes: until the pod is gone, and its replacement is ready."""

from typing import Final, Literal, NamedTuple

from kubestow.api.pod import Pod, first_condition
from kubestow.simulator.rebalance.rules import Replaced

GRACE_S: Final = 30.0


class StepTimes(NamedTuple):
    """Seconds after the step begins. `gone_s` is when the pod is gone, at the latest."""

    bound_s: float
    ready_s: float
    gone_s: float

    @property
    def end_s(self) -> float:
        return max(self.ready_s, self.gone_s)


def step_times(
    pod: Pod,
    replaced: Replaced | Literal["beforehand"],
    *,
    waits_for_end: bool,
    default_start_s: float,
) -> StepTimes:
    """The times of one step. A replacement that may come later is counted as the later one."""
    grace_s = pod.spec.termination_grace_period_seconds
    gone_s = GRACE_S if grace_s is None else float(max(grace_s, 0))
    start_s = start_s_of(pod, default_start_s)
    if replaced == "beforehand":
        return StepTimes(0.0, start_s, start_s + gone_s)
    bound_s = 0.0 if replaced == "while-ending" and not waits_for_end else gone_s
    return StepTimes(bound_s, bound_s + start_s, gone_s)


def start_s_of(pod: Pod, default_s: float) -> float:
    """How long the pod took from its binding until it was ready, as its status shows it."""
    ready = first_condition(pod.status.conditions, "Ready")
    bound = first_condition(pod.status.conditions, "PodScheduled")
    if ready is None or ready.status != "True" or bound is None:
        return default_s
    if ready.last_transition_time is None or bound.last_transition_time is None:
        return default_s
    took_s = (ready.last_transition_time - bound.last_transition_time).total_seconds()
    # A pod that was not ready in between, and became so again, shows more than its start.
    return took_s if 0 <= took_s <= 10 * default_s else default_s
