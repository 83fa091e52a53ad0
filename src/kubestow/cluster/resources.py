"""Which resources an API server serves: group, version, plural, kind, and what they can do.

The embedded server, its HTTP server and the real client all look names up here. A kind needs no
typed struct to be stored, listed and watched: a new one is a line in the table, or a call of
`register`.

Not here: the typed structs (`api`), which of these the scheduler watches (`engine`).
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, Literal

import msgspec

from kubestow.api.decode import class_of
from kubestow.api.meta import ApiObject
from kubestow.api.pod_group import CompositePodGroup, PodGroupV1Beta1, SchedulerPluginsPodGroup
from kubestow.errors import NotFoundError

# Empty for the object itself.
Subresource = Literal["", "status"]


ALL_VERBS: Final = (
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
)  # fmt: skip


# With a dict, for what is derived once: every request asks for it.
class ApiResource(msgspec.Struct, frozen=True, kw_only=True, dict=True):
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
    # Whether the number of its pods is read and written through the subresource `scale`.
    is_scaled: bool = False
    short_names: tuple[str, ...] = ()
    # Groups of resources for `kubectl get`, such as `all`.
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    # Whether a CustomResourceDefinition made it: no rule of a built-in kind is for it.
    is_custom: bool = False
    # Empty for the usual names, which derive from the kind.
    singular: str = ""
    list_kind: str = ""

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified_name(self) -> str:
        """The name in messages of an API server: `pods`, `storageclasses.storage.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
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
        self._by_type_name.setdefault(_type_name(resource), resource)

    def unregister(self, qualified_name: str) -> None:
        """Serve this resource no longer."""
        resource = self._by_name.pop(qualified_name)
        del self._by_kind[resource.api_version, resource.kind]
        if self._by_type_name.get(_type_name(resource)) is resource:
            del self._by_type_name[_type_name(resource)]

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

    def has_type(self, cls: type[ApiObject]) -> bool:
        """Whether there is a resource whose objects have this typed struct."""
        return cls.__name__ in self._by_type_name

    def read_as(self, cls: type[ApiObject], resource: ApiResource) -> None:
        """Find a resource by its type that is not served here, such as one of another server."""
        self._by_type_name[cls.__name__] = resource

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[ApiResource]:
        return iter(self._by_name.values())

    @staticmethod
    def _found(resource: ApiResource | None) -> ApiResource:
        if resource is None:
            raise NotFoundError("the server could not find the requested resource")
        return resource


def _type_name(resource: ApiResource) -> str:
    """The name of its typed struct, which differs from the kind if several kinds have one name."""
    cls = resource.cls
    return resource.kind if cls is ApiObject else cls.__name__


# What a resource has besides its objects: words of the column `parts` in the tables below.
_STATUS: Final = "status"
_GENERATION: Final = "generation"
_SCALE: Final = "scale"
_ALL: Final = "all"
_EXTENSION: Final = "api-extensions"


def _resource(
    group: str,
    plural: str,
    kind: str,
    namespaced: bool,
    *short_names: str,
    parts: tuple[str, ...] = (),
    version: str = "v1",
    verbs: tuple[str, ...] = ALL_VERBS,
) -> ApiResource:
    return ApiResource(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        has_status=_STATUS in parts,
        has_generation=_GENERATION in parts,
        is_scaled=_SCALE in parts,
        short_names=short_names,
        categories=tuple(part for part in parts if part in (_ALL, _EXTENSION)),
        verbs=verbs,
    )


_SPEC_AND_STATUS: Final = (_STATUS, _GENERATION)
_WORKLOAD: Final = (_STATUS, _GENERATION, _ALL)
_SCALED_WORKLOAD: Final = (*_WORKLOAD, _SCALE)
_ONE_BY_ONE: Final = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")

PODS: Final = _resource("", "pods", "Pod", True, "po", parts=_WORKLOAD)
NODES: Final = _resource("", "nodes", "Node", False, "no", parts=(_STATUS,))
NAMESPACES: Final = _resource(
    "", "namespaces", "Namespace", False, "ns", parts=(_STATUS,), verbs=_ONE_BY_ONE
)
SERVICES: Final = _resource("", "services", "Service", True, "svc", parts=(_STATUS, _ALL))
SERVICE_ACCOUNTS: Final = _resource("", "serviceaccounts", "ServiceAccount", True, "sa")
PERSISTENT_VOLUMES: Final = _resource(
    "", "persistentvolumes", "PersistentVolume", False, "pv", parts=(_STATUS,)
)
PERSISTENT_VOLUME_CLAIMS: Final = _resource(
    "", "persistentvolumeclaims", "PersistentVolumeClaim", True, "pvc", parts=(_STATUS,)
)
STORAGE_CLASSES: Final = _resource("storage.k8s.io", "storageclasses", "StorageClass", False, "sc")
PRIORITY_CLASSES: Final = _resource(
    "scheduling.k8s.io", "priorityclasses", "PriorityClass", False, "pc"
)
POD_GROUPS: Final = _resource(
    "scheduling.k8s.io", "podgroups", "PodGroup", True, parts=_SPEC_AND_STATUS, version="v1alpha2"
)
WORKLOADS: Final = _resource("scheduling.k8s.io", "workloads", "Workload", True, version="v1alpha2")
COMPOSITE_POD_GROUPS: Final = _resource(
    "scheduling.k8s.io",
    "compositepodgroups",
    "CompositePodGroup",
    True,
    parts=_SPEC_AND_STATUS,
    version="v1alpha3",
)
RUNTIME_CLASSES: Final = _resource("node.k8s.io", "runtimeclasses", "RuntimeClass", False)
DEVICE_TAINT_RULES: Final = _resource(
    "resource.k8s.io", "devicetaintrules", "DeviceTaintRule", False, parts=_SPEC_AND_STATUS
)
# With the same fields (spec 12 §10.1); a server of v1.36 has only these.
OLDER_TAINT_RULE_VERSIONS: Final = ("v1alpha3", "v1beta2")
RESOURCE_CLAIMS: Final = _resource(
    "resource.k8s.io", "resourceclaims", "ResourceClaim", True, parts=(_STATUS,)
)
RESOURCE_CLAIM_TEMPLATES: Final = _resource(
    "resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate", True
)
EVENTS: Final = _resource("events.k8s.io", "events", "Event", True, "ev")
LEASES: Final = _resource("coordination.k8s.io", "leases", "Lease", True)
AUTOSCALERS: Final = _resource(
    "autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True, "hpa",
    parts=(_STATUS, _ALL), version="v2",
)  # fmt: skip
CUSTOM_RESOURCE_DEFINITIONS: Final = _resource(
    "apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", False,
    "crd", "crds", parts=(_STATUS, _GENERATION, _EXTENSION),
)  # fmt: skip
_ADMISSION: Final = "admissionregistration.k8s.io"
_CONFIGURED: Final = (_GENERATION, _EXTENSION)
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"

# Everything that a server of Kubernetes 1.36 stores by default, the pod groups of its scheduler and
# the taint rules of 1.37. Of several versions of a resource the stored one is listed.
_SERVED: Final = (
    PODS,
    NODES,
    NAMESPACES,
    SERVICES,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    _resource(
        "", "replicationcontrollers", "ReplicationController", True, "rc", parts=_SCALED_WORKLOAD
    ),
    _resource("", "configmaps", "ConfigMap", True, "cm"),
    _resource("", "secrets", "Secret", True),
    SERVICE_ACCOUNTS,
    _resource("", "endpoints", "Endpoints", True, "ep"),
    _resource("", "limitranges", "LimitRange", True, "limits"),
    _resource("", "podtemplates", "PodTemplate", True),
    _resource("", "resourcequotas", "ResourceQuota", True, "quota", parts=(_STATUS,)),
    _resource("", "componentstatuses", "ComponentStatus", False, "cs", verbs=("get", "list")),
    _resource("apps", "replicasets", "ReplicaSet", True, "rs", parts=_SCALED_WORKLOAD),
    _resource("apps", "statefulsets", "StatefulSet", True, "sts", parts=_SCALED_WORKLOAD),
    _resource("apps", "deployments", "Deployment", True, "deploy", parts=_SCALED_WORKLOAD),
    _resource("apps", "daemonsets", "DaemonSet", True, "ds", parts=_WORKLOAD),
    _resource("apps", "controllerrevisions", "ControllerRevision", True),
    _resource("batch", "jobs", "Job", True, parts=_WORKLOAD),
    _resource("batch", "cronjobs", "CronJob", True, "cj", parts=_WORKLOAD),
    AUTOSCALERS,
    _resource(
        "policy", "poddisruptionbudgets", "PodDisruptionBudget", True, "pdb",
        parts=_SPEC_AND_STATUS,
    ),
    PRIORITY_CLASSES,
    POD_GROUPS,
    WORKLOADS,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    _resource("storage.k8s.io", "csinodes", "CSINode", False),
    _resource("storage.k8s.io", "csidrivers", "CSIDriver", False),
    _resource("storage.k8s.io", "csistoragecapacities", "CSIStorageCapacity", True),
    _resource("storage.k8s.io", "volumeattachments", "VolumeAttachment", False, parts=(_STATUS,)),
    _resource("storage.k8s.io", "volumeattributesclasses", "VolumeAttributesClass", False, "vac"),
    _resource("resource.k8s.io", "deviceclasses", "DeviceClass", False),
    _resource("resource.k8s.io", "resourceslices", "ResourceSlice", False),
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    EVENTS,
    LEASES,
    _resource("discovery.k8s.io", "endpointslices", "EndpointSlice", True, parts=(_GENERATION,)),
    _resource(
        "networking.k8s.io", "ingresses", "Ingress", True, "ing", parts=_SPEC_AND_STATUS
    ),
    _resource("networking.k8s.io", "ingressclasses", "IngressClass", False, parts=(_GENERATION,)),
    _resource(
        "networking.k8s.io", "networkpolicies", "NetworkPolicy", True, "netpol",
        parts=(_GENERATION,),
    ),
    _resource("networking.k8s.io", "ipaddresses", "IPAddress", False, "ip"),
    _resource("networking.k8s.io", "servicecidrs", "ServiceCIDR", False, parts=(_STATUS,)),
    _resource(_RBAC, "clusterroles", "ClusterRole", False),
    _resource(_RBAC, "clusterrolebindings", "ClusterRoleBinding", False),
    _resource(_RBAC, "roles", "Role", True),
    _resource(_RBAC, "rolebindings", "RoleBinding", True),
    _resource(
        "certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest", False,
        "csr", parts=(_STATUS,),
    ),
    _resource(
        _ADMISSION, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", False,
        parts=_CONFIGURED,
    ),
    _resource(
        _ADMISSION, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", False,
        parts=_CONFIGURED,
    ),
    _resource(
        _ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False,
        parts=_CONFIGURED,
    ),
    _resource(
        _ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False,
        parts=(*_CONFIGURED, _STATUS),
    ),
    _resource(
        _ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False,
        parts=_CONFIGURED,
    ),
    _resource(
        _ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False,
        parts=_CONFIGURED,
    ),
    CUSTOM_RESOURCE_DEFINITIONS,
    _resource(
        "apiregistration.k8s.io", "apiservices", "APIService", False, parts=(_STATUS, _EXTENSION)
    ),
    _resource(_FLOW, "flowschemas", "FlowSchema", False, parts=_SPEC_AND_STATUS),
    _resource(
        _FLOW, "prioritylevelconfigurations", "PriorityLevelConfiguration", False,
        parts=_SPEC_AND_STATUS,
    ),
)  # fmt: skip


# Of groups and workloads as of v1.37.
NEWER_POD_GROUP_VERSION: Final = "v1beta1"
_OTHER_POD_GROUPS: Final = {
    SchedulerPluginsPodGroup: "scheduling.x-k8s.io/v1alpha1",
    PodGroupV1Beta1: f"scheduling.k8s.io/{NEWER_POD_GROUP_VERSION}",
}


def default_resources(pod_group_version: str = POD_GROUPS.version) -> ResourceTable:
    """A table of everything that is built in, groups of pods in that version."""
    table = ResourceTable(_SERVED)
    if pod_group_version != POD_GROUPS.version:
        for resource in (POD_GROUPS, WORKLOADS):
            table.unregister(resource.qualified_name)
            table.register(msgspec.structs.replace(resource, version=pod_group_version))
        table.register(COMPOSITE_POD_GROUPS)
    return table


def client_resources() -> ResourceTable:
    """A table for a client: all that is built in, and the pod groups of other APIs."""
    table = default_resources()
    for cls, api_version in _OTHER_POD_GROUPS.items():
        group, version = api_version.split("/")
        table.read_as(cls, msgspec.structs.replace(POD_GROUPS, group=group, version=version))
    table.read_as(CompositePodGroup, COMPOSITE_POD_GROUPS)
    return table
