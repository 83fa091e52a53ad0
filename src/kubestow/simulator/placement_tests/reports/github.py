"""Results as annotations of GitHub: commands that a workflow's log is searched for.

An annotation is at the line of the manifest that the decision was about, if that is known, else at
the line of the expectation.
"""

from collections.abc import Iterator

from kubestow.redaction import printable
from kubestow.simulator.placement_tests.reports.words import (
    SourcePlace,
    place_in,
    place_of_cause,
    verdict_lines,
)
from kubestow.simulator.placement_tests.results import CaseResult, ExpectationVerdict, PlacementRun


def github_text(run: PlacementRun) -> str:
    """A line for each failed expectation, and one that sums up."""
    lines = [line for case in run.cases for line in _annotations(case)]
    lines.append(f"::notice title=kubestow test::{_data(run.counts_text)}")
    return "\n".join(lines) + "\n"


def _annotations(case: CaseResult) -> Iterator[str]:
    if case.error:
        place = place_in(case.error) or SourcePlace(case.file, 1)
        yield _command("error", place, case.name, case.error)
        return
    for verdict in case.verdicts:
        if not verdict.holds:
            yield _annotation(case, verdict, "")
    if case.for_each is not None and case.for_each.smallest is not None:
        smallest = case.for_each.smallest
        for verdict in smallest.verdicts:
            yield _annotation(case, verdict, f"{case.for_each.summary}\n")


def _annotation(case: CaseResult, verdict: ExpectationVerdict, before: str) -> str:
    places = (place_of_cause(cause) for cause in verdict.causes)
    place = next((each for each in places if each is not None), None)
    lines = verdict_lines(verdict, f"{case.file}, line {verdict.line}")
    text = before + "\n".join(lines)
    return _command("error", place or SourcePlace(case.file, verdict.line), case.name, text)


def _command(kind: str, place: SourcePlace, title: str, text: str) -> str:
    parts = f"file={_property(place.file)},line={place.line},title={_property(title)}"
    return f"::{kind} {parts}::{_data(text)}"


def _data(text: str) -> str:
    return printable(text.replace("%", "%25"), keeps="\n").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
