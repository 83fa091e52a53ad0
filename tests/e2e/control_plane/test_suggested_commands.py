"""The commands that `kubestow explain` prints, run as printed against a real API server.

Controllers are the real ones, without those that look after nodes: there are no kubelets. Volumes
are made by a pretended provisioner.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import Kubectl
from tests.e2e.control_plane.conftest import ASSETS, ControlPlane, needs
from tests.e2e.control_plane.real_cluster import program
from tests.e2e.test_suggested_commands import (
    CASES,
    HOSTNAME,
    carry_out,
    create_missing_priority_class,
    storage_class,
    volume,
)

from kubestow.errors import ConflictError

pytestmark = [pytest.mark.slow, needs("kube-controller-manager")]

CONTROLLERS = (
    "cronjob-controller", "daemonset-controller", "deployment-controller",
    "garbage-collector-controller", "job-controller", "persistentvolume-binder-controller",
    "replicaset-controller", "resourceclaim-controller", "statefulset-controller",
)  # fmt: skip
FLAGS = (
    f"--controllers={','.join(CONTROLLERS)}",
    "--leader-elect=false",
    "--secure-port=0",
    "--kube-api-qps=500",
    "--kube-api-burst=500",
    "--pvclaimbinder-sync-period=1s",
)
DRIVER = "disk.example.com"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
CLAIMS = "/api/v1/persistentvolumeclaims"
TURN_S = 0.2
AMOUNTS = {"cpu": "32", "memory": "128Gi", "pods": "110"}
KINDS = "cronjobs,deployments,statefulsets,daemonsets,replicasets,jobs,pods,pvc,resourceclaims"


def node(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name}},
        "status": {
            "capacity": AMOUNTS,
            "allocatable": AMOUNTS,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.fixture(scope="module", autouse=True)
def controllers(shared_plane: ControlPlane) -> Iterator[None]:
    kubeconfig = f"--kubeconfig={shared_plane.kubeconfig()}"
    with program("kube-controller-manager", shared_plane.folder, kubeconfig, *FLAGS):
        yield


async def provision(bench: Any) -> None:
    """A volume for each claim whose node the scheduler has chosen, as a provisioner makes it."""
    while True:
        for claim in (await bench.client.get_document(CLAIMS))["items"]:
            if SELECTED_NODE in claim["metadata"].get("annotations", {}):
                with contextlib.suppress(ConflictError):  # it has its volume
                    await bench.create(volume_for(claim))
        await asyncio.sleep(TURN_S)


def volume_for(claim: dict[str, Any]) -> dict[str, Any]:
    metadata, spec = claim["metadata"], claim["spec"]
    handle = f"pvc-{metadata['uid']}"
    reference = {"apiVersion": "v1", "kind": claim.get("kind", "PersistentVolumeClaim")}
    reference |= {key: metadata[key] for key in ("namespace", "name", "uid")}
    return volume(
        capacity=spec["resources"]["requests"],
        accessModes=spec["accessModes"],
        storageClassName=spec["storageClassName"],
        csi={"driver": DRIVER, "volumeHandle": handle},
        claimRef=reference,
        persistentVolumeReclaimPolicy="Retain",
    ) | {"metadata": {"name": handle}}


@pytest.mark.parametrize("case", CASES)
def test_a_printed_command_places_the_pod_where_it_was_said(
    case: str, run: Any, shared_plane: ControlPlane, tmp_path: Path
) -> None:
    kubeconfig = shared_plane.kubeconfig()
    kubectl = Kubectl(Path(ASSETS) / "kubectl", tmp_path, kubeconfig)

    async def main(bench: Any) -> None:
        await bench.create(node("node-0"), node("node-1"), storage_class("standard", DRIVER))
        provisioner = asyncio.create_task(provision(bench))
        async with bench.scheduler("--leader-elect=false"):
            await asyncio.to_thread(carry_out, case, kubectl, kubeconfig)
        provisioner.cancel()

    with cleared(kubectl):
        run(main)


def test_a_priority_class_that_is_missing_is_made(
    run: Any, shared_plane: ControlPlane, tmp_path: Path
) -> None:
    kubectl = Kubectl(Path(ASSETS) / "kubectl", tmp_path, shared_plane.kubeconfig())

    async def main(bench: Any) -> None:
        await bench.create(node("node-0"))
        async with bench.scheduler("--leader-elect=false"):
            await asyncio.to_thread(create_missing_priority_class, kubectl, tmp_path)

    with cleared(kubectl):
        run(main)


@contextlib.contextmanager
def cleared(kubectl: Kubectl) -> Iterator[None]:
    """Controllers would make pods again in the next test."""
    try:
        yield
    finally:
        kubectl(f"delete {KINDS} --all --force --grace-period=0")
        kubectl("delete nodes,csinodes,persistentvolumes --all")
