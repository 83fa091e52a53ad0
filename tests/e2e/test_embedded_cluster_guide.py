"""Commands of the guides that need a cluster are run as they are written, on the embedded one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
sys.path.insert(0, str(ROOT / "docs" / "scripts"))

from outputs import prepare  # noqa: E402  (found through the line above)
from pages import blocks  # noqa: E402

BLOCKS = [block.code for block in blocks((GUIDES / "embedded-cluster.md").read_text(), "sh")]
COPY = [
    block.code
    for block in blocks((GUIDES / "replace-kube-scheduler.md").read_text(), "sh")
    if "cluster.json" in block.code
]
SERVE = "kubestow demo --serve"
BLOCK_S = 600


@pytest.fixture
def environment(kubectl_path: Path, tmp_path: Path) -> dict[str, str]:
    """A shell with the commands `kubectl` and `kubestow` and the folders that guides use."""
    environment = prepare(tmp_path)
    (tmp_path / "bin" / "kubectl").symlink_to(kubectl_path)
    return environment


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
            process.communicate(timeout=300)


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
            wait = "kubectl wait pod/web --for=condition=Ready --timeout=300s"
            run_block(wait, tmp_path, environment)


def test_a_copy_of_a_cluster_is_placed_again(tmp_path: Path, environment: dict[str, str]):
    (copy,) = COPY
    environment["KUBECONFIG"] = "embedded.kubeconfig"
    (tmp_path / "config.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    )
    with running(BLOCKS[0], tmp_path, environment, "Ctrl-C ends it"):
        run_block("kubectl create deployment web --image=nginx --replicas=3", tmp_path, environment)
        run_block("kubectl rollout status deployment/web", tmp_path, environment)
        shown = run_block(copy, tmp_path, environment)
    copied = json.loads((tmp_path / "cluster.json").read_text())["items"]
    assert {"Node", "Pod", "Namespace", "ReplicaSet"} <= {found["kind"] for found in copied}
    assert "3 of 3 pods scheduled" in shown
