"""Pods and nodes for tests: give what matters, get a whole object.

    make_pod("web-1", cpu="500m", host_ports=[80], tolerations=[Toleration(operator="Exists")])
    make_node("n1", cpu="4", memory="8Gi", taints=["gpu=a100:NoSchedule"], zone="z1")

What is not given is absent, not zero, except where noted: every pod has its own UID and one
container, every node has capacity for 110 pods. Quantities are written as in a manifest.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count

from kubestow.api.meta import Condition, ObjectMeta, OwnerReference, ResourceList
from kubestow.api.node import ContainerImage, Node, NodeSpec, NodeStatus, Taint
from kubestow.api.pod import (
    DEFAULT_SCHEDULER_NAME,
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolumeClaimSource,
    Pod,
    PodResourceClaim,
    PodSchedulingGate,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from kubestow.api.pod_group import (
    BasicPolicy,
    GangPolicy,
    PodGroup,
    PodGroupSpec,
    SchedulingConstraints,
    SchedulingPolicy,
    TopologyConstraint,
)
from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    is_extended,
    is_hugepage,
)
from kubestow.api.topology import REGION_LABEL, ZONE_LABEL

Amount = str | int
Amounts = Mapping[str, Amount]


_uids = count(1)


def make_pod(
    name: str = "p",
    *,
    namespace: str = "default",
    uid: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: OwnerReference | None = None,
    created: datetime | None = None,
    deleted: datetime | None = None,
    # Of its one container; `containers` replaces that container.
    cpu: Amount | None = None,
    memory: Amount | None = None,
    requests: Amounts | None = None,
    image: str = "",
    host_ports: Iterable[int | str] = (),
    containers: Sequence[Container] | None = None,
    init_containers: Sequence[Container] = (),
    overhead: Amounts | None = None,
    pod_requests: Amounts | None = None,
    # Where it may be placed.
    node: str = "",
    nominated_node: str = "",
    node_selector: Mapping[str, str] | None = None,
    node_affinity: NodeAffinity | None = None,
    affinity: Affinity | None = None,
    tolerations: Sequence[Toleration] = (),
    spread: Sequence[TopologySpreadConstraint] = (),
    host_network: bool = False,
    host_users: bool | None = None,
    # What it mounts and claims.
    volumes: Sequence[Volume] = (),
    pvcs: Iterable[str] = (),
    resource_claims: Sequence[PodResourceClaim] = (),
    # How it is queued and evicted.
    priority: int | None = None,
    preemption_policy: str | None = None,
    scheduler_name: str = DEFAULT_SCHEDULER_NAME,
    gates: Iterable[str] = (),
    group: str = "",
    phase: str = "",
    start_time: datetime | None = None,
    conditions: Sequence[Condition] = (),
) -> Pod:
    """A pod. `node` places it, `pvcs` adds a volume per claim, `pod_requests` are pod-level."""
    if containers is None:
        containers = (
            make_container(
                cpu=cpu, memory=memory, requests=requests, image=image, host_ports=host_ports
            ),
        )
    if node_affinity is not None:
        assert affinity is None, "give the node affinity inside `affinity`, or alone"
        affinity = Affinity(node_affinity=node_affinity)
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{next(_uids)}" if uid is None else uid,
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
            owner_references=() if owner is None else (owner,),
            creation_timestamp=created,
            deletion_timestamp=deleted,
        ),
        spec=PodSpec(
            containers=tuple(containers),
            init_containers=tuple(init_containers),
            overhead=None if overhead is None else make_resources(overhead),
            resources=_requirements(pod_requests),
            node_name=node,
            node_selector=None if node_selector is None else dict(node_selector),
            affinity=affinity,
            tolerations=tuple(tolerations),
            topology_spread_constraints=tuple(spread),
            host_network=host_network,
            host_users=host_users,
            volumes=(*volumes, *(_claim_volume(claim) for claim in pvcs)),
            resource_claims=tuple(resource_claims),
            priority=priority,
            preemption_policy=preemption_policy,
            scheduler_name=scheduler_name,
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
            scheduling_group=PodSchedulingGroup(pod_group_name=group) if group else None,
        ),
        status=PodStatus(
            phase=phase,
            nominated_node_name=nominated_node,
            start_time=start_time,
            conditions=tuple(conditions),
        ),
    )


def make_pod_group(
    name: str = "g",
    *,
    namespace: str = "default",
    uid: str | None = None,
    # None: policy basic.
    min_count: int | None = None,
    # "": constraints without a key.
    topology_key: str | None = None,
    priority: int | None = None,
    disruption_mode: str | None = None,
    resource_claims: Sequence[PodResourceClaim] = (),
    annotations: Mapping[str, str] | None = None,
) -> PodGroup:
    """A group of pods; with `min_count` a gang."""
    policy = SchedulingPolicy(
        basic=BasicPolicy() if min_count is None else None,
        gang=None if min_count is None else GangPolicy(min_count=min_count),
    )
    constraints = None
    if topology_key is not None:
        topology = (TopologyConstraint(key=topology_key),) if topology_key else ()
        constraints = SchedulingConstraints(topology=topology)
    return PodGroup(
        api_version="scheduling.k8s.io/v1alpha2",
        kind="PodGroup",
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{next(_uids)}" if uid is None else uid,
            generation=1,
            annotations=dict(annotations or {}),
        ),
        spec=PodGroupSpec(
            scheduling_policy=policy,
            scheduling_constraints=constraints,
            priority=priority,
            disruption_mode=disruption_mode,
            resource_claims=tuple(resource_claims),
        ),
    )


def make_container(
    name: str = "c",
    *,
    cpu: Amount | None = None,
    memory: Amount | None = None,
    requests: Amounts | None = None,
    image: str = "",
    host_ports: Iterable[int | str] = (),
    restart_policy: str | None = None,
) -> Container:
    """A container; `restart_policy="Always"` makes an init container a sidecar."""
    amounts = _amounts(requests, cpu=cpu, memory=memory)
    return Container(
        name=name,
        image=image,
        ports=tuple(make_port(port) for port in host_ports),
        resources=_requirements(amounts or None) or ResourceRequirements(),
        restart_policy=restart_policy,
    )


def make_port(text: int | str) -> ContainerPort:
    """A host port as `80`, `"80/UDP"`, `"10.0.0.1:80"` or `"10.0.0.1:80/UDP"`."""
    address, _, protocol = str(text).partition("/")
    ip, _, number = address.rpartition(":")
    port = int(number)
    return ContainerPort(host_ip=ip, host_port=port, container_port=port, protocol=protocol)


def make_node(
    name: str = "n",
    *,
    cpu: Amount | None = "8",
    memory: Amount | None = "32Gi",
    ephemeral_storage: Amount | None = None,
    pods: Amount | None = 110,
    allocatable: Amounts | None = None,
    labels: Mapping[str, str] | None = None,
    zone: str | None = None,
    region: str | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[Taint | str] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    declared_features: Iterable[str] = (),
    conditions: Sequence[Condition] = (),
) -> Node:
    """A node. `allocatable` names further resources; `images` maps a name to its size in bytes.

    A taint may be written as `key=value:Effect` or `key:Effect`.
    """
    offered = make_resources(
        _amounts(
            allocatable, cpu=cpu, memory=memory, ephemeral_storage=ephemeral_storage, pods=pods
        )
    )
    topology = {ZONE_LABEL: zone, REGION_LABEL: region}
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(
            name=name,
            uid=f"uid-{next(_uids)}",
            labels={
                **{key: value for key, value in topology.items() if value is not None},
                **(labels or {}),
            },
            annotations=dict(annotations or {}),
        ),
        spec=NodeSpec(
            unschedulable=unschedulable,
            taints=tuple(
                make_taint(taint) if isinstance(taint, str) else taint for taint in taints
            ),
        ),
        status=NodeStatus(
            capacity=offered,
            allocatable=offered,
            images=tuple(
                ContainerImage(names=(image,), size_bytes=size)
                for image, size in (images or {}).items()
            ),
            declared_features=tuple(declared_features),
            conditions=tuple(conditions),
        ),
    )


def make_taint(text: str) -> Taint:
    """A taint as kubectl writes it: `key=value:Effect` or `key:Effect`."""
    marker, _, effect = text.rpartition(":")
    key, _, value = marker.partition("=")
    return Taint(key=key, value=value, effect=effect)


def make_node_affinity(
    *required: NodeSelectorTerm,
    preferred: Iterable[tuple[int, NodeSelectorTerm]] | None = None,
) -> NodeAffinity:
    """Required terms, if any, and preferred ones with their weights."""
    return NodeAffinity(
        required=NodeSelector(node_selector_terms=required) if required else None,
        preferred=None
        if preferred is None
        else tuple(
            PreferredSchedulingTerm(weight=weight, preference=term) for weight, term in preferred
        ),
    )


def make_term(*expressions: str, fields: Iterable[str] = ()) -> NodeSelectorTerm:
    """A node selector term of requirements such as `"zone In a,b"`, `"gpu Exists"`."""
    return NodeSelectorTerm(
        match_expressions=tuple(_requirement(text) for text in expressions),
        match_fields=tuple(_requirement(text) for text in fields),
    )


def make_resources(amounts: Amounts) -> ResourceList:
    return {name: parse_quantity(amount) for name, amount in amounts.items()}


def _requirement(text: str) -> NodeSelectorRequirement:
    key, operator, *values = text.split(" ", 2)
    return NodeSelectorRequirement(
        key=key, operator=operator, values=tuple(values[0].split(",")) if values else None
    )


def _requirements(requests: Amounts | None) -> ResourceRequirements | None:
    """Extended resources and huge pages have equal limits, without which no server takes a pod."""
    if requests is None:
        return None
    amounts = make_resources(requests)
    limits = {name: amounts[name] for name in amounts if is_extended(name) or is_hugepage(name)}
    return ResourceRequirements(requests=amounts, limits=limits or None)


def _amounts(
    others: Amounts | None,
    *,
    cpu: Amount | None = None,
    memory: Amount | None = None,
    ephemeral_storage: Amount | None = None,
    pods: Amount | None = None,
) -> dict[str, Amount]:
    named = {CPU: cpu, MEMORY: memory, EPHEMERAL_STORAGE: ephemeral_storage, PODS: pods}
    return {
        **{name: amount for name, amount in named.items() if amount is not None},
        **(others or {}),
    }


def _claim_volume(claim: str) -> Volume:
    return Volume(name=claim, persistent_volume_claim=PersistentVolumeClaimSource(claim_name=claim))
