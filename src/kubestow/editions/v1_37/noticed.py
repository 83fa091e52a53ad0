"""What users notice when v1.36 is replaced by v1.37: the rows of spec 12 §1, and the names of
§3.1, §5.1, §12 and §19 that dashboards, alerts and scripts read."""

from typing import Final

from kubestow.editions.edition import Version
from kubestow.editions.noticed import (
    ChangedName,
    LostApi,
    NameKind,
    NoticedChange,
    NoticedChanges,
)

_CHANGES: Final = (
    NoticedChange(
        1,
        "texts: that of a waiting pod has no claims to deallocate any more, and that of one "
        "that evicts others has the node",
        "5.1",
        is_common=True,
    ),
    NoticedChange(
        2,
        "StorageCapacityScoring is on: pods with volumes to provision prefer nodes with more free "
        "storage",
        "7.3",
        is_common=True,
    ),
    NoticedChange(
        3,
        "VolumeLimitScaling is on: nodes without the CSI driver of a volume are rejected, if the "
        "CSIDriver asks for it",
        "7.4",
    ),
    NoticedChange(4, "DeviceTaintRules act", "10.1", is_common=True),
    NoticedChange(
        5,
        "a change of taints no longer wakes pods that were rejected only by plugins which do not "
        "look at taints",
        "3.2",
        is_common=True,
    ),
    NoticedChange(
        6, "pods with several containers that are being resized take less room", "6", is_common=True
    ),
    NoticedChange(
        7,
        "a binding is tried up to four times after 500, 503 and refused connections",
        "5.2",
        is_common=True,
        unseen="it follows from answers of the API server; no waiting pod shows one",
    ),
    NoticedChange(8, "ImageLocality divides by image volumes, too", "7.2"),
    NoticedChange(
        9,
        "a namespaceSelector made only of NotIn and DoesNotExist no longer matches every namespace",
        "8.1",
    ),
    NoticedChange(
        10,
        "of two budgets on one pod, the second is not charged after the first is exhausted",
        "9.1",
    ),
    NoticedChange(11, "nominations of gated pods hold their room", "4.1"),
    NoticedChange(
        12, "anti-affinity with several terms: pods wake when any term is concerned", "3.4"
    ),
    NoticedChange(
        13,
        "a pod whose last victim was waiting at Permit or in PreBind is activated at once",
        "9.3",
        unseen="it follows from what a running scheduler has in memory; no pod here shows it",
    ),
    NoticedChange(
        14,
        "batching reuses the node it just chose",
        "5.3",
        unseen="it needs a profile that places equal pods in batches; there is none",
    ),
    NoticedChange(15, "the device allocator differs in ten points", "10.2"),
    NoticedChange(
        16,
        "metrics: label values renamed, families added and moved",
        "19",
        is_common=True,
        unseen="--search finds the names that files use",
    ),
    NoticedChange(
        17,
        "the API server completes pod-level requests and limits from the containers more often",
        "20.2",
        is_common=True,
    ),
    NoticedChange(
        18,
        "the gates GangScheduling, WorkloadAwarePreemption, SchedulerQueueingHints and "
        "SidecarContainers are refused",
        "2",
        is_common=True,
        unseen="--feature-gates and --search show it",
    ),
    NoticedChange(
        19,
        "of pods of one priority that have not started, the one that came last is evicted first",
        "9.2",
    ),
)

_NAMES: Final = (
    ChangedName(
        NameKind.METRIC,
        "scheduler_resourceclaim_creates_total",
        "dynamic_resource_allocation_resourceclaim_creates_total",
        "dynamic_resource_allocation_resourceclaim_creates_total, with the labels admin_access, "
        "owner_api_group and owner_api_kind",
        "scheduler_resourceclaim_creates_total",
        16,
    ),
    ChangedName(
        NameKind.METRIC,
        "scheduler_preemption_goroutines_duration_seconds(?:_bucket|_count|_sum)?",
        "",
        "hidden, since it is deprecated; --show-hidden-metrics-for-version=1.36 shows it, with "
        "durations and a label result that are right",
        "",
        16,
    ),
    ChangedName(
        NameKind.METRIC,
        "",
        "scheduler_(?:queued_entities|queue_incoming_entities_total|batch_rescore_attempts_total|"
        "batch_rescore_duration_seconds(?:_bucket|_count|_sum)?|"
        "pre_queueing_hint_evaluations_total|workload_preemption_attempts_total|"
        "workload_preemption_victims(?:_bucket|_count|_sum)?|"
        "preemption_workload_disruptions(?:_bucket|_count|_sum)?|"
        "preemption_(?:evaluation|execution)_duration_seconds(?:_bucket|_count|_sum)?|"
        "preemption_pdb_violations_total|generated_placements_total|placement_evaluations_total|"
        "placement_evaluation_duration_seconds(?:_bucket|_count|_sum)?)",
        "",
        "no metric",
        16,
    ),
    ChangedName(
        NameKind.LABEL,
        r"UnschedulablePod(?:Add|Delete|Update\w*)",
        r"(?:UnscheduledPod(?:Add|Delete|Update\w*)|TargetPodUpdate\w*)",
        "UnscheduledPod… for other pods, TargetPod… for updates of the pod itself",
        "UnschedulablePod…",
        16,
    ),
    ChangedName(
        NameKind.LABEL,
        "node_not_full",
        "(?:pod_nominated|prescore_error|rescore_error|normalize_error)",
        "no such reason of scheduler_batch_cache_flushed_total",
        "no such reason of scheduler_batch_cache_flushed_total",
        16,
    ),
    ChangedName(
        NameKind.TEXT,
        "(?:no new claims to deallocate|still not schedulable)",
        "found a potential placement for pod on node",
        "no text",
        "no text",
        1,
    ),
    ChangedName(
        NameKind.CONDITION,
        "PodGroupScheduled",
        "PodGroupInitiallyScheduled",
        "PodGroupInitiallyScheduled",
        "PodGroupScheduled",
    ),
    ChangedName(
        NameKind.API,
        r"scheduling\.k8s\.io/v1alpha2",
        r"scheduling\.k8s\.io/(?:v1beta1|v1alpha3)",
        "scheduling.k8s.io/v1beta1",
        "scheduling.k8s.io/v1alpha2",
    ),
    ChangedName(
        NameKind.GATE,
        "(?:GangScheduling|WorkloadAwarePreemption|SchedulerQueueingHints|SidecarContainers)="
        r"(?i:true|false|t|f|0|1)",
        "",
        "no such gate: unrecognized feature gate",
        "",
        18,
    ),
)

_APIS: Final = (
    LostApi(
        "scheduling.k8s.io/v1alpha2",
        ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"),
        "delete stored objects before the API server is replaced, and create them again in the "
        "other version",
    ),
)

NOTICED_V137: Final = NoticedChanges(Version.V1_36, Version.V1_37, _CHANGES, _NAMES, _APIS)
