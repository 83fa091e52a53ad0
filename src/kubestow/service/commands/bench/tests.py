"""`kubestow bench tests`: what placement tests cost."""

import sys

import msgspec

from kubestow.service.formats import TimesFormat
from kubestow.service.output import duration_text
from kubestow.simulator.bench.placement_tests import measure_tests
from kubestow.table import Table


def run_test_bench(
    *, nodes: int, pods: int, cases: int, jobs: int | None, output: TimesFormat
) -> None:
    """Measure and print."""
    times = measure_tests(nodes=nodes, pods=pods, cases=cases, jobs=jobs)
    if output is TimesFormat.JSON:
        for each in times:
            sys.stdout.write(msgspec.json.encode(each).decode() + "\n")
        return
    columns = ["CASE", "NODES", "PODS", "COUNT", "JOBS", "TIME", "CPU", "EACH", "PEAK MEMORY"]
    table = Table(*columns, right=columns[1:])
    for each in times:
        table.add(
            each.case,
            f"{each.nodes:,}",
            f"{each.pods:,}",
            f"{each.count:,}",
            str(each.jobs),
            duration_text(each.total_s),
            duration_text(each.cpu_s),
            f"{1000 * each.cpu_s / each.count:.0f} ms",
            f"{each.peak_memory_mib:.0f} MiB",
        )
    table.print()
