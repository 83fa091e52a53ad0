"""What docs/reference/python.md shows is what happens."""

import doctest
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
