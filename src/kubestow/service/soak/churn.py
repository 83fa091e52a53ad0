"""What happens to the cluster during a soak: pods, nodes and all around them come and go.

Most pods are of a few applications (`fill_familiar`), the others have values that no object had
before (`unseen`). What is kept under any of them (a label, a selector, a namespace, a resource, a
claim, a node …) must be dropped again, or has a limit. The number of nodes and pods stays.

    every pod                one is created; the oldest is deleted when there are too many
    every twenty pods        some pods and a node change, and a pod ends by itself
    every hundred pods       a node is replaced, with its pods; there is a new namespace
"""

import asyncio
from collections import Counter, deque
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import Clock
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import EVENTS, NAMESPACES, NODES, PODS, Subresource
from kubestow.errors import NotFoundError
from kubestow.service.soak.nodes import COMMON, image_change, node_change, node_documents
from kubestow.service.soak.pod_draft import HOSTNAME, ZONE, PodDraft
from kubestow.service.soak.unseen import fill_unseen

PODS_PER_NODE: Final = 20
TICK_S: Final = 0.05
UNSEEN_SHARE: Final = 0.3
# How many pods that fit nowhere wait at the same time.
HOPELESS_MAX: Final = 50
# What happens each time this many pods were created.
PODS_PER_CHANGE: Final = 20
PODS_PER_NEW_NODE: Final = 100
PODS_PER_NAMESPACE: Final = 100
# An API server drops events after an hour; in a soak the newest are enough.
EVENTS_KEPT_MAX: Final = 1_000


class LivePod(NamedTuple):
    namespace: str
    name: str
    companions: tuple[JsonObject, ...]


