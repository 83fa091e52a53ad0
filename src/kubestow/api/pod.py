"""The Pod, with the fields that scheduling reads."""

from datetime import datetime

import msgspec

from kubestow.api.meta import (
    ApiObject,
    Condition,
    Int32,
    JsonObject,
    LabelSelector,
    Object,
    ResourceList,
)

DEFAULT_SCHEDULER_NAME = "default-scheduler"


class ResourceClaimUse(Object, frozen=True, kw_only=True):
    """An entry of a container's `resources.claims`."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Object, frozen=True, kw_only=True):
    requests: ResourceList | None = None
    limits: ResourceList | None = None
    claims: tuple[ResourceClaimUse, ...] = ()


class ContainerPort(Object, frozen=True, kw_only=True):
    name: str = ""
    host_port: Int32 = 0
    container_port: Int32 = 0
    protocol: str = ""
    host_ip: str = msgspec.field(name="hostIP", default="")


class ContainerRestartRule(Object, frozen=True, kw_only=True):
    action: str = ""


class VolumeMount(Object, frozen=True, kw_only=True):
    bind_mount_options: tuple[str, ...] = ()


class Container(Object, frozen=True, kw_only=True):
    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()


class EphemeralContainer(Object, frozen=True, kw_only=True):
    """A container that is added to a running pod to look into it. It requests nothing."""

    volume_mounts: tuple[VolumeMount, ...] = ()


class Toleration(Object, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorRequirement(Object, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Object, frozen=True, kw_only=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Object, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Object, frozen=True, kw_only=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Object, frozen=True, kw_only=True):
    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    # None and () differ: an empty list that is present keeps the plugin from skipping its score.
    preferred: tuple[PreferredSchedulingTerm, ...] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class PodAffinityTerm(Object, frozen=True, kw_only=True):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Object, frozen=True, kw_only=True):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Object, frozen=True, kw_only=True):
    """Serves `podAffinity` and `podAntiAffinity` alike: they have the same fields."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(Object, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Object, frozen=True, kw_only=True):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PersistentVolumeClaimSource(Object, frozen=True, kw_only=True):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(Object, frozen=True, kw_only=True):
    # Only its presence counts: the claim it makes is looked up by name.
    volume_claim_template: JsonObject | None = None


class GcePersistentDisk(Object, frozen=True, kw_only=True):
    pd_name: str = ""
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AwsElasticBlockStore(Object, frozen=True, kw_only=True):
    volume_id: str = msgspec.field(name="volumeID", default="")
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AzureDisk(Object, frozen=True, kw_only=True):
    disk_name: str = ""
    disk_uri: str = msgspec.field(name="diskURI", default="")
    kind: str | None = None
    read_only: bool | None = None


class AzureFile(Object, frozen=True, kw_only=True):
    secret_name: str = ""
    share_name: str = ""
    secret_namespace: str | None = None
    read_only: bool = False


class Cinder(Object, frozen=True, kw_only=True):
    volume_id: str = msgspec.field(name="volumeID", default="")
    read_only: bool = False


class VsphereVolume(Object, frozen=True, kw_only=True):
    volume_path: str = ""


class PortworxVolume(Object, frozen=True, kw_only=True):
    volume_id: str = msgspec.field(name="volumeID", default="")
    read_only: bool = False


class Rbd(Object, frozen=True, kw_only=True):
    # The ephemeral and the persistent form have the same names for these fields.
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class Iscsi(Object, frozen=True, kw_only=True):
    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class CsiEphemeral(Object, frozen=True, kw_only=True):
    driver: str = ""


class ImageVolume(Object, frozen=True, kw_only=True):
    reference: str = ""


class NamedSource(Object, frozen=True, kw_only=True):
    """A volume source of which only its kind matters (`emptyDir`, `secret`, `configMap`, …)."""


class Volume(Object, frozen=True, kw_only=True):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CsiEphemeral | None = None
    image: ImageVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    rbd: Rbd | None = None
    iscsi: Iscsi | None = None
    secret: NamedSource | None = None
    config_map: NamedSource | None = None


