"""`kubestow bench load`: what the plugin LoadAware costs."""

import sys

import msgspec

from kubestow.service.formats import TimesFormat
from kubestow.simulator.bench.load_aware import measure_load_aware
from kubestow.table import Table


def run_load_bench(*, nodes: int, pods: int, output: TimesFormat) -> None:
    """Measure and print."""
    times = measure_load_aware(nodes, pods)
    if output is TimesFormat.JSON:
        for each in times:
            sys.stdout.write(msgspec.json.encode(each).decode() + "\n")
        return
    columns = ["CASE", "NODES", "PODS", "WITHOUT", "WITH", "INCREASE", "MEDIAN"]
    table = Table(*columns, right=columns[1:])
    for each in times:
        table.add(
            each.case,
            str(each.nodes),
            str(each.pods),
            f"{each.without_us:.1f} µs",
            f"{each.with_us:.1f} µs",
            f"{each.increase_percent:.1f} %",
            f"{each.median_percent:.1f} %",
        )
    table.print()
