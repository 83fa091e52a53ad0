"""`kubestow bench explain`: what explanations cost in a large cluster."""

import sys

import msgspec

from kubestow.explain.explanation import Explanation
from kubestow.service.formats import TimesFormat
from kubestow.service.output import stream_json
from kubestow.simulator.bench.explanations import ExplanationTimes, measure_explanations
from kubestow.table import Table


def run_explanations(*, nodes: int, output: TimesFormat) -> None:
    """Measure and print."""
    times = measure_explanations(nodes, _written_bytes)
    if output is TimesFormat.JSON:
        for each in times:
            sys.stdout.write(msgspec.json.encode(each).decode() + "\n")
    else:
        _print_table(times)


def _written_bytes(explanation: Explanation) -> int:
    count = 0

    def write(text: str) -> None:
        nonlocal count
        count += len(text)

    stream_json(explanation, write)
    return count


def _print_table(times: list[ExplanationTimes]) -> None:
    columns = ["CASE", "NODES", "PODS", "EXPLAIN", "SUGGEST", "JSON", "TOTAL", "CPU", "PEAK MEMORY"]
    table = Table(*columns, right=columns[1:])
    for each in times:
        table.add(
            each.case,
            str(each.nodes),
            str(each.pods),
            f"{each.explain_s * 1000:.0f} ms",
            f"{each.suggest_s * 1000:.0f} ms",
            f"{each.json_s * 1000:.0f} ms",
            f"{each.total_s * 1000:.0f} ms",
            f"{each.cpu_s * 1000:.0f} ms",
            f"{each.peak_memory_mib:.0f} MiB",
        )
    table.print()
