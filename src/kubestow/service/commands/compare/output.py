"""What `kubestow compare` prints: figures side by side, pods that moved, what failed.

Real times come last and only if they are asked for: everything before them is the same in every
run of the same input.
"""

import csv
import sys
from collections.abc import Sequence
from typing import Final

import msgspec
from rich.markup import escape

from kubestow.plural import counted, plural
from kubestow.service.formats import CompareFormat, DataFormat
from kubestow.service.output import print_data, say, stderr
from kubestow.simulator.comparison.comparison import (
    MovedPods,
    SchedulerComparison,
    VariantResult,
    VariantTimes,
)
from kubestow.simulator.comparison.measures import measures_of
from kubestow.simulator.comparison.texts import (
    count_text,
    estimate_text,
    failure_text,
    figure_rows,
    refusal_texts,
)
from kubestow.simulator.reports.tables import Kind
from kubestow.table import Table

_PLUGINS_SHOWN: Final = 12
_CSV_COLUMNS: Final = ("variant", "seed", "figure", "resource", "value")


class _WithTimes(SchedulerComparison, frozen=True, kw_only=True, rename="camel"):
    """The comparison with real times, which differ from run to run."""

    times: list[VariantTimes]


def print_comparison(
    comparison: SchedulerComparison,
    times: Sequence[VariantTimes] | None,
    output: CompareFormat,
    *,
    show: int,
) -> None:
    """Print in the format asked for; `times` only if they were asked for."""
    match output:
        case CompareFormat.JSON | CompareFormat.YAML:
            print_data(_with_times(comparison, times), DataFormat(output))
        case CompareFormat.CSV:
            _print_csv(comparison)
        case CompareFormat.TABLE:
            _print_tables(comparison, show)
            _print_times(times or ())
    for text in (
        *refusal_texts(comparison.variants),
        *(failure_text(failure) for failure in comparison.failures),
    ):
        stderr().print(escape(text))


def _with_times(
    comparison: SchedulerComparison, times: Sequence[VariantTimes] | None
) -> SchedulerComparison:
    if times is None:
        return comparison
    return _WithTimes(**msgspec.structs.asdict(comparison), times=list(times))


# --- CSV ---


def _print_csv(comparison: SchedulerComparison) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for variant in comparison.variants:
        for run in variant.runs:
            for measure, value in measures_of(run.figures).items():
                row = (variant.name, run.seed, measure.name, measure.resource, f"{value:.10g}")
                writer.writerow(row)


# --- tables ---


def _print_tables(comparison: SchedulerComparison, show: int) -> None:
    ran = [variant for variant in comparison.variants if variant.runs]
    if not ran:
        return
    seeds = len(comparison.seeds)
    if seeds > 1:
        say(f"{seeds} seeds; ± is the 95 % interval of the mean (Student's t)\n")
    _figures_table(ran).print()
    for variant in ran:
        if variant.moved is not None:
            _print_moved(variant.name, variant.moved, comparison.variants[0].name, show)
    for variant in ran:
        count = sum(run.is_partial for run in variant.runs)
        if count:
            runs = counted(count, "run")
            say(f"\n{variant.name}: the time limit ended {runs} while pods were retried (--limit)")
    if comparison.is_partial:
        say("\nInterrupted: the runs that had ended are shown.")


def _figures_table(variants: Sequence[VariantResult]) -> Table:
    names = [variant.name.upper() for variant in variants]
    table = Table("FIGURE", *names, right=names)
    for row in figure_rows(variants):
        table.add(row.title, *row.cells)
    return table


def _print_moved(name: str, moved: MovedPods, first: str, show: int) -> None:
    count = count_text(moved.count.mean)
    each = " per seed" if moved.count.count > 1 else ""
    pods = plural("pod", moved.count.mean)
    say(f"\n{name}: {count} {pods}{each} went elsewhere than in {first}")
    for only, where in ((moved.only_first, first), (moved.only_here, name)):
        if only.mean:
            exist = "exists" if only.mean == 1 else "exist"
            pods = plural("more pod", only.mean)
            say(f"  {count_text(only.mean)} {pods}{each} {exist} in {where} only")
    if moved.reasons:
        say("")
        table = Table("PODS", "REASON", "PLUGIN", right=("PODS",), texts=("REASON",))
        for reason in moved.reasons:
            table.add(str(reason.pods), reason.reason, reason.plugin)
        table.print()
    if moved.pods and show:
        say("")
        table = Table("POD", first.upper(), name.upper(), "WHY")
        for pod in moved.pods[:show]:
            table.add(pod.pod, pod.first_node or "-", pod.node or "-", pod.text or pod.reason)
        table.print()
        if len(moved.pods) > show:
            say(f"… and {len(moved.pods) - show} more (--show, -o json)")


def _print_times(times: Sequence[VariantTimes]) -> None:
    if not times:
        return
    say("\nReal time\n")
    table = Table("VARIANT", "SECONDS PER RUN", right=("SECONDS PER RUN",))
    for each in times:
        table.add(each.variant, estimate_text(each.seconds, Kind.SECONDS))
    table.print()
    for each in times:
        if each.plugins:
            say(f"\n{each.variant}: plugins that took most\n")
            _plugin_table(each).print()


def _plugin_table(times: VariantTimes) -> Table:
    table = Table("PLUGIN", "POINT", "CALLS", "MS", right=("CALLS", "MS"))
    for row in times.plugins[:_PLUGINS_SHOWN]:
        table.add(row.plugin, row.point, str(row.calls), f"{1000 * row.seconds:.2f}")
    return table
