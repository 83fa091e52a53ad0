"""`kubestow run` against a real kube-apiserver, with the rights of `deploy/base`."""

import asyncio
import signal
from typing import Any

import pytest
from aiohttp import web

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, first_condition
from kubestow.cluster.http.http_client import HttpClient
from tools.free_port import free_port
from tools.scheduler_process import ask_scheduler

NO_ELECTION = "--leader-elect=false"
QUICK_ELECTION = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)


def node(name: str, *, cpu: str = "4", labels: JsonObject | None = None) -> JsonObject:
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, *, cpu: str = "100m", **spec: Any) -> JsonObject:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def message_of(pod: Pod) -> str:
    condition = first_condition(pod.status.conditions, "PodScheduled")
    return condition.message if condition is not None else ""


def test_a_pod_is_scheduled_with_event_and_condition(run: Any) -> None:
    async def main(bench: Any) -> None:
        await bench.create(node("n1"), node("n2", cpu="1"), pod("a", cpu="2"))
        async with bench.scheduler() as scheduler:
            assert await bench.bound("a") == "n1"
            await scheduler.wait_for_line('"Successfully bound pod to node" pod="default/a"')
            assert await scheduler.end() == 0
        events = await bench.client.get_document("/apis/events.k8s.io/v1/namespaces/default/events")
        (event,) = events["items"]
        assert event["reason"] == "Scheduled"
        assert event["note"] == "Successfully assigned default/a to n1"
        assert event["reportingController"] == "default-scheduler"

    run(main)


def test_an_unschedulable_pod_waits_for_a_node(run: Any) -> None:
    async def main(bench: Any) -> None:
        await bench.create(node("small", cpu="1"), pod("a", cpu="2"))
        async with bench.scheduler(NO_ELECTION):
            waiting = await bench.pod("a", lambda pod: bool(message_of(pod)))
            assert message_of(waiting).startswith("0/1 nodes are available: 1 Insufficient cpu.")
            await bench.create(node("large", cpu="4"))
            assert await bench.bound("a") == "large"

    run(main)


def test_an_important_pod_takes_the_place_of_another(run: Any) -> None:
    async def main(bench: Any) -> None:
        urgent = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 1000,
        }
        await bench.create(urgent, node("n1"), pod("low", cpu="3"))
        async with bench.scheduler(NO_ELECTION):
            await bench.bound("low")
            await bench.create(pod("high", cpu="3", priorityClassName="urgent"))
            assert await bench.bound("high") == "n1"
            names = [item.metadata.name for item in await bench.client.list(Pod)]
            assert names == ["high"]

    run(main)


def test_volumes_are_bound_before_the_pod(run: Any) -> None:
    async def main(bench: Any) -> None:
        await bench.create(*volume_documents(), node("n1"), node("n2"))
        await set_volume_phase(bench, "Available")
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        await bench.create(pod("a", volumes=volumes))
        async with bench.scheduler(NO_ELECTION):
            controller = asyncio.create_task(complete_binding(bench))
            assert await bench.bound("a") == "n2"
            await controller

    run(main)


