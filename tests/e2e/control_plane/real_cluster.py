"""The cluster of a placement test on a real control plane: kube-apiserver, kube-scheduler and
kube-controller-manager. Only kubelets are pretended.

Its steps are those of the simulation (`scenario.actions`) and its judge is the same one; the
objects that it reads are those of the server. What takes minutes by default is set to seconds: how
long a silent node counts as ready, and how long pods stay on one that is lost.
"""

import asyncio
import contextlib
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import yaml
from tests.e2e.control_plane.conftest import ASSETS, ControlPlane, end
from tests.e2e.control_plane.mirrored_store import Api, MirroredStore
from tests.e2e.control_plane.pretended_kubelets import PretendedKubelets

from kubestow.api.files import Document
from kubestow.api.group import group_key_of
from kubestow.api.node import Node
from kubestow.api.pod import Pod, first_condition
from kubestow.apiserver.store import StoredObject
from kubestow.clock import SystemClock
from kubestow.cluster.documents import objects_in, value_at
from kubestow.cluster.resources import NODES, PODS
from kubestow.config.feature_gates import parse_gates
from kubestow.editions import edition_named
from kubestow.errors import NotFoundError
from kubestow.simulator.capacity.copies import CopyTemplate
from kubestow.simulator.kubelet_switch import is_stopped
from kubestow.simulator.placement_tests.cases import CaseStep, PlacementCase
from kubestow.simulator.placement_tests.history import History
from kubestow.simulator.placement_tests.judged import (
    CopiesThatFit,
    Gang,
    JudgedCluster,
    message_of,
)
from kubestow.simulator.placement_tests.results import ExpectationVerdict
from kubestow.simulator.scenario.world import ScenarioWorld
from tools.free_port import free_port

# Of the API server: how long pods stay on a lost node.
EVICTION_FLAGS = (
    "--default-not-ready-toleration-seconds=1",
    "--default-unreachable-toleration-seconds=1",
)
CONTROLLERS = (
    "daemonset-controller", "deployment-controller", "disruption-controller",
    "garbage-collector-controller", "job-controller", "node-lifecycle-controller",
    "pod-garbage-collector-controller", "replicaset-controller",
    "replicationcontroller-controller", "statefulset-controller", "taint-eviction-controller",
)  # fmt: skip
CONTROLLER_FLAGS = (
    f"--controllers={','.join(CONTROLLERS)}",
    "--leader-elect=false",
    "--secure-port=0",
    "--kube-api-qps=500",
    "--kube-api-burst=500",
    "--node-monitor-period=500ms",
    "--node-monitor-grace-period=5s",
    "--node-startup-grace-period=5s",
    "--node-eviction-rate=100",
)
# Nothing changes for this long when a cluster is at rest; longer while a node is lost.
QUIET_S = 1.0
QUIET_AFTER_LOSS_S = 4.0
# Pods that are tried again and again without any change for so long would only fail again.
REPEATING_S = 8.0
SETTLE_LIMIT_S = 150.0
TURN_S = 0.1
# Deleted before each case, in this order.
CLEARED = (
    "Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet", "ReplicationController",
    "PodDisruptionBudget", "Pod", "PodGroup", "Node", "PriorityClass",
)  # fmt: skip
PENDING = re.compile(r'^scheduler_pending_pods{queue="(active|backoff)"} (\d+)', re.MULTILINE)


class RealWorld(ScenarioWorld):
    """What steps change: the real API server."""

    def evict(self, pod: StoredObject) -> None:
        assert isinstance(self.store, MirroredStore)
        self.store.evict(pod)


