"""Every section of the specification that code, tests or documents cite exists.

How a citation is written is said in docs/spec/README.md; `find_citations` reads exactly that.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "docs" / "spec"
CHAPTERS = {path.name[:2]: path for path in sorted(SPEC.glob("[0-9][0-9]-*.md"))}

# A citation may go on in the next line, which in a comment begins with a #.
_BLANK = r"[\s#]+"
_TOKEN = re.compile(
    rf"\b[Ss]pec{_BLANK}(?P<chapter>\d\d)\b(?:{_BLANK}(?:part{_BLANK})?(?P<part>[A-Z])\b)?"
    rf"|\b(?P<bare_chapter>\d\d)(?={_BLANK}(?P<sign>§|[A-Z]\d))"
    r"|§(?P<section>\d+(?:\.\d+)*[a-z]?)\b"
    r"|\b(?P<label>[A-Z]+\d+(?:\.\d+)*)\b"
)
# What may stand between two parts of one citation: "§1 steps 1 to 8, §2", "§2.4 (2), §2.5".
_GAP = re.compile(
    r"(?:[\s#,;:]|\b(?:and|to|spec|part|steps?|examples?|hints|trap|[a-z]|\d+)\b|\(\d+\))*"
)
_ANCHOR = re.compile(r'<a id="(?P<label>[^"]+)"></a>')
_HEADING = re.compile(r"#+ (?:Part )?(?P<label>\d+(?:\.\d+)*|[A-Z]\d*(?:\.\d+)*)\.? (?P<title>.+)")
_ROW = re.compile(r"\| (?P<label>[A-Z]+\d+[a-z]?) \|")
_ITEM = re.compile(r"\*\*(?P<letter>[a-z])\. ")


class Citation(NamedTuple):
    """`label` is a section without its sign, a lettered section or a row; "" cites the chapter."""

    line: int
    chapter: str
    label: str


def find_citations(text: str, home: str = "") -> Iterator[Citation]:
    """All citations in a text.

    A § that continues no citation belongs to the chapter `home`, or else to the first one cited.
    """
    chapter, end = "", 0
    for token in _TOKEN.finditer(text):
        line = text.count("\n", 0, token.start()) + 1
        continues = chapter != "" and _GAP.fullmatch(text, end, token.start()) is not None
        named = token["chapter"] or token["bare_chapter"]
        if token["bare_chapter"] and token["sign"] != "§" and not continues:
            continue  # a number, then some name
        if token["label"] and not continues:
            continue
        if named:
            chapter, home = named, home or named
            yield Citation(line, chapter, token["part"] or "")
        else:
            chapter = chapter if continues else home
            yield Citation(line, chapter, token["section"] or token["label"])
        end = token.end()


def labels_of(chapter: Path) -> set[str]:
    """What can be cited: numbered headings, rows of worked examples, lettered items."""
    labels: set[str] = set()
    section = ""
    for line in chapter.read_text().splitlines():
        if heading := _HEADING.match(line):
            section = heading["label"]
            labels.add(section)
        elif row := _ROW.match(line):
            labels.add(row["label"])
        elif item := _ITEM.match(line):
            labels.add(section + item["letter"])
    return labels


LABELS = {number: labels_of(path) | {""} for number, path in CHAPTERS.items()}


def wrong_citations(path: Path) -> list[str]:
    home = path.name[:2] if path.parent == SPEC and path.name[:2] in CHAPTERS else ""
    return [
        f"{path}:{line}: spec {chapter or '??'} {label}"
        for line, chapter, label in find_citations(path.read_text(), home)
        if label not in LABELS.get(chapter, ())
    ]


@pytest.mark.parametrize("folder", ["src", "tests", "tools", "docs"])
def test_every_cited_section_exists(folder: str) -> None:
    paths = [
        path
        for suffix in ("*.py", "*.md")
        for path in sorted((ROOT / folder).rglob(suffix))
        if path != Path(__file__)  # cites what does not exist
    ]
    assert paths
    assert [wrong for path in paths for wrong in wrong_citations(path)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param('"""Sorts (spec 04 §2.2)."""', ["04 ", "04 2.2"], id="one"),
        pytest.param("Spec 02 §7, §8: why", ["02 ", "02 7", "02 8"], id="list"),
        pytest.param("(spec 04 §3.1 to §9)", ["04 ", "04 3.1", "04 9"], id="range"),
        pytest.param("(spec 09 §1 steps 1 to 8, §2)", ["09 ", "09 1", "09 2"], id="steps-between"),
        pytest.param(
            "(spec 07 §2.4 (2), §2.5)", ["07 ", "07 2.4", "07 2.5"], id="step-in-brackets"
        ),
        pytest.param(
            "(spec 02 §6.2, §6.3; 03 §11.5, §11.6)",
            ["02 ", "02 6.2", "02 6.3", "03 ", "03 11.5", "03 11.6"],
            id="another-chapter",
        ),
        pytest.param("(spec 02 §7.2, §7.3h)", ["02 ", "02 7.2", "02 7.3h"], id="item"),
        pytest.param("(spec 08 A6, A11 hints)", ["08 ", "08 A6", "08 A11"], id="letters"),
        pytest.param(
            "(spec 08 B7.5, 09 W9 to W13)", ["08 ", "08 B7.5", "09 ", "09 W9", "09 W13"], id="rows"
        ),
        pytest.param("(spec 08 part B), (spec 08 A)", ["08 B", "08 A"], id="parts"),
        pytest.param("all of spec 02.", ["02 "], id="chapter-alone"),
        pytest.param('"""Counts (spec 06\n§6.5)."""', ["06 ", "06 6.5"], id="wrapped"),
        pytest.param(
            "    # Counts (spec\n    # 06\n    # §6.5, §6.6).",
            ["06 ", "06 6.5", "06 6.6"],
            id="wrapped-comment",
        ),
        pytest.param(
            "(spec 04 §8)\n(spec 03 §14.2)\n# --- (§12.5) ---",
            ["04 ", "04 8", "03 ", "03 14.2", "04 12.5"],
            id="sign-alone-means-the-first-chapter",
        ),
        pytest.param("only §3", [" 3"], id="sign-alone-in-a-text-without-chapter"),
        pytest.param("(05 §2.4), B5", ["05 ", "05 2.4"], id="chapter-without-the-word"),
        pytest.param("spec: 10 A4 sheets, E5 and H2O", [], id="other-names-and-numbers"),
    ],
)
def test_citations_are_found(text: str, found: list[str]) -> None:
    assert [f"{chapter} {label}" for _, chapter, label in find_citations(text)] == found


@pytest.mark.parametrize(
    "citation",
    [
        pytest.param("spec 04 §2.99", id="section"),
        pytest.param("spec 04 §2, §99", id="second-of-a-list"),
        pytest.param("spec 04\n# §99", id="wrapped"),
        pytest.param("spec 08 B99", id="letter"),
        pytest.param("spec 09 W99", id="row"),
        pytest.param("spec 02 §7.3z", id="item"),
        pytest.param("spec 13 §1", id="chapter"),
        pytest.param("§1", id="no-chapter"),
    ],
)
def test_a_citation_of_what_does_not_exist_is_wrong(tmp_path: Path, citation: str) -> None:
    path = tmp_path / "made_up.py"
    path.write_text(f"# Why (spec 04 §2.2).\n# {citation}\n" if "spec" in citation else citation)
    wrong = wrong_citations(path)
    assert wrong
    assert all(str(path) in text for text in wrong)


@pytest.mark.parametrize("chapter", CHAPTERS.values(), ids=lambda path: path.stem)
def test_every_numbered_heading_has_its_own_anchor(chapter: Path) -> None:
    lines = chapter.read_text().splitlines()
    headings = [
        (lines[index - 1], heading["label"])
        for index, line in enumerate(lines)
        if index and (heading := _HEADING.match(line))
    ]
    assert [above for above, _ in headings] == [f'<a id="{label}"></a>' for _, label in headings]
    anchors = [anchor["label"] for line in lines if (anchor := _ANCHOR.fullmatch(line))]
    assert sorted(anchors) == sorted({label for _, label in headings})


def test_the_overview_names_every_chapter() -> None:
    overview = (SPEC / "README.md").read_text()
    named = set(re.findall(r"\((\d\d-[a-z0-9.-]+\.md)\)", overview))
    assert named == {path.name for path in CHAPTERS.values()}
