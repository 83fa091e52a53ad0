"""Reports are what the programs that read them expect: JUnit, GitHub, Markdown."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.simulator.placement_tests.small_tests import ZONE, cases_of, deployment, document

from kubestow.simulator.placement_tests.reading import read_test
from kubestow.simulator.placement_tests.reports.github import github_text
from kubestow.simulator.placement_tests.reports.junit import junit_text
from kubestow.simulator.placement_tests.reports.markdown import (
    COMMENT_LENGTH,
    MARKER,
    markdown_text,
)
from kubestow.simulator.placement_tests.reports.words import SourcePlace, place_in, problem_lines
from kubestow.simulator.placement_tests.results import (
    CaseResult,
    ExpectationVerdict,
    PlacementRun,
    run_of,
)
from kubestow.simulator.placement_tests.running import RunOptions, run_cases

# What the schemas of Jenkins (junit-4.xsd, junit-10.xsd) allow, as far as it is used: element → its
# attributes (those that are needed first), its children, and whether it has text.
JUNIT = {
    "testsuites": (("tests", "failures", "errors"), ("name", "time"), ("testsuite",), False),
    "testsuite": (("name", "tests", "failures", "errors"), ("time",), ("testcase",), False),
    "testcase": (("name", "classname"), ("time",), ("failure", "error", "skipped"), False),
    "failure": (("message", "type"), (), (), True),
    "error": (("message", "type"), (), (), True),
}
COUNTS = ("tests", "failures", "errors")
ANNOTATION = re.compile(r"^::(?P<kind>error|warning|notice)(?: (?P<parts>[^:]*))?::(?P<text>.*)$")


def check_junit(element: ElementTree.Element) -> None:
    needed, optional, children, has_text = JUNIT[element.tag]
    assert set(needed) <= element.attrib.keys() <= {*needed, *optional}, element.tag
    for name in (*COUNTS, "time"):
        if name in element.attrib:
            assert re.fullmatch(r"\d+(\.\d+)?", element.attrib[name])
    assert has_text or not (element.text or "").strip(), element.tag
    for child in element:
        assert child.tag in children, child.tag
        check_junit(child)


@pytest.fixture(scope="module")
def run() -> PlacementRun:
    contents = [
        document(deployment("good", 2), expect=[{"placed": "all"}], name="good & <well>"),
        document(
            deployment("web", 14),
            expect=[{"placed": "all"}, {"evicted": "none"}],
            name="red: a, 100%",
        ),
        document(
            deployment("web", 2, nodeSelector={ZONE: "zone-a"}),
            expect=[{"placed": "all"}],
            forEach="zone",
            name="zones",
        ),
        document(expect=[{"placed": "all"}], given=[{"fail": "n-9"}], name="error"),
    ]
    cases = [case for content in contents for case in cases_of(content)]
    return run_cases(cases, RunOptions(jobs=1))


def test_junit_has_a_suite_for_each_file_and_fits_the_format(run: PlacementRun) -> None:
    root = ElementTree.fromstring(junit_text(run))
    check_junit(root)
    assert [root.get(name) for name in COUNTS] == ["4", "2", "1"]
    cases = root.findall("./testsuite/testcase")
    assert [case.get("name") for case in cases] == [case.name for case in run.cases]
    failure = cases[1].find("failure")
    assert failure is not None
    assert failure.get("type") == "placed"
    assert "2 of 14 pods of Deployment/web wait" in (failure.text or "")
    assert cases[3].find("error") is not None


def test_junit_has_no_characters_that_xml_has_not() -> None:
    case = CaseResult(name="a\x00b", file="f", test="a", status="error", error="x\x1b[1m\ud800")
    ElementTree.fromstring(junit_text(run_of([case])))


def unescaped(text: str) -> str:
    for code, sign in (("%3A", ":"), ("%2C", ","), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, sign)
    return text


def test_annotations_are_read_back_with_their_file_line_and_text(run: PlacementRun) -> None:
    found = [ANNOTATION.match(line) for line in github_text(run).splitlines()]
    assert all(found)
    read = [
        (
            match["kind"],
            dict(part.split("=", 1) for part in (match["parts"] or "").split(",") if part),
            unescaped(match["text"]),
        )
        for match in found
        if match is not None
    ]
    assert [kind for kind, _, _ in read] == ["error", "error", "error", "notice"]
    _, parts, text = read[0]
    assert unescaped(parts["title"]) == "red: a, 100%"
    assert (parts["file"], parts["line"]) == ("t.json", "1")
    assert "found      2 of 14 pods of Deployment/web wait: 0/3 nodes" in text
    assert "does not hold when zone zone-a fails" in read[1][2]
    assert read[3][2] == "1 passed, 2 failed, 1 error"


def test_an_annotation_is_at_the_line_of_the_manifest(tmp_path: Path) -> None:
    folder = tmp_path
    (folder / "web.yaml").write_text(
        "# The web servers.\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n"
        "    - {name: a, image: a, resources: {requests: {cpu: 64}}}\n"
    )
    (folder / "t.placement.yaml").write_text(
        "cluster: {nodes: [{name: n}]}\ngiven: [{apply: web.yaml}]\nexpect: {placed: all}\n"
    )
    run = run_cases(read_test(folder / "t.placement.yaml"), RunOptions(jobs=1))
    (line, _) = github_text(run).splitlines()
    assert f"file={folder}/web.yaml,line=7," in line


def test_a_place_has_no_way_round_over_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub compares it with the paths of a pull request, letter by letter."""
    monkeypatch.chdir(tmp_path)
    Path("checks").mkdir()
    Path("web.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n")
    assert place_in("checks/../web.yaml#1") == SourcePlace("web.yaml", 1)
    assert place_in("./checks/t.placement.yaml, line 3: x") == SourcePlace(
        "checks/t.placement.yaml", 3
    )


