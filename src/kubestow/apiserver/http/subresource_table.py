"""The subresources of each resource.

Not here: handling requests to them (`subresources`).
"""

from typing import Final, NamedTuple

from kubestow.cluster.resources import ApiResource

_READ_WRITE: Final = ("get", "patch", "update")
_SCALED: Final = frozenset(
    ("deployments.apps", "replicasets.apps", "statefulsets.apps", "replicationcontrollers")
)


class SubresourceInfo(NamedTuple):
    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


_BINDING: Final = SubresourceInfo("binding", "", "v1", "Binding", ("create",))
_EVICTION: Final = SubresourceInfo("eviction", "policy", "v1", "Eviction", ("create",))
_SCALE: Final = SubresourceInfo("scale", "autoscaling", "v1", "Scale", _READ_WRITE)


def subresources_of(resource: ApiResource) -> tuple[SubresourceInfo, ...]:
    """The subresources of an object of the resource."""
    found: list[SubresourceInfo] = []
    name = resource.qualified_name
    if name == "pods":
        found += (_BINDING, _EVICTION)
    if name in _SCALED:
        found.append(_SCALE)
    own = (resource.group, resource.version, resource.kind)
    if resource.has_status:
        found.append(SubresourceInfo("status", *own, _READ_WRITE))
    if name == "namespaces":
        found.append(SubresourceInfo("finalize", *own, ("update",)))
    return tuple(found)
