"""Results as Markdown, for one comment of a pull request.

The text begins with a marker, by which a program finds its earlier comment to replace it. Equal
results give equal texts.
"""

from collections.abc import Iterator
from typing import Final

from kubestow.markdown import plain, plain_html
from kubestow.simulator.placement_tests.against import (
    CaseChange,
    OwnerChange,
    StateComparison,
    pair_text,
)
from kubestow.simulator.placement_tests.reports.words import problem_lines, short_text
from kubestow.simulator.placement_tests.results import CaseResult, PlacementRun

MARKER: Final = "<!-- kubestow test -->"
# A comment of GitHub has at most 65,536 characters.
COMMENT_LENGTH: Final = 60_000
_SIGNS: Final = {"passed": "✅", "failed": "❌", "error": "⚠️"}


def markdown_text(run: PlacementRun, comparison: StateComparison | None = None) -> str:
    """The comment; long ones are cut at the end of a line, which is said."""
    lines = [MARKER, *_run_lines(run)]
    if comparison is not None:
        lines += _comparison_lines(comparison)
    return _cut("\n".join(lines) + "\n")


def _run_lines(run: PlacementRun) -> Iterator[str]:
    sign = _SIGNS["error" if run.errors else "failed" if run.failed else "passed"]
    yield f"### {sign} Placement: {run.counts_text}"
    yield ""
    yield "| | test | |"
    yield "|---|---|---|"
    for case in run.cases:
        yield f"| {_SIGNS[case.status]} | {plain(case.name)} | {plain(short_text(case))} |"
    for case in run.cases:
        if case.status != "passed":
            yield from _details(case)


def _details(case: CaseResult) -> Iterator[str]:
    yield ""
    yield f"<details><summary>{plain_html(case.name)} ({plain_html(case.file)})</summary>"
    yield ""
    yield "```text"
    for line in problem_lines(case):
        yield line.replace("```", "'''")
    yield "```"
    yield ""
    yield "</details>"


# --- Before and after ---------------------------------------------------------------------------


def _comparison_lines(comparison: StateComparison) -> Iterator[str]:
    yield ""
    yield f"#### Before ({plain(comparison.before)}) → after"
    changed = [case for case in comparison.cases if case.is_changed or case.note]
    if not changed:
        yield ""
        yield "No pod is placed elsewhere, and no pool has more or less room."
    for case in changed:
        yield ""
        yield f"**{plain(case.name)}** {_status(case)}"
        if case.note:
            yield f"({plain(case.note)})"
            continue
        if case.missing:
            yield f"(new: {plain(', '.join(case.missing))})"
        yield from _owner_lines(case)
        yield from _pool_lines(case)
        yield from _other_lines(case)


def _status(case: CaseChange) -> str:
    signs = ["none" if status is None else _SIGNS[status] for status in case.status]
    return signs[1] if signs[0] == signs[1] else f"{signs[0]} → {signs[1]}"


def _owner_lines(case: CaseChange) -> Iterator[str]:
    if not case.owners:
        return
    yield ""
    yield "| workload | pods | placed | elsewhere | |"
    yield "|---|--:|--:|--:|---|"
    for each in case.owners:
        cells = (
            pair_text(each.pods),
            pair_text(each.placed),
            str(each.moved),
            plain(_owner_text(each)),
        )
        yield f"| {plain(each.owner)} | {' | '.join(cells)} |"


def _owner_text(change: OwnerChange) -> str:
    before, after = change.waiting
    if after > before:
        return f"{after - before} no longer fit: {change.message}"
    return f"{before - after} more fit" if after < before else ""


def _pool_lines(case: CaseChange) -> Iterator[str]:
    if not case.is_room_changed:
        return
    yield ""
    yield "| pool | nodes | with pods | room for pods of 1 cpu, 1Gi |"
    yield "|---|--:|--:|--:|"
    for pool in case.pools:
        cells = (pair_text(pool.nodes), pair_text(pool.used), pair_text(pool.copies))
        yield f"| {plain(pool.pool or 'all nodes')} | {' | '.join(cells)} |"


def _other_lines(case: CaseChange) -> Iterator[str]:
    before, after = case.needed
    if before != after:
        words = ["no number of nodes helps" if n is None else str(n) for n in case.needed]
        yield ""
        yield f"Nodes needed besides: {words[0]} → {words[1]}"
    if case.for_each[0] != case.for_each[1]:
        yield ""
        before_text = f"Before: {plain(case.for_each[0])}. " if case.for_each[0] else ""
        yield f"{before_text}After: {plain(case.for_each[1])}."


# --- Length -------------------------------------------------------------------------------------


def _cut(text: str) -> str:
    if len(text) <= COMMENT_LENGTH:
        return text
    kept = text[:COMMENT_LENGTH].rpartition("\n")[0]
    is_open = kept.count("```") % 2 == 1
    end = "\n```\n\n</details>" if is_open else ""
    return f"{kept}{end}\n\n… cut: the whole is in the output of the check.\n"
