"""What docs/reference/python.md shows is what happens."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_examples_of_the_page_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs/reference/python.md").read_text()
    # A fence ends an example.
    text = text.replace("```\n", "\n")
    examples = doctest.DocTestParser().get_doctest(text, {}, "python.md", None, 0)
    assert len(examples.examples) > 10
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    assert runner.run(examples).failed == 0


def test_no_page_names_deeper_modules() -> None:
    # What may be named: the contracts, a group of entry points, names of services and APIs.
    others = "plugins?|testing|kubestow|io|dev"
    deeper = re.compile(rf"(?:from|import|`)\s*kubestow\.(?!(?:{others})\b)[a-z_]+")
    pages = [*(ROOT / "docs/guides").rglob("*.md"), *(ROOT / "docs/reference").rglob("*.md")]
    named = {
        f"{page.name}: {found}" for page in pages for found in deeper.findall(page.read_text())
    }
    assert not named
