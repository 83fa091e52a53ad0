"""`kubestow replay` of what `kubestow record` wrote: verdicts, plugins and the exit code."""

import json
from pathlib import Path

import pytest
from tests.service.commands.test_replay import run
from tests.simulator.replay.other_scheduler import a_busy_time

from kubestow.config.decoding import decode_config
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.config.scheduler import SchedulerConfig
from kubestow.recording.file import RecordingWriter
from kubestow.recording.format import FOREIGN_ORIGIN, Header, Record

DEFAULT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
"""
PACKING = f"""{DEFAULT}
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: MostAllocated, resources: [{{name: cpu, weight: 1}}]}}}}
"""


def written(path: Path, records: list[Record]) -> str:
    """A recording of a cluster whose scheduler is said to have the default rules."""
    header = Header(
        program="test", origin=FOREIGN_ORIGIN, started_ns=0, config=DEFAULT, gates={}, chance=""
    )
    writer = RecordingWriter(path, header)
    writer.records += records
    writer.close()
    return str(path)


def test_a_scheduler_with_the_same_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = a_busy_time(SchedulerConfig(), seed=3, pods=30, nodes=10)
    path = written(tmp_path / "same.rec", other.records)
    assert run(monkeypatch, "replay", path) == 0
    output = capsys.readouterr().out
    assert "other rules   " not in output
    assert "s of recorded time: none needs other rules" in output


def test_a_scheduler_with_other_rules_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = a_busy_time(
        decode_config(PACKING.encode(), DEFAULT_GATES), seed=3, pods=20, nodes=10, rate=5
    )
    path = written(tmp_path / "packing.rec", other.records)
    assert run(monkeypatch, "replay", path, "--show", "1") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["AT", "POD", "VERDICT", "COMPARED", "RECORDED", "HERE"]
    assert any(
        line.endswith("more are not explained; --show N shows the first N.") for line in lines
    )
    assert any(line.startswith("NodeResourcesFit  ") for line in lines)
    assert "by other rules, most of all those of NodeResourcesFit (up to" in " ".join(lines)
    assert run(monkeypatch, "replay", path, "--show", "2", "-o", "json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["plugins"][0]["plugin"] == "NodeResourcesFit"
    assert [case["verdict"] for case in report["cases"]] == ["other rules"] * 2
    assert report["cases"][0]["why"]["scores"]


def test_without_a_decision_nothing_is_said_to_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = a_busy_time(SchedulerConfig(), seed=3, pods=0, nodes=2)
    assert run(monkeypatch, "replay", written(tmp_path / "empty.rec", other.records)) == 0
    output = capsys.readouterr().out
    assert "no decision to compare" in output
    assert "%" not in output
