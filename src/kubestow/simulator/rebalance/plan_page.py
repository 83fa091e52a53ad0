"""The page of a plan: before and after side by side, step by step, and the tables.

It is one file that loads nothing, and needs no optional extra.
"""

from collections.abc import Sequence

import msgspec

from kubestow.simulator.rebalance.plan import KeptPods, RebalancePlan
from kubestow.simulator.rebalance.view import PlanView
from kubestow.simulator.reports.html import Card, Inset, Page, ShownTable, asset
from kubestow.simulator.reports.tables import Column, Kind, Table
from kubestow.simulator.reports.units import seconds_text

_PACKAGE = "kubestow.simulator.rebalance"


def page_of(plan: RebalancePlan, view: PlanView) -> Page:
    """What the page shows."""
    tables = (
        _step_table(plan),
        _kept_table("limits", "Why no more" if plan.steps else "What limits it", plan.limits),
        _kept_table("kept", "These stay", plan.kept),
    )
    return Page(
        title=f"Rebalance: {plan.goal}",
        subtitle=" · ".join(plan.notes),
        warning=f"The search was ended ({plan.stopped}); there may be a better plan."
        if plan.stopped
        else "",
        cards=_cards(plan),
        drawings=(),
        tables=[
            ShownTable(table, range(table.row_count), "the first ones")
            for table in tables
            if table.row_count
        ],
        definitions=(),
        inset=_inset(view) if plan.steps else None,
    )


def _cards(plan: RebalancePlan) -> list[Card]:
    cards = [
        Card(f"{plan.figure_before:g}", f"{plan.unit}, before"),
        Card(f"{plan.figure_after:g}", f"{plan.unit}, after"),
        Card(f"{plan.moves:,}", "evictions"),
        Card(seconds_text(plan.duration_s), "one after the other"),
    ]
    if plan.freed_nodes:
        cards.append(Card(f"{len(plan.freed_nodes):,}", "nodes become free"))
    return cards


def _inset(view: PlanView) -> Inset:
    """The picture is drawn by the script of the page (`web/src/views/plan.tsx`, `make page`)."""
    markup = (
        '<section class="chart plan" id="plan"><h2>Before and after</h2>'
        '<p class="soft">Each bar is a node, the fullest first; a line is a pod that moves. On the '
        "right the thin mark is how full the node was before.</p>"
        '<div id="plan-picture"></div></section>'
    )
    data = msgspec.json.encode(view).decode()
    return Inset("plan", markup, asset(_PACKAGE, "plan.css"), data, asset(_PACKAGE, "plan.js"))


def _step_table(plan: RebalancePlan) -> Table:
    steps = plan.steps
    also = [", ".join(f"{one.pod} on {one.node}" for one in step.also_placed) for step in steps]
    columns = [
        Column("step", Kind.COUNT, [step.number for step in steps]),
        Column("at_s", Kind.SECONDS, [step.starts_at_s for step in steps]),
        Column("action", Kind.TEXT, [step.action for step in steps]),
        Column("pod", Kind.TEXT, ["" if step.pod is None else step.pod.key for step in steps]),
        Column("node", Kind.TEXT, [step.node for step in steps]),
        Column("goes_to", Kind.TEXT, [step.to_node for step in steps]),
        Column("before", Kind.TEXT, [f"{step.figure_before:g}" for step in steps]),
        Column("after", Kind.TEXT, [f"{step.figure_after:g}" for step in steps]),
    ]
    if any(also):
        columns.append(Column("then_placed", Kind.TEXT, also))
    return Table("steps", "Steps", columns)


def _kept_table(name: str, title: str, kept: Sequence[KeptPods]) -> Table:
    return Table(
        name,
        title,
        [
            Column("pods", Kind.COUNT, [each.pods for each in kept]),
            Column("nodes", Kind.COUNT, [each.nodes for each in kept]),
            Column("for_example", Kind.TEXT, [", ".join(each.examples[:3]) for each in kept]),
            Column("message", Kind.TEXT, [each.reason for each in kept]),
        ],
    )
