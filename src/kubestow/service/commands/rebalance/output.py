"""What `kubestow rebalance` prints: the figure before and after, the steps, and what stays."""

import sys
from collections.abc import Sequence
from typing import Final

from kubestow.plural import counted
from kubestow.service.formats import DataFormat, RebalanceFormat
from kubestow.service.output import duration_text, print_data, say
from kubestow.simulator.rebalance.plan import KeptPods, PlanStep, RebalancePlan
from kubestow.simulator.rebalance.script import script_of
from kubestow.table import Table

_EXAMPLES_SHOWN: Final = 3
_NODES_SHOWN: Final = 8
_REASONS_SHOWN: Final = 12


def print_plan(plan: RebalancePlan, output: RebalanceFormat) -> None:
    match output:
        case RebalanceFormat.SCRIPT:
            sys.stdout.write(script_of(plan))
        case RebalanceFormat.TABLE:
            _print_table(plan)
        case _:
            print_data(plan, DataFormat(output.value))


def _print_table(plan: RebalancePlan) -> None:
    say(headline(plan))
    for note in plan.notes:
        say(f"note: {note}")
    if plan.stopped:
        say(f"note: the search was ended ({plan.stopped}); there may be a better plan")
    if plan.steps:
        say("")
        _step_table(plan.steps).print()
    if plan.freed_nodes:
        names = ", ".join(plan.freed_nodes[:_NODES_SHOWN])
        more = len(plan.freed_nodes) - _NODES_SHOWN
        say(f"\nBecome free: {names}" + (f" and {more} more" if more > 0 else ""))
    _print_kept("\nWhy no more:" if plan.steps else "\nWhat limits it:", plan.limits)
    _print_kept("\nThese stay:", plan.kept)


def headline(plan: RebalancePlan) -> str:
    """The result in one line."""
    before = f"{plan.figure_before:g} {plan.unit}"
    if plan.moves:
        return (
            f"{plan.goal}: {before} before, {plan.figure_after:g} after "
            f"{counted(plan.moves, 'move')} in {duration_text(plan.duration_s)}"
        )
    if not plan.more_is_better and not plan.figure_before:
        return f"{plan.goal}: {before}, nothing to do"
    return f"{plan.goal}: {before}, and no move helps"


def _step_table(steps: Sequence[PlanStep]) -> Table:
    right = ("STEP", "AT", "BEFORE", "AFTER")
    table = Table("STEP", "AT", "ACTION", "POD", "NODE", "GOES TO", "BEFORE", "AFTER", right=right)
    gang = ""
    for step in steps:
        is_further = bool(step.gang) and step.gang == gang
        gang = step.gang
        table.add(
            str(step.number),
            duration_text(step.starts_at_s),
            "with it" if is_further else step.action,
            "" if step.pod is None else step.pod.key,
            step.node,
            step.to_node,
            f"{step.figure_before:g}",
            f"{step.figure_after:g}",
        )
        for placed in step.also_placed:
            table.add("", "", "then placed", placed.pod, "", placed.node, "", "")
    return table


def _print_kept(title: str, kept: Sequence[KeptPods]) -> None:
    if not kept:
        return
    say(f"{title}\n")
    table = Table("PODS", "NODES", "FOR EXAMPLE", "WHY", right=("PODS", "NODES"))
    for each in kept[:_REASONS_SHOWN]:
        names = ", ".join(each.examples[:_EXAMPLES_SHOWN])
        table.add(str(each.pods), str(each.nodes), names, each.reason)
    table.print()
    if len(kept) > _REASONS_SHOWN:
        say(f"and {len(kept) - _REASONS_SHOWN} more reasons (-o json has all)")
