"""Pod groups as upstream's API has them: PodGroup and Workload (spec 11 §2).

The scheduler reads PodGroups only; Workloads are templates for controllers. What a group asks of
the scheduler is turned into a `Group` (`api.group`), which the rest of the program uses. Other
objects of that name are read by choice.
"""

from kubestow.api.meta import ApiObject, Condition, Int32, JsonObject, Object
from kubestow.api.pod import PodResourceClaim


class WorkloadTemplateReference(Object, frozen=True, kw_only=True):
    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Object, frozen=True, kw_only=True):
    workload: WorkloadTemplateReference | None = None


class BasicPolicy(Object, frozen=True, kw_only=True):
    """Members are placed one by one."""


class GangPolicy(Object, frozen=True, kw_only=True):
    min_count: Int32 = 0


class SchedulingPolicy(Object, frozen=True, kw_only=True):
    """One of the two is set."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Object, frozen=True, kw_only=True):
    key: str = ""


class SchedulingConstraints(Object, frozen=True, kw_only=True):
    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupSpec(Object, frozen=True, kw_only=True):
    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    # None and an empty value differ: the latter, too, excludes preemption by members (§9.1).
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class PodGroupResourceClaimStatus(Object, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(Object, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(ApiObject, frozen=True, kw_only=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class PodGroupTemplate(Object, frozen=True, kw_only=True):
    name: str = ""
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    # An object as of v1.37.
    disruption_mode: str | JsonObject | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class WorkloadSpec(Object, frozen=True, kw_only=True):
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    # As of v1.37; no part of this program reads what is in them.
    composite_pod_group_templates: tuple[JsonObject, ...] = ()


class Workload(ApiObject, frozen=True, kw_only=True):
    spec: WorkloadSpec = WorkloadSpec()


class SchedulerPluginsPodGroup(ApiObject, frozen=True, kw_only=True):
    """The PodGroup of scheduler-plugins, `scheduling.x-k8s.io/v1alpha1`; see `api.gang_dialects`.

    The spec stays a document, so that fields which are not read can be named.
    """

    spec: JsonObject = {}


class PodGroupV1Beta1(ApiObject, frozen=True, kw_only=True):
    """Upstream's PodGroup as of v1.37, `scheduling.k8s.io/v1beta1`, likewise."""

    spec: JsonObject = {}
    status: PodGroupStatus = PodGroupStatus()


class DisruptionMember(Object, frozen=True, kw_only=True):
    """Without fields; which one is there counts."""


class DisruptionMode(Object, frozen=True, kw_only=True):
    """As of v1.37: members are evicted one by one (`single`), or `all` together."""

    single: DisruptionMember | None = None
    all: DisruptionMember | None = None


class WorkloadReference(Object, frozen=True, kw_only=True):
    workload_name: str = ""
    template_name: str = ""


class CompositeGangPolicy(Object, frozen=True, kw_only=True):
    min_group_count: Int32 = 0


class CompositePolicy(Object, frozen=True, kw_only=True):
    """One of the two is set."""

    basic: BasicPolicy | None = None
    gang: CompositeGangPolicy | None = None


class CompositePodGroupSpec(Object, frozen=True, kw_only=True):
    parent_composite_pod_group_name: str = ""
    workload_ref: WorkloadReference | None = None
    scheduling_policy: CompositePolicy = CompositePolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class CompositePodGroup(ApiObject, frozen=True, kw_only=True):
    """Groups of groups as of v1.37, `scheduling.k8s.io/v1alpha3` (spec 12 §17)."""

    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


# The objects that may have the rules of a group.
AnyPodGroup = PodGroup | PodGroupV1Beta1 | SchedulerPluginsPodGroup
# Those of upstream, which have conditions and claims.
UpstreamPodGroup = PodGroup | PodGroupV1Beta1
