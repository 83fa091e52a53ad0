"""Which resources an API server serves: group, version, plural, kind, and what they can do.

The embedded server, its HTTP server and the real client all look names up here. A kind needs no
typed struct to be stored, listed and watched: a new one is a line in the table, or a call of
`register`.

Not here: the typed structs (`api`), which of these the scheduler watches (`engine`).
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

from kubestow.api.decode import class_of
from kubestow.api.meta import ApiObject
from kubestow.errors import NotFoundError

# Empty for the object itself.
Subresource = Literal["", "status"]


class ApiResource(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of the API, such as pods or storageclasses.storage.k8s.io."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    # Whether `status` is written through its own subresource, as controllers do.
    has_status: bool = False
    # Whether metadata.generation counts the changes of the spec.
    has_generation: bool = False
    short_names: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified_name(self) -> str:
        """The name in messages of an API server: `pods`, `storageclasses.storage.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def cls(self) -> type[ApiObject]:
        """The typed struct of the kind; only metadata for kinds the scheduler does not read."""
        return class_of({"apiVersion": self.api_version, "kind": self.kind}) or ApiObject


class ResourceTable:
    """The resources of a server, found by name, by kind or by type."""

    def __init__(self, resources: Iterable[ApiResource] = ()) -> None:
        self._by_name: dict[str, ApiResource] = {}
        self._by_kind: dict[tuple[str, str], ApiResource] = {}
        self._by_type_name: dict[str, ApiResource] = {}
        for resource in resources:
            self.register(resource)

    def register(self, resource: ApiResource) -> None:
        """Serve this resource too; `of_type` returns the first one of a kind."""
        self._by_name[resource.qualified_name] = resource
        self._by_kind[resource.api_version, resource.kind] = resource
        self._by_type_name.setdefault(resource.kind, resource)

    def named(self, qualified_name: str) -> ApiResource:
        """The resource called `pods` or `storageclasses.storage.k8s.io`."""
        return self._found(self._by_name.get(qualified_name))

    def of_kind(self, api_version: str, kind: str) -> ApiResource:
        """The resource of a document's `apiVersion` and `kind`."""
        found = self._by_kind.get((api_version, kind))
        if found is None:
            raise NotFoundError(f'no matches for kind "{kind}" in version "{api_version}"')
        return found

    def of_type(self, cls: type[ApiObject]) -> ApiResource:
        """The resource whose objects have this typed struct, which is named after the kind."""
        return self._found(self._by_type_name.get(cls.__name__))

    def __iter__(self) -> Iterator[ApiResource]:
        return iter(self._by_name.values())

    @staticmethod
    def _found(resource: ApiResource | None) -> ApiResource:
        if resource is None:
            raise NotFoundError("the server could not find the requested resource")
        return resource


def _core(plural: str, kind: str, namespaced: bool, *short_names: str) -> ApiResource:
    return _resource("", plural, kind, namespaced, *short_names)


def _resource(
    group: str, plural: str, kind: str, namespaced: bool, *short_names: str, version: str = "v1"
) -> ApiResource:
    return ApiResource(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        has_status=plural in _WITH_STATUS,
        has_generation=plural in _WITH_GENERATION,
        short_names=short_names,
    )


_WITH_STATUS: Final = frozenset(
    (
        "pods", "nodes", "namespaces", "services", "replicationcontrollers", "persistentvolumes",
        "persistentvolumeclaims", "replicasets", "statefulsets", "deployments", "daemonsets",
        "jobs", "cronjobs", "poddisruptionbudgets", "volumeattachments", "resourceclaims",
        "podgroups",
    )
)  # fmt: skip
_WITH_GENERATION: Final = frozenset(
    (
        "pods", "replicationcontrollers", "replicasets", "statefulsets", "deployments",
        "daemonsets", "jobs", "cronjobs", "poddisruptionbudgets", "podgroups",
    )
)  # fmt: skip

PODS: Final = _core("pods", "Pod", True, "po")
NODES: Final = _core("nodes", "Node", False, "no")
NAMESPACES: Final = _core("namespaces", "Namespace", False, "ns")
SERVICES: Final = _core("services", "Service", True, "svc")
PERSISTENT_VOLUMES: Final = _core("persistentvolumes", "PersistentVolume", False, "pv")
PERSISTENT_VOLUME_CLAIMS: Final = _core(
    "persistentvolumeclaims", "PersistentVolumeClaim", True, "pvc"
)
STORAGE_CLASSES: Final = _resource("storage.k8s.io", "storageclasses", "StorageClass", False, "sc")
PRIORITY_CLASSES: Final = _resource(
    "scheduling.k8s.io", "priorityclasses", "PriorityClass", False, "pc"
)
RUNTIME_CLASSES: Final = _resource("node.k8s.io", "runtimeclasses", "RuntimeClass", False)
RESOURCE_CLAIMS: Final = _resource("resource.k8s.io", "resourceclaims", "ResourceClaim", True)
RESOURCE_CLAIM_TEMPLATES: Final = _resource(
    "resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate", True
)
EVENTS: Final = _resource("events.k8s.io", "events", "Event", True, "ev")
LEASES: Final = _resource("coordination.k8s.io", "leases", "Lease", True)

_SERVED: Final = (
    PODS,
    NODES,
    NAMESPACES,
    SERVICES,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    _core("replicationcontrollers", "ReplicationController", True, "rc"),
    _core("configmaps", "ConfigMap", True, "cm"),
    _core("secrets", "Secret", True),
    _core("serviceaccounts", "ServiceAccount", True, "sa"),
    _resource("apps", "replicasets", "ReplicaSet", True, "rs"),
    _resource("apps", "statefulsets", "StatefulSet", True, "sts"),
    _resource("apps", "deployments", "Deployment", True, "deploy"),
    _resource("apps", "daemonsets", "DaemonSet", True, "ds"),
    _resource("batch", "jobs", "Job", True),
    _resource("batch", "cronjobs", "CronJob", True, "cj"),
    _resource("policy", "poddisruptionbudgets", "PodDisruptionBudget", True, "pdb"),
    PRIORITY_CLASSES,
    _resource("scheduling.k8s.io", "podgroups", "PodGroup", True, version="v1alpha2"),
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    _resource("storage.k8s.io", "csinodes", "CSINode", False),
    _resource("storage.k8s.io", "csidrivers", "CSIDriver", False),
    _resource("storage.k8s.io", "csistoragecapacities", "CSIStorageCapacity", True),
    _resource("storage.k8s.io", "volumeattachments", "VolumeAttachment", False),
    _resource("resource.k8s.io", "deviceclasses", "DeviceClass", False),
    _resource("resource.k8s.io", "resourceslices", "ResourceSlice", False),
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    EVENTS,
    LEASES,
)


def default_resources() -> ResourceTable:
    """A table of everything the scheduler reads or writes, and of common workloads."""
    return ResourceTable(_SERVED)
