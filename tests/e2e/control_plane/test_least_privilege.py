"""The role of `deploy/base` grants what the scheduler uses, and nothing else.

A scheduler does everything that takes a right, and the API server writes down its requests. Each
right must appear in that list.
"""

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from aiohttp import web

from kubestow.api.meta import JsonObject
from tools.free_port import free_port
from tools.scheduler_process import ask_scheduler

DEPLOY = Path(__file__).parents[3] / "deploy" / "base"
USER = "system:serviceaccount:kubestow:kubestow"
POLICY: JsonObject = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}],
}
DEVICES = "resource.k8s.io"
HUGE = "100"


class Right(NamedTuple):
    group: str
    resource: str
    verb: str


# Rights that the API server asks for within another request.
CHECKED_WITHIN = {
    Right(DEVICES, "resourceclaims/binding", "patch"): Right(
        DEVICES, "resourceclaims/status", "patch"
    ),
}
# Resources that are read since a minor version of the server.
READ_SINCE = {"devicetaintrules": 37}


def granted(server_minor: int) -> set[Right]:
    """What the cluster role and the role of the lease grant, as far as that server has it."""
    found: set[Right] = set()
    for name in ("cluster-role.yaml", "rbac.yaml"):
        for document in yaml.safe_load_all((DEPLOY / name).read_text()):
            for rule in document.get("rules", ()):
                found |= {
                    Right(group, resource, verb)
                    for group in rule["apiGroups"]
                    for resource in rule["resources"]
                    for verb in rule["verbs"]
                    if server_minor >= READ_SINCE.get(resource, 0)
                }
    return found


@pytest.mark.usefixtures("with_devices")
def test_every_right_is_used_and_none_is_missing(
    run_alone: Any, tmp_path: Path, server_minor: int
) -> None:
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    audit = tmp_path / "audit.log"

    async def main(bench: Any) -> None:
        kubeconfig = bench.plane.kubeconfig("kubestow")
        faults = BindingFaults()
        async with (
            bench.proxy(faults.on_request) as proxy,
            bench.scheduler(
                f"--master={proxy.url}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                "--bind-address=127.0.0.1",
                f"--secure-port={free_port()}",
            ) as scheduler,
        ):
            await use_the_port(bench, await scheduler.address())
            await preempt(bench)
            await use_volumes(bench)
            await use_devices(bench)
            await repeat_an_event(bench, audit)
            await stand_by(bench, audit)
            assert not faults.left
            assert await scheduler.end() == 0
        codes = {request["responseStatus"]["code"] for request in requests_in(audit)}
        assert not codes & {401, 403}
        used = rights_in(audit)
        used |= {right for right, request in CHECKED_WITHIN.items() if request in used}
        # Granted by a role of the cluster: the authorities of client certificates.
        used.discard(Right("", "configmaps", "get"))
        needed = granted(server_minor)
        assert needed - used == set(), "granted, but not used"
        assert used - needed == set(), "used, but not granted"

    run_alone(
        main,
        f"--audit-policy-file={tmp_path / 'policy.yaml'}",
        f"--audit-log-path={audit}",
        # Without it lists are only a fallback.
        "--feature-gates=WatchList=false",
        # Asks for more rights where an owner reference blocks the deletion of the owner.
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        limit_s=120,
    )


def right_of(request: JsonObject) -> Right:
    target = request["objectRef"]
    parts = [target["resource"], target.get("subresource", "")]
    return Right(target.get("apiGroup", ""), "/".join(filter(None, parts)), request["verb"])


class BindingFaults:
    """What makes a scheduler read a pod, and give devices back: bindings that fail once."""

    def __init__(self) -> None:
        # The answer is lost, or the request is refused in a way that no version tries again.
        self.left = {"low": -1, "device-user": 400}

    def on_request(self, request: web.BaseRequest, _: dict[str, str]) -> int:
        if not request.path.endswith("/binding"):
            return 0
        return self.left.pop(request.path.split("/")[-2], 0)


async def use_the_port(bench: Any, address: str) -> None:
    """The API server is asked whose token it is, and what its owner may do."""
    status, _ = await ask_scheduler(address, "/metrics", token=bench.plane.tokens["nobody"])
    assert status == 403


async def preempt(bench: Any) -> None:
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    await bench.create(urgent, node("n1"), pod("low", cpu="3"))
    assert await bench.bound("low") == "n1"
    await bench.create(pod("high", cpu="3", priorityClassName="urgent"))
    assert await bench.bound("high") == "n1"


async def use_volumes(bench: Any) -> None:
    await bench.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "made"},
            "provisioner": "example.com/disks",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        volume("disk"),
        claim("data", "local"),
        claim("new", "made"),
    )
    path = "/api/v1/persistentvolumes/disk/status"
    await bench.send("PATCH", path, {"status": {"phase": "Available"}})
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("data", "new")
    ]
    await bench.create(pod("volume-user", volumes=volumes))
    while True:
        disk = await bench.client.get_document("/api/v1/persistentvolumes/disk")
        path = "/api/v1/namespaces/default/persistentvolumeclaims/new"
        new = await bench.client.get_document(path)
        annotations = new["metadata"].get("annotations", {})
        if "claimRef" in disk["spec"] and "volume.kubernetes.io/selected-node" in annotations:
            return
        await asyncio.sleep(0.1)


def volume(name: str) -> JsonObject:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/mnt/disk"},
            "nodeAffinity": {"required": required},
        },
    }


def claim(name: str, storage_class: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "5Gi"}},
        },
    }


async def use_devices(bench: Any) -> None:
    """A claim is made for the pod's extended resource, deleted, and made again."""
    await bench.create(
        {
            "apiVersion": f"{DEVICES}/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpus"},
            "spec": {"extendedResourceName": "example.com/gpu"},
        },
        {
            "apiVersion": f"{DEVICES}/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "n1-gpus"},
            "spec": {
                "driver": "gpus.example.com",
                "nodeName": "n1",
                "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}],
            },
        },
    )
    limits = {"example.com/gpu": "1"}
    container = {"name": "main", "image": "pause", "resources": {"limits": limits}}
    await bench.create(pod("device-user", containers=[container]))
    assert await bench.bound("device-user") == "n1"


async def repeat_an_event(bench: Any, audit: Path) -> None:
    """The second report of the same problem changes the event of the first."""
    await bench.create(pod("huge", cpu=HUGE))
    await bench.pod("huge", lambda pod: bool(pod.status.conditions))
    number = 0
    while Right("events.k8s.io", "events", "patch") not in rights_in(audit):
        number += 1
        # Large enough for another attempt, which fails for the same reason as the last one did.
        large = node(f"large-{number}", cpu=HUGE)
        large["spec"] = {"unschedulable": True}
        await bench.create(large)
        await asyncio.sleep(1)
        await bench.send("DELETE", f"/api/v1/nodes/large-{number}")


async def stand_by(bench: Any, audit: Path) -> None:
    """A second replica watches the lease."""
    async with bench.scheduler():
        watch = Right("coordination.k8s.io", "leases", "watch")
        while watch not in rights_in(audit):  # noqa: ASYNC110 - a file of another process
            await asyncio.sleep(0.5)


def requests_in(audit: Path) -> list[JsonObject]:
    return [json.loads(line) for line in audit.read_text().splitlines()]


def rights_in(audit: Path) -> set[Right]:
    return {right_of(request) for request in requests_in(audit) if "objectRef" in request}


def node(name: str, *, cpu: str = "4") -> JsonObject:
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": resources, "allocatable": resources},
    }


def pod(name: str, *, cpu: str = "100m", **spec: Any) -> JsonObject:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }
