"""`kubestow bench gangs`: what cycles of pod groups cost."""

import sys

import msgspec

from kubestow.service.formats import TimesFormat
from kubestow.simulator.bench.gangs import CASES, GangTimes, measure_gangs
from kubestow.table import Table


def run_gangs(*, nodes: int, repeat: int, output: TimesFormat) -> None:
    """Measure all cases and print the fastest of the repeated runs of each."""
    fastest: list[GangTimes] = []
    for case in CASES:
        runs = [measure_gangs(case, nodes=nodes) for _ in range(repeat)]
        fastest.append(min(runs, key=lambda run: run.total_ms))
    if output is TimesFormat.JSON:
        for run in fastest:
            sys.stdout.write(msgspec.json.encode(run).decode() + "\n")
    else:
        _print_table(fastest)


def _print_table(runs: list[GangTimes]) -> None:
    columns = ["CASE", "NODES", "CYCLES", "PODS", "PLACED", "COLLECT", "DECIDE", "CONCLUDE", "CPU"]
    table = Table(*columns, right=columns[1:])
    for run in runs:
        table.add(
            run.case,
            str(run.nodes),
            str(run.cycles),
            str(run.members),
            str(run.placed),
            f"{run.collect_ms:.1f} ms",
            f"{run.decide_ms:.1f} ms",
            f"{run.conclude_ms:.1f} ms",
            f"{run.total_ms:.1f} ms",
        )
    table.print()
