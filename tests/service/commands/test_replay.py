"""`kubestow replay`: what differs, and why."""

import json
import sys
from pathlib import Path

import msgspec
import pytest

from kubestow.recording.file import RecordingReader, RecordingWriter
from kubestow.recording.format import Put
from kubestow.service.cli import main

ROOT = Path(__file__).parents[3]
PACKING = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    filter:
      disabled: [{name: TaintToleration}]
"""


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["kubestow", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "run.rec"
    files = [f"-f{ROOT}/examples/{name}.yaml" for name in ("cluster", "workload")]
    assert run(monkeypatch, "simulate", *files, f"--record={path}", "-o", "name") == 0
    return path


@pytest.fixture
def packing(tmp_path: Path) -> str:
    path = tmp_path / "packing.yaml"
    path.write_text(PACKING)
    return str(path)


def test_the_same_configuration_decides_the_same(
    recording: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(monkeypatch, "replay", str(recording)) == 0
    assert capsys.readouterr().out.endswith("changes: 0 differ\n")


def test_differences_are_explained_by_filters_and_scores(
    recording: Path,
    packing: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    assert run(monkeypatch, "replay", str(recording), "--config", packing, "--show", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        'default/reports-0 at 0.000s: recorded: TaintToleration rejected "node-a-2": '
        "node(s) had untolerated taint(s)"
    ) in lines
    assert (
        'default/web-6d3d19e4-0 at 0.000s: "node-b-1" has 50 points more than "node-a-1" '
        '(NodeResourcesFit +50); recorded: "node-a-1" had 50 points more than "node-b-1" '
        "(NodeResourcesFit +50)"
    ) in lines
    assert "3 more differ; --show N shows the first N." in lines


def test_data_has_the_explanations_and_counts_the_rest(
    recording: Path,
    packing: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    options = ("--config", packing, "--show=2", "-o", "json")
    assert run(monkeypatch, "replay", str(recording), *options) == 0
    report = json.loads(capsys.readouterr().out)
    filtered, scored = (each["why"] for each in report["differences"])
    assert filtered["rejected"][0] == {
        "node": "node-a-2",
        "isRecorded": True,
        "plugin": "TaintToleration",
        "reasons": ["node(s) had untolerated taint(s)"],
    }
    assert scored["scores"] == [{"plugin": "NodeResourcesFit", "recorded": -50, "replayed": 50}]
    assert (report["differing"], report["unexplained"]) == (5, 3)


def test_a_corrupted_cache_ends_the_replay_with_a_sentence(
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reader = RecordingReader(recording)
    records = list(reader)
    pod = next(each for each in records if isinstance(each, Put) and each.kind == "Pod")
    path = tmp_path / "contradictory.rec"
    writer = RecordingWriter(path, reader.header)
    # The first version of a pod that has a node by now.
    writer.records += [*records, msgspec.structs.replace(pod, at_ns=records[-1].at_ns)]
    writer.close()
    capsys.readouterr()
    assert run(monkeypatch, "replay", str(path)) == 0
    *_, summary, ended = capsys.readouterr().out.replace(" \n", " ").splitlines()
    assert summary.endswith("changes: 0 differ")
    assert ended.startswith("The scheduler ended at 0.000s: Pod updated on a different node than ")
