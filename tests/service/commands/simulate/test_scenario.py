"""`kubestow simulate --scenario`: what is printed and refused, and its exit codes."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubestow.service.cli import main
from kubestow.simulator.reports.files import Report
from kubestow.simulator.scenario import run as scenario_run

SCENARIO = """\
name: small
until: 30m
nodes: [{name: node, count: 2, capacity: {cpu: 4}}]
arrivals:
  - name: batch
    every: 5m
    duration: 4m
    template:
      apiVersion: v1
      kind: Pod
      spec:
        containers: [{name: main, image: x, resources: {requests: {cpu: "1"}}}]
  - name: huge
    at: 1m
    template:
      apiVersion: v1
      kind: Pod
      spec:
        containers: [{name: main, image: x, resources: {requests: {cpu: "9"}}}]
"""
PLUGIN = """
from kubestow.plugin import NodeFilter

class Raises(NodeFilter):
    name = "Raises"

    def filter_node(self, pod, node):
        return node.metadata.labels["nope"] == "x"
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: "failing_filter:Raises"}]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "small.yaml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path


def simulate(*args: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["kubestow", "simulate", *args])
        with pytest.raises(SystemExit) as ended:
            main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.usefixtures("folder")
def test_a_summary_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--scenario", "small.yaml") == 0
    output, errors = capsys.readouterr()
    assert "default     batch      6        6         0    0s    0s        0s" in output
    assert "6 of 7 pods placed in 30m of virtual time: 6 ended, 1 pending" in output
    assert "Waiting times: p50 0s, p90 0s, p99 0s, longest 0s" in output
    assert "1 pod waits: 0/2 nodes are available: 2 Insufficient cpu." in output
    # What differs from run to run.
    assert errors.startswith("30m of virtual time played in ")


@pytest.mark.usefixtures("folder")
def test_json_is_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--scenario", "small.yaml", "--until", "10m", "--seed", "5", "-o", "json")
    assert simulate(*args, "--fail-on-pending") == 1
    first = capsys.readouterr().out
    report = msgspec.json.decode(first, type=Report)
    assert (report.name, report.seed, report.virtual_duration_s) == ("small", 5, 600.0)
    assert len(report.pods) == 3
    simulate(*args)
    assert capsys.readouterr().out == first


def test_files_are_added_to_the_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capacity = "{cpu: 16, pods: 110}"
    node = (
        f"{{apiVersion: v1, kind: Node, metadata: {{name: big}}, status: {{capacity: {capacity}}}}}"
    )
    (folder / "big.yaml").write_text(node, encoding="utf-8")
    assert simulate("--scenario", "small.yaml", "-f", "big.yaml", "-o", "json") == 0
    report = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert [pod.node for pod in report.pods if pod.owner == "huge"] == ["big"]


