"""Groups of other APIs on a real API server: custom resources, and those of v1.37."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.control_plane.conftest import Bench

from kubestow.api.meta import JsonObject
from kubestow.simulator.gang_definitions import POD_GROUP_DEFINITION

Run = Callable[..., None]
V1BETA1_SINCE = 37


def config_of(bench: Bench, folder: Path, dialect: str) -> str:
    gangs = {"name": "Gangs", "args": {"dialects": [dialect]}}
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "Gangs"}]}},
        "pluginConfig": [gangs],
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        # Flags for these have no effect beside a file.
        "clientConnection": {"kubeconfig": str(bench.plane.kubeconfig("admin"))},
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(document))
    return f"--config={path}"


def node(name: str) -> JsonObject:
    capacity = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def pod(name: str, labels: dict[str, str], **spec: Any) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def group(api_version: str, **spec: Any) -> JsonObject:
    metadata = {"name": "g", "namespace": "default"}
    return {"apiVersion": api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def gates_of(server_minor: int) -> str:
    """The scheduler has the gates of the server's version; v1.37 has one for all of it."""
    gates = ["GenericWorkload=true"]
    if server_minor < V1BETA1_SINCE:
        gates.append("GangScheduling=true")
    return f"--feature-gates={','.join(gates)}"


async def expect_a_gang(bench: Bench, config: str, gates: str, *pods: JsonObject) -> None:
    """Two members with one node stay pending; with a second node both are bound."""
    await bench.create(node("n1"), *pods)
    async with bench.scheduler(config, gates, user="admin"):
        for name in ("p0", "p1"):
            held_back = await bench.pod(name, lambda found: bool(found.status.conditions))
            assert not held_back.spec.node_name
        await bench.create(node("n2"))
        nodes = await asyncio.gather(bench.bound("p0"), bench.bound("p1"))
        assert sorted(nodes) == ["n1", "n2"]


def test_groups_of_scheduler_plugins(run_alone: Run, tmp_path: Path, server_minor: int) -> None:
    async def test(bench: Bench) -> None:
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await bench.client.create_document(definitions, POD_GROUP_DEFINITION)
        version = "scheduling.x-k8s.io/v1alpha1"
        path = f"/apis/{version}/namespaces/default/podgroups"
        for _ in range(100):
            # The server serves the resource a moment after its definition was written.
            found = await bench.client.get_document(f"{definitions}/podgroups.scheduling.x-k8s.io")
            conditions = found.get("status", {}).get("conditions") or ()
            if any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
                break
            await asyncio.sleep(0.1)
        await bench.client.create_document(path, group(version, minMember=2))
        labels = {"scheduling.x-k8s.io/pod-group": "g"}
        pods = [pod(f"p{i}", labels) for i in range(2)]
        config = config_of(bench, tmp_path, version)
        await expect_a_gang(bench, config, gates_of(server_minor), *pods)

    run_alone(test)


def test_groups_of_v1_37(run_alone: Run, tmp_path: Path, server_minor: int) -> None:
    if server_minor < V1BETA1_SINCE:
        pytest.skip(f"needs Kubernetes 1.{V1BETA1_SINCE}")

    async def test(bench: Bench) -> None:
        version = "scheduling.k8s.io/v1beta1"
        policy = {"gang": {"minCount": 2}}
        await bench.create(group(version, schedulingPolicy=policy, disruptionMode={"all": {}}))
        pods = [pod(f"p{i}", {}, schedulingGroup={"podGroupName": "g"}) for i in range(2)]
        config = config_of(bench, tmp_path, version)
        await expect_a_gang(bench, config, gates_of(server_minor), *pods)
        path = f"/apis/{version}/namespaces/default/podgroups/g"
        for _ in range(100):
            found = await bench.client.get_document(path)
            conditions = found.get("status", {}).get("conditions") or ()
            if any(one["status"] == "True" for one in conditions):
                break
            await asyncio.sleep(0.1)
        assert [(one["type"], one["status"]) for one in conditions] == [
            ("PodGroupInitiallyScheduled", "True")
        ]

    flags = ("--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1beta1")
    run_alone(test, *flags)
