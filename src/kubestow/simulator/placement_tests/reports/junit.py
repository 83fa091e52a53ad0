"""Results as JUnit XML: a suite for each file, a test case for each case."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final
from xml.etree import ElementTree

from kubestow.simulator.placement_tests.reports.words import problem_lines
from kubestow.simulator.placement_tests.results import CaseResult, PlacementRun

# Characters that XML 1.0 does not have.
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_text(run: PlacementRun) -> str:
    """The document. Times are 0: results have none, so that equal runs give equal files."""
    root = ElementTree.Element("testsuites", _counts(run.cases), name="kubestow test", time="0")
    for file, cases in groupby(run.cases, key=lambda case: case.file):
        of_file = list(cases)
        suite = ElementTree.SubElement(root, "testsuite", _counts(of_file), name=_clean(file))
        suite.set("time", "0")
        for case in of_file:
            suite.append(_case(case))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(case: CaseResult) -> ElementTree.Element:
    attributes = {"name": _clean(case.name), "classname": _clean(case.file), "time": "0"}
    element = ElementTree.Element("testcase", attributes)
    if case.status == "passed":
        return element
    lines = [_clean(line) for line in problem_lines(case)]
    kind = "failure" if case.status == "failed" else "error"
    problem = ElementTree.SubElement(element, kind, message=lines[0], type=_type(case))
    problem.text = "\n".join(lines)
    return element


def _type(case: CaseResult) -> str:
    failed = case.failed_verdicts
    return failed[0].kind if failed else "input"


def _counts(cases: Sequence[CaseResult]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(_count(cases, "failed")),
        "errors": str(_count(cases, "error")),
    }


def _count(cases: Iterable[CaseResult], status: str) -> int:
    return sum(case.status == status for case in cases)


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
