"""What commands print in narrow terminals: no line is too long, and no word is lost or broken."""

import io
import re
import sys
from pathlib import Path

import pytest

from kubestow.service.cli import COMMANDS, main

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = ["-f", str(EXAMPLES / "cluster.yaml"), "-f", str(EXAMPLES / "workload.yaml")]
POD = str(EXAMPLES / "workload.yaml")
DAY = str(EXAMPLES / "day.yaml")
WIDTHS = (60, 80, 100)
# A pod that each node rejects for another, long reason.
STUCK = """
apiVersion: v1
kind: Pod
metadata: {name: stuck, namespace: default, labels: {app: stuck}}
spec:
  nodeSelector: {disk: ssd}
  containers:
  - name: main
    image: registry.example/main
    ports: [{containerPort: 80, hostPort: 80}]
    resources: {requests: {cpu: "1"}}
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: rack
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {app: stuck}}
---
apiVersion: v1
kind: Pod
metadata: {name: holder-of-the-port, namespace: default}
spec:
  nodeName: a-node-with-a-long-name-3
  containers:
  - {name: main, image: registry.example/main, ports: [{containerPort: 80, hostPort: 80}]}
"""
NODE = """
---
apiVersion: v1
kind: Node
metadata: {{name: a-node-with-a-long-name-{index}, labels: {{{labels}}}}}
status: {{capacity: {{cpu: "4", memory: 16Gi, pods: "110"}}}}
"""
LABELS = ("disk: hdd", "disk: hdd, rack: r1", "disk: ssd", "disk: ssd, rack: r2")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


FAILING = """\
cluster: {nodes: [{name: node, count: 3, capacity: {cpu: 4, memory: 16Gi}}]}
given:
  - apply:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: inference}
        spec:
          replicas: 4
          selector: {matchLabels: {app: inference}}
          template:
            metadata: {labels: {app: inference}}
            spec:
              containers: [{name: main, image: model, resources: {requests: {cpu: 3}}}]
expect: [{placed: all}]
"""


@pytest.fixture
def stuck(tmp_path: Path) -> str:
    path = tmp_path / "stuck.yaml"
    nodes = (NODE.format(index=index, labels=labels) for index, labels in enumerate(LABELS))
    path.write_text(STUCK + "".join(nodes))
    return str(path)


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = str(tmp_path / "a.rec")
    printed(monkeypatch, ["simulate", *FILES, "--record", path], None)
    return path


def printed(monkeypatch: pytest.MonkeyPatch, arguments: list[str], width: int | None) -> str:
    """What a command prints to a terminal of this width, or to a pipe; without colours."""
    stdout = io.StringIO() if width is None else Terminal()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "argv", ["kubestow", *arguments])
        patched.setattr(sys, "stdout", stdout)
        patched.setenv("COLUMNS", "1000" if width is None else str(width))
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code in (0, 1, None), arguments
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stdout.getvalue())


def _words(text: str) -> set[str]:
    """Words, without what shells need at the end of a line, bars and measured times."""
    return {word for word in text.split() if not re.fullmatch(r"\\|[█░]+|[0-9.]+", word)}


def assert_all_widths(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    wanted = _words(printed(monkeypatch, arguments, None))
    assert wanted
    for width in WIDTHS:
        text = printed(monkeypatch, arguments, width)
        lost = wanted - _words(text)
        assert not lost, f"{width} columns: {lost}\n{text}"
        for line in text.splitlines():
            # A long word of a command, such as a patch, is alone on a line that is continued.
            words = line.removesuffix(" \\").split()
            assert len(line) <= width or len(words) == 1, f"{width} columns: {line}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["simulate", *FILES], id="simulate"),
        pytest.param(["simulate", *FILES, "-o", "wide"], id="simulate-wide"),
        pytest.param(["simulate", "--scenario", DAY, "--until", "1h"], id="scenario"),
        pytest.param(
            ["simulate", "--scenario", DAY, "--until", "1h", "-o", "wide"], id="scenario-wide"
        ),
        pytest.param(["explain", "reports-0", *FILES], id="explain"),
        pytest.param(["explain", "web-6d3d19e4-0", *FILES, "-o", "wide"], id="explain-wide"),
        pytest.param(["explain", "--all", *FILES], id="explain-all"),
        pytest.param(["explain", "web-6d3d19e4-0", *FILES, "--node", "node-a-1"], id="one-node"),
        pytest.param(["capacity", *FILES, "--fit", POD], id="capacity-fit"),
        pytest.param(["capacity", *FILES, "--drain-check"], id="capacity-drain-check"),
        pytest.param(["capacity", *FILES, "--headroom"], id="capacity-headroom"),
        pytest.param(["compare", *FILES, "--variant", "packed", "--jobs", "1"], id="compare"),
        pytest.param(["plugin", "check", "NodeResourcesFit"], id="plugin-check"),
        pytest.param(["rebalance", *FILES, "--goal", "balance"], id="rebalance"),
        pytest.param(["upgrade", *FILES, "--to", "v1.37"], id="upgrade"),
        pytest.param(["version"], id="version"),
        pytest.param(["demo", "--story", "--speed", "0"], id="story"),
        pytest.param(["demo", "--verbose"], id="verbose"),
    ],
)
def test_commands_fit_the_terminal(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert_all_widths(monkeypatch, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["-o", "wide"], ["--node", "a-node-with-a-long-name-3"]])
def test_long_reasons_and_the_nodes_they_are_about_are_shown(
    more: list[str], stuck: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_all_widths(monkeypatch, ["explain", "stuck", "-f", stuck, *more])


@pytest.mark.slow
def test_a_replay_fits_the_terminal(recording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_all_widths(monkeypatch, ["replay", recording])


@pytest.mark.slow
def test_a_placement_test_that_fails_fits_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("red.placement.yaml").write_text(FAILING)
    assert_all_widths(monkeypatch, ["test", "red.placement.yaml"])


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_the_terminal(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_all_widths(monkeypatch, [command, "--help"])
