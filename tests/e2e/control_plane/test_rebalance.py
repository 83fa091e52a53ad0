"""`kubestow rebalance --run` with the real kube-scheduler: pods go where it was foretold.

With the rights of `deploy/rebalance` and no others. Kubernetes' own controllers replace pods and
count budgets; the test does what kubelets do.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.control_plane.conftest import needs
from tests.simulator.rebalance.rebalance_clusters import node, owner, pod

from kubestow.api.meta import JsonObject
from kubestow.errors import ApiError
from kubestow.simulator.rebalance import RebalanceOptions, make_plan, read_goal
from tools.rebalance.clusters import GOALS, RandomCluster

pytestmark = needs("kube-controller-manager", "kube-scheduler")

ASSETS = Path(os.environ.get("KUBEBUILDER_ASSETS", ""))
ROLE = Path(__file__).parents[3] / "deploy/rebalance/cluster-role.yaml"
USER = "rebalancer"
# KUBESTOW_REBALANCE_CLUSTERS=20 checks as many.
CLUSTERS = int(os.environ.get("KUBESTOW_REBALANCE_CLUSTERS", "2"))
CONTROLLERS = "deployment-controller,replicaset-controller,disruption-controller"
SURGE_ROLE = ROLE.parent / "surge.yaml"
PODS = "/api/v1/namespaces/default/pods"
STEP_S = 0.2
SETTLE_S = 2.0

Fault = Callable[[Any], Awaitable[None]]


@cache
def chosen(number: int) -> tuple[list[JsonObject], str]:
    """The documents and the goal of the n-th random cluster of ReplicaSets whose plan has moves."""
    for index, found in enumerate(_with_moves()):
        if index == number:
            return found
    raise AssertionError(number)


def _with_moves() -> Iterator[tuple[list[JsonObject], str]]:
    seed = -1
    while True:
        seed += 1
        documents, goal = RandomCluster(seed).documents, GOALS[seed % len(GOALS)]
        # Those of DaemonSets have no controller here.
        names = {one.raw["metadata"]["name"] for one in documents}
        if any(one.raw["kind"] == "StatefulSet" for one in documents) or "daemon-n0" in names:
            continue
        if make_plan(documents, read_goal(goal), RebalanceOptions(max_moves=3)).moves:
            yield [one.raw for one in documents], goal


def binding(role: str = "kubestow-rebalance") -> JsonObject:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": USER if role == "kubestow-rebalance" else role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": USER}],
    }


@contextlib.contextmanager
def programs(bench: Any, folder: Path) -> Iterator[None]:
    """kube-scheduler, which looks at nodes one by one, and kube-controller-manager."""
    kubeconfig = str(bench.plane.kubeconfig())
    config = folder / "scheduler.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "parallelism": 1,
                "leaderElection": {"leaderElect": False},
                "clientConnection": {"kubeconfig": kubeconfig},
            }
        )
    )
    commands = [
        ["kube-scheduler", f"--config={config}", "--secure-port=0"],
        [
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--controllers={CONTROLLERS}",
            "--leader-elect=false",
            "--secure-port=0",
        ],
    ]
    with contextlib.ExitStack() as stack:
        for name, *flags in commands:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            process = subprocess.Popen([str(ASSETS / name), *flags], stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


async def kubelets(bench: Any, fault: "Fault | None" = None, broken: str = "") -> None:
    """Bound pods run, pods that are deleted are gone after a while.

    `fault` is called once, when the first pod is ending. On a `broken` node no pod is ready.
    """
    ready = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
    ending: dict[str, int] = {}
    while True:
        with contextlib.suppress(ApiError):
            for pod in (await bench.client.get_document(PODS))["items"]:
                metadata, path = pod["metadata"], f"{PODS}/{pod['metadata']['name']}"
                if metadata.get("deletionTimestamp"):
                    if fault is not None and not ending:
                        await fault(bench)
                    ending[metadata["uid"]] = ending.get(metadata["uid"], 0) + 1
                    if ending[metadata["uid"]] > SETTLE_S / STEP_S:
                        await bench.send("DELETE", path, {"gracePeriodSeconds": 0})
                elif (
                    pod["spec"].get("nodeName") not in (None, broken)
                    and pod["status"].get("phase") != "Running"
                ):
                    status = {"phase": "Running", "conditions": ready}
                    await bench.send("PATCH", f"{path}/status", {"status": status})
        await asyncio.sleep(STEP_S)


@contextlib.asynccontextmanager
async def living(
    bench: Any, folder: Path, fault: "Fault | None" = None, broken: str = ""
) -> AsyncIterator[None]:
    with programs(bench, folder):
        task = asyncio.create_task(kubelets(bench, fault, broken))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def create(bench: Any, documents: list[JsonObject]) -> None:
    """Pods before their controllers, which then adopt them instead of making others."""
    order = ("Node", "Pod", "PodDisruptionBudget", "ReplicaSet")
    for raw in sorted(documents, key=lambda one: order.index(one["kind"])):
        metadata = {
            key: raw["metadata"][key]
            for key in ("name", "namespace", "labels")
            if key in raw["metadata"]
        }
        document = {key: raw[key] for key in ("apiVersion", "kind", "spec", "status") if key in raw}
        document["metadata"] = metadata
        if raw["kind"] == "Pod":
            del document["status"]
        await bench.create(document)
    expected = sum(one["spec"]["replicas"] for one in documents if one["kind"] == "ReplicaSet")
    while await adopted(bench) < expected:  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(STEP_S)
    await asyncio.sleep(SETTLE_S)


async def adopted(bench: Any) -> int:
    """The pods that have a controller and run."""
    pods = (await bench.client.get_document(PODS))["items"]
    return sum(
        bool(pod["metadata"].get("ownerReferences")) and pod["status"].get("phase") == "Running"
        for pod in pods
    )


async def remove_workloads(bench: Any) -> None:
    for path in (
        "/apis/apps/v1/namespaces/default/replicasets",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    ):
        await bench.send("DELETE", path, {"propagationPolicy": "Background"})
    await bench.clear()


async def rebalance(
    bench: Any, goal: str, *arguments: str, ended: "Fault | None" = None
) -> tuple[int, str, str]:
    """`ended` returns when the run is to be ended as a Job is."""
    command = [sys.executable, "-m", "kubestow", "rebalance", "--from-cluster", "--goal", goal]
    command += ["--max-moves", "3", "--run", "--yes", "-o", "json", *arguments]
    process = await asyncio.create_subprocess_exec(
        *command,
        env={
            **os.environ,
            "KUBECONFIG": str(bench.plane.kubeconfig(USER)),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if ended is not None:
        await ended(bench)
        process.terminate()
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("number", range(CLUSTERS))
def test_pods_go_where_it_was_foretold(number: int, run: Any, tmp_path: Path) -> None:
    documents, goal = chosen(number)

    async def main(bench: Any) -> None:
        with contextlib.suppress(ApiError):
            await bench.create(yaml.safe_load(ROLE.read_text()), binding())
        await remove_workloads(bench)
        async with living(bench, tmp_path):
            await create(bench, documents)
            code, out, err = await rebalance(bench, goal)
            assert code == 0, err
            done = json.loads(out)["done"]
            assert done
            assert [move["actual"] for move in done] == [move["foretold"] for move in done]
        await remove_workloads(bench)

    run(main, limit_s=240)


def crowded() -> list[JsonObject]:
    """Four pods of a ReplicaSet on one of three nodes: two of them shall go."""
    made = owner("web", 4, cpu="500m")
    pods = [pod(f"web-{number}", "a", cpu="500m") for number in range(4)]
    for raw in (made["spec"]["template"], *pods):
        raw["spec"].setdefault("schedulerName", "default-scheduler")
    return [node("a"), node("b"), node("c"), made, *pods]


async def close(bench: Any, *names: str) -> None:
    for name in names:
        patch = {"spec": {"unschedulable": True}}
        await bench.send("PATCH", f"/api/v1/nodes/{name}", patch)


async def close_all_others(bench: Any) -> None:
    await close(bench, "b", "c")


async def close_the_unused(bench: Any) -> None:
    """The node on which the second replacement is foretold."""
    pods = (await bench.client.get_document(PODS))["items"]
    used = {each["spec"].get("nodeName") for each in pods}
    while not used & {"b", "c"}:
        await asyncio.sleep(STEP_S)
        pods = (await bench.client.get_document(PODS))["items"]
        used = {each["spec"].get("nodeName") for each in pods}
    await close(bench, *({"b", "c"} - used))


async def fill(bench: Any) -> None:
    """Pods appear that leave no room for a second replacement."""
    for name in ("b", "c"):
        filler = pod(f"filler-{name}", name, cpu="3300m", kind="")
        del filler["status"], filler["metadata"]["uid"]
        await bench.create(filler)


@pytest.mark.parametrize(
    ("fault", "arguments", "expected_code", "expected_moves"),
    [
        pytest.param(close_all_others, (), 1, 1, id="nodes-are-closed"),
        pytest.param(fill, (), 1, 1, id="pods-appear"),
        pytest.param(close_all_others, ("--replan",), 1, 1, id="no-other-plan"),
        pytest.param(close_the_unused, ("--replan",), 0, 2, id="another-plan"),
    ],
)
def test_a_change_in_the_middle_evicts_nothing_in_vain(
    fault: Fault,
    arguments: tuple[str, ...],
    expected_code: int,
    expected_moves: int,
    run: Any,
    tmp_path: Path,
) -> None:
    async def main(bench: Any) -> None:
        with contextlib.suppress(ApiError):
            await bench.create(yaml.safe_load(ROLE.read_text()), binding())
        await remove_workloads(bench)
        async with living(bench, tmp_path, fault):
            await create(bench, crowded())
            before = await pod_names(bench)
            code, out, err = await rebalance(bench, "balance", *arguments)
            assert code == expected_code, err
            done = json.loads(out)
            assert len(done["done"]) == expected_moves
            assert bool(done["surprise"]) is bool(expected_code)
            # Every eviction is in the account, and no pod was evicted to return to its node.
            assert len(before - await pod_names(bench)) == expected_moves
            assert all(move["actual"] not in ("", "a") for move in done["done"])
        await remove_workloads(bench)

    run(main, limit_s=240)


def protected(replicas: int) -> list[JsonObject]:
    """A Deployment whose pods are all on one of two nodes, and none of them may be spared."""
    made = owner("web", replicas, kind="Deployment", cpu="500m")
    limit = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": limit}
    return [made, {**budget, "metadata": {"name": "web", "namespace": "default"}}]


async def settled(bench: Any, replicas: int) -> list[JsonObject]:
    """The pods, once as many run as are asked for and no others are there."""
    while True:
        items = (await bench.client.get_document(PODS))["items"]
        pods = [each for each in items if each["metadata"].get("ownerReferences")]
        running = [each for each in pods if each["status"].get("phase") == "Running"]
        if len(pods) == len(running) == replicas:
            return pods
        await asyncio.sleep(STEP_S)


async def is_on(bench: Any, node_name: str) -> bool:
    """Whether a pod of a controller is on a node."""
    items = (await bench.client.get_document(PODS))["items"]
    made = (each for each in items if each["metadata"].get("ownerReferences"))
    return any(each["spec"].get("nodeName") == node_name for each in made)


async def wanted(bench: Any) -> int:
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    return int((await bench.client.get_document(path))["spec"]["replicas"])


async def remove_deployment(bench: Any) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    await bench.send("DELETE", path, {"propagationPolicy": "Background"})


@pytest.mark.parametrize("replicas", [1, 4])
@pytest.mark.parametrize("is_broken", [False, True], ids=["as-planned", "ended-meanwhile"])
def test_a_surge_ends_the_pod_that_was_planned(
    replicas: int, is_broken: bool, run: Any, tmp_path: Path
) -> None:
    """A Deployment is scaled up and down by its own controllers; or all is as before."""

    async def brought_up(bench: Any) -> None:
        while not await is_on(bench, "b"):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(STEP_S)

    async def main(bench: Any) -> None:
        for role in (ROLE, SURGE_ROLE):
            with contextlib.suppress(ApiError):
                await bench.create(yaml.safe_load(role.read_text()))
        with contextlib.suppress(ApiError):
            await bench.create(binding())
        with contextlib.suppress(ApiError):
            await bench.create(binding("kubestow-rebalance-surge"))
        await remove_workloads(bench)
        async with living(bench, tmp_path, broken="b" if is_broken else ""):
            filler = pod("filler-0", "a", cpu="500m", kind="")
            del filler["status"], filler["metadata"]["uid"]
            await bench.create(node("a"), filler, *protected(replicas))
            await settled(bench, replicas)
            await bench.create(node("b"))
            await asyncio.sleep(SETTLE_S)
            old = {each["metadata"]["name"] for each in await settled(bench, replicas)}
            code, out, err = await rebalance(
                bench,
                "balance",
                "--surge",
                "--max-moves",
                "1",
                ended=brought_up if is_broken else None,
            )
            assert code == int(is_broken), err
            done = json.loads(out)
            pods = await settled(bench, replicas)
            assert await wanted(bench) == replicas
            assert not any("annotations" in each["metadata"] for each in pods)
            left = {each["metadata"]["name"] for each in pods} & old
            if is_broken:
                assert done["done"] == []
                assert done["surprise"] == "interrupted"
                assert left == old
            else:
                (move,) = done["done"]
                assert move["actual"] == move["foretold"] == "b"
                assert old - left == {move["pod"].removeprefix("default/")}
            await remove_deployment(bench)
        await remove_workloads(bench)

    run(main, limit_s=240)


@pytest.mark.parametrize(
    ("surges", "is_broken"),
    [
        pytest.param(False, False, id="eviction"),
        pytest.param(True, False, id="surge"),
        pytest.param(True, True, id="surge-ended-meanwhile"),
    ],
)
def test_the_script_does_it_with_kubectl(
    surges: bool, is_broken: bool, run: Any, tmp_path: Path
) -> None:
    replicas = 2

    async def main(bench: Any) -> None:
        await remove_workloads(bench)
        async with living(bench, tmp_path, broken="b" if is_broken else ""):
            made = protected(replicas)
            await bench.create(node("a"), *(made if surges else made[:1]))
            await settled(bench, replicas)
            await bench.create(node("b"))
            await asyncio.sleep(SETTLE_S)
            old = {each["metadata"]["name"] for each in await settled(bench, replicas)}
            environment = {
                **os.environ,
                "KUBECONFIG": str(bench.plane.kubeconfig()),
                "PATH": f"{ASSETS}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": os.pathsep.join(sys.path),
            }
            command = [sys.executable, "-m", "kubestow", "rebalance", "--from-cluster", "--goal"]
            command += ["balance", "-o", "script", *(["--surge"] if surges else [])]
            planned = await asyncio.create_subprocess_exec(
                *command, env=environment, stdout=subprocess.PIPE
            )
            script, _ = await planned.communicate()
            assert (b"\nsurge default " in script) is surges
            process = await asyncio.create_subprocess_exec(
                "sh", "-c", script, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            if is_broken:
                while not await is_on(bench, "b"):  # noqa: ASYNC110 - there is no event to wait for
                    await asyncio.sleep(STEP_S)
                process.terminate()
            out, err = await process.communicate()
            assert (process.returncode == 0) is not is_broken, err
            assert await wanted(bench) == replicas
            pods = await settled(bench, replicas)
            assert not any("annotations" in each["metadata"] for each in pods)
            left = {each["metadata"]["name"] for each in pods} & old
            assert len(left) == (replicas if is_broken else replicas - 1)
            assert out.decode().endswith(": a -> b\n") is not is_broken
            await remove_deployment(bench)
        await remove_workloads(bench)

    run(main, limit_s=240)


async def pod_names(bench: Any) -> set[str]:
    pods = (await bench.client.get_document(PODS))["items"]
    names = {each["metadata"]["name"] for each in pods}
    return {name for name in names if name.startswith("web")}


@pytest.mark.parametrize(
    ("missing", "arguments", "problem"),
    [
        pytest.param(USER, (), "cannot list", id="plans"),
        pytest.param(
            "kubestow-rebalance-surge",
            ("--surge",),
            "autoscalers, which --surge needs",
            id="surges",
        ),
    ],
)
def test_without_the_role_nothing_is_evicted(
    missing: str, arguments: tuple[str, ...], problem: str, run: Any, tmp_path: Path
) -> None:
    documents, goal = chosen(0)

    async def main(bench: Any) -> None:
        with contextlib.suppress(ApiError):
            await bench.create(yaml.safe_load(ROLE.read_text()))
        with contextlib.suppress(ApiError):
            await bench.create(binding())
        with contextlib.suppress(ApiError):
            path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
            await bench.send("DELETE", f"{path}/{missing}")
        await remove_workloads(bench)
        async with living(bench, tmp_path):
            await create(bench, documents)
            before = await adopted(bench)
            code, out, err = await rebalance(bench, goal, *arguments)
            assert (code, out) == (2, "")
            assert len(err.splitlines()) <= 2
            assert problem in err
            assert await adopted(bench) == before
        await remove_workloads(bench)

    run(main, limit_s=240)
