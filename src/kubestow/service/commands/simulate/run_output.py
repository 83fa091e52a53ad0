"""What commands print of a run: its owners and resources as tables, and a summary."""

import sys
from collections.abc import Sequence
from typing import Final

from msgspec import UnsetType
from rich.console import Console

from kubestow.plural import counted
from kubestow.redaction import printable
from kubestow.service.formats import OutputFormat
from kubestow.service.output import duration_text, print_data, stdout
from kubestow.simulator.reports import tables
from kubestow.simulator.reports.figures import Figures
from kubestow.simulator.reports.files import Report
from kubestow.simulator.reports.units import amount_text, share_text
from kubestow.simulator.results import NodeRow, PodRow, RefusedPods
from kubestow.simulator.usage.results import UsageFigures
from kubestow.table import Table

_MESSAGES_SHOWN: Final = 5
# Owners, unless all are asked for.
_SHOWN: Final = 20


def print_run(report: Report, output: OutputFormat, *, has_headers: bool) -> None:
    """Print in the format asked for; without headers there are rows only, for scripts."""
    match output:
        case OutputFormat.JSON | OutputFormat.YAML:
            print_data(report, output)
        case OutputFormat.NAME:
            for pod in report.pods:
                sys.stdout.write(f"pod/{pod.name}\n")
        case OutputFormat.TABLE | OutputFormat.WIDE:
            _print_tables(report, is_wide=output is OutputFormat.WIDE, has_headers=has_headers)


def _print_tables(report: Report, *, is_wide: bool, has_headers: bool) -> None:
    parts = [_owner_table(report.pods, is_wide=is_wide), _resource_table(report.figures)]
    if not isinstance(report.figures.usage, UnsetType):
        parts.append(_usage_table(report.figures.usage))
    if is_wide:
        parts += [_pod_table(report.pods), _node_table(report.nodes)]
    for number, part in enumerate(parts):
        sys.stdout.write("\n" if number else "")
        part.print(has_header=has_headers)
    if has_headers:
        sys.stdout.write("\n")
        _print_summary(stdout(), report)


def _print_summary(console: Console, report: Report) -> None:
    figures = report.figures
    outcomes = ", ".join(f"{count} {name.lower()}" for name, count in figures.outcomes.items())
    console.print(
        f"{figures.placed} of {counted(figures.pods, 'pod')} placed in "
        f"{duration_text(report.virtual_duration_s)} of virtual time: {outcomes}",
        markup=False,
    )
    if (waiting := figures.waiting) is not None:
        texts = [
            f"{name} {duration_text(seconds)}"
            for name, seconds in (
                ("p50", waiting.p50_s),
                ("p90", waiting.p90_s),
                ("p99", waiting.p99_s),
                ("longest", waiting.max_s),
            )
        ]
        console.print(f"Waiting times: {', '.join(texts)}")
    if not isinstance(figures.usage, UnsetType):
        _print_lost(console, figures.usage)
    reasons = tables.reasons_table(report.pods)
    rows = zip(*(column.values for column in reasons.columns), strict=True)
    for count, reason, message in list(rows)[:_MESSAGES_SHOWN]:
        pods = "pod waits" if count == 1 else "pods wait"
        text = printable(message or reason or "not tried yet")
        console.print(f"  {count} {pods}: {text}", markup=False)
    if report.failed_attempts:
        console.print(f"{counted(report.failed_attempts, 'attempt')} failed with an error.")
    for failure in report.failures[:_MESSAGES_SHOWN]:
        text = printable(f"{failure.owner}: {failure.message}")
        console.print(f"  {failure.attempts} of {text}", markup=False)
    print_refusals(console, report.refused_pods, report.refusals)
    if report.is_partial:
        console.print("The run was ended before its time: all rows are as of then.")


