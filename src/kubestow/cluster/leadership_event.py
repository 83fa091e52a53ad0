"""The event that reports a change of the leader (spec 09 §9.1).

It is about the lease and of the older kind (core `v1`), which needs no action; newer servers list
it with the others.
"""

from typing import Final

from kubestow.api.coordination import Lease
from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import whole_seconds

REASON: Final = "LeaderElection"


def leadership_event(
    lease: Lease, *, identity: str, is_leading: bool, component: str, now_ns: int
) -> JsonObject:
    """The document to post to `events_path`; `component` is the name of the first profile."""
    metadata = lease.metadata
    now = whole_seconds(now_ns)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata.name}.{now_ns:x}", "namespace": metadata.namespace},
        "involvedObject": {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        },
        "reason": REASON,
        "message": f"{identity} {'became leader' if is_leading else 'stopped leading'}",
        "source": {"component": component},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "type": "Normal",
        "reportingComponent": component,
    }


def events_path(lease: Lease) -> str:
    return f"/api/v1/namespaces/{lease.metadata.namespace}/events"
