"""The help of every command: plain words, and the summary that the program shows."""

import re

import pytest
from typer.testing import CliRunner

from kubestow.service.cli import COMMANDS, app, import_command
from kubestow.service.commands.bench import command as bench
from kubestow.service.help import _plain  # the table of words

# What Typer writes for types and limits.
TYPER_WORDS = re.compile(r"<[a-z]|range|\[Path|\{FILE|x>=|<=x|Value error|\bno-check\b|\.\.\.\}")


SUBCOMMANDS = [f"bench {function.__name__}" for function in bench.SUBCOMMANDS]


@pytest.mark.parametrize("command", [*(name for name in COMMANDS if name != "run"), *SUBCOMMANDS])
def test_the_help_is_in_plain_words(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0
    assert TYPER_WORDS.findall(result.output) == []
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize(("command", "summary"), COMMANDS.items())
def test_the_summary_is_the_first_line_of_the_help(command: str, summary: str) -> None:
    help_text = import_command(command).callback.__doc__
    assert help_text.partition(".")[0] + "." == summary


@pytest.mark.parametrize(
    ("record", "plain"),
    [
        (("--speed <float range>", "Speed.  [x>=0]"), ("--speed N", "Speed.  [0 or more]")),
        (("--n <int range>", "[default: 1; 0<=x<=9]"), ("--n N", "[default: 1; 0 to 9]")),
        (("PATH <list[Path]>", "[default: (all)]"), ("PATH", "[default: all]")),
        (("-o <table|json>", "How."), ("-o table|json", "How.")),
        (("--s N", "S.  [default: 60.0; x>=0.0]"), ("--s N", "S.  [default: 60; 0 or more]")),
        (("--to <path>", "Where.  [x<=5]"), ("--to FILE", "Where.  [5 or less]")),
    ],
)
def test_words_of_typer_become_plain(record: tuple[str, str], plain: tuple[str, str]) -> None:
    assert _plain(*record) == plain


def test_options_stand_under_their_headings() -> None:
    text = CliRunner().invoke(app, ["simulate", "--help"]).output
    assert text.index("\nOptions:") < text.index("--filename")
    assert text.index("\nOlder schedulers:") < text.index("--policy")


def test_a_long_example_can_be_pasted() -> None:
    result = CliRunner().invoke(app, ["conformance", "--help"], terminal_width=80)
    lines = result.output.splitlines()
    start = lines.index("  Example: kubestow conformance conformance/v1.9 \\")
    assert lines[start + 1] == "    --only verdicts/PodFitsResources --show 3"
