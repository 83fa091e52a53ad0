"""The commands that `kubestow explain` prints, run as printed: the pod lands where it was said.

Every kind of suggestion that has commands is here.
"""

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kubestow.explain.suggestions.remedy import SIZES, WAIT
from kubestow.service.cli import app
from kubestow.simulator.served import ServedOptions

pytestmark = pytest.mark.slow

Kubectl = Any  # conftest.Kubectl
ASKED_MAX = 300


def container(cpu: str = "1") -> dict[str, Any]:
    return {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}


def pod(**spec: Any) -> dict[str, Any]:
    # Without kubelets a pod on a node is gone at once only with this.
    ends: dict[str, Any] = {"terminationGracePeriodSeconds": 0}
    spec = {"containers": [container(spec.pop("cpu", "1"))], **ends, **spec}
    metadata = {"name": "w", "labels": {"app": "w"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": pod(**spec)["spec"]}
    more = {} if kind == "Job" else {"selector": {"matchLabels": {"app": "w"}}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "w"},
        "spec": {"template": template, **more},
    }


def cron_job(**spec: Any) -> dict[str, Any]:
    """Due each second; its Jobs are named after the minute, and the next waits for the last."""
    job = {"spec": workload("Job", **spec)["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "w"},
        "spec": {"schedule": "@every 1s", "concurrencyPolicy": "Forbid", "jobTemplate": job},
    }


def moved(kind: str, **spec: Any) -> dict[str, Any]:
    """A workload with one pod, other than that of the waiting one."""
    labels = {"role": "moved"}
    template = {"metadata": {"labels": labels}, "spec": pod(**spec)["spec"]}
    return {
        **workload(kind),
        "metadata": {"name": "m"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def bound(name: str, node: str, **spec: Any) -> dict[str, Any]:
    """A pod on a node, which nothing makes again."""
    made = pod(nodeName=node, **spec)
    return {**made, "metadata": {"name": name, "labels": {"role": "other"}}}


def affinity(kind: str, **rule: Any) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": rule["of"]}}}


def node_terms(*values: str, key: str = "disk") -> dict[str, Any]:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def others_term(role: str) -> list[dict[str, Any]]:
    return [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"role": role}}}]


def storage_claim(size: str, storage_class: str, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", **more.pop("metadata", {})},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
            **more,
        },
    }


def volume(**more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk-1"},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "manual",
            "csi": {"driver": "disk.example.com", "volumeHandle": "disk-1"},
            **more,
        },
    }


def driver_on(node: str, limit: int) -> dict[str, Any]:
    driver = {"name": "disk.example.com", "nodeID": node, "allocatable": {"count": limit}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": [driver]},
    }


def storage_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def devices_of(node: str, *models: str) -> list[dict[str, Any]]:
    api_version = "resource.k8s.io/v1"
    listed = [
        {"name": f"gpu-{number}", "attributes": {"model": {"string": model}}}
        for number, model in enumerate(models)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return [
        {
            "apiVersion": api_version,
            "kind": "DeviceClass",
            "metadata": {"name": "cards"},
            "spec": {"selectors": [{"cel": {"expression": 'device.driver == "g.example.com"'}}]},
        },
        {
            "apiVersion": api_version,
            "kind": "ResourceSlice",
            "metadata": {"name": node},
            "spec": {"driver": "g.example.com", "nodeName": node, "pool": pool, "devices": listed},
        },
    ]


def device_claim(count: int, *models: str, of: str = "cards") -> dict[str, Any]:
    selectors = [
        {"cel": {"expression": f'device.attributes["g.example.com"].model == "{model}"'}}
        for model in models
    ]
    exactly = {"deviceClassName": of, "count": count, "selectors": selectors}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "card"},
        "spec": {"devices": {"requests": [{"name": "one", "exactly": exactly}]}},
    }


HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
TAINTED = ("taint nodes --all team=data:NoSchedule",)
CORDONED = ("cordon node-0", "cordon node-1")
LABELLED = ("label nodes --all disk=fast",)
PORT = {"containerPort": 80, "hostPort": 80}
WITH_PORT: dict[str, Any] = {"containers": [{**container(), "ports": [PORT]}]}
PORTS_TAKEN = tuple(bound(f"o-{number}", f"node-{number}", **WITH_PORT) for number in range(2))
UNEVEN = (
    f"label nodes node-0 {ZONE}=a --overwrite",
    f"label nodes node-1 {ZONE}=b --overwrite",
    bound("o-0", "node-0"),
    "cordon node-1",
)
SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchExpressions": [{"key": "role", "operator": "Exists"}]},
    }
]
SPREAD_POD = pod(topologySpreadConstraints=SPREAD)
SPREAD_POD["metadata"]["labels"]["role"] = "spread"
WITH_CARD: dict[str, Any] = {
    "resourceClaims": [{"name": "card", "resourceClaimName": "card"}],
    "containers": [{**container(), "resources": {"claims": [{"name": "card"}]}}],
}
MISNAMED = {**WITH_CARD, "resourceClaims": [{"name": "card", "resourceClaimName": "cart"}]}
NORTH = {"required": node_terms("north", key=ZONE)}
BOUND_VOLUME = (
    f"label nodes node-0 {ZONE}=south --overwrite",
    "cordon node-1",
    volume(nodeAffinity=NORTH, claimRef={"namespace": "default", "name": "data"}),
    storage_claim("5Gi", "manual", volumeName="disk-1"),
)
# What is done before, and what waits; "status" and "wait PODS" are done by the test.
CASES: dict[str, tuple[Sequence[str | dict[str, Any]], dict[str, Any]]] = {
    "Uncordon": (CORDONED, pod()),
    "RemoveTaint": (TAINTED, pod()),
    "AddLabel": ((), pod(nodeSelector={"gold": "yes"})),
    "AddToleration": (TAINTED, pod()),
    "AddToleration of a Deployment": (TAINTED, workload("Deployment")),
    "AddToleration of a StatefulSet": (TAINTED, workload("StatefulSet")),
    "AddToleration of a ReplicaSet": (TAINTED, workload("ReplicaSet")),
    "AddToleration of a CronJob": (TAINTED, cron_job()),
    "LowerRequest": ((), pod(cpu="900")),
    "LowerRequest of a Deployment": ((), workload("Deployment", cpu="900")),
    "LowerRequest of a DaemonSet": ((), workload("DaemonSet", cpu="900")),
    "LowerRequest of a Job": ((), workload("Job", cpu="900")),
    "LowerRequest of a CronJob": ((), cron_job(cpu="900")),
    "AddNode": ((), pod(cpu="900")),
    "RemoveSchedulingGates": ((), pod(schedulingGates=[{"name": "example.com/wait"}])),
    "RaisePodLimit": (("status",), pod()),
    "CreateClaim": ((), pod(volumes=CLAIM)),
    "DropNodeSelector": ((), pod(nodeSelector={"gold": "yes"})),
    "CorrectName": (LABELLED, pod(nodeSelector={"disc": "fast"})),
    "CorrectName of a claim": ((*devices_of("node-0", "a"), device_claim(1)), pod(**MISNAMED)),
    "CorrectName of a device class": (
        (*devices_of("node-0", "a"), device_claim(1, of="card")),
        pod(**WITH_CARD),
    ),
    "DropNodeSelector of a CronJob": ((), cron_job(nodeSelector={"gold": "yes"})),
    "ChangeNodeSelector": (LABELLED, pod(nodeSelector={"disk": "slow"})),
    "ChangeNodeAffinity": (LABELLED, pod(**affinity("nodeAffinity", of=node_terms("slow")))),
    "DropNodeAffinity": ((), pod(**affinity("nodeAffinity", of=node_terms("slow")))),
    "DropPodAffinity": ((), pod(**affinity("podAffinity", of=others_term("cache")))),
    "DropPodAntiAffinity": (
        (bound("o-0", "node-0"), bound("o-1", "node-1")),
        pod(**affinity("podAntiAffinity", of=others_term("other"))),
    ),
    "RaiseMaxSkew": (UNEVEN, SPREAD_POD),
    "ScheduleAnyway": (UNEVEN, SPREAD_POD),
    "ChangeHostPort": (PORTS_TAKEN, pod(**WITH_PORT)),
    "DropHostPort": (PORTS_TAKEN, pod(**WITH_PORT)),
    "DeletePods": (PORTS_TAKEN, pod(**WITH_PORT)),
    "MovePod": (
        ("cordon node-1", moved("Deployment", **WITH_PORT), "wait", "uncordon node-1"),
        pod(**WITH_PORT, nodeSelector={HOSTNAME: "node-0"}),
    ),
    "MovePod of a StatefulSet": (
        ("cordon node-1", moved("StatefulSet", **WITH_PORT), "wait", "uncordon node-1"),
        pod(**WITH_PORT, nodeSelector={HOSTNAME: "node-0"}),
    ),
    "LowerDeviceCount": ((*devices_of("node-0", "a", "a"), device_claim(3)), pod(**WITH_CARD)),
    "DropDeviceSelector": ((*devices_of("node-0", "a"), device_claim(1, "b")), pod(**WITH_CARD)),
    "CreateResourceClaim": (devices_of("node-0", "a"), pod(**WITH_CARD)),
    "CreateStorageClass": ((storage_claim("1Gi", "lost"),), pod(volumes=CLAIM)),
    "ChangeStorageClass": ((storage_claim("1Gi", "lost"),), pod(volumes=CLAIM)),
    "LowerStorageRequest": (
        (
            storage_class("manual", "kubernetes.io/no-provisioner"),
            volume(),
            storage_claim("9Gi", "manual"),
        ),
        pod(volumes=CLAIM),
    ),
    "MoveVolume": (BOUND_VOLUME, pod(volumes=CLAIM)),
    "RaiseVolumeLimit": (
        (
            "cordon node-1",
            driver_on("node-0", limit=0),
            volume(claimRef={"namespace": "default", "name": "data"}),
            storage_claim("5Gi", "manual", volumeName="disk-1"),
        ),
        pod(volumes=CLAIM),
    ),
}
NO_PODS = '[{"op":"replace","path":"/status/allocatable/pods","value":"0"}]'


