"""A cluster as documents, read from its API server.

Only lists are requested, in pages, of the kinds that decide where pods go. Nothing secret is
taken: neither Secrets and ConfigMaps, which no scheduler reads, nor what `kept_documents` leaves
out.

The documents are in the order of kinds and names, so that files made of them load in that order.
"""

import asyncio
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlencode

import msgspec
import numpy as np

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.clock import Clock
from kubestow.cluster.documents import as_object, objects_in, value_at
from kubestow.cluster.http.http_client import PAGE_SIZE, HttpClient, list_path
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.resources import (
    DEVICE_TAINT_RULES,
    NEWER_POD_GROUP_VERSION,
    OLDER_TAINT_RULE_VERSIONS,
    ApiResource,
    default_resources,
)
from kubestow.errors import ApiError, GoneError, InputError, NotFoundError
from kubestow.simulator.kept_documents import without_unread_parts
from kubestow.simulator.manifests import READ_KINDS

# Without these there is nothing to simulate.
_REQUIRED: Final = ("nodes", "pods")
_FORBIDDEN: Final = 403
# A server of an older version does not have them, and its scheduler does not read them.
_NEWER_KINDS: Final = frozenset(("DeviceTaintRule", "PodGroup", "Workload"))


class DocumentReader(Protocol):
    """The part of the client that is used here."""

    @property
    def host(self) -> str: ...

    async def get_document(self, path: str) -> JsonObject: ...


class LiveCluster(NamedTuple):
    documents: list[Document]
    # Resources that the server does not have, without alpha and newer ones; those the user may not
    # list.
    not_served: list[str]
    forbidden: list[str]


def read_resources() -> list[ApiResource]:
    """The resources that are read, in the order of their names."""
    # Groups and rules are read in each version that they have; the first that is served counts.
    newer = default_resources(NEWER_POD_GROUP_VERSION)
    found = {one for one in (*default_resources(), *newer) if one.kind in READ_KINDS}
    found.update(
        msgspec.structs.replace(DEVICE_TAINT_RULES, version=version)
        for version in OLDER_TAINT_RULE_VERSIONS
    )
    return sorted(found, key=lambda resource: (resource.qualified_name, resource.version))


async def read_server(server: ServerConfig, clock: Clock, user_agent: str) -> LiveCluster:
    """Connect, read everything, disconnect."""
    # Lists come one after the other; a server has its own limits, so none is needed here.
    session = ApiSession(server, clock, user_agent=user_agent, qps=-1, burst=1)
    client = HttpClient(session, rng=np.random.default_rng())
    try:
        return await read_cluster(client)
    finally:
        client.close()


async def read_version(server: ServerConfig, clock: Clock, user_agent: str) -> str:
    """Connect, read the server's version, disconnect; raises ApiError."""
    session = ApiSession(server, clock, user_agent=user_agent, qps=-1, burst=1)
    client = HttpClient(session, rng=np.random.default_rng())
    try:
        return await client.server_version()
    finally:
        client.close()


async def read_cluster(client: DocumentReader) -> LiveCluster:
    """Everything that decides; InputError if nodes or pods cannot be listed."""
    resources = read_resources()
    found = await asyncio.gather(*(_read(client, resource) for resource in resources))
    documents: list[Document] = []
    not_served: list[str] = []
    forbidden: dict[str, None] = {}
    served: set[str] = set()
    for resource, items in zip(resources, found, strict=True):
        if isinstance(items, NotFoundError):
            is_expected = "alpha" in resource.version or resource.kind in _NEWER_KINDS
            not_served += [] if is_expected else [resource.qualified_name]
        elif isinstance(items, ApiError):
            forbidden[resource.qualified_name] = None
        elif resource.qualified_name not in served:
            served.add(resource.qualified_name)
            documents += (_document(resource, item, client.host) for item in items)
    return LiveCluster(documents, not_served, list(forbidden))


async def _read(
    client: DocumentReader, resource: ApiResource
) -> list[JsonObject] | ApiError | NotFoundError:
    try:
        return await _list_pages(client, list_path(resource))
    except ApiError as error:
        is_optional = isinstance(error, NotFoundError) or error.code == _FORBIDDEN
        if is_optional and resource.qualified_name not in _REQUIRED:
            return error
        raise InputError(
            f"cannot list {resource.qualified_name} of {client.host}: {error}"
        ) from error


async def _list_pages(client: DocumentReader, path: str) -> list[JsonObject]:
    try:
        return await _pages(client, path, {"limit": str(PAGE_SIZE)})
    except GoneError:
        # Collecting the pages took longer than the server keeps versions: list all at once.
        return await _pages(client, path, {})


async def _pages(client: DocumentReader, path: str, query: dict[str, str]) -> list[JsonObject]:
    """All items of one version; GoneError if pages are of several: they may have an object twice,
    and others not at all."""
    items: list[JsonObject] = []
    version = ""
    while True:
        page = await client.get_document(f"{path}?{urlencode(query)}" if query else path)
        found: str = value_at(page, "metadata", "resourceVersion") or ""
        if items and found != version:
            raise GoneError("the list changed while its pages were read")
        version = found
        items += objects_in(page.get("items"))
        token = value_at(page, "metadata", "continue")
        if not token:
            return items
        query = {**query, "continue": token}


def _document(resource: ApiResource, item: JsonObject, host: str) -> Document:
    metadata = as_object(item.get("metadata"))
    name = "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))
    typed = {"apiVersion": resource.api_version, "kind": resource.kind, **item}
    return Document(without_unread_parts(typed), f'{resource.qualified_name} "{name}" of {host}')
