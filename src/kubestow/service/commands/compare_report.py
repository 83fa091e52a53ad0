"""The page that `kubestow compare --report` writes."""

import os
from collections.abc import Sequence
from pathlib import Path

from kubestow.errors import InputError
from kubestow.simulator.comparison.comparison import SchedulerComparison, VariantTimes
from kubestow.simulator.comparison.sweep import SweepResult
from kubestow.simulator.reports.extra import require_extra


def require_report(path: Path) -> None:
    """InputError if the page could not be written."""
    if path.suffix != ".html":
        raise InputError(f'--report is "{path}", expected a name that ends with .html')
    require_extra(f"--report {path}", "altair", "vl_convert")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f'--report: cannot write "{path}"; name a file in a folder of yours')


def write_report(
    comparison: SchedulerComparison,
    times: Sequence[VariantTimes] | None,
    sweep: SweepResult,
    path: Path,
) -> None:
    """Write the page; InputError if that fails."""
    from kubestow.simulator.comparison.page import page_of
    from kubestow.simulator.reports.html import page_html

    try:
        path.write_text(page_html(page_of(comparison, times, sweep)), encoding="utf-8")
    except OSError as error:
        raise InputError(f'cannot write the report "{path}": {error.strerror}') from error
