"""The page that `kubestow compare --report` writes."""

from collections.abc import Sequence
from pathlib import Path

from kubestow.errors import InputError
from kubestow.files import keeping
from kubestow.simulator.comparison.comparison import SchedulerComparison, VariantTimes
from kubestow.simulator.comparison.sweep import SweepResult
from kubestow.simulator.reports.extra import require_extra


def require_report(path: Path, *, force: bool) -> None:
    """InputError if the page could not be written."""
    if path.suffix != ".html":
        raise InputError(f'--report is "{path}", expected a name that ends with .html')
    require_extra(f"--report {path}", "altair", "vl_convert")
    keeping.require_new(path, "--report", force=force)


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
        keeping.write(path, page_html(page_of(comparison, times, sweep)), force=True)
    except OSError as error:
        raise InputError(f'cannot write the report "{path}": {error.strerror}') from error