@contextlib.contextmanager
def program(name: str, folder: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of the control plane; its log is in the folder."""
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen([str(Path(ASSETS) / name), *flags], stdout=log, stderr=log)
    try:
        yield process
    finally:
        end(process)


@contextlib.contextmanager
def controller_manager(plane: ControlPlane) -> Iterator[None]:
    kubeconfig = f"--kubeconfig={plane.kubeconfig()}"
    with program("kube-controller-manager", plane.folder, kubeconfig, *CONTROLLER_FLAGS):
        yield


class RealCluster(JudgedCluster):
    """Make it, `start` it, then play steps; `close` ends it."""

    def __init__(self, case: PlacementCase, plane: ControlPlane) -> None:
        self._plane = plane
        self._api = Api(plane.url, plane.tokens["admin"])
        self._clock = SystemClock()
        gates = parse_gates(case.gates, edition_named(case.variant.version))
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._mirror = MirroredStore(self._api, self._clock, gates)
        self._kubelets = PretendedKubelets(self._mirror)
        self._world = RealWorld(self._mirror, self._clock)
        self._rng = np.random.default_rng(case.seed)
        self._tasks: list[asyncio.Task[Any]] = []
        self._ends = contextlib.ExitStack()
        self._metrics = Api("", "")
        super().__init__(case, self._mirror, History(self._mirror, self._clock))

    # --- Playing ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin with an empty cluster, create the objects of the case and place them."""
        self._loop.run_until_complete(self._start())
        self._settle("cluster")

    async def _start(self) -> None:
        self._clear()
        versions = self._mirror.list_all()
        for work in (self._mirror.watch_all(versions), self._kubelets.run()):
            self._tasks.append(self._loop.create_task(work))
        self._mirror.load(document.raw for document in self.case.documents)
        self._start_scheduler()

    def play(self, step: CaseStep) -> list[ExpectationVerdict]:
        """Do a step; the verdicts of its expectations."""
        if step.action is not None:
            self.act(step)
        elif step.wait_s:
            self._run(asyncio.sleep(step.wait_s))
        return [self.judge(each) for each in step.expectations]

    def act(self, step: CaseStep) -> None:
        action = step.action
        assert action is not None, step

        async def act() -> None:
            action.act(self._world, self._rng)

        self._run(act())
        self._settle(step.place)

    def close(self) -> None:
        self._ends.close()
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.close()
        asyncio.set_event_loop(None)
        self._api.close()
        self._metrics.close()

    def _run(self, work: Any) -> None:
        self._loop.run_until_complete(work)
        for task in self._tasks:
            if task.done():
                task.result()

    def _clear(self) -> None:
        for kind in CLEARED:
            for resource in self._mirror.resources:
                if resource.kind == kind and not resource.is_custom:
                    with contextlib.suppress(NotFoundError):
                        self._delete_all(self._mirror.path(resource), kind)

    def _delete_all(self, path: str, kind: str) -> None:
        """Of a kind; in all namespaces."""
        for item in self._api.request("GET", path)["items"] or ():
            metadata = item["metadata"]
            if metadata["name"].startswith("system-"):
                continue  # Priority classes that the server makes again.
            place = path
            if namespace := metadata.get("namespace"):
                head, _, plural = path.rpartition("/")
                place = f"{head}/namespaces/{namespace}/{plural}"
            own = f"{place}/{metadata['name']}"
            if metadata.get("finalizers"):
                body = {"metadata": {"finalizers": None}}
                self._api.request("PATCH", own, body, "application/merge-patch+json")
            options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
            with contextlib.suppress(NotFoundError):
                self._api.request("DELETE", own, options)

    # --- The scheduler ------------------------------------------------------------------------

    def _start_scheduler(self) -> None:
        folder, port = self._plane.folder, free_port()
        config = yaml.safe_load(self.case.variant.config or "{}")
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **config,
            "clientConnection": {
                "kubeconfig": str(self._plane.kubeconfig()),
                "qps": 500,
                "burst": 500,
            },
            "leaderElection": {"leaderElect": False},
            "parallelism": 1,
            "podMaxBackoffSeconds": 2,
        }
        path = folder / "kube-scheduler.yaml"
        path.write_text(yaml.safe_dump(config))
        flags = [
            f"--config={path}",
            f"--secure-port={port}",
            f"--cert-dir={folder / 'scheduler-certs'}",
            "--authentication-skip-lookup=true",
            "--authorization-always-allow-paths=/metrics,/readyz",
        ]
        if self.case.gates:
            flags.append(f"--feature-gates={','.join(self.case.gates)}")
        self._ends.enter_context(program("kube-scheduler", folder, *flags))
        self._metrics = Api(f"https://127.0.0.1:{port}", "")

    def _is_scheduler_at_rest(self) -> bool:
        """Whether no pod is due for a try, now or after a while."""
        try:
            text = self._metrics.text("/metrics")
        except OSError:
            return False  # It has not started yet.
        found = PENDING.findall(text)
        return bool(found) and all(count == "0" for _, count in found)

    # --- Rest ---------------------------------------------------------------------------------

    def _settle(self, place: str) -> None:
        self._run(self._settled(place))

    async def _settled(self, place: str) -> None:
        started_s = self._loop.time()
        self._mirror.changed_s = started_s
        while True:
            await asyncio.sleep(TURN_S)
            quiet_s = self._loop.time() - self._mirror.changed_s
            reason = self._reason_to_wait()
            is_repeating = quiet_s >= REPEATING_S
            if reason or quiet_s < self._quiet_s():
                pass
            elif is_repeating or self._is_scheduler_at_rest():
                return
            if self._loop.time() - started_s > SETTLE_LIMIT_S:
                self._fail(f"{place}: not at rest: {reason or 'changes go on'}")

    def _quiet_s(self) -> float:
        nodes = self._mirror.objects_of(NODES)
        is_lost = any(is_stopped(node.document) for node in nodes)
        return QUIET_AFTER_LOSS_S if is_lost else QUIET_S

    def _reason_to_wait(self) -> str:
        """What a controller or a kubelet has still to do; empty if that is nothing."""
        if self._world.work_count:
            return "a step is not over"
        if self._kubelets.is_busy:
            return "a kubelet is busy"
        nodes = {node.name: node for node in self._mirror.objects_of(NODES)}
        for name, node in nodes.items():
            if is_stopped(node.document) and _is_ready(node):
                return f"{name} counts as ready"
        for stored in self._mirror.objects_of(PODS):
            node_name = value_at(stored.document, "spec", "nodeName")
            if node_name and node_name not in nodes:
                return f"{stored.name} is on {node_name}, which is gone"
            if self._is_orphan(stored):
                return f"{stored.name} has an owner that is gone"
        for stored in self._controlled():
            observed = value_at(stored.document, "status", "observedGeneration") or 0
            if observed < (stored.metadata.get("generation") or 0):
                return f"{stored.name} was not seen by its controller"
        return ""

    def _controlled(self) -> Iterator[StoredObject]:
        kinds = ("DaemonSet", "Deployment", "PodDisruptionBudget", "ReplicaSet", "StatefulSet")
        for resource in self._mirror.resources:
            if resource.kind in kinds:
                yield from self._mirror.objects_of(resource)

    def _is_orphan(self, pod: StoredObject) -> bool:
        for reference in objects_in(pod.metadata.get("ownerReferences")):
            resource = self._mirror.resources.of_kind(reference["apiVersion"], reference["kind"])
            found = self._mirror.find(resource, pod.key[0], reference["name"])
            if found is None or found.uid != reference["uid"]:
                return True
        return False

    def _fail(self, problem: str) -> NoReturn:
        log = (self._plane.folder / "kube-scheduler.log").read_text()[-2000:]
        raise AssertionError(f"{problem}\n{log}")

    # --- What a judge asks --------------------------------------------------------------------

    def gang_of(self, pod: Pod) -> Gang | None:
        key = group_key_of(pod)
        if key is None:
            return None
        resource = next(each for each in self._mirror.resources if each.kind == "PodGroup")
        found = self._mirror.find(resource, *key)
        if found is None:
            return None
        needed = value_at(found.document, "spec", "schedulingPolicy", "gang", "minCount")
        return None if needed is None else Gang(key, needed)

    def fit(self, copies: Sequence[Document], copies_max: int) -> CopiesThatFit:
        """Create copies until one waits; then delete them all."""
        template = CopyTemplate(copies)
        made: list[StoredObject] = []
        try:
            for number in range(1, copies_max + 1):
                made += self._made(template.copy(number))
                self._settle(f"copy {number}")
                newest = (self.store.find(each.resource, *each.key) for each in made)
                pods = [each.typed for each in newest if each is not None]
                waiting = [pod for pod in pods if isinstance(pod, Pod) and not pod.spec.node_name]
                if waiting:
                    return CopiesThatFit(number - 1, message_of(waiting[0]))
            return CopiesThatFit(copies_max, "")
        finally:
            for each in made:
                self._mirror.delete(each.resource, *each.key, grace_period_s=0)
            self._settle("copies")

    def _made(self, documents: Sequence[Document]) -> Sequence[StoredObject]:
        made: list[StoredObject] = []

        async def make() -> None:
            made.extend(self._mirror.load(document.raw for document in documents))

        self._run(make())
        return made

    def refusals(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        resource = self._resource("ReplicaSet")
        for stored in self._mirror.objects_of(resource):
            for one in objects_in(value_at(stored.document, "status", "conditions")):
                if one.get("type") == "ReplicaFailure" and one.get("status") == "True":
                    names = [*self._above(stored), f"ReplicaSet/{stored.name}"]
                    found[names[0]] = one.get("message", "")
        return found


def _is_ready(node: StoredObject) -> bool:
    typed = node.typed
    assert isinstance(typed, Node), node
    ready = first_condition(typed.status.conditions, "Ready")
    return ready is not None and ready.status == "True"
