"""The cluster of a kubeconfig, as a plan is carried out on it."""

from collections.abc import Container, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
import numpy as np

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.cluster.documents import objects_in
from kubestow.cluster.events import EventRecorder
from kubestow.cluster.http.http_client import HttpClient, list_path, object_path
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.resources import AUTOSCALERS, PODS, default_resources
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import ApiError, ConflictError, InputError, InvalidError
from kubestow.service.user_agent import user_agent
from kubestow.simulator.input.live import read_cluster
from kubestow.simulator.manifests import select_manifests
from kubestow.simulator.rebalance.ground import AUTOSCALER_KIND, METRICS_KIND
from kubestow.simulator.rebalance.plan import EvictedPod, ScaledOwner
from kubestow.simulator.refusals import without_refused

REPORTER: Final = "kubestow-rebalance"
_JSON_PATCH: Final = "application/json-patch+json"
_SCALED: Final = {
    "Deployment": default_resources().named("deployments.apps"),
    "ReplicaSet": default_resources().named("replicasets.apps"),
}
_METRICS: Final = "/apis/metrics.k8s.io/v1beta1/pods"


class HttpRebalancedServer:
    """Make it inside a loop; `close` sends the events that are left."""

    def __init__(
        self,
        server: ServerConfig,
        clock: Clock,
        gates: FeatureGates,
        *,
        dialects: Container[str] = (),
        reads_usage: bool = False,
        reads_autoscalers: bool = False,
    ) -> None:
        session = ApiSession(server, clock, user_agent=f"{user_agent()}/rebalance", qps=-1, burst=1)
        self._client = HttpClient(session, rng=np.random.default_rng())
        self._events = EventRecorder(self._client, clock, hostname=REPORTER)
        self._gates = gates
        self._dialects = dialects
        self._reads_usage = reads_usage
        self._reads_autoscalers = reads_autoscalers

    async def read(self) -> Sequence[Document]:
        live = await read_cluster(self._client)
        selected = select_manifests(live.documents, dialects=self._dialects).documents
        checked = without_refused(selected, gates=self._gates, dialects=self._dialects)
        usage = await self.usage() if self._reads_usage else []
        autoscalers = await self.autoscalers() if self._reads_autoscalers else []
        return [*checked.documents, *usage, *autoscalers]

    async def usage(self) -> list[Document]:
        """What pods use, as the metrics server measures it; InputError if there is none."""
        try:
            page = await self._client.get_document(_METRICS)
        except ApiError as error:
            raise InputError(
                f"cannot read what pods use from {self._client.host}: {error}; balance=used needs "
                "a metrics server"
            ) from error
        return [
            Document({**item, "kind": METRICS_KIND}, f"{METRICS_KIND} of {self._client.host}")
            for item in objects_in(page.get("items"))
        ]

    async def autoscalers(self) -> list[Document]:
        """What scales workloads, which a surge must not work against."""
        try:
            page = await self._client.get_document(list_path(AUTOSCALERS))
        except ApiError as error:
            raise InputError(f"cannot read autoscalers, which --surge needs: {error}") from error
        return [
            Document({**item, "kind": AUTOSCALER_KIND}, f"{AUTOSCALER_KIND} of {self._client.host}")
            for item in objects_in(page.get("items"))
        ]

    async def pods(self, namespace: str) -> Sequence[Pod]:
        return await self._client.list(Pod, namespace=namespace)

    async def evict(self, pod: EvictedPod, version: str, *, is_dry: bool = False) -> None:
        preconditions = {"uid": pod.uid, **({"resourceVersion": version} if version else {})}
        await self._client.create_document(
            f"{object_path(PODS, pod.namespace, pod.name)}/eviction",
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": pod.name, "namespace": pod.namespace},
                "deleteOptions": {
                    "preconditions": preconditions,
                    **({"dryRun": ["All"]} if is_dry else {}),
                },
            },
        )

    async def annotate(
        self, namespace: str, name: str, values: Mapping[str, str | None], version: str = ""
    ) -> None:
        metadata: JsonObject = {"annotations": dict(values)}
        if version:
            metadata["resourceVersion"] = version
        await self._client.patch(Pod, namespace, name, {"metadata": metadata}, "merge")

    async def scale(
        self, namespace: str, owner: ScaledOwner, *, before: int, after: int, version: str = ""
    ) -> None:
        expected: dict[str, Any] = {"/metadata/uid": owner.uid, "/spec/replicas": before}
        if version:
            expected["/metadata/resourceVersion"] = version
        patch = [
            *({"op": "test", "path": path, "value": value} for path, value in expected.items()),
            {"op": "replace", "path": "/spec/replicas", "value": after},
        ]
        path = f"{object_path(_SCALED[owner.kind], namespace, owner.name)}/scale"
        try:
            await self._client.session.request(
                "PATCH", path, msgspec.json.encode(patch), content_type=_JSON_PATCH
            )
        except InvalidError as error:
            raise ConflictError(f"{owner.kind} {owner.name} has changed: {error}") from error

    async def replica_set(self, namespace: str, name: str) -> JsonObject:
        # As a list, which is what reading the cluster has the right to.
        query = urlencode({"fieldSelector": f"metadata.name={name}"})
        page = await self._client.get_document(
            f"{list_path(_SCALED['ReplicaSet'], namespace)}?{query}"
        )
        found = objects_in(page.get("items"))
        return found[0] if found else {}

    async def close_node(self, name: str, *, is_closed: bool) -> None:
        patch = {"spec": {"unschedulable": True if is_closed else None}}
        await self._client.patch(Node, "", name, patch, "merge")

    def note(self, pod: Pod, reason: str, text: str) -> None:
        self._events.record(
            pod, reporter=REPORTER, type="Normal", reason=reason, action="Evicting", note=text
        )

    async def close(self) -> None:
        await self._events.flush()
        self._client.close()
