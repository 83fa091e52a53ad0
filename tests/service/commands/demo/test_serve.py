"""`kubestow demo --serve` on the command line."""

import fcntl
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from kubestow.service.cli import app
from kubestow.service.commands.demo import serve as demo_serve

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: mine
  plugins: {multiPoint: {enabled: [{name: "PLUGIN"}]}}
"""
OTHERS = """\
# my clusters
apiVersion: v1
kind: Config
clusters: [{name: work, cluster: {server: "https://work.example"}}]
users: []
contexts: [{name: work, context: {cluster: work, user: me}}]
current-context: work
"""
TIMEOUT_S = 300


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["demo", "--serve", *arguments])
    return result.exit_code, result.output


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["demo", "--serve", "--for", "0", *arguments])
    assert result.exit_code != 0
    return str(result.exception)


def test_it_says_where_it_is_and_what_to_try(tmp_path: Path):
    path = tmp_path / "kubeconfig"
    code, output = run("--for", "0", "--nodes", "2", "--kubeconfig", str(path))
    assert code == 0
    assert "An embedded cluster of 2 nodes answers at https://127.0.0.1:" in output
    assert f"export KUBECONFIG={path}" in output
    assert output.count("  kubectl ") == 2
    assert not path.exists()


def test_the_commands_it_prints_can_be_pasted_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "with space"
    folder.mkdir()
    monkeypatch.chdir(folder)
    _, output = run("--for", "0", "--nodes", "0", "--no-scheduler", "--kubeconfig", "here")
    assert f"export KUBECONFIG='{folder}/here'\n" in output
    assert f"kubestow run --kubeconfig '{folder}/here' --leader-elect=false\n" in output


def test_without_a_scheduler_it_says_how_to_bring_one():
    code, output = run("--for", "0", "--nodes", "0", "--no-scheduler")
    assert code == 0
    assert "kubestow run --kubeconfig" in output


# --- What is refused --------------------------------------------------------------------------


def test_a_port_in_use_is_an_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        error = refused("--port", port)
    assert error == (
        f'cannot serve on "127.0.0.1:{port}": the port is in use;'
        " choose another port, or 0 for a free one"
    )


def test_a_kubeconfig_that_cannot_be_used_is_not_blamed_on_the_port(tmp_path: Path):
    precious = tmp_path / "mine.config"
    precious.write_text("precious: data\n")
    error = refused("--kubeconfig", str(precious))
    assert "is not a kubeconfig" in error
    assert "port" not in error
    assert precious.read_text() == "precious: data\n"
    error = refused("--kubeconfig", str(tmp_path))
    assert "is a directory" in error
    assert "port" not in error


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--node-shape", "cpu=lots"], 'cpu is "lots", expected a quantity'),
        (["--load", "nothing-here.yaml"], 'cannot read "nothing-here.yaml"'),
        (["--config", "nothing-here.yaml"], "nothing-here.yaml"),
        (["--save", "no/such/folder/file"], "there is no folder"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_arguments_are_checked_before_anything_starts(arguments: list[str], text: str):
    assert text in refused(*arguments)


# --- Loading, saving, configuring -------------------------------------------------------------


def test_a_cluster_is_loaded_and_saved(tmp_path: Path):
    given, saved, again = tmp_path / "given.yaml", tmp_path / "saved.json", tmp_path / "again.json"
    given.write_text(
        "kind: List\napiVersion: v1\nitems:\n"
        "- {apiVersion: v1, kind: Node, metadata: {name: mine}}\n"
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: shop}, data: {a: b}}\n"
        "- {apiVersion: acme.example/v1, kind: Widget, metadata: {name: w}}\n"
    )
    _, output = run("--for", "0", "--load", str(given), "--save", str(saved))
    assert "An embedded cluster of 1 node answers" in output
    assert "Loaded 2 objects." in output
    assert "Ignored, because the server does not serve the kind: 1 Widget." in output
    assert f"to {saved}." in output
    first = items(saved)
    assert ("Node", "", "mine") in first
    assert first["ConfigMap", "shop", "m"]["data"] == {"a": "b"}
    run("--for", "0", "--load", str(saved), "--save", str(again))
    second = items(again)
    assert first.keys() == second.keys()
    assert uids(first) == uids(second)


def items(path: Path) -> dict[tuple[str, str, str], Any]:
    found = json.loads(path.read_text())["items"]
    return {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one
        for one in found
    }


def uids(found: dict[tuple[str, str, str], Any]) -> list[str]:
    return [one["metadata"]["uid"] for one in found.values()]


def test_objects_can_come_from_standard_input(tmp_path: Path):
    document = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "piped"}}'
    saved = tmp_path / "saved.json"
    arguments = ["demo", "--serve", "--for", "0", "--load", "-", "--save", str(saved)]
    result = CliRunner().invoke(app, arguments, input=document)
    assert result.exit_code == 0
    assert ("Node", "", "piped") in items(saved)


def test_nodes_have_the_shapes_asked_for(tmp_path: Path):
    saved = tmp_path / "saved.json"
    shapes = ["--node-shape", "cpu=8,nvidia.com/gpu=4,label.disk=ssd,count=2"]
    shapes += ["--node-shape", "memory=1Gi"]
    code, output = run("--for", "0", "--nodes", "1", *shapes, "--save", str(saved))
    assert code == 0
    assert "An embedded cluster of 3 nodes" in output
    nodes = {name: one for (kind, _, name), one in items(saved).items() if kind == "Node"}
    assert nodes["node-1"]["status"]["capacity"] == {
        "cpu": "8",
        "memory": "16Gi",
        "pods": "110",
        "nvidia.com/gpu": "4",
    }
    assert nodes["node-1"]["metadata"]["labels"]["disk"] == "ssd"
    assert nodes["node-2"]["status"]["capacity"]["memory"] == "1Gi"


def test_messages_of_waiting_pods_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(demo_serve, "_MESSAGES_MAX", 2)
    console = Console(width=100)
    note = demo_serve._feed(demo_serve.Output(console))

    class Fake:
        is_scheduled = False
        message = "no space"

        def __init__(self, name: str) -> None:
            self.pod = type("Pod", (), {"uid": name, "key": name})

    with console.capture() as captured:
        for name in ("a", "a", "b", "c", "a"):
            note(Fake(name), None)  # type: ignore[arg-type]
    shown = [line.split()[0] for line in captured.get().splitlines()]
    assert shown == ["a", "b", "c", "a"]


# --- How it ends ------------------------------------------------------------------------------


def hang_ups_end_it() -> None:
    """As in a terminal, also where the tests themselves were started by nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def serving(
    arguments: Sequence[str],
    *,
    preexec_fn: Callable[[], None] = hang_ups_end_it,
    **options: Any,
) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-u", "-m", "kubestow", "demo", "--serve", "--nodes", "1"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    settings: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options}
    with subprocess.Popen(
        [*command, *arguments], text=True, env=environment, preexec_fn=preexec_fn, **settings
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def names(path: Path) -> list[str]:
    return [one["name"] for one in yaml.safe_load(path.read_text())["contexts"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name
)
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals):
    path, saved = tmp_path / "kubeconfig", tmp_path / "saved.json"
    path.write_text(OTHERS)
    with serving(["--kubeconfig", str(path), "--save", str(saved)]) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("An embedded cluster of 1 node ")
        assert names(path) == ["work", "kubestow"]
        process.send_signal(number)
        rest, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 128 + number
    assert "everything in it is deleted" in rest
    assert "Traceback" not in rest
    assert path.read_text() == OTHERS
    assert ("Node", "", "node-0") in items(saved)


@pytest.mark.slow
def test_started_by_nohup_it_outlives_its_terminal(tmp_path: Path):
    path = tmp_path / "kubeconfig"

    def as_nohup() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with serving(["--kubeconfig", str(path)], preexec_fn=as_nohup) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("An embedded cluster of 1 node ")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 128 + signal.SIGTERM


@pytest.mark.slow
@pytest.mark.parametrize("errors_to", ["file", "terminal"])
def test_a_closed_terminal_ends_it_in_order(tmp_path: Path, errors_to: str):
    path, saved, errors = tmp_path / "kubeconfig", tmp_path / "saved.json", tmp_path / "errors"
    ours, theirs = pty.openpty()
    with errors.open("w") as stderr:

        def take_terminal() -> None:
            hang_ups_end_it()
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        arguments = ["--kubeconfig", str(path), "--save", str(saved)]
        options = {"stdin": theirs, "stdout": theirs}
        options["stderr"] = theirs if errors_to == "terminal" else stderr
        with serving(arguments, preexec_fn=take_terminal, **options) as process:
            os.close(theirs)
            shown = b""
            while b"Ctrl-C" not in shown:
                shown += os.read(ours, 4096)
            assert path.exists()
            os.close(ours)
            assert process.wait(timeout=TIMEOUT_S) == 128 + signal.SIGHUP
    assert not path.exists()
    assert ("Node", "", "node-0") in items(saved)
    assert errors.read_text() == ""


@pytest.mark.slow
def test_a_reader_that_has_ended_does_not_end_the_cluster(tmp_path: Path):
    path, pod = tmp_path / "kubeconfig", tmp_path / "pods.yaml"
    pod.write_text(
        "---\n".join(
            f"{{apiVersion: v1, kind: Pod, metadata: {{name: p{number}}},"
            " spec: {containers: [{name: c, image: i}]}}\n"
            for number in range(3)
        )
    )
    with serving(["--kubeconfig", str(path), "--load", str(pod)]) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=TIMEOUT_S) == 128 + signal.SIGTERM
    assert not path.exists()


@pytest.mark.slow
def test_the_configuration_and_its_plugins_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "only_second.py").write_text(
        "from kubestow.plugin import NodeFilter\n\n\n"
        "class OnlySecond(NodeFilter):\n"
        "    name = 'OnlySecond'\n\n"
        "    def filter_node(self, pod, node):\n"
        "        return node.metadata.name == 'node-1'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config, workload = tmp_path / "config.yaml", tmp_path / "pod.yaml"
    config.write_text(CONFIG.replace("PLUGIN", "only_second:OnlySecond"))
    workload.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: p},"
        " spec: {schedulerName: mine, containers: [{name: c, image: i}]}}"
    )
    arguments = ["--config", str(config), "--load", str(workload), "--nodes", "5"]
    with serving(arguments) as process:
        assert process.stdout is not None
        placed = next(line for line in process.stdout if "→" in line)
    assert placed == "default/p → node-1\n"
