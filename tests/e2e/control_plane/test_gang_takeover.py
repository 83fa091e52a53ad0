"""A leader is killed while it binds the members of gangs: the standby completes what it began."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from aiohttp import web
from tests.e2e.control_plane.test_editions import QUICK_ELECTION
from tests.e2e.control_plane.test_gang_dialects import gates_of
from tests.e2e.control_plane.test_pod_groups import rights
from tests.e2e.control_plane.test_real_cluster import node, pod

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod

GANGS, SIZE, NODES = 6, 4, 4
# No multiple of the size: at least one gang is bound in part then.
BINDINGS_BEFORE_KILL = 6
UNAVAILABLE = 503
GROUPS = {  # version of the API, and the condition of a group
    36: ("scheduling.k8s.io/v1alpha2", "PodGroupScheduled"),
    37: ("scheduling.k8s.io/v1beta1", "PodGroupInitiallyScheduled"),
}


def gang(version: str, name: str) -> list[JsonObject]:
    group = {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": SIZE}}},
    }
    members = [
        pod(f"{name}-{number}", cpu="1", schedulingGroup={"podGroupName": name})
        for number in range(SIZE)
    ]
    return [group, *members]


class KillingBindings:
    """Lets some bindings pass, then kills the scheduler that sends them; the rest are lost."""

    def __init__(self) -> None:
        self.count = 0
        self.killed = asyncio.Event()
        self.process: Any = None

    def on_request(self, request: web.BaseRequest, _: dict[str, str]) -> int:
        if not request.path.endswith("/binding"):
            return 0
        self.count += 1
        if self.count <= BINDINGS_BEFORE_KILL:
            return 0
        if not self.killed.is_set():
            self.process.kill()
            self.killed.set()
        return UNAVAILABLE


async def placed_by_gang(bench: Any) -> Counter[str]:
    pods = await bench.client.list(Pod)
    return Counter(each.metadata.name.rpartition("-")[0] for each in pods if each.spec.node_name)


async def status_of(bench: Any, version: str, condition: str, name: str) -> str:
    """The status of a group's condition, as soon as it has it."""
    while True:
        path = f"/apis/{version}/namespaces/default/podgroups/{name}"
        document = await bench.client.get_document(path)
        for found in document.get("status", {}).get("conditions") or ():
            if found["type"] == condition:
                return found["status"]
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("minor", GROUPS)
def test_a_standby_completes_gangs_that_are_bound_in_part(
    minor: int, run_alone: Any, server_minor: int
) -> None:
    if server_minor != minor:
        pytest.skip(f"needs Kubernetes 1.{minor}")
    version, condition = GROUPS[minor]
    gates = gates_of(server_minor)

    async def main(bench: Any) -> None:
        # As many free resources as the gangs need.
        nodes = [node(f"n{number}", cpu=str(GANGS * SIZE // NODES)) for number in range(NODES)]
        await bench.create(*rights(), *nodes)
        bindings = KillingBindings()
        async with (
            bench.proxy(bindings.on_request) as proxy,
            bench.scheduler(*QUICK_ELECTION, gates, f"--master={proxy.url}") as leader,
        ):
            bindings.process = leader.process
            await leader.wait_for_line("Successfully acquired lease")
            async with bench.scheduler(*QUICK_ELECTION, gates) as standby:
                await standby.wait_for_line("Attempting to acquire leader lease")
                for number in range(GANGS):
                    await bench.create(*gang(version, f"gang{number}"))
                await bindings.killed.wait()
                before = await placed_by_gang(bench)
                assert any(0 < count < SIZE for count in before.values()), before

                for number in range(GANGS):
                    for member in range(SIZE):
                        await bench.bound(f"gang{number}-{member}")
                    assert await status_of(bench, version, condition, f"gang{number}") == "True"
                pods = await bench.client.list(Pod)
                used = Counter(each.spec.node_name for each in pods)
                assert set(used.values()) == {GANGS * SIZE // NODES}

                # There is nothing left for another one; with a further node it is placed whole.
                await bench.create(*gang(version, "late"))
                assert await status_of(bench, version, condition, "late") == "False"
                assert (await placed_by_gang(bench))["late"] == 0
                await bench.create(node("n9", cpu=str(SIZE)))
                found = {await bench.bound(f"late-{member}") for member in range(SIZE)}
                assert found == {"n9"}
                assert standby.process.returncode is None

    flags = (gates, f"--runtime-config={version}=true")
    run_alone(main, *flags, limit_s=150)