@pytest.mark.parametrize("name", ["Chart.yaml", "kustomization.yaml"])
def test_the_place_of_rendered_objects_is_a_file(tmp_path: Path, name: str) -> None:
    assert place_in(f"{tmp_path}#2") is None
    (tmp_path / name).touch()
    assert place_in(f"{tmp_path}#2") == SourcePlace(str(tmp_path / name), 1)


def test_markdown_begins_with_a_marker_and_is_the_same_each_time(run: PlacementRun) -> None:
    text = markdown_text(run)
    assert text.startswith(f"{MARKER}\n### ")
    assert text == markdown_text(run)
    assert "⚠️ Placement: 1 passed, 2 failed, 1 error" in text
    assert r"| ✅ | good & \<well\> |" in text
    assert text.count("<details>") == text.count("</details>") == 3
    assert text.count("```") % 2 == 0


def test_long_markdown_is_cut_at_a_line() -> None:
    verdict = ExpectationVerdict(
        kind="placed", field="expect", line=1, expected="x", holds=False, found="y" * 700
    )
    cases = [
        CaseResult(name=f"c{n}", file="f", test="c", status="failed", verdicts=(verdict,))
        for n in range(200)
    ]
    text = markdown_text(run_of(cases))
    assert len(text) < COMMENT_LENGTH + 200
    assert text.count("```") % 2 == 0
    assert "cut: the whole is in the output" in text


def test_texts_of_manifests_end_no_block_and_forge_no_line() -> None:
    verdict = ExpectationVerdict(
        kind="placed",
        field="expect[0]",
        line=3,
        expected="all",
        holds=False,
        found="1 of 2\n```\n::warning::forged\x1b[2J",
        short="x\n| a | b |",
    )
    case = CaseResult(
        name="a\n\n<img src=x>", file="t.yaml", test="a", status="failed", verdicts=(verdict,)
    )
    run = run_of([case])
    comment = markdown_text(run)
    assert not re.search(r"(?<!\\)<img", comment)
    assert comment.count("```") == 2
    assert not any(line.startswith(("::", "| a")) for line in comment.splitlines())
    for line in github_text(run).splitlines():
        assert ANNOTATION.fullmatch(line), line
        assert "forged" not in line or line.startswith("::error file=t.yaml,line=3")


def test_a_file_that_cannot_be_used_forges_no_line_of_its_error() -> None:
    error = 'no field "a\x1b]0;b\x07\n::stop-commands::c"'
    case = CaseResult(name="a\x1b[1m", file="t.yaml", test="a", status="error", error=error)
    assert list(problem_lines(case)) == [r'no field "a\x1b]0;b\x07\n::stop-commands::c"']
    for text in (github_text(run_of([case])), markdown_text(run_of([case]))):
        assert "\x1b" not in text
        assert "\x07" not in text
