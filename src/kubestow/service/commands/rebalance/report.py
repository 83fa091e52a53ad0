"""`kubestow rebalance --report`: the page of a plan as a file."""

from pathlib import Path

from kubestow.errors import InputError
from kubestow.files import keeping
from kubestow.service.output import stderr
from kubestow.simulator.rebalance.plan import RebalancePlan
from kubestow.simulator.rebalance.plan_page import page_of
from kubestow.simulator.rebalance.view import PlanView
from kubestow.simulator.reports.html import page_html


def check_report(path: Path, *, force: bool) -> None:
    """InputError if the page could not be written."""
    if path.suffix != ".html":
        raise InputError(f'--report is "{path}", expected a name that ends with .html')
    keeping.require_new(path, "--report", force=force)


def write_report(plan: RebalancePlan, view: PlanView, path: Path) -> None:
    """Write the page, and print its name; InputError if that fails."""
    try:
        keeping.write(path, page_html(page_of(plan, view)), force=True)
    except OSError as error:
        raise InputError(f'cannot write the report "{path}": {error.strerror}') from error
    stderr().print(f"report written: {path}", markup=False)
