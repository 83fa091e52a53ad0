"""What the page of one run shows: its numbers, charts and tables, most relevant rows first.

Needs the optional extra `reports`: import this module after `extra.require_extra` only.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import UnsetType

from kubestow.simulator.reports.charts import drawings_of, thinning_note
from kubestow.simulator.reports.figures import Figures, present_nodes, waited_s
from kubestow.simulator.reports.html import Card, Page, ShownTable
from kubestow.simulator.reports.tables import USAGE_TABLE_NAMES, Table, tables_of
from kubestow.simulator.reports.units import seconds_text, share_text
from kubestow.simulator.results import (
    EVICTED,
    GATED,
    PENDING,
    PREEMPTED,
    NodeRow,
    PodRow,
    RunResult,
)
from kubestow.simulator.usage.results import UsageFigures

DEFINITIONS: Final = (
    (
        "waiting time",
        "of a pod that got a node: from its creation to the first time it got one",
    ),
    (
        "percentile (p50, p90, p99)",
        "the smallest value that this many percent of all values do not exceed",
    ),
    (
        "over time",
        "a sample holds until the next one, the last one until the end; a mean over time weighs "
        "each sample with the time for which it holds",
    ),
    (
        "used share",
        "requested of allocatable; over time: resource-seconds of both",
    ),
    (
        "stranded",
        "free, but on nodes on which no pod of this run that asks for the resource would fit; as a "
        "share of allocatable",
    ),
    (
        "imbalance",
        "the standard deviation of the used share over the nodes that have the resource",
    ),
)
USE_DEFINITIONS: Final = (
    (
        "in use",
        "what pods really take, of allocatable; p50, p95 and p99 are over nodes and time",
    ),
    (
        "hot node minutes",
        "minutes in which a node had at least the share of a resource in use from which on it is "
        "hot, over all nodes",
    ),
    (
        "CPU lost",
        "core seconds that pods asked for while their node had no more",
    ),
)


def page_of(result: RunResult, figures: Figures) -> Page:
    """The page of a run."""
    note = thinning_note(result)
    tables = {table.name: table for table in tables_of(result, figures)}
    return Page(
        title=result.name,
        subtitle=_subtitle(result),
        warning="The run was ended before its time: all rows are as of then."
        if result.is_partial
        else "",
        cards=_cards(figures),
        drawings=drawings_of(result, is_interactive=True),
        tables=_shown(result, tables),
        definitions=(
            *DEFINITIONS,
            *(() if isinstance(result.usage, UnsetType) else USE_DEFINITIONS),
            *((("charts", note),) if note else ()),
        ),
    )


def _subtitle(result: RunResult) -> str:
    parts = [f"{seconds_text(result.virtual_duration_s)} of virtual time", f"seed {result.seed}"]
    if result.variant:
        parts.insert(0, f"scheduler: {result.variant}")
    return " · ".join(parts)


def _cards(figures: Figures) -> list[Card]:
    outcomes = figures.outcomes
    cards = [
        Card(f"{figures.pods:,}", "pods"),
        Card(f"{figures.placed:,}", "placed on a node"),
        Card(f"{outcomes.get(PENDING, 0) + outcomes.get(GATED, 0):,}", "wait at the end"),
    ]
    if figures.waiting is not None:
        waiting = figures.waiting
        cards += [
            Card(seconds_text(waiting.p50_s), "median waiting time"),
            Card(seconds_text(waiting.p99_s), "p99 of waiting times"),
            Card(seconds_text(waiting.max_s), "longest waiting time"),
        ]
    cards += [
        Card(f"{outcomes[outcome]:,}", label)
        for outcome, label in ((PREEMPTED, "preempted"), (EVICTED, "lost their node"))
        if outcomes.get(outcome)
    ]
    if figures.failed_attempts:
        cards.append(Card(f"{figures.failed_attempts:,}", "attempts failed with an error"))
    cards.append(Card(f"{figures.nodes_used:,} / {figures.nodes:,}", "nodes with pods / nodes"))
    for row in figures.resources:
        share, over = row.mean_used_share, "over time"
        if share is None:
            share, over = row.used_share, "at the end"
        if share:
            cards.append(Card(share_text(share), f"{row.resource} used, {over}"))
    return cards + ([] if isinstance(figures.usage, UnsetType) else _use_cards(figures.usage))


def _use_cards(usage: UsageFigures) -> list[Card]:
    cards = [
        Card(f"{each.hot_node_minutes:,.0f}", f"hot node minutes, {each.resource}")
        for each in usage.resources
    ]
    cards += [
        Card(share_text(each.p95_share), f"{each.resource} in use, p95 of nodes")
        for each in usage.resources
    ]
    cards.append(Card(f"{usage.lost_cpu_s:,.0f}", "core seconds lost"))
    if usage.memory_evictions:
        cards.append(Card(f"{usage.memory_evictions:,}", "evicted for memory"))
    return cards


def _shown(result: RunResult, tables: dict[str, Table]) -> list[ShownTable]:
    owners = tables["owners"]
    sizes: list[int] = owners.column("pods").values
    every = (
        ShownTable(tables["resources"], range(tables["resources"].row_count)),
        ShownTable(
            tables["reasons"], range(tables["reasons"].row_count), "the most frequent first"
        ),
        ShownTable(
            owners,
            sorted(range(len(sizes)), key=lambda row: -sizes[row]),
            "those with most pods first",
        ),
        ShownTable(
            tables["pods"],
            _by_relevance(result.pods),
            "those that wait first, then by waiting time",
        ),
        ShownTable(tables["nodes"], _by_use(result.nodes), "the fullest first"),
        *_use_tables(tables),
        ShownTable(
            tables["changes"], range(tables["changes"].row_count), "the first ones", is_open=False
        ),
    )
    return [shown for shown in every if shown.table.row_count]


def _use_tables(tables: dict[str, Table]) -> list[ShownTable]:
    """The tables about use, those that lost most first."""
    shown: list[ShownTable] = []
    for name in USAGE_TABLE_NAMES:
        if (table := tables.get(name)) is not None:
            rows: Sequence[int] = range(table.row_count)
            note = ""
            if name != "usage":
                lost: list[float] = table.column("lost_cpu_s").values
                rows = sorted(rows, key=lambda row: -lost[row])
                note = "those that lost most CPU first"
            shown.append(ShownTable(table, rows, note))
    return shown


def _by_relevance(pods: Sequence[PodRow]) -> list[int]:
    def key(row: int) -> tuple[bool, float]:
        waited = waited_s(pods[row])
        return (waited is not None, -(waited or 0.0))

    return sorted(range(len(pods)), key=key)


def _by_use(nodes: Sequence[NodeRow]) -> list[int]:
    """The rows of nodes in the order of their scarcest resource; nodes that left come last."""
    present = {node.name for node in present_nodes(nodes)}

    def key(row: int) -> tuple[bool, float]:
        node = nodes[row]
        shares = [
            node.requested.get(resource, 0) / amount
            for resource, amount in node.allocatable.items()
            if amount > 0
        ]
        return (node.name not in present, -max(shares, default=0.0))

    return sorted(range(len(nodes)), key=key)
