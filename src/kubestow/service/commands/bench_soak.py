"""`kubestow bench --soak`: its options and its output."""

import asyncio
import sys
from typing import Final

import msgspec

from kubestow.api.duration import parse_duration
from kubestow.clock import NANOSECONDS, SystemClock
from kubestow.errors import InputError
from kubestow.service.output import Table, stderr, stdout
from kubestow.service.soak.soak import Soak, SoakReport, table_rows

NODES: Final = 200
PODS_PER_S: Final = 100


def run_soak(text: str, *, nodes: int | None, over_http: bool, output: str) -> int:
    """Run a soak and print it; the exit code."""
    seconds = soak_seconds(text)
    if output == "table":
        stderr().print(f"running for {seconds:.0f} s, {PODS_PER_S} new pods a second")
    soak = Soak(SystemClock(), nodes=nodes or NODES, pods_per_s=PODS_PER_S, over_http=over_http)
    report = asyncio.run(soak.run(seconds))
    if output == "json":
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        _print_tables(report)
    if report.is_growing:
        stderr().print("memory grows steadily: something is kept without a limit")
    return 1 if report.is_growing else 0


def soak_seconds(text: str) -> float:
    """How long, from seconds or a duration such as 10m; InputError for anything else."""
    try:
        seconds = int(text) if text.isdecimal() else parse_duration(text) / NANOSECONDS
    except ValueError as error:
        raise InputError(f'--soak: "{text}" is no duration ({error}); use 600 or 10m') from error
    if seconds <= 0:
        raise InputError(f'--soak: "{text}" is not positive; use 600 or 10m')
    return float(seconds)


def _print_tables(report: SoakReport) -> None:
    table = Table("MEASURED", "VALUE")
    for row in table_rows(report):
        table.add(*row)
    table.print(is_cut=False)
    stdout().print()
    kept = Table("KEPT", "SIZE", "LIMIT", right=("SIZE", "LIMIT"))
    for one in report.containers:
        kept.add(one.name, str(one.size), "" if one.limit is None else str(one.limit))
    kept.print(is_cut=False)
