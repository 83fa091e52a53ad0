"""What tests of `deploy/` share: objects as kustomize and helm make them."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
COMMAND_S = 300

Objects = list[dict[str, Any]]


@pytest.fixture(scope="session")
def kustomized(kubectl_path: Path) -> Callable[[str], Objects]:
    """The objects of a folder, as `kubectl apply -k` would apply them."""

    def kustomize(folder: str) -> Objects:
        done = subprocess.run(
            [str(kubectl_path), "kustomize", str(DEPLOY / folder)],
            check=True,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
        )
        return [*yaml.safe_load_all(done.stdout)]

    return kustomize


class Helm:
    """Runs helm without a cluster, in a home of its own."""

    def __init__(self, program: Path, home: Path, chart: Path = DEPLOY / "chart") -> None:
        self.chart = chart
        self._program = program
        self._home = home

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self._program), *arguments],
            capture_output=True,
            text=True,
            cwd=self._home,
            env={"HOME": str(self._home)},
            timeout=COMMAND_S,
        )

    def template(self, *flags: str, release: str = "kubestow", namespace: str = "") -> Objects:
        """The objects of a release."""
        place = f"--namespace={namespace or release}"
        done = self.run("template", release, str(self.chart), place, *flags)
        assert done.returncode == 0, done.stderr
        return [found for found in yaml.safe_load_all(done.stdout) if found]

    def refuses(self, *flags: str) -> str:
        """The error of values that do not fit."""
        done = self.run("template", "kubestow", str(self.chart), *flags)
        assert done.returncode != 0, done.stdout
        return done.stderr


@pytest.fixture
def helm(helm_path: Path, tmp_path: Path) -> Helm:
    return Helm(helm_path, tmp_path)
