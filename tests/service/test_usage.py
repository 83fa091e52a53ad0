"""The text of `--help`."""

import re

from kubestow.config.flag_table import FLAGS, Section
from kubestow.service.usage import usage_text


def test_headings_come_in_order() -> None:
    headings = re.findall(r"^(\w.*) flags:$", usage_text("kube-scheduler"), re.MULTILINE)
    assert headings == [section.value for section in Section]
    assert headings[0] == "Misc"
    assert headings[-1] == "Global"


def test_every_flag_is_listed_under_its_heading() -> None:
    parts = re.split(r"^(\w.*) flags:$", usage_text("kube-scheduler"), flags=re.MULTILINE)
    by_heading = dict(zip(parts[1::2], parts[2::2], strict=True))
    for flag in FLAGS:
        assert re.search(rf"--{flag.name}\b", by_heading[flag.section]), flag.name


def test_lines_fit() -> None:
    assert max(map(len, usage_text("kube-scheduler").splitlines())) <= 100
    explanations = re.findall(r"^ {10}.*", usage_text("kube-scheduler", width=60), re.MULTILINE)
    assert max(map(len, explanations)) <= 60


def test_nonempty_defaults_are_shown() -> None:
    text = usage_text("kube-scheduler")
    assert "      --secure-port int (default 10259)\n" in text
    assert '      --logging-format string (default "text")\n' in text
    assert "      --leader-elect (default true)\n" in text
    assert "  -v, --v Level\n" in text
    assert "      --config string\n" in text
