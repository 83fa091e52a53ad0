"""`kubestow test`: what it prints, writes and ends with."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kubestow.service.cli import app
from kubestow.simulator.placement_tests.reading import read_test
from tools.schemas import placement_test

GOOD = """\
cluster: {nodes: [{name: n, count: 3, capacity: {cpu: 4}}]}
given: [{apply: web.yaml}]
expect: [{placed: all}, {apart: Deployment/web}]
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: a, image: a, resources: {requests: {cpu: 3}}}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.yaml").write_text(WEB)
    (tmp_path / "web.placement.yaml").write_text(GOOD)
    return tmp_path


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["test", "--jobs", "1", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 2, str(result.exception)
    return result.exit_code, result.stdout


def test_all_that_holds_is_green(folder: Path) -> None:
    code, text = run()
    assert code == 0
    assert "passed   web " in text
    assert text.endswith("\n1 passed, 0 failed, 0 errors\n")


def test_an_expectation_that_does_not_hold_is_red_with_a_patch(folder: Path) -> None:
    (folder / "web.yaml").write_text(WEB.replace("replicas: 3", "replicas: 4"))
    code, text = run()
    assert code == 1
    assert "line 3: expect[0].placed: expected all pods placed" in text
    assert "found      1 of 4 pods of Deployment/web waits: 0/3 nodes are available" in text
    assert "suggestion " in text
    assert "kubectl patch deployment web -n default --type=json -p '[" in text
    (case,) = json.loads(run("-o", "json")[1])["cases"]
    assert [verdict["holds"] for verdict in case["verdicts"]] == [False, True]


def test_a_step_that_does_not_come_to_rest_is_noted_though_all_holds(folder: Path) -> None:
    budget = (
        "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web},\n"
        "spec: {minAvailable: 3, selector: {matchLabels: {app: web}}}}\n"
    )
    (folder / "web.yaml").write_text(WEB + budget)
    (folder / "web.placement.yaml").write_text(GOOD.replace("web.yaml}", "web.yaml}, {drain: n-0}"))
    code, text = run()
    assert code == 0
    note = "web.placement.yaml, line 2: given[1].drain: not at rest after 3600 s (limit)"
    assert f"web (web.placement.yaml)\n  {note}\n" in text


def test_a_pod_of_another_scheduler_waits_for_that_one(folder: Path) -> None:
    (folder / "web.yaml").write_text(
        WEB.replace("    spec:", "    spec:\n      schedulerName: own")
    )
    code, text = run()
    assert code == 1
    assert "3 of 3 pods of Deployment/web wait" in text
    assert 'no profile has the pod\'s schedulerName "own"; there is "default-scheduler"' in text


def test_a_wrong_file_does_not_keep_others_from_running(folder: Path) -> None:
    (folder / "wrong.placement.yaml").write_text("clustr: {}\n")
    code, text = run("-o", "json")
    assert code == 2
    data = json.loads(text)
    assert (data["passed"], data["errors"]) == (1, 1)
    assert (
        'wrong.placement.yaml, line 1: clustr: unknown field; did you mean "cluster"?'
        in text.replace('\\"', '"')
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none"], 'there is no file or folder "none"'),
        (["empty"], "write a first one: kubestow test --init"),
        (["--only", "nothing"], 'no case has "nothing" in its name'),
        (["--report", "a.txt"], '--report is "a.txt", expected a name with .xml, .md, .json'),
        (["--against", "none"], '"none" is neither a folder nor a revision of git'),
        (["--init", "web.yaml"], "expected a name that ends with .placement.yaml"),
        (["--init", "web.placement.yaml"], "exists and is not overwritten"),
        (["-f", "web.yaml"], "-f and options of a live cluster need --init"),
        (["--context", "live"], "-f and options of a live cluster need --init"),
    ],
)
def test_what_cannot_be_done_is_one_line(folder: Path, words: list[str], message: str) -> None:
    (folder / "empty").mkdir()
    code, text = run(*words)
    assert code == 2
    assert message in text
    assert "\n" not in text.strip()


def test_reports_are_written_beside_the_output(folder: Path) -> None:
    code, _ = run("--report", "j.xml", "--report", "c.md", "--report", "d.json")
    assert code == 0
    assert (folder / "j.xml").read_text().startswith("<?xml")
    assert (folder / "c.md").read_text().startswith("<!-- kubestow test -->")
    assert json.loads((folder / "d.json").read_text())["passed"] == 1


@pytest.mark.parametrize("output", ["junit", "github", "markdown"])
def test_every_format_is_printed(folder: Path, output: str) -> None:
    code, text = run("-o", output)
    assert code == 0
    assert text.strip()


def test_against_another_folder_shows_before_and_after(folder: Path) -> None:
    other = folder / "before"
    other.mkdir()
    (other / "web.yaml").write_text(WEB.replace("replicas: 3", "replicas: 2"))
    code, text = run("web.placement.yaml", "--against", "before")
    assert code == 0
    assert "Before is before." in text
    assert "default/Deployment/web   2 → 3   2 → 3" in text
    assert "all nodes   3       2 → 3" in text
    _, printed = run(
        "web.placement.yaml", "--against", "before", "-o", "json", "--report", "d.json"
    )
    data = json.loads(printed)
    assert data["passed"] == len(data["cases"]) == 1
    assert data["against"]["cases"][0]["pools"][0]["used"] == [2, 3]
    assert json.loads((folder / "d.json").read_text()) == data


