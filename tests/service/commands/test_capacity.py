"""`kubestow capacity`: what it prints and how it ends."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubestow.service.cli import main

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: small, labels: {kubernetes.io/hostname: small}}
status: {capacity: {cpu: "2", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: large, labels: {kubernetes.io/hostname: large}}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "10"}}
---
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, resources: {requests: {cpu: "1"}}}]}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: c, resources: {requests: {cpu: "1"}}}]}
"""
FAILING = """
from kubestow.plugin import NodeFilter


class Fails(NodeFilter):
    name = "Fails"

    def filter_node(self, pod, node):
        raise ValueError("broken")
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: "failing:Fails"}]}}
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code, output and errors of a run in a folder with a cluster and a pod."""
    for name, text in (
        ("cluster.yaml", CLUSTER + DEPLOYMENT),
        ("pod.yaml", POD),
        ("config.yaml", CONFIG),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "failing.py").write_text(FAILING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def run_command(*arguments: str) -> tuple[int, str, str]:
        command = ["kubestow", "capacity", "-f", "cluster.yaml", *arguments]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as raised:
            main()
        output, errors = capsys.readouterr()
        return raised.value.code or 0, output, errors  # pyright: ignore[reportReturnType]

    return run_command


def test_what_fits(run: Run) -> None:
    code, output, _ = run("--fit", "pod.yaml")
    assert code == 0
    assert output.splitlines() == [
        "5 copies fit on 2 of 2 nodes",
        "",
        "COPIES   NODES   NAMES",
        "     3       1   large",
        "     2       1   small",
        "",
        "What keeps nodes from taking another:",
        "",
        "NODES   WITH COPIES   REASON",
        "    2             2   Insufficient cpu",
    ]


def test_data_has_copies_nodes_and_limits(run: Run) -> None:
    found = json.loads(run("--fit", "pod.yaml", "-o", "json")[1])
    assert found["copies"] == 5
    assert found["nodes"] == [{"name": "large", "pods": 3}, {"name": "small", "pods": 2}]
    assert found["limitedBy"][0]["reason"] == "Insufficient cpu"


@pytest.mark.parametrize(
    ("arguments", "code"), [(("--at-least", "5"), 0), (("--at-least", "6"), 1)]
)
def test_a_number_can_be_required(run: Run, arguments: tuple[str, ...], code: int) -> None:
    assert run("--fit", "pod.yaml", *arguments)[0] == code


def test_a_number_can_be_enough(run: Run) -> None:
    assert run("--fit", "pod.yaml", "--limit", "2")[1].startswith("2 or more copies fit on")


def test_the_cluster_can_be_changed(run: Run) -> None:
    code, output, errors = run("--fit", "pod.yaml", "--add-nodes", "2", "--like", "large")
    assert (code, errors) == (0, '2 nodes like "large" added\n')
    assert output.startswith("13 copies fit on 4 of 4 nodes\n")


def test_what_is_needed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text(
        DEPLOYMENT.replace("replicas: 1", "replicas: 9").replace("{name: web}", "{name: more}")
    )
    arguments = ("-f", "more.yaml", "--need", "--shape", "name=m,cpu=3,memory=8Gi")
    code, output, _ = run(*arguments)
    assert code == 0
    assert output.splitlines() == [
        "2 nodes are needed for 10 pods: 2 m",
        "Fewer nodes do not suffice (2 sets of nodes tried)",
    ]
    code, output, _ = run(*arguments, "-o", "json")
    found: dict[str, Any] = json.loads(output)
    assert found["nodes"] == [{"shape": "m", "count": 2}]
    assert found["isProven"] is True


def test_what_is_never_enough(run: Run, tmp_path: Path) -> None:
    (tmp_path / "huge.yaml").write_text(POD.replace('cpu: "1"', 'cpu: "99"'))
    code, output, _ = run("-f", "huge.yaml", "--need", "--shape", "cpu=8")
    assert code == 1
    assert output.startswith("No number of these nodes suffices for all 2 pods\n  default/p: 0/")


def test_what_could_go(run: Run) -> None:
    code, output, _ = run("--drain-check")
    assert code == 0
    assert output.splitlines() == [
        "1 of 2 nodes could go, in this order:",
        "",
        "NODE    PODS   THEY GO TO",
        "small      0",
        "",
        "The others are needed:",
        "",
        "NODE    POD                      WHY",
        f"large   default/{_web_pod(run)}   no other node has room for it",
    ]


def _web_pod(run: Run) -> str:
    needed = json.loads(run("--drain-check", "-o", "json")[1])["needed"]
    return needed[0]["pod"].removeprefix("default/")


def test_the_room_of_pools(run: Run) -> None:
    code, output, _ = run("--headroom", "--pool-label", "kubernetes.io/hostname")
    assert code == 0
    assert output.splitlines() == [
        "POOL    NODES   FREE CPU   FREE MEMORY   FREE PODS   COPIES   WHAT RUNS OUT",
        "large       1        3.0         8.0Gi           9        3   Insufficient cpu",
        "small       1        2.0         8.0Gi          10        2   Insufficient cpu",
        "",
        "Pools by the label kubernetes.io/hostname",
    ]
    found = json.loads(run("--headroom", "--fit", "pod.yaml", "-o", "json")[1])
    assert [pool["copies"] for pool in found["pools"]] == [5]


def test_a_plugin_that_fails_ends_with_code_3(run: Run) -> None:
    code, output, errors = run("--fit", "pod.yaml", "--config", "config.yaml")
    assert (code, output) == (3, "")
    assert "broken" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "what to find out? Give --fit FILE, --need, --drain-check or --headroom"),
        (("--need", "--headroom"), "--need and --headroom are different questions; ask one at a"),
        (("--need",), "the shapes of nodes are missing; give one, for example --shape cpu=8"),
        (("--drain-check", "--shape", "cpu=1"), "--shape needs --need"),
        (("--fit", "pod.yaml", "--limit", "2", "--at-least", "3"), "--at-least 3 can never"),
        (("--drain-check", "--limit", "1"), "--limit needs --fit or --headroom"),
        (("--fit", "pod.yaml", "--pool-label", "a"), "--pool-label needs --headroom"),
        (("--headroom", "--usage", "/dev/null"), "--usage /dev/null: nothing is measured of any"),
        (("--fit", "gone.yaml"), 'cannot read "gone.yaml": No such file or directory'),
        (("--fit", "cluster.yaml"), "cluster.yaml#1: a Node has no copies; give a pod, or an"),
        (("--fit", "pod.yaml", "--cordon", "x"), 'there is no node "x" among the 2 of the cluste'),
    ],
)
def test_wrong_questions_are_refused(run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, output, errors = run(*arguments)
    assert (code, output) == (2, "")
    assert errors.startswith(f"kubestow: error: {message}")
