"""`kubestow plugin check`: what it prints, and its exit codes."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kubestow.service.cli import app
from kubestow.service.cli import main as run_main

PLUGINS = """
from kubestow.plugin import NodeScore, PluginArgs

class Args(PluginArgs, frozen=True, kw_only=True):
    key: str

class Prefers(NodeScore):
    name = "Prefers"
    args_type = Args

    def __init__(self, args, handle):
        self._key = args.key

    def score_node(self, pod, node):
        return 100 if self._key in node.metadata.labels else 0

class TooHigh(NodeScore):
    name = "TooHigh"

    def score_node(self, pod, node):
        return 101
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "checked_plugins.py").write_text(PLUGINS)
    (tmp_path / "args.yaml").write_text("key: disk\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "checked_plugins", raising=False)
    return tmp_path


def check(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plugin", "check", *arguments])


def test_a_plugin_with_arguments_passes(folder: Path) -> None:
    result = check("checked_plugins:Prefers", "--args", str(folder / "args.yaml"))
    assert result.exit_code == 0
    first, _, header, *_, last = result.stdout.splitlines()
    assert first == "Prefers: score"
    assert header.split() == ["CHECK", "RESULT", "DETAIL"]
    assert "µs per node with 1000 nodes" in last


def test_a_fault_is_printed_for_programs() -> None:
    result = check("checked_plugins:TooHigh", "-o", "json")
    assert result.exit_code == 1
    failed = [one for one in json.loads(result.stdout)["findings"] if one["result"] == "failed"]
    assert [one["check"] for one in failed] == ["types and ranges of answers"]
    assert "scores from 101 to 101" in failed[0]["detail"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["checked_plugins:Nothing"], 'module "checked_plugins" has no "Nothing"'),
        (["checked_plugins:Prefers"], 'initializing plugin "Prefers"'),
        (["checked_plugins:Prefers", "--args", "/nowhere"], 'cannot read "/nowhere"'),
    ],
)
def test_what_cannot_be_loaded(
    arguments: list[str],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubestow", "plugin", "check", *arguments])
    with pytest.raises(SystemExit) as ended:
        run_main()
    assert ended.value.code == 2
    assert text in capsys.readouterr().err
