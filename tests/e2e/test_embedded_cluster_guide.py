"""The guide on the embedded cluster is run as it is written."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "embedded-cluster.md"
BLOCKS = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
SERVE = "kubestow demo --serve"
BLOCK_S = 180


@pytest.fixture
def environment(kubectl_path: Path, tmp_path: Path) -> dict[str, str]:
    """A shell with the commands `kubectl` and `kubestow` and the folder `examples`."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "kubectl").symlink_to(kubectl_path)
    kubestow = bin_folder / "kubestow"
    kubestow.write_text(f'#!/bin/sh\nexec "{sys.executable}" -u -m kubestow "$@"\n')
    kubestow.chmod(0o755)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return {
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }


@contextmanager
def running(command: str, folder: Path, environment: dict[str, str], sign: str) -> Iterator[None]:
    """A command that runs until it is ended; entered when it prints the sign."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command.strip()}"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            lines: list[str] = []
            while not any(sign in line for line in lines):
                line = process.stdout.readline()
                assert line, f"{command} has ended:\n{''.join(lines)}"
                lines.append(line)
            yield
        finally:
            process.terminate()
            process.communicate(timeout=30)


def run_block(block: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BLOCK_S,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_every_command_for_kubectl_works(tmp_path: Path, environment: dict[str, str]):
    serve, *blocks = [block for block in BLOCKS if "kubestow run" not in block]
    assert serve.startswith(SERVE)
    environment["KUBECONFIG"] = "embedded.kubeconfig"
    shown = ""
    # The guide waits for a lost node: a shorter grace period than the default makes that faster.
    serve = f"{serve.strip()} --node-monitor-grace-period 15"
    with running(serve, tmp_path, environment, "Ctrl-C ends it"):
        for block in blocks:
            if not block.startswith(SERVE):
                shown += run_block(block, tmp_path, environment)
    assert "0/5 nodes are available: 5 Insufficient cpu." in shown
    assert "nvidia.com/gpu" in shown


def test_another_scheduler_can_do_the_work(tmp_path: Path, environment: dict[str, str]):
    (serve,) = [block for block in BLOCKS if "--no-scheduler" in block]
    (schedule,) = [block for block in BLOCKS if block.startswith("kubestow run")]
    environment["KUBECONFIG"] = "other.kubeconfig"
    with running(serve, tmp_path, environment, "kubestow run"):
        run_block("kubectl run web --image=nginx", tmp_path, environment)
        with running(schedule, tmp_path, environment, ""):
            wait = "kubectl wait pod/web --for=condition=Ready --timeout=60s"
            run_block(wait, tmp_path, environment)
