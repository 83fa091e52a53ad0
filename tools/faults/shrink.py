"""Shortens a plan that breaks an invariant to one in which every action is needed."""

from collections.abc import Callable

from tools.faults.plan import Plan


def shrink(
    plan: Plan, is_broken: Callable[[Plan], bool], *, tried: Callable[[Plan], None] | None = None
) -> Plan:
    """The shortest plan that leaving out parts leads to; `tried` is called with each that breaks.

    Parts get smaller until single actions are tried and none can be left out any more.
    """
    size = max(len(plan.actions) // 2, 1)
    while True:
        shorter = _leave_out(plan, size, is_broken)
        if shorter is not None:
            plan = shorter
            if tried is not None:
                tried(plan)
            size = min(size, max(len(plan.actions) // 2, 1))
        elif size == 1:
            return plan
        else:
            size //= 2


def _leave_out(plan: Plan, size: int, is_broken: Callable[[Plan], bool]) -> Plan | None:
    """The plan without the first part of that size that is not needed; None if all are."""
    # From the end: what happens late is more often of no importance.
    for start in reversed(range(0, len(plan.actions), size)):
        shorter = plan.without(set(range(start, start + size)))
        if is_broken(shorter):
            return shorter
    return None
