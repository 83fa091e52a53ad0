"""metrics.k8s.io: what nodes and pods use, of a store of measurements.

Read-only, as a metrics server has it: lists, and single objects. It is not in discovery.
"""

from datetime import UTC, datetime
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.response import ApiResponse, json_response
from kubestow.apiserver.http.routing import ApiPath
from kubestow.apiserver.http.verbs import refuse_verb
from kubestow.apiserver.refusals import no_such_resource
from kubestow.errors import NotFoundError
from kubestow.usage.store import UsageStore

GROUP: Final = "metrics.k8s.io"
_VERSION: Final = "v1beta1"


def answer(usage: UsageStore, method: str, path: ApiPath) -> ApiResponse:
    """The answer to a request for metrics; ApiError."""
    if path.version != _VERSION or path.plural not in ("nodes", "pods") or path.subresource:
        raise no_such_resource()
    if method != "GET":
        raise refuse_verb()
    is_node = path.plural == "nodes"
    items = _nodes(usage) if is_node else _pods(usage, path.namespace)
    kind = "NodeMetrics" if is_node else "PodMetrics"
    if not path.name:
        return json_response(
            {
                "kind": f"{kind}List",
                "apiVersion": f"{GROUP}/{_VERSION}",
                "metadata": {},
                "items": items,
            }
        )
    for item in items:
        if item["metadata"]["name"] == path.name:
            return json_response({"kind": kind, "apiVersion": f"{GROUP}/{_VERSION}", **item})
    raise NotFoundError(f'{path.plural}.{GROUP} "{path.name}" not found')


def _nodes(usage: UsageStore) -> list[JsonObject]:
    names, nodes = usage.node_names(), usage.nodes
    return [
        {
            "metadata": {"name": name},
            **_measured(int(nodes.time_ns[slot])),
            "usage": _usage(*nodes.latest[:, slot].tolist()),
        }
        for name, slot in zip(names, usage.slots_of(names).tolist(), strict=True)
    ]


def _pods(usage: UsageStore, namespace: str) -> list[JsonObject]:
    return [
        {
            "metadata": {"name": name, "namespace": its_namespace},
            **_measured(used.time_ns),
            "containers": [{"name": "all", "usage": _usage(used.cpu_milli, used.memory_bytes)}],
        }
        for (its_namespace, name), used in usage.pods()
        if namespace in ("", its_namespace)
    ]


def _measured(time_ns: int) -> JsonObject:
    time = datetime.fromtimestamp(time_ns / 1e9, UTC)
    return {"timestamp": f"{time:%Y-%m-%dT%H:%M:%S.%fZ}", "window": "15s"}


def _usage(cpu_milli: int, memory_bytes: int) -> JsonObject:
    return {"cpu": f"{cpu_milli}m", "memory": f"{memory_bytes}"}
