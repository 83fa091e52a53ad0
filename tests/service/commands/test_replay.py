"""`kubestow replay`: what differs, and why."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kubestow.clock import SystemClock
from kubestow.cluster.self_signed import self_signed
from kubestow.engine.extenders import http_extender
from kubestow.recording.file import RecordingReader, RecordingWriter
from kubestow.recording.format import FOREIGN_ORIGIN, Put
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
    # The web servers come last: then their nodes differ from each other.
    web, *others = (ROOT / "examples" / "workload.yaml").read_text().split("---\n")
    (tmp_path / "workload.yaml").write_text("---\n".join((*others, web)))
    files = [f"-f{ROOT}/examples/cluster.yaml", f"-f{tmp_path}/workload.yaml"]
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
    assert capsys.readouterr().out.endswith("of recorded time: 0 differ\n")


HUGE = """\
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec: {containers: [{name: main, image: pause, resources: {requests: {cpu: "500"}}}]}
"""


@pytest.mark.parametrize(("recorded", "other"), [("v1.36", "v1.37"), ("v1.37", "v1.36")])
def test_the_recorded_version_decides_unless_another_is_named(
    recorded: str,
    other: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "huge.yaml").write_text(HUGE)
    files = [f"-f{ROOT}/examples/cluster.yaml", f"-f{tmp_path}/huge.yaml"]
    path = str(tmp_path / "huge.rec")
    run(monkeypatch, "simulate", *files, f"--record={path}", f"--compatibility={recorded}")
    for version, differing in ((None, 0), (recorded, 0), (other, 1)):
        options = () if version is None else ("--compatibility", version)
        capsys.readouterr()
        assert run(monkeypatch, "replay", path, "-o", "json", *options) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["differing"] == differing
        assert report["isOther"] is bool(differing)
    (difference,) = report["differences"]
    assert difference["what"] == ["message"]
    assert "the message or the pods to evict differ" in difference["why"]["summary"]
    text = "no new claims to deallocate"
    assert (text in difference["recorded"]) is (recorded == "v1.36")
    assert (text in difference["replayed"]) is (other == "v1.36")


def test_a_recording_of_an_unknown_version_is_explained_in_one_line(
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = with_header(recording, tmp_path / "later.rec", edition="v1.99", gates={"Later": True})
    capsys.readouterr()
    assert run(monkeypatch, "replay", str(path)) == 2
    error = capsys.readouterr().err.splitlines()[0]
    assert 'it was recorded with the rules of "v1.99", which are not known here' in error
    assert error.endswith("or decide as another version: --compatibility v1.37")
    assert run(monkeypatch, "replay", str(path), "--compatibility", "v1.37") == 0
    assert capsys.readouterr().out.endswith("of recorded time: 0 differ\n")


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


def with_header(path: Path, to: Path, **fields: Any) -> Path:
    """The recording with another header."""
    reader = RecordingReader(path)
    writer = RecordingWriter(to, msgspec.structs.replace(reader.header, **fields))
    writer.records += list(reader)
    writer.close()
    return to


PLUGIN = """\
from pathlib import Path
from kubestow.plugin import NodeScore

Path(__file__).with_name("was-imported").touch()


class Own(NodeScore):
    name = "Own"

    def score_node(self, pod, node):
        return 100 if node.metadata.name == "node-b-1" else 0
