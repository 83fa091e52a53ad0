"""`kubectl kubestow explain`: kubectl finds the command by its name and passes its options on."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_an_executable_of_that_name_is_installed() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-kubestow"] == scripts["kubestow"]


@pytest.mark.slow
def test_kubectl_runs_it(kubectl_path: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "kubectl-kubestow"
    source = os.pathsep.join(filter(None, sys.path))
    plugin.write_text(f'#!/bin/sh\nPYTHONPATH="{source}" exec {sys.executable} -m kubestow "$@"\n')
    plugin.chmod(0o755)
    command = [str(kubectl_path), "kubestow", "explain", "reports-0", "-n", "default", "-o", "wide"]
    done = subprocess.run(
        [*command, "-f", str(ROOT / "examples")],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Pod default/reports-0: Unschedulable\n")
