"""`kubestow upgrade`: what it prints, its exit codes, and input that cannot be used."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kubestow.api.files import Document
from kubestow.recording.file import RecordingReader
from kubestow.service.cli import main
from kubestow.simulator.input.saving import save_input

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "20"}},
}


def pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container]},
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fits.yaml").write_text(yaml.safe_dump_all([NODE, pod("p", "1")]))
    (tmp_path / "waits.yaml").write_text(yaml.safe_dump_all([NODE, pod("p", "9")]))
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["kubestow", "upgrade", *words])
    with pytest.raises(SystemExit) as raised:
        main()
    code = raised.value.code
    return code if isinstance(code, int) else 0


Capture = pytest.CaptureFixture[str]


def test_nothing_changes(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert run(monkeypatch, "--to", "v1.37", "-f", "fits.yaml", "--fail-on", "changed") == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == (
        "v1.36 to v1.37: nothing changes on this cluster; 1 waiting pod decided under both"
    )


@pytest.mark.parametrize(("fail_on", "code"), [("changed", 1), ("broken", 0)])
def test_a_text_is_a_change_and_breaks_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, fail_on: str, code: int
) -> None:
    words = ("--to", "v1.37", "-f", "waits.yaml", "--fail-on", fail_on, "-o", "json")
    assert run(monkeypatch, *words) == code
    report = json.loads(capsys.readouterr().out)
    assert [cause["change"] for cause in report["causes"]] == [1, 5]
    assert "no new claims to deallocate" in report["causes"][0]["examples"][0]["before"]


def test_a_gate_that_is_gone_is_broken(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    gates = "GenericWorkload=true,GangScheduling=true"
    words = ("--to", "v1.37", "-f", "fits.yaml", "--feature-gates", gates)
    assert run(monkeypatch, *words, "--fail-on", "broken", "-o", "json") == 1
    (refused, *_) = json.loads(capsys.readouterr().out)["configuration"]
    assert refused["effect"] == "refused"
    assert refused["change"] == 18
    assert refused["text"] == "unrecognized feature gate: GangScheduling"


def test_a_gate_that_is_locked_is_broken(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    words = ("--to", "v1.37", "-f", "fits.yaml", "--feature-gates", "NodeDeclaredFeatures=false")
    assert run(monkeypatch, *words, "--fail-on", "broken", "-o", "yaml") == 1
    (refused, *_) = yaml.safe_load(capsys.readouterr().out)["configuration"]
    assert refused["text"] == (
        "cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true"
    )


def test_arguments_with_other_defaults(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    words = ("--to", "v1.37", "-f", "fits.yaml", "--config", "config.yaml")
    assert run(monkeypatch, *words, "--fail-on", "changed", "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)["configuration"]
    assert "the arguments of VolumeBinding have other defaults: shape" in [
        each["text"] for each in found
    ]


def test_names_are_found_in_files_and_folders(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    alerts = folder / "alerts"
    alerts.mkdir()
    (alerts / "a.yaml").write_text(
        "expr: rate(scheduler_resourceclaim_creates_total[5m])\n"
        "other: my_scheduler_resourceclaim_creates_total_sum\n"
    )
    (alerts / "b.json").write_text('{"expr": "x{event=\\"UnschedulablePodAdd\\"}"}')
    (alerts / "b2.json").write_text(r'{"expr": "sum(\n\tscheduler_resourceclaim_creates_total)"}')
    (alerts / "c.bin").write_bytes(b"\xff\xfeUnschedulablePodAdd")
    words = ("--to", "v1.37", "-f", "fits.yaml", "--search", "alerts")
    assert run(monkeypatch, *words, "--fail-on", "changed", "-o", "json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["searched"] == 3
    assert [(each["where"], each["change"]) for each in report["files"]] == [
        ("alerts/a.yaml:1", 16),
        ("alerts/b.json:1", 16),
        ("alerts/b2.json:1", 16),
    ]


def test_names_are_found_in_objects_of_the_cluster(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def other(api_version: str, kind: str, **fields: object) -> dict[str, Any]:
        metadata = {"name": "x", "namespace": "watch"}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}

    rule = {"alert": "A", "expr": "rate(scheduler_resourceclaim_creates_total[5m])"}
    panel = 'first\nx{event="UnschedulablePodAdd"}'
    objects = [
        NODE,
        other("monitoring.coreos.com/v1", "PrometheusRule", spec={"groups": [{"rules": [rule]}]}),
        other("v1", "ConfigMap", data={"board.json": json.dumps({"expr": panel})}),
        other("v1", "Secret", data={"a": "UnschedulablePodAdd"}),
    ]
    (folder / "all.yaml").write_text(yaml.safe_dump_all(objects))
    assert run(monkeypatch, "--to", "v1.37", "-f", "all.yaml", "-o", "json") == 0
    printed = capsys.readouterr()
    assert [(each["where"], each["change"]) for each in json.loads(printed.out)["objects"]] == [
        ("PrometheusRule watch/x (all.yaml#2)", 16),
        ("ConfigMap watch/x (all.yaml#3)", 16),
    ]
    assert printed.err == "ignored: 1 Secret\n"


def test_going_back_finds_the_newer_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (folder / "a.yaml").write_text("x: scheduler_queued_entities\ny: UnschedulablePodAdd\n")
    words = ("--from", "v1.37", "--to", "v1.36", "-f", "fits.yaml", "--search", "a.yaml")
    assert run(monkeypatch, *words, "-o", "json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["isBack"]
    assert [each["where"] for each in report["files"]] == ["a.yaml:1"]


@pytest.mark.parametrize(
    ("gates", "found"), [((), [4]), (("--feature-gates", "DRADeviceTaintRules=true"), [1, 5])]
)
def test_4_rules_as_a_server_of_v1_36_has_them(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    gates: tuple[str, ...],
    found: list[int],
) -> None:
    """With the gate on they act in both versions, and only texts and events differ."""

    def device_object(kind: str, name: str, spec: object, version: str = "v1") -> dict[str, Any]:
        version = f"resource.k8s.io/{version}"
        metadata = {"name": name, "namespace": "default"} if kind == "ResourceClaim" else {}
        metadata["name"] = name
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}

    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    slice_spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    rule = {"taint": {"key": "broken", "effect": "NoSchedule"}}
    waiting = pod("p", "1")
    waiting["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c"}]
    objects = [
        NODE,
        device_object("DeviceClass", "gpu", {}),
        device_object("ResourceSlice", "s", {**slice_spec, "devices": [{"name": "d"}]}),
        device_object("ResourceClaim", "c", {"devices": {"requests": [request]}}),
        device_object("DeviceTaintRule", "r", rule, "v1beta2"),
        waiting,
    ]
    (folder / "rules.yaml").write_text(yaml.safe_dump_all(objects))
    assert run(monkeypatch, "--to", "v1.37", "-f", "rules.yaml", *gates, "-o", "json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [cause["change"] for cause in report["causes"]] == found


SPREAD_LIST = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - {name: PodTopologySpread, args: {defaultingType: List}}
"""


