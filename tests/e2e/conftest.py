"""A cluster for a real kubectl (`kubectl_path`)."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubestow.clock import SystemClock
from kubestow.simulator.served import ServedCluster, ServedOptions

COMMAND_S = 400


class Kubectl:
    """Runs kubectl against one cluster, with a home of its own."""

    def __init__(self, program: Path, home: Path, kubeconfig: Path) -> None:
        self.program = program
        self.environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig),
        }

    def run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self.program), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=COMMAND_S,
        )

    def __call__(self, command: str, *, stdin: str = "") -> str:
        """The output of a command that must succeed."""
        done = self.run(*command.split(), stdin=stdin)
        assert done.returncode == 0, f"kubectl {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def refuses(self, command: str, *, stdin: str = "") -> str:
        """The error output of a command that must fail."""
        done = self.run(*command.split(), stdin=stdin)
        assert done.returncode != 0, f"kubectl {command}\n{done.stdout}"
        return done.stderr


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[ServedOptions], Path]]:
    """Serves a cluster on a thread of its own; gives the path of its kubeconfig."""
    stops: list[Callable[[], None]] = []

    def start(options: ServedOptions) -> Path:
        path = tmp_path / "kubeconfig"
        is_up = threading.Event()
        loop = asyncio.new_event_loop()
        is_over = asyncio.Event()

        async def run() -> None:
            async with ServedCluster(options, SystemClock()).serving(path):
                is_up.set()
                await is_over.wait()

        thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
        thread.start()

        def stop() -> None:
            loop.call_soon_threadsafe(is_over.set)
            thread.join()
            loop.close()

        stops.append(stop)
        assert is_up.wait(300), "the cluster did not start"
        return path

    yield start
    for stop in stops:
        stop()


@pytest.fixture
def kubectl(kubectl_path: Path, tmp_path: Path, serve: Callable[[ServedOptions], Path]) -> Kubectl:
    """kubectl with a cluster of four nodes whose pods start and stop quickly."""
    options = ServedOptions(nodes=4, start_delay_s=0.1, stop_s=0.1)
    return Kubectl(kubectl_path, tmp_path, serve(options))