def test_a_first_file_from_manifests_passes(folder: Path) -> None:
    code, _ = run("--init", "first.placement.yaml", "-f", "web.yaml")
    assert code == 0
    text = (folder / "first.placement.yaml").read_text()
    assert "  - apply: web.yaml\n" in text
    assert "# - spread: {pods: Deployment/web, over: topology.kubernetes.io/zone" in text
    assert len(read_test(folder / "first.placement.yaml")) == 1
    assert run("first.placement.yaml")[0] == 0


def test_a_first_file_renders_a_kustomization(folder: Path) -> None:
    (folder / "deploy").mkdir()
    (folder / "deploy" / "kustomization.yaml").write_text("resources: [web.yaml]\n")
    (folder / "deploy" / "web.yaml").write_text(WEB)
    assert run("--init", "first.placement.yaml", "-f", "deploy")[0] == 0
    assert "  - kustomize: deploy\n" in (folder / "first.placement.yaml").read_text()


def test_the_names_of_a_first_file_are_those_that_a_kustomization_makes(
    folder: Path, kubectl_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(kubectl_path.parent))
    (folder / "deploy").mkdir()
    (folder / "deploy" / "kustomization.yaml").write_text(
        "resources: [web.yaml]\nnamePrefix: prod-\n"
    )
    (folder / "deploy" / "web.yaml").write_text(WEB)
    assert run("--init", "first.placement.yaml", "-f", "deploy")[0] == 0
    assert "spread: {pods: Deployment/prod-web," in (folder / "first.placement.yaml").read_text()
    assert run("first.placement.yaml")[0] == 0


@pytest.fixture
def chart(folder: Path) -> Path:
    (folder / "chart" / "templates").mkdir(parents=True)
    (folder / "chart" / "Chart.yaml").write_text("{apiVersion: v2, name: web, version: 0.1.0}")
    (folder / "chart" / "templates" / "web.yaml").write_text(
        WEB.replace("replicas: 3", "replicas: {{ .Values.replicas }}")
    )
    (folder / "chart" / "values.yaml").write_text("replicas: 2")
    return folder / "chart"


def test_a_first_file_renders_a_chart(
    chart: Path, helm_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(helm_path.parent))
    monkeypatch.setenv("HOME", str(chart.parent))
    (chart.parent / "checks").mkdir()
    file = chart.parent / "checks" / "first.placement.yaml"
    assert run("--init", "checks/first.placement.yaml", "-f", "chart")[0] == 0
    assert "given:\n  - chart: {path: ../chart}\n" in file.read_text()
    assert "spread: {pods: Deployment/web," in file.read_text()
    assert run("checks/first.placement.yaml")[0] == 0


def test_a_first_file_of_a_chart_is_written_without_helm(
    chart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(chart.parent))
    result = CliRunner().invoke(app, ["test", "--init", "first.placement.yaml", "-f", "chart"])
    assert result.exit_code == 0
    assert "chart is not rendered yet: a chart is rendered by helm" in result.stderr
    text = (chart.parent / "first.placement.yaml").read_text()
    assert "given:\n  - chart: {path: chart}\n" in text


def test_a_first_file_of_a_cluster_with_nodes_names_it(folder: Path) -> None:
    (folder / "all.yaml").write_text(
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: a}}\n"
        f"status: {{allocatable: {{cpu: 16, memory: 16Gi, pods: 9}}}}\n---\n{WEB}"
    )
    assert run("--init", "first.placement.yaml", "-f", "all.yaml")[0] == 0
    assert "  files: [all.yaml]" in (folder / "first.placement.yaml").read_text()
    assert run("first.placement.yaml")[0] == 0


def test_the_schema_in_the_package_is_that_of_the_structs() -> None:
    assert placement_test.SCHEMA_FILE.read_text() == f"{placement_test.schema_text()}\n"


def test_a_configuration_of_a_test_imports_no_plugin_that_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_rules.py").write_text(
        "from pathlib import Path\n"
        f"Path({str(tmp_path / 'imported')!r}).touch()\n"
        "from kubestow.plugins.node_name import NodeName\n"
        "class Own(NodeName):\n    name = 'Own'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "config.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {enabled: [{name: 'own_rules:Own'}]}}}]\n"
    )
    test = tmp_path / "own.placement.yaml"
    test.write_text(
        "apiVersion: kubestow.dev/v1alpha1\n"
        "kind: PlacementTest\n"
        "config: config.yaml\n"
        "cluster: {nodes: [{name: node, capacity: {cpu: 4}}]}\n"
        "expect: [{evicted: none}]\n"
    )
    refused = CliRunner().invoke(app, ["test", str(test), "--jobs=1"])
    assert refused.exit_code == 2
    assert "--plugin own_rules:Own" in refused.stdout
    assert not (tmp_path / "imported").exists()
    named = CliRunner().invoke(app, ["test", str(test), "--jobs=1", "--plugin=own_rules:Own"])
    assert named.exit_code == 0, named.stdout
    assert (tmp_path / "imported").exists()
