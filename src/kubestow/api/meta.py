"""What every Kubernetes object has: metadata, owners, and the shapes other objects share.

All API types here are frozen msgspec structs: decoded once, never changed, shared freely. Only the
fields the scheduler reads are declared; the store keeps the full document beside them
(`apiserver.memory`), so nothing a user wrote is lost.

Invariant: a field that may be absent with another meaning than its zero value is `| None`.
"""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from kubestow.api.quantity import Quantity

ResourceList = dict[str, Quantity]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


# Structs only point down to their own fields, so they can never be part of a reference cycle:
# with gc=False the collector does not scan every pod of the cluster.
class Object(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """Base of all API structs: immutable, camelCase on the wire, unknown fields ignored.

    A field with its default is not written: reading the text back gives the same default.
    """


class OwnerReference(Object, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Object, frozen=True, kw_only=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class ApiObject(Object, frozen=True, kw_only=True):
    """Base of the top-level kinds."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class LabelSelectorRequirement(Object, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(Object, frozen=True, kw_only=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Object, frozen=True, kw_only=True):
    """A status condition as pods, nodes and claims carry it."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None


class ObjectReference(Object, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


def object_ref(meta: ObjectMeta) -> str:
    """`namespace/name`, or just `name` for an object without namespace (spec 03, terms)."""
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


Json = Any  # any JSON value
JsonObject = dict[str, Any]
