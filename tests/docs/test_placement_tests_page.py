"""The tests that docs/guides/placement-tests.md shows for pytest pass."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "scripts"))

from pages import blocks  # noqa: E402  (found through the line above)

pytest_plugins = ["pytester"]


@pytest.mark.slow
def test_the_tests_of_the_page_pass(pytester: pytest.Pytester) -> None:
    text = (ROOT / "docs/guides/placement-tests.md").read_text()
    code = "\n".join(block.code for block in blocks(text, "python"))
    assert code.count("def test_") == 2
    for block in blocks(text, "yaml"):
        if "save" in block.options:
            (pytester.path / block.options["save"]).write_text(block.code)
    pytester.makepyfile(test_page=code)
    result = pytester.runpytest_inprocess("-p", "kubestow.testing.pytest_plugin")
    result.assert_outcomes(passed=2)
