"""`kubestow bench rebalance`: what plans of evictions cost in a large cluster."""

import sys

import msgspec

from kubestow.service.formats import TimesFormat
from kubestow.simulator.bench.rebalancing import measure_rebalancing
from kubestow.table import Table


def run_rebalance_bench(*, nodes: int, pods: int, moves: int, output: TimesFormat) -> None:
    """Measure and print."""
    times = measure_rebalancing(nodes, pods, moves)
    if output is TimesFormat.JSON:
        for each in times:
            sys.stdout.write(msgspec.json.encode(each).decode() + "\n")
        return
    columns = ["GOAL", "MOVES", "TRIALS", "BEFORE", "AFTER", "TOTAL", "CPU", "PEAK MEMORY"]
    table = Table(*columns, right=columns[1:])
    for each in times:
        table.add(
            each.goal,
            str(each.moves),
            str(each.trials),
            f"{each.figure_before:g}",
            f"{each.figure_after:g}",
            f"{each.total_s:.1f} s",
            f"{each.cpu_s:.1f} s",
            f"{each.peak_memory_mib:.0f} MiB",
        )
    table.print()
