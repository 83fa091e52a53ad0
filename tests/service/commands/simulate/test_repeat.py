"""`kubestow simulate --scenario --repeat`: figures over seeds, the same as of single runs."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubestow.service.cli import main

SCENARIO = """\
name: small
until: 30m
nodes: [{name: node, count: 2, capacity: {cpu: 4}}]
arrivals:
  - name: batch
    poisson: 30/h
    duration: {exponential: 10m}
    template:
      apiVersion: v1
      kind: Pod
      spec:
        containers: [{name: main, image: x, resources: {requests: {cpu: "1"}}}]
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec: {containers: [{name: main, image: x, resources: {requests: {cpu: "9"}}}]}
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for name, text in (("day.yaml", SCENARIO), ("config.yaml", CONFIG), ("pod.yaml", POD)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)

    def run_command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["kubestow", "simulate", *arguments])
        with pytest.raises(SystemExit) as raised:
            main()
        output, errors = capsys.readouterr()
        return raised.value.code or 0, output, errors  # pyright: ignore[reportReturnType]

    return run_command


@pytest.mark.slow
def test_figures_are_those_of_single_runs_and_no_process_changes_a_byte(run: Run) -> None:
    given = ("--scenario", "day.yaml", "--seed", "5", "-o", "json")
    code, output, _ = run(*given, "--repeat", "3", "--jobs", "2")
    assert code == 0
    assert run(*given, "--repeat", "3", "--jobs", "1")[1] == output
    (variant,) = json.loads(output)["variants"]
    repeated = {each["seed"]: each["figures"] for each in variant["runs"]}
    assert list(repeated) == [5, 6, 7]
    for seed, figures in repeated.items():
        single: dict[str, Any] = json.loads(
            run("--scenario", "day.yaml", "--seed", str(seed), "-o", "json")[1]
        )
        assert single["figures"] == figures


@pytest.mark.slow
def test_the_configuration_the_end_and_added_files_count(run: Run) -> None:
    code, output, _ = run(
        *("--scenario", "day.yaml", "--repeat", "1", "--until", "5m", "-o", "json"),
        *("--config", "config.yaml", "--compatibility", "v1.36", "-f", "pod.yaml"),
        "--fail-on-pending",
    )
    assert code == 1
    (variant,) = json.loads(output)["variants"]
    assert (variant["name"], variant["version"]) == ("v1.36", "v1.36")
    assert variant["runs"][0]["figures"]["outcomes"]["Pending"] == 1
    assert variant["runs"][0]["figures"]["pods"] < 12


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--repeat", "2", "-f", "pod.yaml"), "give it with --scenario"),
        (("--jobs", "2", "--scenario", "day.yaml"), "--jobs is for --repeat"),
        (("--repeat", "2", "--scenario", "day.yaml", "-o", "wide"), "use table, json or yaml"),
        (("--repeat", "2", "--scenario", "day.yaml", "--report", "a.html"), "for one run"),
        (("--repeat", "2", "--scenario", "day.yaml", "--record", "a.rec"), "for one run"),
        (
            ("--repeat", "2", "--scenario", "day.yaml", "--percentage-of-nodes-to-score", "5"),
            "set percentageOfNodesToScore in the configuration",
        ),
        (("--repeat", "2", "--scenario", "day.yaml", "--until", "soon"), "expected a duration"),
        (("--repeat", "2", "--scenario", "day.yaml", "--config", "no.yaml"), 'cannot read "no'),
        (("--repeat", "2", "--scenario", "no.yaml"), "no.yaml"),
        (("--repeat", "0", "--scenario", "day.yaml"), "expected 1 to 100000"),
    ],
)
def test_wrong_input_is_refused(run: Run, arguments: tuple[str, ...], text: str) -> None:
    code, output, errors = run(*arguments)
    assert (code, output) == (2, "")
    assert text in errors
