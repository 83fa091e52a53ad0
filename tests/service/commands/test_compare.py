"""`kubestow compare`: what it prints, what it writes and how it ends."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubestow.service.cli import main
from kubestow.simulator.comparison import pool
from kubestow.simulator.comparison.task import Material

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: "4", memory: 16Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: b}
status: {capacity: {cpu: "4", memory: 16Gi, pods: "10"}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: c, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
"""
PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {disabled: [{name: PodTopologySpread}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
SCENARIO = """
apiVersion: kubestow.dev/v1alpha1
kind: Scenario
name: short
until: 1h
seed: 3
cluster: [cluster.yaml]
arivals: []
"""
Run = Callable[..., tuple[int, str, str]]


class _Here:
    """The same tasks in this process."""

    def __init__(self, material: Material, jobs: int) -> None:
        self._material = material

    def __enter__(self) -> "_Here":
        return self

    def __exit__(self, *error: object) -> None: ...

    def run(self, tasks: Any) -> Any:
        for index, task in enumerate(tasks):
            yield pool.Finished(index, pool.run_with(self._material, task))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (
        ("cluster.yaml", CLUSTER),
        ("packed.yaml", PACKED),
        ("day.yaml", SCENARIO),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code, output and errors of a run without processes."""
    monkeypatch.setattr("kubestow.service.commands.compare.runs.LocalRunner", _Here)

    def run_command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["kubestow", "compare", *arguments])
        with pytest.raises(SystemExit) as raised:
            main()
        output, errors = capsys.readouterr()
        return raised.value.code or 0, output, errors  # pyright: ignore[reportReturnType]

    return run_command


PLAIN = ("-f", "cluster.yaml")


TIGHT = ("--variant", "base", "--variant", "tight=packed.yaml")
UNBATCHED = ("--feature-gates", "OpportunisticBatching=false")


def test_tables_have_figures_and_moved_pods(run: Run) -> None:
    code, output, errors = run(*PLAIN, *TIGHT, *UNBATCHED)
    assert (code, errors) == (0, "")
    lines = [line.split() for line in output.splitlines()]
    assert ["FIGURE", "BASE", "TIGHT"] in lines
    assert ["placed", "3", "3"] in lines
    assert ["nodes", "with", "pods", "at", "the", "end", "2", "1", "(-1)"] in lines
    assert "tight: 1 pod went elsewhere than in base" in output
    assert ["1", "Score", "NodeResourcesFit"] in lines


def test_a_pod_that_got_the_node_an_equal_one_left_is_explained(run: Run) -> None:
    _, output, _ = run(*PLAIN, *TIGHT)
    words = " ".join(output.split())
    assert "the pod fits the node that an equal pod before it left as the next best" in words


def test_a_single_variant_is_compared_with_the_default(run: Run) -> None:
    _, output, _ = run(*PLAIN, "--variant", "packed.yaml", "-o", "json")
    found = json.loads(output)
    assert [variant["name"] for variant in found["variants"]] == ["default", "packed"]
    assert found["variants"][1]["config"] == "packed.yaml"
    assert found["variants"][1]["moved"]["count"]["mean"] == 1


def test_the_output_is_the_same_in_every_run(run: Run) -> None:
    arguments = (*PLAIN, "--variant", "v1.9", "--variant", "v1.20", "--seeds", "2", "-o", "json")
    first = run(*arguments)
    assert first == run(*arguments)
    found = json.loads(first[1])
    assert "times" not in found
    assert [variant["version"] for variant in found["variants"]] == ["v1.9", "v1.20"]


def test_csv_has_a_row_for_each_figure_of_a_run(run: Run) -> None:
    _, output, _ = run(*PLAIN, "--variant", "packed.yaml", "--seeds", "2", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(output)))
    used = [row for row in rows if (row["figure"], row["resource"]) == ("nodesUsed", "")]
    assert [(row["variant"], row["seed"], row["value"]) for row in used] == [
        ("default", "0", "2"),
        ("default", "1", "2"),
        ("packed", "0", "1"),
        ("packed", "1", "1"),
    ]


def test_times_are_a_part_of_their_own(run: Run) -> None:
    _, output, _ = run(*PLAIN, "--variant", "packed.yaml", "--times")
    before, _, after = output.partition("\nReal time\n")
    assert "packed: plugins that took most" in after
    assert before == run(*PLAIN, "--variant", "packed.yaml")[1]
    _, output, _ = run(*PLAIN, "--variant", "packed.yaml", "--times", "-o", "json")
    assert [times["variant"] for times in json.loads(output)["times"]] == ["default", "packed"]


def test_a_run_that_the_limit_ended_is_marked(run: Run, folder: Path) -> None:
    _, output, _ = run(*PLAIN, "--variant", "packed.yaml", "--limit", "0")
    assert "default: the time limit ended 1 run while pods were retried (--limit)" in output


REFUSED = """
apiVersion: kubestow.dev/v1alpha1
kind: Scenario
name: refused
until: 1h
cluster: [cluster.yaml]
objects:
- apiVersion: batch/v1
  kind: Job
  metadata: {name: batch}
  spec:
    parallelism: 2
    completions: 2
    template:
      spec: {restartPolicy: Never, priorityClassName: bach, containers: [{name: c, image: c}]}
"""


def test_refused_pods_of_a_scenario_are_shown(run: Run, folder: Path) -> None:
    (folder / "refused.yaml").write_text(REFUSED)
    variants = ("--variant", "base", "--variant", "tight=packed.yaml", "--variant", "v1.9")
    code, output, errors = run("--scenario", "refused.yaml", *variants, "--no-reasons")
    assert code == 1
    assert ["refused,", "never", "created", *"222"] in [
        line.split() for line in output.splitlines()
    ]
    (line,) = errors.splitlines()
    assert line.startswith("base, tight, v1.9: 2 pods of Job/batch refused by the API server: ")
    assert "no PriorityClass with name bach was found" in line
    _, output, _ = run("--scenario", "refused.yaml", *variants[:4], "--seeds", "2", "-o", "json")
    for variant in json.loads(output)["variants"]:
        assert [(each["owner"], each["pods"]) for each in variant["refusals"]] == [("Job/batch", 4)]
        assert [each["figures"]["refused"] for each in variant["runs"]] == [2, 2]


def test_intervals_need_several_seeds(run: Run) -> None:
    assert "±" not in run(*PLAIN, "--variant", "packed.yaml")[1]
    _, output, _ = run(*PLAIN, "--variant", "packed.yaml", "--seeds", "2")
    assert output.startswith("2 seeds; ± is the 95 % interval of the mean (Student's t)")


# --- what cannot be used ---


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        (
            "old=v1.8",
            'variant "old": there is no version "v1.8", only v1.9, v1.17, v1.20, v1.36, v1.37',
        ),
        ("v9.9", 'variant "v9.9": there is no version "v9.9"'),
        ("x=missing.yaml", 'variant "x": cannot read "missing.yaml": No such file or directory'),
        ("x=no_module:Y", 'variant "x" (seed 0): cannot load plugin "no_module:Y": no module'),
        ("x=v1.9,v1.20", 'variant "x": has 2 versions: v1.9, v1.20'),
        ("x=packed.yaml,day.yaml", 'variant "x": has two configurations'),
    ],
)
def test_a_variant_that_cannot_be_used_leaves_the_others(
    run: Run, variant: str, message: str
) -> None:
    code, output, errors = run(
        *PLAIN, "--variant", "base", "--variant", variant, "--variant", "v1.9"
    )
    assert code == 2
    assert errors.startswith(message)
    assert "v1.9: " in output
    assert ["FIGURE", "BASE", "V1.9"] in [line.split() for line in output.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (PLAIN, "nothing to compare: name at least one scheduler"),
        ((*PLAIN, "--variant", "a", "--variant", "a=v1.9"), 'two variants are called "a"'),
        (("--variant", "v1.9"), "nothing to compare: name files with -f"),
        (("-f", "missing.yaml", "--variant", "v1.9"), 'cannot read "missing.yaml"'),
        (("--scenario", "no.yaml", "--variant", "v1.9"), 'cannot read "no.yaml"'),
        (
            ("--scenario", "day.yaml", "--variant", "v1.9"),
            'day.yaml, line 8: arivals: unknown field; did you mean "arrivals"?',
        ),
        (("no.rec", "--variant", "v1.9"), "cannot read the recording no.rec"),
        (("x.rec", *PLAIN, "--variant", "v1.9"), "a recording brings its own cluster"),
        ((*PLAIN, "--variant", "v1.9", "--report", "x.pdf"), "ends with .html"),
        ((*PLAIN, "--variant", "v1.9", "--on", "spark://x"), "expected dask://HOST:PORT"),
    ],
)
def test_input_that_cannot_be_used(run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, output, errors = run(*arguments)
    assert (code, output) == (2, "")
    assert message in errors


def test_a_plugin_that_fails_ends_with_code_3(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    (folder / "compared_plugin.py").write_text(
        "from kubestow.plugin import NodeFilter\n\n\nclass Fails(NodeFilter):\n"
        '    name = "Fails"\n\n    def filter_node(self, pod, node):\n        return 1 / 0\n'
    )
    code, output, errors = run(*PLAIN, "--variant", "bad=compared_plugin:Fails")
    assert code == 3
    assert 'variant "bad" (seed 0)' in errors
    assert "ZeroDivisionError: division by zero (compared_plugin.py:8)" in errors
    assert "never placed" in output


# --- files and processes ---


def test_a_page_with_charts_is_written(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("altair")
    # The script that draws charts takes seconds to make, and tests of reports have it.
    monkeypatch.setattr("kubestow.simulator.reports.html._libraries", lambda: "")
    code, _, _ = run(*PLAIN, "--variant", "tight=packed.yaml", "--report", "out.html")
    assert code == 0
    page = (folder / "out.html").read_text()
    assert "<h2>Why pods went elsewhere</h2>" in page
    assert "default/web-" in page


def test_ctrl_c_prints_what_is_finished(folder: Path) -> None:
    # The second variant waits in its plugin, after a line that says so.
    (folder / "waiting.py").write_text(
        "import sys\nimport threading\n\nfrom kubestow.plugin import NodeFilter\n\n\n"
        'class Waits(NodeFilter):\n    name = "Waits"\n\n'
        "    def filter_node(self, pod, node):\n"
        '        print("waits", file=sys.stderr, flush=True)\n'
        "        threading.Event().wait()\n"
    )
    command = ["-m", "kubestow", "compare", *PLAIN, "--variant", "base"]
    process = subprocess.Popen(
        [sys.executable, *command, "--variant", "slow=waiting:Waits", "--jobs", "1"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "waits\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert ["placed", "3"] in [line.split() for line in output.splitlines()]
    assert "Interrupted: the runs that had ended are shown." in output
    assert errors == 'variant "slow" (seed 0): stopped before it had ended\n'