def test_every_kind_that_has_commands_is_tried() -> None:
    assert {case.partition(" ")[0] for case in CASES} == SIZES.keys() - {WAIT}


def wait_until(claim: Callable[[], Any], what: str) -> Any:
    """What the claim returns; it runs kubectl, which takes a tenth of a second each time."""
    for _ in range(ASKED_MAX):
        found = claim()
        if found:
            return found
    raise AssertionError(what)


def carry_out(case: str, kubectl: Kubectl, kubeconfig: Path) -> None:
    """Make what the case has, explain the pod, and run the commands of the suggestion."""
    kind, (before, waiting) = case.partition(" ")[0], CASES[case]
    for command in before:
        _prepare(kubectl, command)
    kubectl("create -f -", stdin=json.dumps(waiting))
    name, *_ = wait_until(lambda: kubectl("get pods -l app=w -o name").split(), "no pod was made")
    arguments = ["explain", name, "-n", "default", "--kubeconfig", str(kubeconfig), "-o", "json"]
    explained = CliRunner().invoke(app, arguments)
    found = json.loads(explained.stdout)["suggestions"]
    suggestion = next(each for each in found if each["kind"] == kind)
    assert suggestion["commands"]
    for command in suggestion["commands"]:
        run_command(command, kubectl)

    def is_placed() -> bool:
        # A Deployment deletes the pod that waits when the new one is ready, which takes a kubelet.
        return suggestion["node"] in _nodes_of_pods(kubectl)

    wait_until(is_placed, f"the pod still waits after {suggestion['commands']}")


def create_missing_priority_class(kubectl: Kubectl, folder: Path) -> None:
    """A server refuses pods with a class that is missing, so the pod is explained in a file."""
    asked = pod(priorityClassName="gold")
    cluster, file = folder / "cluster.json", folder / "pod.json"
    cluster.write_text(kubectl("get nodes,priorityclasses -o json"))
    file.write_text(json.dumps(asked))
    arguments = ["explain", "w", "-f", str(cluster), "-f", str(file)]
    explained = CliRunner().invoke(app, arguments)
    _, found, command = str(explained.exception).partition("; it is made with: ")
    assert found, explained.output
    assert "no PriorityClass" in kubectl.refuses("create -f -", stdin=json.dumps(asked))
    run_command(command, kubectl)
    kubectl("create -f -", stdin=json.dumps(asked))
    wait_until(lambda: any(_nodes_of_pods(kubectl)), f"the pod still waits after {command}")


def run_command(command: str, kubectl: Kubectl) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        env=kubectl.environment | {"PATH": f"{kubectl.program.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def _nodes_of_pods(kubectl: Kubectl) -> list[str]:
    listed = json.loads(kubectl("get pods -l app=w -o json"))["items"]
    return [each["spec"].get("nodeName", "") for each in listed]


def _prepare(kubectl: Kubectl, command: str | dict[str, Any]) -> None:
    if isinstance(command, dict):
        kubectl("create -f -", stdin=json.dumps(command))
    elif command == "wait":
        wait_until(lambda: "node-0" in kubectl("get pods -l role=moved -o wide"), "it has no node")
    elif command == "status":
        for name in ("node-0", "node-1"):
            kubectl.run("patch", "node", name, "--subresource=status", "--type=json", "-p", NO_PODS)
    else:
        kubectl(command)


@pytest.mark.parametrize("case", CASES)
def test_a_printed_command_places_the_pod_where_it_was_said(
    case: str, kubectl_path: Path, tmp_path: Path, serve: Callable[[ServedOptions], Path]
) -> None:
    from tests.e2e.conftest import Kubectl as RunKubectl

    path = serve(ServedOptions(nodes=2, start_delay_s=0.1, stop_s=0.1))
    carry_out(case, RunKubectl(kubectl_path, tmp_path, path), path)


def test_a_priority_class_that_is_missing_is_made(
    kubectl_path: Path, tmp_path: Path, serve: Callable[[ServedOptions], Path]
) -> None:
    from tests.e2e.conftest import Kubectl as RunKubectl

    path = serve(ServedOptions(nodes=2, start_delay_s=0.1, stop_s=0.1))
    create_missing_priority_class(RunKubectl(kubectl_path, tmp_path, path), tmp_path)