@pytest.mark.parametrize("version", ["v1.9", "v1.17", "v1.20"])
@pytest.mark.usefixtures("folder")
def test_an_older_scheduler_plays_it(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--scenario", "small.yaml", "--compatibility", version) == 0
    assert "6 of 7 pods placed in 30m of virtual time" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_a_recording_is_written_and_replayed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate("--scenario", "small.yaml", "--until", "6m", "--record", "run.jsonl.gz") == 0
    monkeypatch.setattr(sys, "argv", ["kubestow", "replay", "run.jsonl.gz"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0, capsys.readouterr()


@pytest.mark.usefixtures("folder")
def test_ctrl_c_prints_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*args: Any, **named: Any) -> Any:
        def on_progress(progress: Any) -> None:
            if 660 < progress.time_s < 663:
                os.kill(os.getpid(), signal.SIGINT)

        return run(*args, **{**named, "on_progress": on_progress})

    run = scenario_run.run_scenario
    monkeypatch.setattr("kubestow.service.commands.simulate.play.run_scenario", interrupted)
    assert simulate("--scenario", "small.yaml", "-o", "json") == 130
    output, errors = capsys.readouterr()
    report = msgspec.json.decode(output, type=Report)
    assert report.is_partial
    assert 660 < report.virtual_duration_s < 700
    assert len(report.pods) == 4
    assert "Ending the run; Ctrl-C again ends it without a result." in errors
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_plugin_that_fails_is_named_with_the_entry(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "failing_filter.py").write_text(PLUGIN, encoding="utf-8")
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    args = ("--scenario", "small.yaml", "--until", "20s", "--config", "config.yaml")
    assert simulate(*args) == 3
    output, errors = capsys.readouterr()
    assert "attempts failed with an error." in output
    assert 'small.yaml, line 5: arrivals[0]: running "Raises" filter plugin: KeyError' in errors


@pytest.mark.usefixtures("folder")
def test_a_template_is_written_and_plays(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--save-template", "mine.yaml") == 0
    assert simulate("--scenario", "mine.yaml", "--until", "30m") == 0
    assert simulate("--save-template", "mine.yaml") == 2
    assert '"mine.yaml" exists and is not overwritten' in capsys.readouterr().err
    assert simulate("--save-template", "mine.yaml", "--force") == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--until", "soon"), '--until is "soon", expected a duration such as 24h'),
        (("--until", "-1h"), '--until is "-1h", expected more than 0'),
        (("--limit", "5"), "--limit is for one placement; with --scenario use --until"),
        (("--drain", "node-0"), "a scenario has actions for this"),
        (("--compatibility", "v1.9", "--config", "c"), "--config and --percentage-of-nodes"),
        (("--policy-configmap", "p", "--compatibility", "v1.9"), "give the Policy with --policy"),
        (("--trace", "csv"), "--scenario and --trace exclude each other"),
        (("--policy-config-file", "p"), "flags of older schedulers need --compatibility"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_options_that_do_not_fit_are_refused(
    args: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate("--scenario", "small.yaml", *args) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_options_of_a_scenario_need_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("-f", "small.yaml", "--seed", "3") == 2
    assert "--seed is for --scenario and --trace" in capsys.readouterr().err
    assert simulate("-f", "small.yaml", "--usage", "used.csv") == 2
    assert "--usage are files of a trace" in capsys.readouterr().err


REFUSED = """\
name: refused
until: 12h
nodes: [{name: node, count: 2, capacity: {cpu: 4}}]
objects:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 3
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec:
          priorityClassName: gold
          containers: [{name: main, image: x}]
arrivals:
  - name: batch
    every: 1h
    template:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            priorityClassName: bach
            containers: [{name: main, image: x}]
"""


def test_pods_that_are_refused_are_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "refused.yaml").write_text(REFUSED, encoding="utf-8")
    assert simulate("--scenario", "refused.yaml") == 1
    output = capsys.readouterr().out
    assert "15 pods were refused by the API server.\n" in output
    assert "  12 of batch: pods " in output
    assert "is forbidden: no PriorityClass with name bach was found\n" in output
    assert "  3 of Deployment/web: pods " in output
    assert simulate("--scenario", "refused.yaml", "-o", "json") == 1
    report = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert report.refused_pods == 15
    assert {each.owner: each.pods for each in report.refusals} == {
        "batch": 12,
        "Deployment/web": 3,
    }


def test_pods_that_are_accepted_later_are_not_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    late = """\
actions:
  - at: 2h
    apply: class.yaml
"""
    (folder / "class.yaml").write_text(
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: gold}, value: 1}"
    )
    (folder / "late.yaml").write_text(REFUSED.replace("name: bach", "name: gold") + late)
    text = (folder / "late.yaml").read_text().replace("priorityClassName: bach", "priority: 1")
    (folder / "late.yaml").write_text(text)
    code = simulate("--scenario", "late.yaml", "-o", "json")
    report = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert (code, report.refused_pods, report.refusals) == (0, 0, [])
    assert sum(pod.owner == "Deployment/web" for pod in report.pods) == 3
