"""What reports say of a case, in words."""

import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import yaml

from kubestow.api.yaml_text import yaml_nodes
from kubestow.files.reading import InputTooLargeError, read_file
from kubestow.redaction import printable
from kubestow.simulator.placement_tests.results import CaseResult, Cause, ExpectationVerdict

_LINE: Final = re.compile(r"^(?P<file>.+?), line (?P<line>\d+)")
_NUMBER: Final = re.compile(r"^(?P<file>.+)#(?P<number>\d+)$")
# Before commands, which stand below their suggestion.
COMMAND_INDENT: Final = " " * 13
_RENDERED: Final = ("Chart.yaml", "kustomization.yaml", "kustomization.yml", "Kustomization")


class SourcePlace(NamedTuple):
    file: str
    line: int


def short_text(case: CaseResult) -> str:
    """What breaks the first expectation, or what the failures of `forEach` came to."""
    if case.error:
        return case.error
    own = [verdict for verdict in case.verdicts if not verdict.holds]
    if own:
        return own[0].short
    return "" if case.for_each is None else case.for_each.summary


def problem_lines(case: CaseResult) -> Iterator[str]:
    """Why a case did not pass, a line each; those that belong to the one before are indented."""
    if case.error:
        yield printable(case.error)
        return
    for verdict in case.verdicts:
        if not verdict.holds:
            yield from verdict_lines(verdict, f"line {verdict.line}: {verdict.field}")
    if case.for_each is not None and case.for_each.smallest is not None:
        smallest = case.for_each.smallest
        yield printable(f"forEach {case.for_each.what}: {case.for_each.summary}")
        for verdict in smallest.verdicts:
            yield from verdict_lines(verdict, smallest.name)


def verdict_lines(verdict: ExpectationVerdict, place: str) -> Iterator[str]:
    """What was expected and found, the decisions and suggestions."""
    yield printable(f"{place}: expected {verdict.expected}")
    yield printable(f"  found      {verdict.found}")
    suggested: set[str] = set()
    for cause in verdict.causes:
        if cause.decision and cause.decision not in verdict.found:
            yield printable(f"  decision   {cause.pod}: {cause.decision}")
        if cause.suggestion and cause.suggestion not in suggested:
            suggested.add(cause.suggestion)
            yield printable(f"  suggestion {cause.suggestion}")
            yield from (printable(COMMAND_INDENT + line) for line in command_lines(cause))


def command_lines(cause: Cause) -> Iterator[str]:
    """The commands of kubectl that carry the suggestion out."""
    for command in cause.commands:
        yield from command.splitlines()


def place_of_cause(cause: Cause) -> SourcePlace | None:
    """The file and line of a manifest, as far as they are known."""
    return place_in(cause.source)


def place_in(source: str) -> SourcePlace | None:
    """The file and line of a text such as "web.yaml, line 3: spec" or "web.yaml#2"."""
    if found := _LINE.match(source):
        return SourcePlace(os.path.normpath(found["file"]), int(found["line"]))
    if found := _NUMBER.match(source):
        file = os.path.normpath(found["file"])
        if os.path.isdir(file):
            return _place_in_folder(file)
        return SourcePlace(file, document_line(file, int(found["number"])))
    return None


def _place_in_folder(folder: str) -> SourcePlace | None:
    """What a chart or a kustomization begins with: its objects are rendered, and have no line."""
    for name in _RENDERED:
        file = os.path.join(folder, name)
        if os.path.isfile(file):
            return SourcePlace(file, 1)
    return None


def document_line(file: str, number: int) -> int:
    """The line in which a document of a YAML file begins; 1 if the file cannot be read."""
    try:
        nodes = [node for node, _ in yaml_nodes(read_file(file))]
    except (OSError, InputTooLargeError, yaml.YAMLError):
        return 1
    return nodes[number - 1].start_mark.line + 1 if number <= len(nodes) else 1
