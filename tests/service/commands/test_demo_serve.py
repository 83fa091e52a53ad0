"""`kubestow demo --serve` on the command line."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kubestow.service.cli import app


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["demo", "--serve", *arguments])
    return result.exit_code, result.output


def test_it_says_where_it_is_and_what_to_try(tmp_path: Path):
    path = tmp_path / "kubeconfig"
    code, output = run("--for", "0", "--nodes", "2", "--kubeconfig", str(path))
    assert code == 0
    assert "An embedded cluster of 2 nodes answers at https://127.0.0.1:" in output
    assert f"export KUBECONFIG={path}" in output
    assert output.count("  kubectl ") == 2
    assert not path.exists()


def test_without_a_scheduler_it_says_how_to_bring_one():
    code, output = run("--for", "0", "--nodes", "0", "--no-scheduler")
    assert code == 0
    assert "kubestow run --kubeconfig" in output


def test_a_port_in_use_is_an_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app, ["demo", "--serve", "--for", "0", "--port", port])
    assert result.exit_code != 0
    assert f"127.0.0.1:{port}" in str(result.exception)
    assert "choose another port" in str(result.exception)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals):
    path = tmp_path / "kubeconfig"
    command = [sys.executable, "-u", "-m", "kubestow", "demo", "--serve", "--nodes", "1"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [*command, "--kubeconfig", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("An embedded cluster of 1 node ")
        assert path.exists()
        process.send_signal(number)
        rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "everything in it is deleted" in rest
    assert "Traceback" not in rest
    assert not path.exists()
