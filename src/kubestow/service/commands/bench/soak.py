"""`kubestow bench soak`: how long, and what is printed."""

import asyncio
import sys
from pathlib import Path
from typing import Final

import msgspec

from kubestow.api.duration import parse_duration
from kubestow.clock import NANOSECONDS, SystemClock
from kubestow.errors import InputError
from kubestow.service.commands.run.process import event_loop_factory
from kubestow.service.formats import TimesFormat
from kubestow.service.loops import LoopThreads
from kubestow.service.output import stderr, stdout
from kubestow.service.soak.plot import require_plotting, write_plot
from kubestow.service.soak.report import SoakReport, curves, table_rows
from kubestow.service.soak.soak import Soak
from kubestow.table import Table

PODS_PER_S: Final = 100


def run_soak(
    text: str,
    *,
    nodes: int,
    pods: int | None,
    over_http: bool,
    output: TimesFormat,
    plot: Path | None,
    force: bool = False,
) -> int:
    """Run a soak and print it; the exit code. `pods` are created in all."""
    seconds = soak_seconds(text)
    if plot is not None:
        require_plotting(plot, force=force)
    pods_per_s = PODS_PER_S if pods is None else pods / seconds
    if output is TimesFormat.TABLE:
        stderr().print(f"running for {seconds:.0f} s, {pods_per_s:.3g} new pods a second")
    with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
        report = runner.run(_soak(seconds, nodes, pods_per_s, over_http=over_http))
    if output is TimesFormat.JSON:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        _print_tables(report)
    if plot is not None:
        write_plot(report, plot)
        stderr().print(f"wrote {plot}")
    if not report.is_growing:
        return 0
    for name in report.growing:
        stderr().print(f"{name} grows and has no limit")
    stderr().print("memory grows steadily: something is kept without a limit")
    return 1


async def _soak(seconds: float, nodes: int, pods_per_s: float, *, over_http: bool) -> SoakReport:
    clock = SystemClock()
    loops = LoopThreads(clock)
    try:
        soak = Soak(clock, nodes=nodes, pods_per_s=pods_per_s, over_http=over_http, loops=loops)
        return await soak.run(seconds)
    finally:
        loops.close()


def soak_seconds(text: str) -> float:
    """How long, from seconds or a duration such as 10m; InputError for anything else."""
    try:
        seconds = int(text) if text.isdecimal() else parse_duration(text) / NANOSECONDS
    except ValueError as error:
        raise InputError(f'"{text}" is no duration ({error}); use 600 or 10m') from error
    if seconds <= 0:
        raise InputError(f'"{text}" is not positive; use 600 or 10m')
    return float(seconds)


def _print_tables(report: SoakReport) -> None:
    table = Table("MEASURED", "VALUE")
    for row in table_rows(report):
        table.add(*row)
    table.print()
    stdout().print()
    over_time = Table("OVER TIME", "", "FROM, TO")
    for row in curves(report):
        over_time.add(*row)
    over_time.print()
    stdout().print()
    kept = Table(
        "KEPT", "AT HALF TIME", "AT THE END", "LIMIT", right=("AT HALF TIME", "AT THE END")
    )
    half, last = report.kept[len(report.kept) // 2], report.kept[-1]
    for name, size in sorted(last.containers.items()):
        before = half.containers.get(name)
        limit = "" if size.limit is None else str(size.limit)
        kept.add(name, "" if before is None else str(before.size), str(size.size), limit)
    kept.print()
