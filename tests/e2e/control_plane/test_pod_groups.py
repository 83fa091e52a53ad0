"""Gangs on a real kube-apiserver with their gates on, and the rights that the guide names."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.control_plane.conftest import ACCOUNT
from tests.e2e.control_plane.test_real_cluster import message_of, node, pod

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod

GROUPS_OF = 36  # v1.37 serves v1beta1 instead, see test_gang_dialects
GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"
SERVED = "--runtime-config=scheduling.k8s.io/v1alpha2=true"
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "pod-groups.md"
GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
TAIL = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


def gang(name: str, min_count: int) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }


def member(group: str, number: int, cpu: str) -> JsonObject:
    return pod(f"{group}-{number}", cpu=cpu, schedulingGroup={"podGroupName": group})


def rights() -> list[JsonObject]:
    """The rules that the guide adds, as a role of the scheduler's account."""
    (rules,) = (
        block
        for block in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
        if "podgroups/status" in block
    )
    name = {"name": "kubestow-groups"}
    api = "rbac.authorization.k8s.io"
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": ACCOUNT}
    role = {"apiGroup": api, "kind": "ClusterRole", "name": name["name"]}
    version = f"{api}/v1"
    return [
        {
            "apiVersion": version,
            "kind": "ClusterRole",
            "metadata": name,
            "rules": yaml.safe_load(rules),
        },
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": name,
            "roleRef": role,
            "subjects": [account],
        },
    ]


async def condition(bench: Any, group: str, status: str) -> JsonObject:
    """The condition of the group as soon as it has that status."""
    while True:
        document = await bench.client.get_document(f"{GROUPS}/{group}")
        for found in document.get("status", {}).get("conditions", ()):
            if (found["type"], found["status"]) == ("PodGroupScheduled", status):
                return found
        await asyncio.sleep(0.1)


async def nodes_of(bench: Any, group: str) -> list[str]:
    pods = await bench.client.list(Pod)
    return [each.spec.node_name for each in pods if each.metadata.name.startswith(f"{group}-")]


@pytest.fixture(autouse=True)
def with_groups(server_minor: int) -> None:
    if server_minor != GROUPS_OF:
        pytest.skip(f"needs Kubernetes 1.{GROUPS_OF}")


def test_a_gang_is_bound_whole_or_waits_whole(run_alone: Any) -> None:
    async def main(bench: Any) -> None:
        await bench.create(*rights(), node("n1", cpu="4"))
        await bench.create(gang("fits", 3), *(member("fits", i, "1") for i in range(3)))
        async with bench.scheduler("--leader-elect=false", GATES):
            found = [await bench.bound(f"fits-{i}") for i in range(3)]
            assert found == ["n1", "n1", "n1"]
            assert (await condition(bench, "fits", "True"))["reason"] == "Scheduled"

            # One of them would fit.
            await bench.create(gang("waits", 3), *(member("waits", i, "1") for i in range(3)))
            waiting = await condition(bench, "waits", "False")
            assert waiting["reason"] == "Unschedulable"
            assert waiting["message"] == "pod group is unschedulable"
            texts = {
                message_of(await bench.pod(f"waits-{i}", lambda pod: bool(message_of(pod))))
                for i in range(3)
            }
            assert TAIL in texts
            assert any(text.startswith("0/1 nodes are available: 1 Insuff") for text in texts)
            assert await nodes_of(bench, "waits") == ["", "", ""]

            await bench.create(node("n2", cpu="2"))
            placed = sorted([await bench.bound(f"waits-{i}") for i in range(3)])
            assert placed == ["n1", "n2", "n2"]
            assert (await condition(bench, "waits", "True"))["reason"] == "Scheduled"

    run_alone(main, GATES, SERVED, limit_s=90)
