"""Hostile objects, each as large as an API server accepts.

An API server takes bodies of 3 MB, etcd values of 1.5 MB, all annotations together 256 KiB; most
lists have no limit of their own. Sizes are those of a document of at most 1.4 MB.

A case is a function of a size. Where two things multiply (tolerations and taints) both grow with
it, so that a rule that compares each with each takes four times as long at twice the size.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from kubestow.api.meta import JsonObject

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class Manifest(NamedTuple):
    """An object: its resource by qualified name, and its document."""

    resource: str
    document: JsonObject


class Case(NamedTuple):
    name: str
    size_max: int
    make: Callable[[int], Iterable[Manifest]]

    def sizes(self, scale: float) -> tuple[int, ...]:
        """Half of the size and the size, so that growth is seen; one if it cannot be halved."""
        size = max(min(self.size_max, 1), round(self.size_max * scale))
        return (size // 2, size) if size > 1 else (size,)


Maker = Callable[[int], Iterable[Manifest]]


def adder(cases: list[Case]) -> Callable[[int], Callable[[Maker], Maker]]:
    """A decorator `@case(size_max)` that adds a function of the size to the cases, by its name."""

    def case(size_max: int) -> Callable[[Maker], Maker]:
        def add(make: Maker) -> Maker:
            cases.append(Case(make.__name__.replace("_", " "), size_max, make))
            return make

        return add

    return case


CASES: Final[list[Case]] = []
case = adder(CASES)


def pod(name: str = "hostile", *, container: Any = None, **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": "default", "labels": {"app": "hostile"}}
    main: dict[str, Any] = {"name": "main", "image": "hostile", **(container or {})}
    return Manifest("pods", {"metadata": metadata, "spec": {"containers": [main], **spec}})


def with_metadata(manifest: Manifest, **metadata: Any) -> Manifest:
    document = manifest.document
    merged: Any = {**_as(document["metadata"]), **metadata}
    return manifest._replace(document={**document, "metadata": merged})


def _as(value: Any) -> Any:
    return value


def expression(key: str, operator: str, *values: str) -> JsonObject:
    values_: dict[str, Any] = {"values": list(values)} if values else {}
    return {"key": key, "operator": operator, **values_}


# --- Metadata -----------------------------------------------------------------------------------


@case(9_990)
def managed_fields_nested(size: int) -> Iterator[Manifest]:
    fields: JsonObject = {}
    for _ in range(size):
        fields = {"f:a": fields}
    entry = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    yield with_metadata(pod(), managedFields=[entry])


@case(25_000)
def pod_labels(size: int) -> Iterator[Manifest]:
    labels = {f"key-{number}": f"value-{number}" for number in range(size)}
    yield with_metadata(pod(), labels=labels)


@case(260_000)
def annotation(size: int) -> Iterator[Manifest]:
    yield with_metadata(pod(), annotations={"text": "x" * size})


@case(8_000)
def owner_references(size: int) -> Iterator[Manifest]:
    owners = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"o-{number}", "uid": str(number)}
        for number in range(size)
    ]
    yield with_metadata(pod(), ownerReferences=owners)


# --- Node affinity ------------------------------------------------------------------------------


def _node_affinity(**affinity: Any) -> Manifest:
    return pod(affinity={"nodeAffinity": affinity})


def _required(terms: list[Any]) -> Manifest:
    return _node_affinity(**{REQUIRED: {"nodeSelectorTerms": terms}})


@case(10_000)
def node_affinity_terms_on_one_key(size: int) -> Iterator[Manifest]:
    yield _required(
        [
            {"matchExpressions": [expression(HOSTNAME, "In", f"no-{number}")]}
            for number in range(size)
        ]
    )


@case(10_000)
def node_affinity_terms_on_many_keys(size: int) -> Iterator[Manifest]:
    yield _required(
        [{"matchExpressions": [expression(f"key-{number}", "In", "a")]} for number in range(size)]
    )


@case(10_000)
def node_affinity_terms_that_exclude(size: int) -> Iterator[Manifest]:
    """Every term is true for nearly all nodes."""
    yield _required(
        [
            {"matchExpressions": [expression(HOSTNAME, "NotIn", f"node-{number}")]}
            for number in range(size)
        ]
    )


@case(20_000)
def node_affinity_keys_in_one_term(size: int) -> Iterator[Manifest]:
    yield _required(
        [
            {
                "matchExpressions": [
                    expression(f"key-{number}", "DoesNotExist") for number in range(size)
                ]
            }
        ]
    )


@case(60_000)
def node_affinity_values(size: int) -> Iterator[Manifest]:
    values = [f"value-{number}" for number in range(size)]
    yield _required([{"matchExpressions": [expression(HOSTNAME, "NotIn", *values)]}])


@case(10_000)
def node_affinity_names(size: int) -> Iterator[Manifest]:
    yield _required(
        [
            {"matchFields": [expression("metadata.name", "In", f"no-{number}")]}
            for number in range(size)
        ]
    )


@case(10_000)
def node_affinity_excluded_names(size: int) -> Iterator[Manifest]:
    fields = [expression("metadata.name", "NotIn", f"no-{number}") for number in range(size)]
    yield _required([{"matchFields": fields}])


@case(8_000)
def node_affinity_preferred_terms(size: int) -> Iterator[Manifest]:
    yield _node_affinity(
        **{
            PREFERRED: [
                {
                    "weight": number % 100 + 1,
                    "preference": {
                        "matchExpressions": [expression(HOSTNAME, "NotIn", f"node-{number}")]
                    },
                }
                for number in range(size)
            ]
        }
    )


@case(8_000)
def node_affinity_preferred_keys(size: int) -> Iterator[Manifest]:
    yield _node_affinity(
        **{
            PREFERRED: [
                {
                    "weight": number % 100 + 1,
                    "preference": {"matchExpressions": [expression(f"key-{number}", "Exists")]},
                }
                for number in range(size)
            ]
        }
    )


@case(30_000)
def node_selector_keys(size: int) -> Iterator[Manifest]:
    yield pod(nodeSelector={f"key-{number}": "a" for number in range(size)})


# --- Pod affinity and spreading -----------------------------------------------------------------


def _pod_terms(size: int, **more: Any) -> list[Any]:
    """Terms of which each selects other pods; the ordinary pods match some."""
    return [
        {
            "topologyKey": (HOSTNAME, ZONE)[number % 2],
            "labelSelector": {"matchExpressions": [expression("app", "NotIn", f"a-{number}")]},
            **more,
        }
        for number in range(size)
    ]


def _weighted(terms: Iterable[Any]) -> list[Any]:
    return [{"weight": 1, "podAffinityTerm": term} for term in terms]


@case(8_000)
def pod_anti_affinity_required(size: int) -> Iterator[Manifest]:
    yield pod(affinity={"podAntiAffinity": {REQUIRED: _pod_terms(size)}})


@case(8_000)
def pod_affinity_required(size: int) -> Iterator[Manifest]:
    yield pod(affinity={"podAffinity": {REQUIRED: _pod_terms(size)}})


@case(6_000)
def pod_affinity_preferred(size: int) -> Iterator[Manifest]:
    yield pod(affinity={"podAffinity": {PREFERRED: _weighted(_pod_terms(size))}})


@case(6_000)
def pod_anti_affinity_on_many_keys(size: int) -> Iterator[Manifest]:
    terms = [
        {"topologyKey": f"key-{number}", "labelSelector": {"matchLabels": {"app": "a"}}}
        for number in range(size)
    ]
    yield pod(affinity={"podAntiAffinity": {REQUIRED: terms}})


@case(4_000)
def pod_anti_affinity_namespaces(size: int) -> Iterator[Manifest]:
    selector = {"matchExpressions": [expression("kubernetes.io/metadata.name", "Exists")]}
    yield pod(
        affinity={"podAntiAffinity": {REQUIRED: _pod_terms(size, namespaceSelector=selector)}}
    )


@case(8_000)
def pod_on_a_node_with_anti_affinity(size: int) -> Iterator[Manifest]:
    """A pod that runs: every other pod is compared with its terms."""
    terms = [
        {
            "topologyKey": HOSTNAME,
            "labelSelector": {"matchExpressions": [expression("app", "In", f"a-{number}")]},
        }
        for number in range(size)
    ]
    yield pod(affinity={"podAntiAffinity": {REQUIRED: terms}}, nodeName="node-0")


@case(6_000)
def pod_on_a_node_with_preferences(size: int) -> Iterator[Manifest]:
    terms = _weighted(_pod_terms(size))
    yield pod(affinity={"podAffinity": {PREFERRED: terms}}, nodeName="node-0")


def _spread(size: int, action: str, **more: Any) -> Manifest:
    return pod(
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": f"key-{number}",
                "whenUnsatisfiable": action,
                "labelSelector": {"matchLabels": {"app": "hostile"}},
                **more,
            }
            for number in range(size)
        ]
    )


@case(6_000)
def spread_keys_required(size: int) -> Iterator[Manifest]:
    yield _spread(size, "DoNotSchedule")


@case(6_000)
def spread_keys_preferred(size: int) -> Iterator[Manifest]:
    yield _spread(size, "ScheduleAnyway")


@case(6_000)
def spread_keys_with_policies(size: int) -> Iterator[Manifest]:
    yield _spread(size, "ScheduleAnyway", nodeTaintsPolicy="Honor", nodeAffinityPolicy="Ignore")


# --- Resources ----------------------------------------------------------------------------------


def _requests(prefix: str, size: int) -> JsonObject:
    amounts: JsonObject = {f"example.com/{prefix}-{number}": "1" for number in range(size)}
    return {"requests": amounts, "limits": amounts}


@case(20_000)
def extended_resources(size: int) -> Iterator[Manifest]:
    yield pod(container={"resources": _requests("r", size)})


@case(5_000)
def init_containers_with_own_resources(size: int) -> Iterator[Manifest]:
    yield pod(
        initContainers=[
            {"name": f"i-{number}", "image": "i", "resources": _requests(f"r{number}", 1)}
            for number in range(size)
        ]
    )


@case(5_000)
def sidecars_with_own_resources(size: int) -> Iterator[Manifest]:
    yield pod(
        initContainers=[
            {
                "name": f"i-{number}",
                "image": "i",
                "restartPolicy": "Always",
                "resources": _requests(f"r{number}", 1),
            }
            for number in range(size)
        ]
    )


@case(10_000)
def containers(size: int) -> Iterator[Manifest]:
    resources = {"requests": {"cpu": "1u", "memory": "1"}}
    more = [
        {"name": f"c-{number}", "image": f"image-{number}", "resources": resources}
        for number in range(size)
    ]
    main: Any = pod().document["spec"]
    yield pod(containers=[*main["containers"], *more])


@case(20_000)
def tolerations(size: int) -> Iterator[Manifest]:
    yield pod(
        tolerations=[
            {"key": f"key-{number}", "operator": "Exists", "effect": "NoSchedule"}
            for number in range(size)
        ]
    )


@case(15_000)
def host_ports(size: int) -> Iterator[Manifest]:
    ports = [{"containerPort": number, "hostPort": number} for number in range(1, size + 1)]
    yield pod(container={"ports": ports})


@case(40_000)
def scheduling_gates(size: int) -> Iterator[Manifest]:
    yield pod(schedulingGates=[{"name": f"gate-{number}"} for number in range(size)])


# --- Volumes ------------------------------------------------------------------------------------


def _claims(size: int) -> list[Any]:
    return [
        {"name": f"v-{number}", "persistentVolumeClaim": {"claimName": f"claim-{number}"}}
        for number in range(size)
    ]


@case(12_000)
def volumes_without_claims(size: int) -> Iterator[Manifest]:
    yield pod(volumes=_claims(size))


@case(12_000)
def volumes_of_one_claim(size: int) -> Iterator[Manifest]:
    volumes = [
        {**volume, "persistentVolumeClaim": {"claimName": "one"}} for volume in _claims(size)
    ]
    yield _claim("one")
    yield pod(volumes=volumes)


@case(1_000)
def volumes_with_delayed_binding(size: int) -> Iterator[Manifest]:
    yield Manifest(
        "storageclasses.storage.k8s.io",
        {
            "metadata": {"name": "delayed"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    for number in range(size):
        yield Manifest(
            "persistentvolumes",
            {
                "metadata": {"name": f"volume-{number}"},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "delayed",
                    "local": {"path": "/mnt"},
                    "nodeAffinity": {
                        "required": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        expression(ZONE, "In", f"zone-{number % 10}")
                                    ]
                                }
                            ]
                        }
                    },
                },
            },
        )
    for number in range(size // 2):
        yield _claim(f"claim-{number}")
    yield pod(volumes=_claims(size // 2))


def _claim(name: str) -> Manifest:
    return Manifest(
        "persistentvolumeclaims",
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "delayed",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    )


@case(8_000)
def volumes_that_exclude_each_other(size: int) -> Iterator[Manifest]:
    yield pod(
        volumes=[
            {"name": f"v-{number}", "gcePersistentDisk": {"pdName": f"disk-{number}"}}
            for number in range(size)
        ]
    )


# --- Nodes --------------------------------------------------------------------------------------


def node(name: str = "hostile", **parts: Any) -> Manifest:
    resources = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    status = {"capacity": resources, "allocatable": resources, **parts.pop("status", {})}
    labels = {HOSTNAME: name, **parts.pop("labels", {})}
    return Manifest(
        "nodes", {"metadata": {"name": name, "labels": labels}, "status": status, **parts}
    )


@case(20_000)
def node_taints(size: int) -> Iterator[Manifest]:
    taints = [{"key": f"key-{number}", "effect": "PreferNoSchedule"} for number in range(size)]
    yield node(spec={"taints": taints})


@case(25_000)
def node_labels(size: int) -> Iterator[Manifest]:
    yield node(labels={f"key-{number}": f"value-{number}" for number in range(size)})


@case(12_000)
def node_images(size: int) -> Iterator[Manifest]:
    images = [
        {"names": [f"image-{number}", f"image-{number}@sha256:0"], "sizeBytes": 1_000_000_000}
        for number in range(size)
    ]
    yield node(status={"images": images})


@case(15_000)
def node_resources(size: int) -> Iterator[Manifest]:
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    amounts |= {f"example.com/r-{number}": "1" for number in range(size)}
    yield node(status={"capacity": amounts, "allocatable": amounts})


# --- What belongs to pods -----------------------------------------------------------------------


@case(30_000)
def service_selector(size: int) -> Iterator[Manifest]:
    selector = {f"key-{number}": "a" for number in range(size)}
    document: JsonObject = {
        "metadata": {"name": "hostile", "namespace": "default"},
        "spec": {"selector": selector, "ports": [{"port": 80}]},
    }
    yield Manifest("services", document)


@case(15_000)
def disruption_budget_selector(size: int) -> Iterator[Manifest]:
    selector = {
        "matchExpressions": [expression(f"key-{number}", "DoesNotExist") for number in range(size)]
    }
    document: JsonObject = {
        "metadata": {"name": "hostile", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": selector},
    }
    yield Manifest("poddisruptionbudgets.policy", document)
    yield Manifest(
        "priorityclasses.scheduling.k8s.io", {"metadata": {"name": "hostile"}, "value": 1000}
    )
    requests = {"requests": {"cpu": "33"}}
    yield pod(priorityClassName="hostile", container={"resources": requests})


# --- None ---------------------------------------------------------------------------------------


def _no_objects(_: int) -> tuple[()]:
    return ()


NOTHING: Final = Case("nothing", 0, _no_objects)