class PodSchedulingGate(Object, frozen=True, kw_only=True):
    name: str = ""


class PodResourceClaim(Object, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Object, frozen=True, kw_only=True):
    pod_group_name: str | None = None


class PodSpec(Object, frozen=True, kw_only=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    volumes: tuple[Volume, ...] = ()
    node_name: str = ""
    # None and {} differ: NodeAffinity's PreFilter skips only when the map is absent.
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduler_name: str = ""
    priority: Int32 | None = None  # absent differs from 0 here; priority_of() reads it as 0
    priority_class_name: str = ""
    preemption_policy: str | None = None
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None
    host_network: bool = False
    host_users: bool | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    termination_grace_period_seconds: int | None = None
    restart_policy: str = ""


class ContainerStatus(Object, frozen=True, kw_only=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None


class PodResourceClaimStatus(Object, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Object, frozen=True, kw_only=True):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Object, frozen=True, kw_only=True):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodStatus(Object, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: datetime | None = None
    qos_class: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(ApiObject, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


def priority_of(pod: Pod) -> int:
    """The pod's priority; absent counts as 0 (spec 01 §13.4)."""
    return pod.spec.priority or 0


def is_assigned(pod: Pod) -> bool:
    """Whether the pod has been given a node (spec 01 §13.2)."""
    return bool(pod.spec.node_name)


def is_terminal(pod: Pod) -> bool:
    """Whether the pod has ended: such a pod never reaches the scheduler (spec 01 §13.3)."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def first_condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    """The first condition of that type; later ones of the same type are never read."""
    for condition in conditions:
        if condition.type == kind:
            return condition
    return None


def is_storage(volume: Volume) -> bool:
    """Whether a volume is backed by a claim, a driver or a disk, unlike a secret or `emptyDir`."""
    return not (
        volume.persistent_volume_claim is None
        and volume.ephemeral is None
        and volume.csi is None
        and volume.gce_persistent_disk is None
        and volume.aws_elastic_block_store is None
        and volume.azure_disk is None
        and volume.azure_file is None
        and volume.cinder is None
        and volume.vsphere_volume is None
        and volume.portworx_volume is None
        and volume.rbd is None
        and volume.iscsi is None
    )


def attaches_unclaimed(volume: Volume) -> bool:
    """Whether a CSI driver may attach the volume although it names no claim: an ephemeral volume,
    or a disk of an in-tree plugin. A claim with an empty name counts, too."""
    claim = volume.persistent_volume_claim
    if claim is not None:
        return not claim.claim_name
    return not (
        volume.ephemeral is None
        and volume.aws_elastic_block_store is None
        and volume.gce_persistent_disk is None
        and volume.azure_disk is None
        and volume.cinder is None
        and volume.portworx_volume is None
        and volume.azure_file is None
        and volume.vsphere_volume is None
    )


def resource_claim_names(pod: Pod) -> dict[str, str]:
    """The names of the pod's resource claims, by the name of their entry in the pod."""
    names = {
        entry.name: entry.resource_claim_name
        for entry in pod.spec.resource_claims
        if entry.resource_claim_name is not None
    }
    made = {
        status.name: status.resource_claim_name
        for status in pod.status.resource_claim_statuses
        if status.resource_claim_name is not None
    }
    return {**made, **names}


def key_of(pod: Pod) -> str:
    """Namespace and name as one text; the same as `PodInfo.key`.

    Spec 02 §2.2 has another spelling for parked pods (`name_namespace`). Both are unique, since
    neither `/` nor `_` can be part of a name.
    """
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def assign(pod: Pod, node_name: str) -> Pod:
    """A copy of the pod that is placed on that node."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))


def made_again(pod: Pod) -> Pod:
    """The pod that a controller makes in the place of a deleted one: it waits, with a UID of its
    own."""
    metadata = msgspec.structs.replace(pod.metadata, uid=f"{pod.metadata.uid}-again")
    return msgspec.structs.replace(assign(pod, ""), metadata=metadata, status=PodStatus())