"""


@pytest.mark.parametrize("name", ["own_plugin_of_test_replay:Own", "Own"])
def test_a_recording_imports_nothing_by_itself(
    name: str,
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "own_plugin_of_test_replay.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_plugin_of_test_replay", raising=False)
    config = yaml.safe_load(RecordingReader(recording).header.config)
    for profile in config["profiles"]:
        profile["plugins"]["score"] = {"enabled": [{"name": name, "weight": 1}]}
    path = with_header(recording, tmp_path / "other.rec", config=yaml.safe_dump(config))
    capsys.readouterr()
    for arguments in (["replay", str(path)], ["replay", str(path), "--page"]):
        assert run(monkeypatch, *arguments) == 2
        error = capsys.readouterr().err
        assert f"had plugins that are not built in: {name}." in error
        assert "name each with --plugin, for example --plugin " in error
    # Another scheduler decides on the recorded cluster.
    assert run(monkeypatch, "compare", str(path), "--variant", "a", "--jobs", "1") == 0
    assert not (tmp_path / "was-imported").exists()
    assert run(monkeypatch, "replay", str(path), "--plugin", "own_plugin_of_test_replay:Own") == 1
    assert (tmp_path / "was-imported").exists()
    capsys.readouterr()
    assert run(monkeypatch, "replay", str(path), "--plugin", "Nothing") == 2
    assert 'there is no installed plugin "Nothing"' in capsys.readouterr().err


EXTENDER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: https://me:hunter2@127.0.0.1:1/scheduler
  filterVerb: filter
  ignorable: true
  tlsConfig: {keyData: aHVudGVyMg==, certData: Y2VydA==, insecure: true}
"""


def test_secrets_of_the_configuration_are_not_recorded_and_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = self_signed(["extender"], now_ns=SystemClock().now_ns())
    config = yaml.safe_load(EXTENDER)
    tls = {"keyData": pair.key, "certData": pair.certificate}
    encoded = {field: base64.b64encode(text).decode() for field, text in tls.items()}
    config["extenders"][0]["tlsConfig"].update(encoded)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    path = tmp_path / "run.rec"
    files = [f"-f{ROOT}/examples/{name}.yaml" for name in ("cluster", "workload")]
    options = [f"--config={tmp_path}/config.yaml", f"--record={path}", "-o", "name"]
    assert run(monkeypatch, "simulate", *files, *options) == 0
    reader = RecordingReader(path)
    content = msgspec.json.encode([reader.header, list(reader)]).decode()
    assert "https://REDACTED@127.0.0.1:1" in content
    for secret in ("hunter2", encoded["keyData"]):
        assert secret not in content
    capsys.readouterr()
    assert run(monkeypatch, "replay", str(path)) == 0
    assert capsys.readouterr().out.endswith("of recorded time: 0 differ\n")


def test_addresses_in_a_recording_of_another_scheduler_are_not_asked(
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    posts: list[str] = []
    monkeypatch.setattr(http_extender, "post_json", lambda url, *_, **__: posts.append(url))
    config = EXTENDER.partition("  tlsConfig")[0]
    path = with_header(recording, tmp_path / "other.rec", config=config, origin=FOREIGN_ORIGIN)
    assert run(monkeypatch, "replay", str(path)) == 0
    assert "Extenders of a recording are not asked" in capsys.readouterr().err
    assert posts == []


def test_damaged_objects_are_named_in_one_line(
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reader = RecordingReader(recording)
    for number, text in enumerate((b"[" * 100_000, b'{"metadata": "\xff"}', b"{}", b"[]")):
        path = tmp_path / f"{number}.rec"
        writer = RecordingWriter(path, reader.header)
        writer.records.append(Put(0, "Pod", text))
        writer.close()
        capsys.readouterr()
        codes = [
            run(monkeypatch, "replay", str(path)),
            run(monkeypatch, "compare", str(path), "--variant", "a", "--jobs", "1"),
        ]
        assert codes == ([2, 2] if text != b"{}" else [0, 2])
        if text != b"{}":
            assert run(monkeypatch, "replay", str(path), "--page") == 2
        assert "Traceback" not in capsys.readouterr().err
    path = with_header(recording, tmp_path / "chance.rec", chance='{"state": 5}')
    assert run(monkeypatch, "replay", str(path)) == 2
    assert "its header has no state of a random generator" in capsys.readouterr().err


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
    assert summary.endswith("of recorded time: 0 differ")
    assert ended.startswith("The scheduler ended at 0.000s: Pod updated on a different node than ")
