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
from kubestow.framework.node_plugin import NodeFilter, NodeScore

class OnlyColor(NodeFilter):
    name = "OnlyColor"
    args_type = None

    def __init__(self, args, handle):
        self.color = args["color"]

    def filter_node(self, pod, node):
        return node.metadata.labels.get("color") == self.color or f"node(s) were not {self.color}"


class Raises(NodeFilter):
    name = "Raises"

    def filter_node(self, pod, node):
        return node.metadata.labels["nope"] == "x"


class Misspelt(NodeFilter):
    name = "Misspelt"

    def filter_nod(self, pod, node):
        return True


class Half:
    name = "Half"
    args_type = None

    def __init__(self, args, handle):
        pass

    def filter(self, state, pod, nodes):
        return None


class Nothing(Half):
    name = "Nothing"
    filter = property()


class Answers42(NodeFilter):
    name = "Answers42"

    def filter_node(self, pod, node):
        return 42


class Scores(NodeScore):
    name = "Scores"

    def score_node(self, pod, node):
        return 0.7
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


# --- plugins that do not work ---

ENABLED = f"""{HEAD}
profiles:
- plugins:
    multiPoint: {{enabled: [{{name: "colors:%s"}}]}}
"""


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(
            "Raises",
            "running \"Raises\" filter plugin: KeyError: 'nope' (colors.py:19)",
            id="exception",
        ),
        pytest.param(
            "Answers42",
            'running "Answers42" filter plugin: filter_node returned 42 for node "small", expected '
            "True or None for a node that will do; else False, a reason or a Status",
            id="answer",
        ),
        pytest.param(
            "Scores",
            'running Score plugins: plugin "Scores" failed with: score_node returned 0.7 for node '
            '"small", expected a whole number',
            id="score",
        ),
    ],
)
def test_a_plugin_that_fails_ends_with_code_3(simulate: Runner, plugin: str, message: str) -> None:
    code, output, errors = simulate(ENABLED % plugin)
    assert code == 3
    assert message in output
    assert "4 attempts failed with an error." in output
    retries = [line for line in errors.splitlines() if "Error scheduling pod; retrying" in line]
    assert len(retries) == 4
    assert all('pod="default/web"' in line and "err=" in line for line in retries)
    assert errors.count("Traceback") == (1 if plugin == "Raises" else 0)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(
            "Half",
            'the class has "filter" but no "filter_status", so "filter" would never be called',
            id="never-called",
        ),
        pytest.param("Misspelt", "filter_node", id="misspelt"),
        pytest.param(
            "Nothing",
            "the class has no method of an extension point, as filter or score",
            id="none",
        ),
    ],
)
def test_a_plugin_that_would_not_be_called_is_refused(
    simulate: Runner, plugin: str, message: str
) -> None:
    code, output, errors = simulate(ENABLED % plugin)
    assert (code, output) == (2, "")
    assert errors.startswith(
        "kubestow: error: initializing profiles: creating profile for scheduler name "
        f'default-scheduler: initializing plugin "{plugin}": '
    )
    assert message in errors


# --- what is printed ---

MORE = """
apiVersion: v1
kind: Pod
metadata: {name: running}
spec: {nodeName: small, containers: [{name: c, image: c, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {schedulerName: volcano, containers: [{name: c, image: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: misspelt}
spec: {nodeSelectr: {color: blue}, containers: [{name: c, image: c}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
"""


@pytest.fixture
def more(tmp_path: Path) -> str:
    (tmp_path / "more.yaml").write_text(MORE)
    return "more.yaml"


def test_what_is_ignored_and_unknown_is_reported(simulate: Runner, more: str) -> None:
    code, output, errors = simulate(None, "-f", more, "--fail-on-pending")
    assert code == 0
    assert errors.splitlines() == [
        "ignored: 1 Ingress, 1 Rollout",
        'warning: more.yaml#3: unknown field "spec.nodeSelectr" (did you mean "nodeSelector"?)',
    ]
    assert output.splitlines()[-2:] == [
        "2 of 2 pods scheduled on 1 of 2 nodes, 0 pending, 1 for other schedulers, 1 pod runs "
        "already, 0.25 s of virtual time",
        '  1 pod waits: no profile for scheduler "volcano"',
    ]


def test_unknown_fields_are_errors_when_strict(simulate: Runner, more: str) -> None:
    code, output, errors = simulate(None, "-f", more, "--strict")
    assert (code, output) == (2, "")
    assert 'error: more.yaml#3: unknown field "spec.nodeSelectr"' in errors


def test_rows_can_be_printed_alone(simulate: Runner, more: str) -> None:
    _, output, _ = simulate(None, "-f", more, "--no-headers")
    assert [line.split()[1:4] for line in output.splitlines()] == [
        ["other", "OtherScheduler", "no"],
        ["web", "Scheduled", "large"],
        ["misspelt", "Scheduled", "large"],
    ]


def test_names_can_be_printed_alone(simulate: Runner, more: str) -> None:
    _, output, _ = simulate(None, "-f", more, "-o", "name")
    assert output == "pod/other\npod/web\npod/misspelt\n"


def test_in_a_pipe_every_pod_has_one_line(simulate: Runner, tmp_path: Path) -> None:
    pod = "---\n" + CLUSTER.rpartition("---")[2]
    pods = [pod.replace("name: web,", f"name: web-{index},") for index in range(60)]
    (tmp_path / "many.yaml").write_text("".join(pods))
    _, output, _ = simulate(None, "-f", "many.yaml")
    rows = [line for line in output.splitlines() if line.startswith("default ")]
    assert len(rows) == 61
    pending = [row for row in rows if "Pending" in row]
    assert pending
    assert all(row.endswith("No preemption victims found for incoming pod.") for row in pending)


def test_placements_can_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    placed = CLUSTER.replace("spec: {containers:", "spec: {nodeName: small, containers:")
    (tmp_path / "dump.yaml").write_text(placed)
    monkeypatch.chdir(tmp_path)

    def output_of(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["kubestow", "simulate", "-f", "dump.yaml", *arguments])
        with pytest.raises(SystemExit):
            main()
        return capsys.readouterr().out

    assert output_of().splitlines() == [
        "0 of 0 pods scheduled on 0 of 2 nodes, 0 pending, 1 pod runs already, "
        "0.25 s of virtual time",
        "No pod waits for a node; --reschedule places the pods that run again.",
    ]
    assert "1 of 1 pod scheduled on 1 of 2 nodes" in output_of("--reschedule")
    assert "large" in output_of("--reschedule", "--no-headers")
