"""`kubestow simulate --from-cluster` and `capacity` on a real kube-apiserver."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from kubestow.api.meta import JsonObject

PAGE = 500


def node(name: str) -> JsonObject:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": resources, "allocatable": resources},
    }


def pod(name: str, **spec: Any) -> JsonObject:
    container = {
        "name": "main",
        "image": "pause",
        "env": [{"name": "TOKEN", "value": "hunter2"}],
        "resources": {"requests": {"cpu": "1"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


async def kubestow(*arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "kubestow",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    return process.returncode or 0, output.decode(), errors.decode()


def test_a_cluster_is_read_in_pages_saved_and_simulated(run: Any, tmp_path: Path) -> None:
    async def main(bench: Any) -> None:
        await bench.create(node("n1"), node("n2"))
        waiting = [pod(f"w{index:04}", schedulerName="none") for index in range(PAGE + 20)]
        await bench.create(*waiting, pod("a"), pod("b", nodeName="n1"))
        place = tmp_path / "saved"
        live = ("--from-cluster", "--kubeconfig", str(bench.plane.kubeconfig()), "-o", "json")
        code, output, errors = await kubestow("simulate", *live, "--save", str(place))
        assert (code, "warning" in errors) == (0, False), errors
        result = json.loads(output)
        assert len(result["pods"]) == len(waiting) + 1
        assert result["runningCount"] == 1
        assert [one["node"] for one in result["pods"] if one["name"] == "a"] == ["n2"]
        saved = "".join(file.read_text() for file in place.iterdir())
        assert "hunter2" not in saved
        assert await kubestow("simulate", "-f", str(place), "-o", "json") == (0, output, "")

        (tmp_path / "pod.json").write_text(json.dumps(pod("copy")))
        fit = ("--fit", str(tmp_path / "pod.json"))
        code, output, _ = await kubestow("capacity", *live, *fit)
        assert (code, json.loads(output)["copies"]) == (0, 6)

        drained = ("--drain", "n1")
        code, output, _ = await kubestow("capacity", *live, *fit, *drained)
        assert (code, json.loads(output)["copies"]) == (0, 3)

    run(main)


def test_a_user_without_rights_gets_one_sentence(run: Any) -> None:
    async def main(bench: Any) -> None:
        kubeconfig = str(bench.plane.kubeconfig("nobody"))
        code, output, errors = await kubestow(
            "simulate", "--from-cluster", "--kubeconfig", kubeconfig
        )
        assert (code, output) == (2, "")
        assert errors.startswith("kubestow: error: cannot list ")
        assert "is forbidden" in errors
        assert len(errors.splitlines()) == 2

    run(main)
