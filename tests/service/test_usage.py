"""The text of `kubestow run --help`."""

import re

import pytest

from kubestow.config.flag_table import FLAGS, Section
from kubestow.service.commands.run.command import run_scheduler
from kubestow.service.usage import usage_text


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_is_printed_whatever_else_is_asked(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_scheduler(["--kubeconfig=missing", flag, "anything"]) == 0
    assert capsys.readouterr().out.startswith("Usage: kubestow run [flags]\n\n")


def test_headings_come_in_order() -> None:
    headings = re.findall(r"^(\w.*) flags:$", usage_text("kubestow run"), re.MULTILINE)
    assert headings == [section.value for section in Section]
    assert headings[0] == "Misc"
    assert headings[-1] == "Global"


def test_every_flag_is_listed_under_its_heading() -> None:
    parts = re.split(r"^(\w.*) flags:$", usage_text("kubestow run"), flags=re.MULTILINE)
    by_heading = dict(zip(parts[1::2], parts[2::2], strict=True))
    for flag in FLAGS:
        assert re.search(rf"--{flag.name}\b", by_heading[flag.section]), flag.name


def test_lines_fit() -> None:
    assert max(map(len, usage_text("kubestow run").splitlines())) <= 100
    flags = usage_text("kubestow run", width=60).partition("Misc flags:")[2]
    explanations = re.findall(r"^ {10}.*", flags, re.MULTILINE)
    assert max(map(len, explanations)) <= 60


def test_nonempty_defaults_are_shown() -> None:
    text = usage_text("kubestow run")
    assert "      --secure-port N (default 10259)\n" in text
    assert '      --logging-format TEXT (default "text")\n' in text
    assert "      --leader-elect (default true)\n" in text
    assert "  -v, --v N\n" in text
    assert "      --config TEXT\n" in text


def test_it_begins_with_what_most_runs_need() -> None:
    introduction = usage_text("kubestow run").partition("Misc flags:")[0]
    assert introduction.startswith("Usage: kubestow run [flags]\n\nSchedules the pods")
    for flag in re.findall(r"--([a-z-]+)", introduction):
        assert flag in {known.name for known in FLAGS}, flag
    assert "Example: kubestow run --kubeconfig=admin.conf" in introduction


def test_values_are_shown_in_plain_words() -> None:
    for label in {flag.kind.label for flag in FLAGS} - {""}:
        assert not re.search(rf"--\S+ {re.escape(label)}( |$)", usage_text("kubestow run"), re.M)
