"""The lifecycle of a namespace: objects need an existing one and are deleted with it.

    Active ──delete──► Terminating (nothing new inside) ──content gone──► finalized ──► gone

Pure rules; `MemoryCluster` applies them with `namespace_lifecycle`, and `NamespaceController`
empties terminating namespaces. A simulation leaves them out: there a namespace is only a name.
"""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.refusals import forbidden, not_found
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.documents import as_list, replaced_at, value_at
from kubestow.cluster.resources import NAMESPACES, ApiResource

# Kept until the namespace is empty; unlike other finalizers it is in the spec.
FINALIZER: Final = "kubernetes"
DEFAULT: Final = "default"
SYSTEM: Final = ("kube-node-lease", "kube-public", "kube-system")
_NEVER_DELETED: Final = frozenset((DEFAULT, "kube-public", "kube-system"))


def require_open(
    resource: ApiResource, name: str, namespace: str, found: StoredObject | None
) -> None:
    """ApiError unless objects may be created in the namespace, whose stored object is `found`."""
    if found is None:
        raise not_found(NAMESPACES, namespace)
    if "deletionTimestamp" in found.metadata:
        detail = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        raise forbidden(resource, name, detail)


def require_deletable(name: str) -> None:
    if name in _NEVER_DELETED:
        raise forbidden(NAMESPACES, name, "this namespace may not be deleted")


def with_finalizer(document: JsonObject) -> JsonObject:
    finalizers = as_list(value_at(document, "spec", "finalizers"))
    if FINALIZER in finalizers:
        return document
    return replaced_at(document, ("spec", "finalizers"), [*finalizers, FINALIZER])


def is_held(document: JsonObject) -> bool:
    return bool(value_at(document, "spec", "finalizers"))


def terminating(document: JsonObject) -> JsonObject:
    """The namespace while its content is being deleted."""
    return replaced_at(document, ("status", "phase"), "Terminating")