def _print_lost(console: Console, usage: UsageFigures) -> None:
    share = usage.lost_cpu_s / usage.demanded_cpu_s if usage.demanded_cpu_s else 0.0
    console.print(
        f"CPU lost: {usage.lost_cpu_s:,.0f} of {usage.demanded_cpu_s:,.0f} core seconds "
        f"({share_text(share)}); {counted(usage.memory_evictions, 'pod')} evicted for memory",
        markup=False,
    )


def print_refusals(console: Console, pod_count: int, refusals: Sequence[RefusedPods]) -> None:
    """How many pods the API server refused, and why."""
    if not pod_count:
        return
    were = "was" if pod_count == 1 else "were"
    console.print(f"{counted(pod_count, 'pod')} {were} refused by the API server.")
    for refusal in refusals[:_MESSAGES_SHOWN]:
        text = printable(f"{refusal.owner}: {refusal.message}")
        console.print(f"  {refusal.pods} of {text}", markup=False)


def _owner_table(pods: list[PodRow], *, is_wide: bool) -> Table:
    """The owners with most pods."""
    right = ("PODS", "PLACED", "WAITING", "P50", "P99", "LONGEST")
    table = Table("NAMESPACE", "OWNER", *right, right=right, keys=2)
    columns = tables.owners_table(pods).columns
    rows = sorted(zip(*(column.values for column in columns), strict=True), key=lambda row: -row[2])
    for namespace, owner, count, placed, waiting, *waits in rows[: None if is_wide else _SHOWN]:
        times = ("" if wait is None else duration_text(wait) for wait in waits)
        table.add(namespace, owner or "-", str(count), str(placed), str(waiting), *times)
    return table


def _resource_table(figures: Figures) -> Table:
    right = ("ALLOCATABLE", "REQUESTED", "USED", "MEAN", "PEAK", "STRANDED", "IMBALANCE")
    table = Table("RESOURCE", *right, right=right)
    for row in figures.resources:
        shares = (
            row.used_share,
            row.mean_used_share,
            row.peak_used_share,
            row.mean_stranded_share,
            row.mean_imbalance if row.mean_imbalance is not None else row.imbalance,
        )
        table.add(
            row.resource,
            amount_text(row.allocatable, row.resource),
            amount_text(row.requested, row.resource),
            *("-" if share is None else share_text(share) for share in shares),
        )
    return table


def _usage_table(usage: UsageFigures) -> Table:
    right = ("MEAN", "P50", "P95", "P99", "MOST", "HOT NODE MINUTES")
    table = Table("IN USE", *right, right=right)
    for row in usage.resources:
        shares = (row.mean_share, row.p50_share, row.p95_share, row.p99_share, row.max_share)
        minutes = f"{row.hot_node_minutes:,.0f}"
        table.add(row.resource, *(share_text(share) for share in shares), minutes)
    return table


def _pod_table(pods: list[PodRow]) -> Table:
    right = ("CREATED", "SCHEDULED", "ENDED", "ATTEMPTS")
    table = Table("NAMESPACE", "NAME", "OUTCOME", "NODE", *right, "MESSAGE", right=right, keys=2)
    for pod in pods:
        times = (pod.created_s, pod.scheduled_s, pod.ended_s)
        table.add(
            pod.namespace,
            pod.name,
            pod.outcome,
            pod.node,
            *("" if time is None else duration_text(time) for time in times),
            str(pod.attempts),
            " ".join((pod.message or pod.reason).split()),
        )
    return table


def _node_table(nodes: list[NodeRow]) -> Table:
    table = Table("NODE", "ZONE", "POOL", "PODS", "REQUESTED", right=("PODS",))
    for node in nodes:
        used = ", ".join(
            f"{resource} {amount_text(node.requested.get(resource, 0), resource)}/"
            f"{amount_text(amount, resource)}"
            for resource, amount in node.allocatable.items()
        )
        table.add(node.name, node.zone, node.pool, f"{node.pods}/{node.allowed_pods}", used)
    return table
