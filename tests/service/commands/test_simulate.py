"""`kubestow simulate --config`: the configuration decides, and its errors are one line."""

import sys
from pathlib import Path

import pytest

from kubestow.service.cli import main

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: small, labels: {color: blue}}
status: {capacity: {cpu: "2", memory: 4Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: large, labels: {color: red}}
status: {capacity: {cpu: "8", memory: 16Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {containers: [{name: web, image: web, resources: {requests: {cpu: "1", memory: 2Gi}}}]}
"""
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MOST_ALLOCATED = f"""{HEAD}
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: MostAllocated}}}}
  plugins:
    score: {{enabled: [{{name: NodeResourcesFit, weight: 10}}]}}
"""
PLUGIN = """
from kubestow.framework.node_plugin import NodeFilter

class OnlyColor(NodeFilter):
    name = "OnlyColor"
    args_type = None

    def __init__(self, args, handle):
        self.color = args["color"]

    def filter_node(self, pod, node):
        return node.metadata.labels.get("color") == self.color or f"node(s) were not {self.color}"
"""
HINT = "run 'kubestow simulate --help' for its options\n"
CUSTOM = f"""{HEAD}
profiles:
- plugins:
    multiPoint: {{enabled: [{{name: "colors:OnlyColor"}}]}}
  pluginConfig:
  - name: colors:OnlyColor
    args: {{color: %s}}
"""


class Runner:
    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys

    def __call__(self, config: str | None, *arguments: str) -> tuple[int, str, str]:
        """Exit code, output and errors of one run."""
        (self._folder / "cluster.yaml").write_text(CLUSTER)
        command = ["kubestow", "simulate", "-f", "cluster.yaml", *arguments]
        if config is not None:
            (self._folder / "config.yaml").write_text(config)
            command += ["--config", "config.yaml"]
        self._monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as raised:
            main()
        output, errors = self._capsys.readouterr()
        code = raised.value.code
        return code if isinstance(code, int) else 0, output, errors


@pytest.fixture
def simulate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Runner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "colors", raising=False)
    (tmp_path / "colors.py").write_text(PLUGIN)
    return Runner(tmp_path, monkeypatch, capsys)


def test_without_a_configuration_pods_spread(simulate: Runner) -> None:
    code, output, _ = simulate(None, "-o", "json")
    assert code == 0
    assert '"node": "large"' in output


def test_the_configuration_decides(simulate: Runner) -> None:
    code, output, _ = simulate(MOST_ALLOCATED, "-o", "json")
    assert code == 0
    assert '"node": "small"' in output


def test_out_of_tree_plugins_take_part(simulate: Runner) -> None:
    _, output, _ = simulate(CUSTOM % "blue", "-o", "json")
    assert '"node": "small"' in output
    code, output, _ = simulate(CUSTOM % "green", "-o", "json", "--fail-on-pending")
    assert code == 1
    assert "2 node(s) were not green" in output


@pytest.mark.parametrize(
    ("config", "message"),
    [
        pytest.param(
            f"{HEAD}a: 1\nparallelism: 1\nparallelism: 2\n",
            'configuration "config.yaml": strict decoding error: yaml: unmarshal errors: '
            'line 5: key "parallelism" already set in map, unknown field "a"',
            id="strict",
        ),
        pytest.param(
            f"{HEAD}parallelism: 0\n",
            'configuration "config.yaml": parallelism: Invalid value: 0: '
            "should be an integer value greater than zero",
            id="invalid",
        ),
        pytest.param(
            (CUSTOM % "x").replace("colors:", "shades:"),
            'configuration "config.yaml": cannot load plugin "shades:OnlyColor": '
            'no module "shades"; is it installed, or its folder on PYTHONPATH?',
            id="no-plugin",
        ),
        pytest.param(
            f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [{{name: Foo}}]}}}}}}]\n",
            "initializing profiles: creating profile for scheduler name default-scheduler: "
            'FilterPlugin "Foo" does not exist',
            id="unknown-plugin",
        ),
        pytest.param(
            "x" * 5000,
            'configuration "config.yaml": couldn\'t get version/kind; json parse error: '
            f'found "{"x" * 79}…, expected a map',
            id="no-configuration-at-all",
        ),
    ],
)
def test_errors_are_one_line_and_exit_code_2(simulate: Runner, config: str, message: str) -> None:
    code, output, errors = simulate(config)
    assert (code, output) == (2, "")
    assert errors == f"kubestow: error: {message}\n{HINT}"


def test_a_missing_file(simulate: Runner) -> None:
    code, _, errors = simulate(None, "--config", "none.yaml")
    assert code == 2
    assert errors == (
        'kubestow: error: configuration "none.yaml": open none.yaml: no such file or directory\n'
        f"{HINT}"
    )


def test_the_option_overrides_the_configuration(simulate: Runner) -> None:
    code, _, errors = simulate(f"{HEAD}percentageOfNodesToScore: 50\n", "-o", "json")
    assert (code, errors) == (0, "")
    code, _, _ = simulate(f"{HEAD}", "--percentage-of-nodes-to-score", "100")
    assert code == 0


def test_extenders_are_asked_but_not_to_bind(simulate: Runner) -> None:
    extender = "{urlPrefix: http://127.0.0.1:1, filterVerb: f, bindVerb: b, ignorable: true}"
    code, _, errors = simulate(f"{HEAD}extenders: [{extender}]\n")
    assert code == 0
    assert "Extenders are not asked to bind in a simulation.\n" in errors
