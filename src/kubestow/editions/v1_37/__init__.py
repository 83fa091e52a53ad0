"""v1.37: one queue entity for a group, three kinds of pod events, another device allocator.

Stages, defaults and locks of gates, default plugins: spec 12 §2. What equals v1.36 is taken from
it.
"""

from typing import Final

from kubestow.editions.edition import ApiRules, Edition, Gate, Stage, Version
from kubestow.editions.v1_36 import EDITION as V1_36

_DRA: Final = ("DynamicResourceAllocation",)
_WORKLOAD: Final = ("GenericWorkload",)
_ALPHA: Final = Gate(Stage.ALPHA, default=False)
_BETA: Final = Gate(Stage.BETA, default=True)
_BETA_OFF: Final = Gate(Stage.BETA, default=False)
_GA: Final = Gate(Stage.GA, default=True)
_LOCKED: Final = Gate(Stage.GA, default=True, locked=True)

# Gates that a command line may no longer name.
_REMOVED: Final = (
    "APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource "
    "AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache "
    "ConsistentListFromCache GangScheduling JobBackoffLimitPerIndex JobPodReplacementPolicy "
    "JobSuccessPolicy LogarithmicScaleDown OrderedNamespaceDeletion PodLifecycleSleepAction "
    "PodLifecycleSleepActionAllowZero PreventStaticPodAPIReferences "
    "RelaxedDNSSearchValidation ResilientWatchCacheInitialization RetryGenerateName "
    "SchedulerQueueingHints SidecarContainers StreamingCollectionEncodingToJSON "
    "StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration "
    "WorkloadAwarePreemption "
)

_GATES: Final = {
    "CompositePodGroup": _ALPHA._replace(needs=(*_WORKLOAD, "TopologyAwareWorkloadScheduling")),
    "DRADerivedAttributes": _ALPHA._replace(needs=_DRA),
    "DRADeviceCompatibilityGroups": _ALPHA._replace(needs=(*_DRA, "DRAPartitionableDevices")),
    "DRADeviceTaintRules": _GA._replace(needs=("DRADeviceTaints",)),
    "DRADeviceTaints": _GA._replace(needs=_DRA),
    "DRAExtendedResource": _LOCKED._replace(needs=_DRA),
    # On by default only if the oldest version to be compatible with is 1.37; it is 1.36.
    "DRAFractionalCapacityRange": _BETA_OFF._replace(needs=("DRAConsumableCapacity",)),
    "DRAOptionalNodeOperations": _ALPHA._replace(needs=(*_DRA, "NodeDeclaredFeatures")),
    "DRAPrioritizedList": _LOCKED._replace(needs=_DRA),
    "DRAResourceClaimDeviceStatus": _LOCKED,
    "DRAWorkloadResourceClaims": _BETA_OFF._replace(needs=(*_DRA, *_WORKLOAD)),
    "GenericWorkload": _BETA_OFF,
    "InPlacePodVerticalScalingSchedulerPreemption": _ALPHA._replace(
        needs=("InPlacePodVerticalScaling",)
    ),
    "InterPodAffinityHostnameFastPath": _ALPHA,
    "NativeHistograms": _BETA,
    "NodeDeclaredFeatures": _LOCKED,
    "PodGroupPreemptionPolicy": _ALPHA._replace(needs=_WORKLOAD),
    "PodLevelResourcesFixDefaulting": _BETA._replace(needs=("PodLevelResources",)),
    "SchedulerPreQueueingHints": _ALPHA,
    "StorageCapacityScoring": _BETA,
    "VolumeBindMountOptions": _ALPHA,
    "VolumeLimitScaling": _BETA,
}

