"""The life of a namespace: nothing is created outside one, and nothing outlives it.

    Active ──delete──► Terminating (nothing new inside) ──content gone──► finalized ──► gone

Pure rules; `MemoryCluster` applies them when made with `namespace_lifecycle`, and
`namespace_controller` empties what is going. A simulation leaves them out: there a namespace is
only a name.
"""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.refusals import forbidden, not_found
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.documents import as_list, replaced_at, value_at
from kubestow.cluster.resources import NAMESPACES, ApiResource

# Held until the namespace is empty; unlike other finalizers it stands in the spec.
FINALIZER: Final = "kubernetes"
DEFAULT: Final = "default"
SYSTEM: Final = ("kube-node-lease", "kube-public", "kube-system")
_NEVER_DELETED: Final = frozenset((DEFAULT, "kube-public", "kube-system"))


def require_open(
    resource: ApiResource, name: str, namespace: str, found: StoredObject | None
) -> None:
    """ApiError unless something may be created in the namespace, which is what was found of it."""
    if found is None:
        raise not_found(NAMESPACES, namespace)
    if "deletionTimestamp" in found.metadata:
        detail = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        raise forbidden(resource, name, detail)


def require_mortal(name: str) -> None:
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
    """The namespace as it stands while its content goes."""
    return replaced_at(document, ("status", "phase"), "Terminating")
