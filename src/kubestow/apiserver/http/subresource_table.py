"""The subresources of each resource.

Not here: handling requests to them (`subresources`).
"""

from typing import Final, NamedTuple

from kubestow.cluster.resources import ApiResource

_READ_WRITE: Final = ("get", "patch", "update")


class SubresourceInfo(NamedTuple):
    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


_BINDING: Final = SubresourceInfo("binding", "", "v1", "Binding", ("create",))
_EVICTION: Final = SubresourceInfo("eviction", "policy", "v1", "Eviction", ("create",))
_TOKEN: Final = SubresourceInfo("token", "authentication.k8s.io", "v1", "TokenRequest", ("create",))
_SCALE: Final = SubresourceInfo("scale", "autoscaling", "v1", "Scale", _READ_WRITE)


def subresources_of(resource: ApiResource) -> tuple[SubresourceInfo, ...]:
    """The subresources of an object of the resource."""
    found: list[SubresourceInfo] = []
    name = resource.qualified_name
    own = (resource.group, resource.version, resource.kind)
    if name == "pods":
        found += (_BINDING, _EVICTION)
        found.append(SubresourceInfo("ephemeralcontainers", *own, _READ_WRITE))
        found.append(SubresourceInfo("resize", *own, _READ_WRITE))
    if name == "serviceaccounts":
        found.append(_TOKEN)
    if name == "certificatesigningrequests.certificates.k8s.io":
        found.append(SubresourceInfo("approval", *own, _READ_WRITE))
    if resource.is_scaled:
        found.append(_SCALE)
    if resource.has_status:
        found.append(SubresourceInfo("status", *own, _READ_WRITE))
    if name == "namespaces":
        found.append(SubresourceInfo("finalize", *own, ("update",)))
    return tuple(found)
