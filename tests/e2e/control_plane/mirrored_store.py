"""The objects of a real API server, followed by watches and written by requests.

The steps and the judge of placement tests use a `MemoryCluster`. This one has the same methods:
what they read are the objects that the server has sent, and what they write goes to the server.
"""

import asyncio
import contextlib
import http.client
import ssl
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
from tests.e2e.control_plane.conftest import abort_unread

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import LOADED_FIRST, MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import Clock
from kubestow.cluster.resources import ApiResource
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import ApiError, ConflictError, NotFoundError

# The kinds that steps and expectations read, and those that tell whether controllers are done.
FOLLOWED = (
    "DaemonSet", "Deployment", "Job", "Node", "Pod", "PodDisruptionBudget", "PodGroup",
    "PriorityClass", "ReplicaSet", "ReplicationController", "StatefulSet",
)  # fmt: skip
PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
LINE_BYTES_MAX = 1 << 24
BAD_REQUEST, NOT_FOUND, CONFLICT = 400, 404, 409


class Api:
    """Requests with all rights, one after the other."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE
        self._connection: http.client.HTTPSConnection | None = None

    def request(
        self, method: str, path: str, body: JsonObject | None = None, kind: str = "application/json"
    ) -> JsonObject:
        """The answer; ApiError and its kinds with the message of the server."""
        content = b"" if body is None else msgspec.json.encode(body)
        status, text = self._answer(method, path, content, kind)
        if status == NOT_FOUND:
            raise NotFoundError(text.decode())
        if status == CONFLICT:
            raise ConflictError(text.decode())
        if status >= BAD_REQUEST:
            raise ApiError(text.decode(), code=status)
        return msgspec.json.decode(text)

    def text(self, path: str) -> str:
        """What a page says; OSError if it cannot be had."""
        status, text = self._answer("GET", path, b"", "text/plain")
        if status >= BAD_REQUEST:
            raise OSError(f"{path}: {status} {text.decode()}")
        return text.decode()

    def _answer(self, method: str, path: str, content: bytes, kind: str) -> tuple[int, bytes]:
        if self._connection is None:
            address = urlsplit(self.url).netloc
            self._connection = http.client.HTTPSConnection(address, context=self._context)
        try:
            headers = {**self.headers, "Content-Type": kind}
            self._connection.request(method, path, content, headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class MirroredStore(MemoryCluster):
    """Follow it with `following`, in the loop in which it is read."""

    def __init__(self, api: Api, clock: Clock, gates: FeatureGates) -> None:
        super().__init__(clock, admission=False, gates=gates)
        self.api = api
        # The server's versions of the objects here, by UID.
        self._versions: dict[str, int] = {}
        # When the last change was seen, in the time of the loop.
        self.changed_s = 0.0

    # --- Following ----------------------------------------------------------------------------

    def list_all(self) -> dict[str, str]:
        """Read what there is; the versions from which watches go on, by the name of a resource."""
        versions: dict[str, str] = {}
        for resource in self.followed():
            found = self.api.request("GET", self.path(resource))
            versions[resource.qualified_name] = found["metadata"]["resourceVersion"]
            for document in found["items"] or ():
                self.follow(resource, "ADDED", document)
        return versions

    def followed(self) -> list[ApiResource]:
        served: list[ApiResource] = []
        for resource in self.resources:
            if resource.kind in FOLLOWED and not resource.is_custom:
                with contextlib.suppress(NotFoundError):
                    self.api.request("GET", f"{self.path(resource)}?limit=1")
                    served.append(resource)
        return served

    async def watch_all(self, versions: dict[str, str]) -> None:
        """Follow all resources until cancelled."""
        connector = aiohttp.TCPConnector(ssl=False, limit=0)
        session = aiohttp.ClientSession(
            self.api.url,
            connector=connector,
            headers={**self.api.headers, "Accept-Encoding": "identity"},
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=LINE_BYTES_MAX,
        )
        try:
            async with asyncio.TaskGroup() as group:
                for name, version in versions.items():
                    group.create_task(self._watch(session, self.resources.named(name), version))
        finally:
            # Sockets are closed in the next turn of the loop.
            await connector.close(abort_ssl=True)
            await session.close()
            await asyncio.sleep(0)

    async def _watch(
        self, session: aiohttp.ClientSession, resource: ApiResource, version: str
    ) -> None:
        path = f"{self.path(resource)}?watch=1&resourceVersion={version}"
        async with session.get(path) as response:
            try:
                async for line in response.content:
                    event: JsonObject = msgspec.json.decode(line)
                    assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
                    self.follow(resource, event["type"], event["object"])
            finally:
                abort_unread(response)
        raise AssertionError(f"the watch of {resource.plural} ended")

    def follow(self, resource: ApiResource, event: str, document: JsonObject) -> None:
        """Store what the server has sent, unless something newer is here."""
        metadata = document["metadata"]
        version = int(metadata["resourceVersion"])
        if self._versions.get(metadata["uid"], 0) >= version:
            return
        self._versions[metadata["uid"]] = version
        self.changed_s = asyncio.get_event_loop().time()
        old = self.find(resource, metadata.get("namespace", ""), metadata["name"])
        if old is not None and old.uid != metadata["uid"]:
            self._remove(self._collection(resource), old)
            old = None
        if event == "DELETED":
            if old is not None:
                old = self.replace(resource, document)
                self._remove(self._collection(resource), old)
        elif old is None:
            super().create(resource, document, admission=False)
        else:
            self.replace(resource, document)

    # --- Writing ------------------------------------------------------------------------------

    @staticmethod
    def path(resource: ApiResource, namespace: str = "", name: str = "") -> str:
        root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        place = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{place}/{resource.plural}{f'/{name}' if name else ''}"

    def create(
        self, resource: ApiResource, document: JsonObject, *, admission: bool | None = None
    ) -> StoredObject:
        metadata = dict(document.get("metadata") or {})
        namespace = ""
        if resource.namespaced:
            namespace = metadata["namespace"] = metadata.get("namespace") or "default"
        body = {**document, "apiVersion": resource.api_version, "metadata": metadata}
        made = self.api.request("POST", self.path(resource, namespace), body)
        self.follow(resource, "ADDED", made)
        found = self.find(resource, namespace, made["metadata"]["name"])
        assert found is not None, made
        return found

    def load(
        self, documents: Iterable[JsonObject], *, admission: bool | None = None
    ) -> tuple[StoredObject, ...]:
        ranks = {kind: rank for rank, kind in enumerate(LOADED_FIRST)}
        ordered = sorted(documents, key=lambda one: ranks.get(one["kind"], len(ranks)))
        return tuple(
            self.create(self.resources.of_kind(one["apiVersion"], one["kind"]), one)
            for one in ordered
        )

    def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        patch: JsonObject,
        patch_type: Any = "strategic",
        *,
        subresource: str = "",
    ) -> StoredObject:
        path = self.path(resource, namespace, name) + (f"/{subresource}" if subresource else "")
        made = self.api.request("PATCH", path, patch, PATCH_TYPES[patch_type])
        self.follow(resource, "MODIFIED", made)
        return self.get(resource, namespace, name)

    def delete(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_s: int | None = None,
        **_: Any,
    ) -> StoredObject:
        found = self.get(resource, namespace, name)
        options: JsonObject = {"preconditions": {"uid": uid}} if uid else {}
        if grace_period_s is not None:
            options["gracePeriodSeconds"] = grace_period_s
        self.api.request("DELETE", self.path(resource, namespace, name), options)
        return found

    def evict(self, pod: StoredObject) -> None:
        """ApiError with code 429 if the pod's budget allows no disruption now."""
        namespace, name = pod.key
        eviction: JsonObject = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        path = self.path(pod.resource, namespace, name)
        self.api.request("POST", f"{path}/eviction", eviction)