# Gates of other components that are new or have another stage, default or lock.
_OTHER_GATES: Final = {
    Gate(Stage.ALPHA, default=False, locked=False): (
        "APIServerWebhookAuthenticationToken AtomicWriteVolumeUserFields "
        "ConsistentListFromCacheSkipTimeoutFallback "
        "ControllerManagerReleaseLeaderElectionLockOnExit DRAPartitionableDevicesType "
        "DefaultPodSysctls EmptyDirVolumeMode EvictionRequestAPI GRPCContainerProbeTLS "
        "H2CContainerProbe InPlacePodVerticalScalingMemoryBackedVolumes "
        "KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint "
        "NodeLifecycleConditions StatefulSetRecreateStrategy "
    ),
    Gate(Stage.BETA, default=False, locked=False): (
        "PodAndContainerStatsFromCRI PodLevelResourceManagers "
    ),
    Gate(Stage.BETA, default=True, locked=False): (
        "AllowUnsafeMalformedObjectDeletion ConcurrentWatchObjectDecode EtcdRangeStream "
        "ExcludeAdmissionWebhookVirtualResources HPAGeneration HPAOptimizedSelectorStore "
        "HPAScaleToZero HugepageAwareEviction KubeletInUserNamespace "
        "ManifestBasedAdmissionControlConfig MaxUnavailableStatefulSet MemoryQoS "
        "NFTablesNetlink NodeControllerLeaseCircuitBreaker "
        "PersistentVolumeClaimUnusedSinceTime PodLevelResourcesFixKubeletQOSClass PodsAPI "
        "StaleControllerConsistencyHPA WatchListCompression WebhookRoundTripLoadBalancing "
    ),
    Gate(Stage.GA, default=True, locked=False): (
        "ClusterTrustBundle ClusterTrustBundleProjection PodCertificateRequest SELinuxMount "
        "StorageVersionMigrator "
    ),
    Gate(Stage.GA, default=True, locked=True): (
        "HPAConfigurableTolerance HostnameOverride InPlacePodVerticalScalingInitContainers "
        "PLEGOnDemandRelist PodReadyToStartContainersCondition RelaxedServiceNameValidation "
        "WatchCacheInitializationPostStartHook "
    ),
    Gate(Stage.DEPRECATED, default=False, locked=True): ("DeclarativeValidationTakeover "),
    Gate(Stage.DEPRECATED, default=True, locked=False): ("KubeProxyIPVS "),
    Gate(Stage.DEPRECATED, default=True, locked=True): ("DisableCPUQuotaWithExclusiveCPUs "),
}

_CHANGED: Final = {name: gate for gate, names in _OTHER_GATES.items() for name in names.split()}
_PLUGINS: Final = dict(V1_36.plugins)
_FIRST: Final = ("SchedulingGates", "PrioritySort", "NodeName", "NodeUnschedulable")


EDITION: Final = Edition(
    version=Version.V1_37,
    release="v1.37.0-rc.1",
    pod_group_version="v1beta1",
    absent_points=frozenset(),
    gates={
        name: gate
        for name, gate in {**V1_36.gates, **_GATES}.items()
        if name not in _REMOVED.split()
    },
    other_gates={
        name: gate
        for name, gate in {**V1_36.other_gates, **_CHANGED}.items()
        if name not in _REMOVED.split()
    },
    missing_gates=frozenset(("DRANodeAllocatableResources",)),
    merged_gates=dict.fromkeys(("GangScheduling", "WorkloadAwarePreemption"), "GenericWorkload"),
    plugins=dict.fromkeys(_FIRST, 0) | _PLUGINS,
    gated_plugins={
        "NodeDeclaredFeatures": {"NodeDeclaredFeatures": 0},
        "InPlacePodVerticalScalingSchedulerPreemption": {"DeferredPodScheduling": 0},
        "GenericWorkload": {"GangScheduling": 0},
        "TopologyAwareWorkloadScheduling": V1_36.gated_plugins["TopologyAwareWorkloadScheduling"],
    },
    plugins_before={"DeferredPodScheduling": "NodeResourcesFit"},
    # Spec 12 §19.
    metric_names={
        "scheduler_resourceclaim_creates_total": (
            "dynamic_resource_allocation_resourceclaim_creates_total"
        )
    },
    claim_labels={"admin_access": "false", "owner_api_group": "", "owner_api_kind": "Pod"},
    hidden_metrics=frozenset(("scheduler_preemption_goroutines_duration_seconds",)),
    entity_metrics=True,
    taint_rules=True,
    list_attributes=True,
    local_counters=True,
    api=ApiRules(keeps_claim_statuses=True, checks_binding_targets=True),
)
