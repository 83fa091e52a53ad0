"""What `kubestow test` prints."""

import shutil
import sys

import msgspec

from kubestow.explain.command_lines import command_lines
from kubestow.redaction import printable_lines
from kubestow.service.formats import DataFormat, TestFormat
from kubestow.service.output import print_data, stdout
from kubestow.simulator.placement_tests.against import CaseChange, StateComparison, pair_text
from kubestow.simulator.placement_tests.reports.github import github_text
from kubestow.simulator.placement_tests.reports.junit import junit_text
from kubestow.simulator.placement_tests.reports.markdown import markdown_text
from kubestow.simulator.placement_tests.reports.words import (
    COMMAND_INDENT,
    problem_lines,
    short_text,
)
from kubestow.simulator.placement_tests.results import CaseResult, PlacementRun
from kubestow.table import Table, wrapped_line


def data_of(run: PlacementRun, comparison: StateComparison | None) -> object:
    """What programs get: the run, and its comparison as one more field."""
    if comparison is None:
        return run
    return {**msgspec.to_builtins(run), "against": comparison}


def print_run(run: PlacementRun, comparison: StateComparison | None, output: TestFormat) -> None:
    """Print in the format asked for."""
    match output:
        case TestFormat.JSON:
            print_data(data_of(run, comparison), DataFormat.JSON)
        case TestFormat.JUNIT:
            sys.stdout.write(junit_text(run))
        case TestFormat.GITHUB:
            sys.stdout.write(github_text(run))
        case TestFormat.MARKDOWN:
            sys.stdout.write(markdown_text(run, comparison))
        case TestFormat.TABLE:
            _print_table(run)
            if comparison is not None:
                _print_comparison(comparison)


def _print_table(run: PlacementRun) -> None:
    table = Table("RESULT", "TEST", "HELD", "TRIED", "FOUND", right=("HELD", "TRIED"), keys=2)
    for case in run.cases:
        table.add(case.status, case.name, _held(case), _tried(case), short_text(case))
    table.print()
    for case in run.cases:
        if case.status != "passed" or case.notes:
            _print_problems(case)
    console = stdout()
    console.print(f"\n{run.counts_text}" + (", interrupted" if run.is_partial else ""))


def _held(case: CaseResult) -> str:
    if case.error:
        return ""
    held = sum(verdict.holds for verdict in case.verdicts)
    return f"{held}/{len(case.verdicts)}"


def _tried(case: CaseResult) -> str:
    return "" if case.for_each is None else f"{case.for_each.count:,}"


def _print_problems(case: CaseResult) -> None:
    _say(f"\n{case.name} ({case.file})")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in problem_lines(case):
        for part in _on_lines(f"  {line}", width):
            _say(part)
    for note in case.notes:
        _say(f"  {note}")


def _on_lines(line: str, width: int | None) -> list[str]:
    """A line of a problem in lines of this width; commands are continued, so that they can be
    copied."""
    indent, is_command, command = line.partition(f"{COMMAND_INDENT}kubectl ")
    if not is_command or indent.strip():
        return wrapped_line(line, width)
    return command_lines(f"kubectl {command}", indent + COMMAND_INDENT, width, prompt="")


# --- Before and after ---------------------------------------------------------------------------


def _print_comparison(comparison: StateComparison) -> None:
    _say(f"\nBefore is {comparison.before}.")
    changed = [case for case in comparison.cases if case.is_changed or case.note]
    if not changed:
        sys.stdout.write("No pod is placed elsewhere, and no pool has more or less room.\n")
    for case in changed:
        _print_change(case)


def _print_change(case: CaseChange) -> None:
    statuses = [status or "missing" for status in case.status]
    _say(f"\n{case.name}: {' → '.join(dict.fromkeys(statuses))}")
    if case.note:
        _say(f"  {case.note}")
        return
    if case.missing:
        _say(f"  new: {', '.join(case.missing)}")
    if case.owners:
        table = Table("WORKLOAD", "PODS", "PLACED", "ELSEWHERE", "MESSAGE", right=("ELSEWHERE",))
        for each in case.owners:
            table.add(
                each.owner,
                pair_text(each.pods),
                pair_text(each.placed),
                str(each.moved),
                each.message,
            )
        table.print(is_cut=True, indent="  ")
    if case.is_room_changed:
        table = Table("POOL", "NODES", "WITH PODS", "ROOM FOR 1 CPU, 1Gi")
        for pool in case.pools:
            cells = pair_text(pool.nodes), pair_text(pool.used), pair_text(pool.copies)
            table.add(pool.pool or "all nodes", *cells)
        table.print(indent="  ")
    before, after = case.needed
    if before != after:
        words = ["none helps" if number is None else str(number) for number in case.needed]
        _say(f"  nodes needed besides: {words[0]} → {words[1]}")
    if case.for_each[0] != case.for_each[1]:
        if case.for_each[0]:
            _say(f"  before: {case.for_each[0]}")
        _say(f"  after:  {case.for_each[1]}")


def _say(text: str) -> None:
    sys.stdout.write(f"{printable_lines(text)}\n")
