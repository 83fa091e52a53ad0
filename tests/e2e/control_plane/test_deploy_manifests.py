"""The manifests of `deploy/` on a real API server: they are accepted, and their rights suffice."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import yaml

from kubestow.api.meta import JsonObject
from kubestow.errors import ConflictError
from kubestow.testing.scheduler_process import ask_scheduler, running_scheduler

DEPLOY = Path(__file__).parents[3] / "deploy"
PLURALS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "ConfigMap": "configmaps",
    "Service": "services",
    "Deployment": "deployments",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}


def manifests(folder: str) -> list[JsonObject]:
    root = DEPLOY / folder
    kustomization = yaml.safe_load((root / "kustomization.yaml").read_text())
    return [
        document
        for name in kustomization["resources"]
        for document in yaml.safe_load_all((root / name).read_text())
        if document["kind"] in PLURALS
    ]


async def apply(bench: Any, document: JsonObject) -> None:
    version, namespace = document["apiVersion"], document["metadata"].get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    place = f"{root}/namespaces/{namespace}" if namespace else root
    try:
        path = f"{place}/{PLURALS[document['kind']]}?fieldValidation=Strict"
        await bench.client.create_document(path, document)
    except ConflictError:
        pass  # an earlier test left it


async def account_token(bench: Any) -> str:
    """A token of the scheduler's own account, as its pod would get one."""
    path = "/api/v1/namespaces/kubestow/serviceaccounts/kubestow/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await bench.client.create_document(path, request)
    return answer["status"]["token"]


def test_the_rights_of_the_deployment_are_enough(run: Any, tmp_path: Path) -> None:
    async def main(bench: Any) -> None:
        for document in (*manifests("base"), *manifests("monitoring")):
            await apply(bench, document)
        kubeconfig = bench.plane.kubeconfig("kubestow", token=await account_token(bench))
        (config_map,) = (found for found in manifests("base") if found["kind"] == "ConfigMap")
        config = yaml.safe_load(config_map["data"]["config.yaml"])
        config["clientConnection"]["kubeconfig"] = str(kubeconfig)
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(config))
        await bench.create(node("n1"), pod("a"), pod("huge", cpu="100"))
        async with running_scheduler(
            f"--config={path}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            "--v=2",
        ) as scheduler:
            assert await bench.bound("a") == "n1"
            await bench.pod("huge", lambda pod: bool(pod.status.conditions))
            await event_about_the_lease(bench)
            address = await scheduler.address()
            assert (await ask_scheduler(address, "/metrics"))[0] == 403
            admin = bench.plane.tokens["admin"]
            assert (await ask_scheduler(address, "/metrics", token=admin))[0] == 200
            assert await scheduler.end() == 0
            assert "forbidden" not in scheduler.log
            assert "cannot" not in scheduler.log

    run(main)


async def event_about_the_lease(bench: Any) -> None:
    while True:
        events = await bench.client.get_document("/api/v1/namespaces/kubestow/events")
        if any(event["reason"] == "LeaderElection" for event in events["items"]):
            return
        await asyncio.sleep(0.1)


def node(name: str) -> JsonObject:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": resources, "allocatable": resources},
    }


def pod(name: str, cpu: str = "100m") -> JsonObject:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "schedulerName": "kubestow"},
    }


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
