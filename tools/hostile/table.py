"""The table of docs/reliability.md: a row for each case, with both of its sizes."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from tools.hostile.run import Measured

HEADER: Final = (
    "| object | size | CPU ms at half the size | CPU ms | slowest pod, ms |\n|---|--:|--:|--:|--:|"
)


def page_table(measured: Sequence[Measured]) -> str:
    """Markdown, in the order of the measurements."""
    rows = [_row(list(sizes)) for _, sizes in groupby(measured, key=lambda result: result.name)]
    return "\n".join([HEADER, *rows])


def _row(sizes: Sequence[Measured]) -> str:
    full = sizes[-1]
    half = f"{sizes[0].stretch_cpu_ms:,.0f}" if len(sizes) > 1 else ""
    slowest_pod_ms = max(result.canary_delay_ms for result in sizes)
    return (
        f"| {full.name} | {full.size:,} | {half} | {full.stretch_cpu_ms:,.0f} "
        f"| {slowest_pod_ms:,.0f} |"
    )