def volume_documents() -> list[JsonObject]:
    """A disk that only n2 has, and a claim that waits for a pod."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "disk"},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "local": {"path": "/mnt/disk"},
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
                },
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "resources": {"requests": {"storage": "5Gi"}},
            },
        },
    ]


async def set_volume_phase(bench: Any, phase: str) -> None:
    path = "/api/v1/persistentvolumes/disk/status"
    await bench.send("PATCH", path, {"status": {"phase": phase}})


async def complete_binding(bench: Any) -> None:
    """What the volume controller does once the scheduler has matched volume and claim."""
    claim_path = "/api/v1/namespaces/default/persistentvolumeclaims/data"
    while True:
        volume = await bench.client.get_document("/api/v1/persistentvolumes/disk")
        if "claimRef" in volume["spec"]:
            break
        await asyncio.sleep(0.1)
    await set_volume_phase(bench, "Bound")
    await bench.send(
        "PATCH",
        claim_path,
        {
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": "disk"},
        },
    )
    await bench.send("PATCH", f"{claim_path}/status", {"status": {"phase": "Bound"}})


def test_a_standby_takes_over_when_the_leader_is_killed(run: Any) -> None:
    async def main(bench: Any) -> None:
        await bench.create(node("n1"))
        async with bench.scheduler(*QUICK_ELECTION) as first:
            await first.wait_for_line("Successfully acquired lease")
            async with bench.scheduler(*QUICK_ELECTION) as second:
                await second.wait_for_line("Attempting to acquire leader lease")
                await bench.create(pod("a"))
                await bench.bound("a")
                await first.end(signal.SIGKILL)
                await bench.create(pod("b"))
                assert await bench.bound("b") == "n1"
                assert await second.end() == 0
        lease = await bench.client.get_document(
            "/apis/coordination.k8s.io/v1/namespaces/kubestow/leases/kubestow"
        )
        assert lease["spec"].get("holderIdentity", "") == ""
        assert lease["spec"]["leaseTransitions"] == 1

    run(main)


def test_an_api_server_may_be_restarted_in_the_middle(run_alone: Any) -> None:
    async def main(bench: Any) -> None:
        await bench.create(node("n1"), pod("before"))
        async with bench.scheduler(NO_ELECTION) as scheduler:
            await bench.bound("before")
            await asyncio.to_thread(bench.plane.stop_api_server)
            await scheduler.wait_for_line("refused")
            bench.plane.start_api_server()
            await bench.plane.wait_ready()
            await bench.create(pod("after"))
            assert await bench.bound("after") == "n1"
            assert scheduler.process.returncode is None

    run_alone(main)


def test_watches_that_end_every_second_lose_nothing(run: Any) -> None:
    async def main(bench: Any) -> None:
        watches = ShortWatches()
        await bench.create(*(node(f"n{index}") for index in range(3)))
        async with (
            bench.proxy(watches.shorten) as proxy,
            bench.scheduler(f"--master={proxy.url}", NO_ELECTION) as scheduler,
        ):
            for index in range(6):
                await bench.create(pod(f"p{index}"))
                await bench.bound(f"p{index}")
                await watches.wait_for(2 * (index + 2))
            assert scheduler.process.returncode is None

    run(main)


class ShortWatches:
    """Makes every watch of pods end after a second."""

    def __init__(self) -> None:
        self._count = 0
        self._news = asyncio.Event()

    def shorten(self, request: web.BaseRequest, query: dict[str, str]) -> int:
        if query.get("watch") == "true" and request.path == "/api/v1/pods":
            query["timeoutSeconds"] = "1"
            self._count += 1
            self._news.set()
        return 0

    async def wait_for(self, count: int) -> None:
        """Wait until pods have been watched that often."""
        while self._count < count:
            self._news.clear()
            await self._news.wait()


def test_wrong_credentials_are_reported(run: Any) -> None:
    async def main(bench: Any) -> None:
        path = bench.plane.kubeconfig("nobody", token="wrong-token")
        async with bench.scheduler(f"--kubeconfig={path}", NO_ELECTION) as scheduler:
            found = await scheduler.wait_for_line(r"Unauthorized.*")
            assert scheduler.process.returncode is None  # the token may be good later
            assert found

    run(main)


@pytest.mark.parametrize("has_election", [False, True], ids=["informers", "lease"])
def test_missing_rights_are_named_by_verb_and_resource(run: Any, has_election: bool) -> None:
    async def main(bench: Any) -> None:
        flags = () if has_election else (NO_ELECTION,)
        async with bench.scheduler(*flags, user="nobody") as scheduler:
            await scheduler.wait_for_line(
                r'User \\?"nobody\\?" cannot (list|watch) resource \\?"\w+\\?"'
            )
            if has_election:
                await scheduler.wait_for_line(
                    r'User \\?"nobody\\?" cannot get resource \\?"leases\\?" in API group '
                    r'\\?"coordination.k8s.io\\?" in the namespace \\?"kubestow\\?"'
                )

    run(main)


def test_a_missing_right_to_bind_fails_the_pod_with_its_name(run: Any) -> None:
    async def main(bench: Any) -> None:
        await allow_reading(bench.client, "half-allowed")
        await bench.create(node("n1"), pod("a"))
        async with bench.scheduler(NO_ELECTION, user="half-allowed") as scheduler:
            await scheduler.wait_for_line(
                r"Error scheduling pod; retrying.*running Bind plugin.*DefaultBinder.*"
                r"cannot create resource.*pods/binding"
            )

    run(main)


async def allow_reading(client: HttpClient, user: str) -> None:
    role: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "read-everything"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    }
    binding: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "read-everything"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "read-everything",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    root = "/apis/rbac.authorization.k8s.io/v1"
    await client.create_document(f"{root}/clusterroles", role)
    await client.create_document(f"{root}/clusterrolebindings", binding)


def test_the_port_is_protected_by_the_clusters_authorization(run: Any) -> None:
    async def main(bench: Any) -> None:
        kubeconfig = bench.plane.kubeconfig("kubestow")
        flags = (
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
        )
        async with bench.scheduler(*flags) as scheduler:
            address = await scheduler.address()
            assert await ask_scheduler(address, "/livez") == (200, "ok")
            assert (await ask_scheduler(address, "/metrics"))[0] == 403
            assert (await ask_scheduler(address, "/metrics", token="wrong"))[0] == 401
            nobody, admin = bench.plane.tokens["nobody"], bench.plane.tokens["admin"]
            assert (await ask_scheduler(address, "/metrics", token=nobody))[0] == 403
            status, text = await ask_scheduler(address, "/metrics", token=admin)
            assert status == 200
            assert "scheduler_pending_pods" in text

    run(main)


def test_a_configuration_file_is_used(run: Any, tmp_path: Any) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: false}\n"
        "clientConnection: {kubeconfig: KUBECONFIG}\n"
        "profiles:\n"
        "- schedulerName: spread\n"
        "- schedulerName: pack\n"
        "  pluginConfig:\n"
        "  - name: NodeResourcesFit\n"
        "    args: {scoringStrategy: {type: MostAllocated}}\n"
        "  plugins:\n"
        "    score: {disabled: [{name: NodeResourcesBalancedAllocation}]}\n"
    )

    async def main(bench: Any) -> None:
        kubeconfig = str(bench.plane.kubeconfig("kubestow"))
        path.write_text(path.read_text().replace("KUBECONFIG", kubeconfig))
        await bench.create(node("busy"), node("idle"))
        await bench.create(pod("filler", cpu="2", nodeName="busy"))
        await bench.create(pod("p", cpu="1", schedulerName="pack"))
        await bench.create(pod("s", cpu="1", schedulerName="spread"))
        await bench.create(pod("other", schedulerName="somebody-else"))
        async with bench.scheduler(f"--config={path}"):
            assert await bench.bound("p") == "busy"
            assert await bench.bound("s") == "idle"
            other = await bench.client.get(Pod, "default", "other")
            assert not other.spec.node_name
            assert not other.status.conditions

    run(main)


def test_a_configuration_error_is_reported_before_the_first_request(
    run: Any, tmp_path: Any
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles:\n"
        "- plugins: {multiPoint: {disabled: [{name: DefaultBinder}]}}\n"
    )

    async def main(bench: Any) -> None:
        async with bench.scheduler(
            f"--config={path}", f"--master={bench.plane.url}", NO_ELECTION
        ) as scheduler:
            assert await scheduler.exit_code() == 1
            assert (
                "initializing profiles: creating profile for scheduler name default-scheduler: "
                "at least one bind plugin is needed for profile with scheduler name "
                '"default-scheduler"' in scheduler.log
            )

    run(main)