@pytest.mark.parametrize(
    ("words", "number"),
    [
        pytest.param(("-f", "unbound.yaml"), 7, id="7-binding"),
        pytest.param(("-f", "fits.yaml", "--config", "list.yaml"), 14, id="14-batching"),
        pytest.param(("-f", "fits.yaml", "--search", "alert.yaml"), 16, id="16-metrics"),
        pytest.param(("-f", "whole.yaml"), 17, id="17-pod-level"),
        pytest.param(
            ("-f", "fits.yaml", "--feature-gates", "SidecarContainers=true"), 18, id="18-gates"
        ),
    ],
)
def test_one_change_that_decisions_do_not_show(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    words: tuple[str, ...],
    number: int,
) -> None:
    failed = pod("p", "1")
    message = 'running Bind plugin "DefaultBinder": Internal error occurred: timed out'
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    failed["metadata"]["uid"] = "p"
    failed["status"] = {"conditions": [{**condition, "message": message}]}
    whole = pod("p", "1")
    container = whole["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    whole["spec"]["resources"] = {"requests": {"cpu": "1"}}
    (folder / "unbound.yaml").write_text(yaml.safe_dump_all([NODE, failed]))
    (folder / "whole.yaml").write_text(yaml.safe_dump_all([NODE, whole]))
    (folder / "alert.yaml").write_text("expr: scheduler_resourceclaim_creates_total\n")
    (folder / "list.yaml").write_text(SPREAD_LIST)
    assert run(monkeypatch, "--to", "v1.37", *words, "-o", "json") == 0
    report = json.loads(capsys.readouterr().out)
    parts = ("causes", "configuration", "objects", "files")
    found = [each["change"] for part in parts for each in report[part] if each["change"]]
    assert found == [number]
    assert number not in [each["change"] for each in report["unseen"]]


def test_markdown_has_tables(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert run(monkeypatch, "--to", "v1.37", "-f", "waits.yaml", "-o", "markdown") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "## Kubernetes v1.36 to v1.37"
    assert "| change | § | pods | effect | what |" in lines


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(
            ("--to", "v1.99", "-f", "fits.yaml"),
            '--to is "v1.99", expected v1.36 or v1.37',
            id="unknown-version",
        ),
        pytest.param(
            ("--to", "v1.37", "--from", "v1.20", "-f", "fits.yaml"),
            '--from is "v1.20", expected v1.36 or v1.37',
            id="older-version",
        ),
        pytest.param(
            ("--to", "v1.37", "--from", "v1.37", "-f", "fits.yaml"),
            "--from and --to are both v1.37",
            id="same-version",
        ),
        pytest.param(("--to", "v1.37"), "nothing to upgrade: name files with -f", id="no-cluster"),
        pytest.param(("--to", "v1.37", "-f", "none.yaml"), 'cannot read "none.yaml"', id="no-file"),
        pytest.param(
            ("--to", "v1.37", "--from-cluster", "--kubeconfig", "none"),
            'cannot read the kubeconfig "none"',
            id="no-kubeconfig",
        ),
        pytest.param(
            ("--to", "v1.37", "-f", "fits.yaml", "--search", "none"),
            "--search: there is no file or folder none",
            id="nothing-to-search",
        ),
        pytest.param(
            ("--to", "v1.37", "-f", "fits.yaml", "--feature-gates", "Nothing=true"),
            "unrecognized feature gate: Nothing",
            id="unknown-gate",
        ),
    ],
)
def test_input_that_cannot_be_used_is_one_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    words: tuple[str, ...],
    text: str,
) -> None:
    before = sorted(folder.iterdir())
    assert run(monkeypatch, *words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert text in printed.err
    assert sorted(folder.iterdir()) == before


def test_a_cluster_that_does_not_answer_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    cluster: dict[str, Any] = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "contexts": [context],
        "users": [{"name": "u", "user": {}}],
        "current-context": "x",
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    words = ("--to", "v1.37", "--from-cluster", "--kubeconfig", "kubeconfig")
    assert run(monkeypatch, *words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "127.0.0.1:1" in printed.err


def test_the_version_that_the_cluster_has_is_none_to_go_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    save_input([Document(NODE, "n1")], folder / "saved.yaml", server_version="v1.36.4")
    assert run(monkeypatch, "--to", "v1.36", "-f", "saved.yaml") == 2
    assert "--to is v1.36, which the cluster has" in capsys.readouterr().err


def recorded(monkeypatch: pytest.MonkeyPatch, capsys: Capture, version: str) -> None:
    words = ["simulate", "-f", "waits.yaml", "--compatibility", version, "--record", "run.rec"]
    monkeypatch.setattr("sys.argv", ["kubestow", *words])
    with pytest.raises(SystemExit):
        main()
    capsys.readouterr()


@pytest.mark.parametrize(("version", "other"), [("v1.36", "v1.37"), ("v1.37", "v1.36")])
def test_decisions_of_a_recording(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, version: str, other: str
) -> None:
    recorded(monkeypatch, capsys, version)
    assert run(monkeypatch, "--to", other, "run.rec", "-o", "json", "--fail-on", "broken") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["before"], report["after"]) == (version, other)
    assert report["compared"] >= 1
    assert [cause["change"] for cause in report["causes"]] == [1, 5]


def test_a_recording_of_an_unknown_edition_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    recorded(monkeypatch, capsys, "v1.36")
    header = RecordingReader(Path("run.rec")).header
    unknown = msgspec.structs.replace(header, edition="v1.99")
    monkeypatch.setattr(RecordingReader, "header", unknown, raising=False)
    monkeypatch.setattr(RecordingReader, "__init__", _keep_path)
    assert run(monkeypatch, "--to", "v1.37", "run.rec") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert 'recorded with the rules of "v1.99", which are not known here' in printed.err


def _keep_path(reader: RecordingReader, path: Path) -> None:
    reader.path = path


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(("-f", "fits.yaml"), "a recording has its cluster", id="files"),
        pytest.param(
            ("--feature-gates", "A=true"), "a recording has its configuration", id="gates"
        ),
        pytest.param(("--from", "v1.37"), "was recorded with v1.36", id="version"),
    ],
)
def test_a_recording_brings_its_own(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    words: tuple[str, ...],
    text: str,
) -> None:
    recorded(monkeypatch, capsys, "v1.36")
    assert run(monkeypatch, "--to", "v1.37", "run.rec", *words) == 2
    assert text in capsys.readouterr().err
