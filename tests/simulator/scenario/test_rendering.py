"""A chart is rendered by the real helm; skipped where there is none (tests/conftest.py)."""

from pathlib import Path

import pytest

from kubestow.errors import InputError
from kubestow.simulator.placement_tests.reading import parse_test
from kubestow.simulator.placement_tests.running import RunOptions, run_case
from kubestow.simulator.scenario.document import Chart
from kubestow.simulator.scenario.rendering import rendered_chart

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: i, resources: {requests: {cpu: {{ .Values.cpu }} }}}]
"""
HOOK = """
apiVersion: v1
kind: Pod
metadata: {name: hook, annotations: {helm.sh/hook: test}}
spec: {containers: [{name: c, image: i}]}
"""
TEST = b"""
cluster: {nodes: [{name: node, count: 3, capacity: {cpu: 2}}]}
given: [{chart: {path: web, release: shop, set: {cpu: 1}}}]
expect: [{placed: all}]
matrix: {values: [small.yaml, big.yaml]}
"""


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, helm_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(helm_path.parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    templates = tmp_path / "web" / "templates"
    templates.mkdir(parents=True)
    (tmp_path / "web" / "Chart.yaml").write_text("{apiVersion: v2, name: web, version: 0.1.0}")
    (tmp_path / "web" / "values.yaml").write_text("{replicas: 1, cpu: 4}")
    (templates / "web.yaml").write_text(DEPLOYMENT)
    (templates / "hook.yaml").write_text(HOOK)
    (tmp_path / "small.yaml").write_text("replicas: 3")
    (tmp_path / "big.yaml").write_text("replicas: 9")
    return tmp_path


def test_hooks_are_no_part_of_a_release(folder: Path) -> None:
    documents = rendered_chart(folder / "web", [], Chart(path="web", release="shop"))
    assert [one.raw["metadata"]["name"] for one in documents] == ["shop-web"]


@pytest.mark.slow
def test_values_decide_whether_a_chart_fits(folder: Path) -> None:
    small, big = (
        run_case(case, RunOptions(explains=False)) for case in parse_test(TEST, "t", folder)
    )
    assert (small.status, big.status) == ("passed", "failed")
    assert big.verdicts[0].short == "3 of 9 pods of Deployment/shop-web wait for cpu"


def test_a_chart_that_is_applied_as_it_is_is_a_mistake(folder: Path) -> None:
    text = TEST.replace(b"{chart: {path: web, release: shop, set: {cpu: 1}}}", b"{apply: web}")
    with pytest.raises(InputError, match=r'given\[0\].apply: "web" is a Helm chart; name it with'):
        parse_test(text.replace(b"matrix", b"#"), "t", folder)


def test_an_error_of_helm_is_reported(folder: Path) -> None:
    (folder / "web" / "templates" / "web.yaml").write_text("{{ fail `no such thing` }}")
    with pytest.raises(InputError, match=r"helm cannot render .* no such thing"):
        rendered_chart(folder / "web", [], Chart(path="web"))
