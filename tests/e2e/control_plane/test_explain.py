"""`kubestow explain` on a real API server, with the rights of `deploy/explain` and no others."""

import asyncio
import json
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from kubestow.api.meta import JsonObject
from kubestow.api.pod import first_condition
from kubestow.errors import KubestowError
from kubestow.service.cli import app
from tools.free_port import free_port

ROLE = Path(__file__).parents[3] / "deploy/explain/cluster-role.yaml"
USER = "explainer"


def node(name: str, cpu: str) -> JsonObject:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, cpu: str) -> JsonObject:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


def binding() -> JsonObject:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": USER},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "kubestow-explain"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": USER}],
    }


def explain(*arguments: str) -> Any:
    result = CliRunner().invoke(app, ["explain", *arguments, "-o", "json"])
    if isinstance(result.exception, KubestowError):
        return str(result.exception)
    return json.loads(result.stdout)


def test_the_role_is_enough_and_the_message_is_that_of_the_condition(run: Any) -> None:
    async def main(bench: Any) -> None:
        kubeconfig = bench.plane.kubeconfig(USER)
        arguments = ("large", "--kubeconfig", str(kubeconfig))
        await bench.create(node("n1", "4"), pod("large", "9"))
        refused = await asyncio.to_thread(explain, *arguments)
        assert "no right to list" in refused
        assert '"kubestow-explain" has what is needed' in refused
        await bench.create(yaml.safe_load(ROLE.read_text()), binding())
        port = free_port()
        account = bench.plane.kubeconfig("kubestow")
        flags = (
            f"--authentication-kubeconfig={account}",
            f"--authorization-kubeconfig={account}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
        )
        async with bench.scheduler(*flags):
            waiting = await bench.pod("large", has_condition)
            condition = first_condition(waiting.status.conditions, "PodScheduled")
            now = await asyncio.to_thread(explain, *arguments)
            assert now["message"] == condition.message
            assert now["suggestions"]
            address = f"https://127.0.0.1:{port}"
            kept = await asyncio.to_thread(explain, *arguments, "--from", address)
            assert kept["message"] == condition.message
            assert kept["attempt"]["attempts"] >= 1

    run(main)


def has_condition(found: Any) -> bool:
    condition = first_condition(found.status.conditions, "PodScheduled")
    return condition is not None and bool(condition.message)