class Churn:
    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock,
        rng: np.random.Generator,
        *,
        nodes: int,
        pods_per_s: float,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._rng = rng
        self._pods_per_s = pods_per_s
        self._live: deque[LivePod] = deque()
        self._hopeless: deque[LivePod] = deque()
        self._nodes: deque[str] = deque()
        self._node_count = 0
        self._namespace = "default"
        self._pods_in = Counter[str]()
        self.live_max: Final = nodes * PODS_PER_NODE
        self.created_count = 0
        # When each pod that is not bound yet was created.
        self.created_s: dict[str, float] = {}
        cluster.load(COMMON)
        for _ in range(nodes):
            self._add_node()

    async def run(self) -> None:
        """Go on until cancelled."""
        started_s = self._clock.monotonic_s()
        while True:
            due = int((self._clock.monotonic_s() - started_s) * self._pods_per_s)
            while self.created_count < due:
                self.step()
                await asyncio.sleep(0)
            await asyncio.sleep(TICK_S)

    def step(self) -> None:
        if self.created_count % PODS_PER_NAMESPACE == 0:
            self._add_namespace()
        self._add_pod()
        if self.created_count % PODS_PER_CHANGE == 0:
            self._change_pod()
            self._change_node()
        if self.created_count % PODS_PER_NEW_NODE == 0:
            self._replace_node()
            self._drop_events()

    # --- pods ---

    def _add_pod(self) -> None:
        is_unseen = self._rng.random() < UNSEEN_SHARE
        namespace = self._namespace if is_unseen else "default"
        draft = PodDraft(self.created_count, namespace, self._rng, self._nodes)
        (fill_unseen if is_unseen else fill_familiar)(draft)
        self.created_count += 1
        if not draft.is_hopeless:
            self.created_s[draft.name] = self._clock.monotonic_s()
        self._cluster.load(draft.companions)
        self._cluster.create(PODS, draft.document())
        self._pods_in[namespace] += 1
        pods, limit = (
            (self._hopeless, HOPELESS_MAX) if draft.is_hopeless else (self._live, self.live_max)
        )
        pods.append(LivePod(namespace, draft.name, tuple(draft.companions)))
        if len(pods) > limit:
            self._delete_pod(pods.popleft())

    def _delete_pod(self, pod: LivePod) -> None:
        self.created_s.pop(pod.name, None)
        with suppress(NotFoundError):  # Evicted for another pod, or gone with its node.
            self._cluster.delete(PODS, pod.namespace, pod.name, grace_period_s=0)
        for document in pod.companions:
            self._delete(document)
        self._pods_in[pod.namespace] -= 1
        if not self._pods_in[pod.namespace] and pod.namespace not in ("default", self._namespace):
            del self._pods_in[pod.namespace]
            self._cluster.delete(NAMESPACES, "", pod.namespace)

    def _change_pod(self) -> None:
        """A running and a waiting pod get a label they never had; another one ends by itself."""
        label = f"changed-{self.created_count}"
        labels: JsonObject = {"metadata": {"labels": {"changed": label, label: "true"}}}
        for pods in (self._live, self._hopeless):
            if pods:
                self._patch_pod(self._any(pods), labels)
        if self._live:
            self._patch_pod(self._any(self._live), {"status": {"phase": "Succeeded"}}, "status")

    def _patch_pod(self, pod: LivePod, patch: JsonObject, subresource: Subresource = "") -> None:
        with suppress(NotFoundError):  # Evicted for another pod, or gone with its node.
            self._cluster.patch(PODS, pod.namespace, pod.name, patch, subresource=subresource)

    def _any(self, pods: deque[LivePod]) -> LivePod:
        return pods[int(self._rng.integers(len(pods)))]

    def _add_namespace(self) -> None:
        word = f"namespace-{self.created_count}"
        labels = {f"team-{word}": "true"}
        self._cluster.create(NAMESPACES, {"metadata": {"name": word, "labels": labels}})
        self._namespace = word

    # --- nodes ---

    def _add_node(self) -> None:
        documents = node_documents(self._node_count)
        self._node_count += 1
        self._cluster.load(documents)
        self._nodes.append(documents[0]["metadata"]["name"])

    def _replace_node(self) -> None:
        """The oldest node goes with its pods, as when its pool is upgraded."""
        oldest = self._nodes.popleft()
        for stored in [*self._cluster.objects_of(PODS)]:
            if value_at(stored.document, "spec", "nodeName") == oldest:
                self.created_s.pop(stored.name, None)
                self._cluster.delete(PODS, *stored.key, grace_period_s=0)
        for document in node_documents(int(oldest.removeprefix("node-"))):
            self._delete(document)
        self._add_node()

    def _change_node(self) -> None:
        name = self._nodes[int(self._rng.integers(len(self._nodes)))]
        self._cluster.patch(NODES, "", name, node_change(self.created_count))
        images = image_change(self.created_count)
        self._cluster.patch(NODES, "", name, images, subresource="status")

    # --- other objects ---

    def _delete(self, document: JsonObject) -> None:
        resource = self._cluster.resources.of_kind(document["apiVersion"], document["kind"])
        metadata = document["metadata"]
        with suppress(NotFoundError):
            self._cluster.delete(resource, metadata.get("namespace", ""), metadata["name"])

    def _drop_events(self) -> None:
        stored = sorted(self._cluster.objects_of(EVENTS), key=lambda event: event.version)
        for event in stored[:-EVENTS_KEPT_MAX]:
            self._cluster.delete(EVENTS, *event.key)


APPS: Final = 20


def fill_familiar(draft: PodDraft) -> None:
    """A pod of one of a few applications, equal to others: most pods of a cluster are like this."""
    number = int(draft.rng.integers(APPS))
    app = f"app-{number}"
    selector = {"matchLabels": {"app": app}}
    draft.labels |= {"app": app, "team": str(number % 3)}
    draft.container["image"] = app
    draft.requests |= {"cpu": f"{number * 25 + 25}m", "memory": f"{number * 16 + 16}Mi"}
    match number % 5:
        case 0:
            draft.spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": number % 4 + 1,
                    "topologyKey": ZONE,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                }
            ]
        case 1:
            term = {"labelSelector": selector, "topologyKey": HOSTNAME}
            draft.add_affinity(
                "podAntiAffinity", "preferred", {"weight": 1, "podAffinityTerm": term}
            )
        case 2:
            draft.spec["nodeSelector"] = {ZONE: f"zone-{number % 4}"}
        case 3:
            draft.spec["priority"] = number
        case _:
            pass
