"""The manifests of `deploy/` on a real API server: they are accepted, and their rights suffice."""

import asyncio
import json
import re
import ssl
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from kubestow.api.meta import JsonObject
from kubestow.clock import SystemClock
from kubestow.cluster.self_signed import self_signed
from tools.free_port import free_port
from tools.scheduler_process import ask_scheduler, running_scheduler

DEPLOY = Path(__file__).parents[3] / "deploy"
PLURALS = {
    "Namespace": "namespaces",
    "NetworkPolicy": "networkpolicies",
    "ServiceAccount": "serviceaccounts",
    "ConfigMap": "configmaps",
    "Service": "services",
    "Deployment": "deployments",
    "Pod": "pods",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}


# The role of kube-scheduler may read volume attachments since this minor version.
ATTACHMENTS_SINCE = 32
# Kinds of operators that a plain cluster does not have.
FOREIGN = {"Certificate", "Issuer", "ServiceMonitor", "PrometheusRule"}


@pytest.fixture(params=["kustomize", "helm"])
def objects(request: pytest.FixtureRequest) -> list[JsonObject]:
    """Everything there is to install, as either tool makes it."""
    if request.param == "kustomize":
        program = request.getfixturevalue("kubectl_path")
        command = [str(program), "kustomize", str(DEPLOY / "monitoring")]
    else:
        program = request.getfixturevalue("helm_path")
        command = [str(program), "template", "kubestow", str(DEPLOY / "chart")]
        command += ["--namespace=kubestow", "--set=monitoring.enabled=true,tls.certManager=true"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    made = [found for found in yaml.safe_load_all(done.stdout) if found]
    if request.param == "helm":  # --create-namespace
        made.insert(0, yaml.safe_load((DEPLOY / "base" / "namespace.yaml").read_text()))
    return made


async def apply(bench: Any, document: JsonObject) -> None:
    version, namespace = document["apiVersion"], document["metadata"].get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    place = f"{root}/namespaces/{namespace}" if namespace else root
    path = f"{place}/{PLURALS[document['kind']]}/{document['metadata']['name']}"
    await bench.client.session.request(
        "PATCH",
        f"{path}?fieldManager=tests&force=true&fieldValidation=Strict",
        json.dumps(document).encode(),
        content_type="application/apply-patch+yaml",
    )


async def account_token(bench: Any) -> str:
    """A token of the scheduler's own account, as its pod would get one."""
    path = "/api/v1/namespaces/kubestow/serviceaccounts/kubestow/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await bench.client.create_document(path, request)
    return answer["status"]["token"]


def test_the_rights_of_the_deployment_are_enough(
    run: Any, tmp_path: Path, objects: list[JsonObject]
) -> None:
    async def main(bench: Any) -> None:
        for document in objects:
            if document["kind"] not in FOREIGN:
                await apply(bench, document)
        kubeconfig = bench.plane.kubeconfig("kubestow", token=await account_token(bench))
        (config_map,) = (found for found in objects if "config.yaml" in found.get("data", {}))
        config = yaml.safe_load(config_map["data"]["config.yaml"])
        config["clientConnection"]["kubeconfig"] = str(kubeconfig)
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        authority = write_certificate(tmp_path)
        await bench.create(node("n1"), pod("a"), pod("huge", cpu="100"))
        async with running_scheduler(
            *flags_in(tmp_path, the("Deployment", objects)),
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
        ) as scheduler:
            assert await bench.bound("a") == "n1"
            await bench.pod("huge", lambda pod: bool(pod.status.conditions))
            await event_about_the_lease(bench)
            address = await scheduler.address()
            assert (await ask_scheduler(address, "/metrics"))[0] == 403
            admin = bench.plane.tokens["admin"]
            monitor = the("ServiceMonitor", objects)["spec"]["endpoints"][0]
            name = monitor["tlsConfig"]["serverName"]
            assert await scraped(address, admin, name, authority) == 200
            assert await scheduler.end() == 0
            assert "forbidden" not in scheduler.log
            assert "cannot" not in scheduler.log

    run(main)


def the(kind: str, objects: list[JsonObject]) -> JsonObject:
    (found,) = (found for found in objects if found["kind"] == kind)
    return found


def flags_in(folder: Path, deployment: JsonObject) -> list[str]:
    """The flags of the container, with its files in this folder."""
    command, *flags = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert command == "run"
    return [re.sub(r"/etc/kubestow(-tls)?/", f"{folder}/", flag) for flag in flags]


def write_certificate(folder: Path) -> str:
    """What the Secret has; returns its authority."""
    made = self_signed(["kubestow.kubestow.svc"], now_ns=SystemClock().now_ns())
    (folder / "tls.crt").write_bytes(made.certificate + made.authority)
    (folder / "tls.key").write_bytes(made.key)
    return made.authority.decode()


async def scraped(address: str, token: str, server_name: str, authority: str) -> int:
    """The status of the metrics for a client that verifies the certificate, as Prometheus does."""
    port = address.rpartition(":")[2]
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            f"https://127.0.0.1:{port}/metrics",
            headers={"Authorization": f"Bearer {token}"},
            ssl=ssl.create_default_context(cadata=authority),
            server_hostname=server_name,
        ) as response,
    ):
        return response.status


def test_the_static_pod_needs_no_more_than_the_account_of_kube_scheduler(
    run: Any, server_minor: int
) -> None:
    if server_minor < ATTACHMENTS_SINCE:
        pytest.skip("this role may not read volume attachments")

    manifest = yaml.safe_load((DEPLOY / "static-pod" / "kube-scheduler.yaml").read_text())
    _, _, *flags = manifest["spec"]["containers"][0]["command"]

    async def main(bench: Any) -> None:
        path = "/api/v1/namespaces/kube-system/pods?dryRun=All&fieldValidation=Strict"
        created = await bench.client.create_document(path, manifest)
        assert created["spec"]["priority"] == 2_000_001_000
        kubeconfig = str(bench.plane.kubeconfig("system:kube-scheduler"))
        own = [flag.replace("/etc/kubernetes/scheduler.conf", kubeconfig) for flag in flags]
        own += [f"--secure-port={free_port()}", "--v=2"]
        await bench.create(node("n1"), pod("a", scheduler="default-scheduler"))
        async with running_scheduler(*own) as scheduler:
            assert await bench.bound("a") == "n1"
            address = await scheduler.address()
            assert (await ask_scheduler(address, "/readyz"))[0] == 200
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


def pod(name: str, cpu: str = "100m", scheduler: str = "kubestow") -> JsonObject:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "schedulerName": scheduler},
    }
