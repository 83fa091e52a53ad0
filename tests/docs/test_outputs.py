"""Outputs and files that pages show are those of today, and the script that makes them works."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "scripts"))

from outputs import OutputError, render  # noqa: E402  (found through the line above)
from pages import blocks, pages  # noqa: E402

PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in pages()}


def is_made(text: str) -> bool:
    return any(block.language == "console" or "file" in block.options for block in blocks(text))


MADE = [name for name, text in PAGES.items() if is_made(text)]


@pytest.mark.slow  # each command is a process
@pytest.mark.parametrize("name", MADE)
def test_the_page_shows_what_is_printed_today(name: str) -> None:
    assert render(PAGES[name]) == PAGES[name], "`make docs` writes the page again"


def test_the_pages_with_outputs_are_found() -> None:
    assert {"README.md", "docs/guides/replace-kube-scheduler.md"} <= set(MADE)


@pytest.mark.parametrize("name", PAGES)
def test_every_block_says_what_it_is(name: str) -> None:
    """Without a language a block could have a command or an output that no test sees."""
    text = PAGES[name]
    languages = {block.language for block in blocks(text)}
    known = {"console", "sh", "text", "yaml", "python", "pycon", "dockerfile"}
    assert languages <= known
    assert sum(line.startswith("```") for line in text.splitlines()) == 2 * len([*blocks(text)])
    assert not [code for _, _, code, *_ in blocks(text, "text", "sh") if code.startswith("$ ")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "```console\n$ echo a; echo b\nold\n$ echo c\n```\n",
            "```console\n$ echo a; echo b\na\nb\n$ echo c\nc\n```\n",
            id="each-command-is-followed-by-its-output",
        ),
        pytest.param(
            "```console head=1 tail=1\n$ seq 5\n```\n",
            "```console head=1 tail=1\n$ seq 5\n1\n…\n5\n```\n",
            id="the-ends",
        ),
        pytest.param(
            "```console tail=2\n$ seq 2\n```\n",
            "```console tail=2\n$ seq 2\n1\n2\n```\n",
            id="nothing-is-left-out",
        ),
        pytest.param(
            "```console\n$ printf 'a  \\n%0100d\\n' 0 | tr 0 x\n```\n",
            "```console\n$ printf 'a  \\n%0100d\\n' 0 | tr 0 x\na\n" + "x" * 100 + "\n```\n",
            id="blanks-at-the-end",
        ),
        pytest.param(
            "```console\n$ printf '%0101d' 0 | tr 0 x\n```\n",
            "```console\n$ printf '%0101d' 0 | tr 0 x\n" + "x" * 98 + " …\n```\n",
            id="too-long",
        ),
        pytest.param(
            "```text save=a.txt\nsaved\n```\n\n```console\n$ cat a.txt >&2\n```\n",
            "```text save=a.txt\nsaved\n```\n\n```console\n$ cat a.txt >&2\nsaved\n```\n",
            id="a-shown-file-is-there",
        ),
        pytest.param(
            "Text\n\n```text file=.ci/run\nold\n```\nMore\n",
            f"Text\n\n```text file=.ci/run\n{(ROOT / '.ci/run').read_text()}```\nMore\n",
            id="file",
        ),
        pytest.param("```sh\nexit 1\n```\n", "```sh\nexit 1\n```\n", id="commands-only"),
    ],
)
def test_blocks_are_made(before: str, after: str) -> None:
    assert render(before) == after
    assert render(after) == after


def test_a_command_that_fails_is_named_with_what_it_printed() -> None:
    with pytest.raises(OutputError, match="`echo why; false` ended with code 1:\nwhy\n"):
        render("```console\n$ echo why; false\n```\n")


def test_the_readme_fits_on_a_screen() -> None:
    assert len(PAGES["README.md"].splitlines()) <= 60
