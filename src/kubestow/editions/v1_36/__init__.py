"""v1.36: the edition whose rules are the core's.

Stages, defaults and locks of gates: spec 09 §12, 04 §1. Default plugins: spec 04 §2.6.
"""

from typing import Final

from kubestow.editions.edition import Edition, Gate, Stage, Version

_DRA: Final = ("DynamicResourceAllocation",)
_DEVICE_STATUS: Final = (*_DRA, "DRAResourceClaimDeviceStatus")
_WORKLOAD: Final = ("GenericWorkload",)
_ALPHA: Final = Gate(Stage.ALPHA, default=False)
_BETA: Final = Gate(Stage.BETA, default=True)
_LOCKED: Final = Gate(Stage.GA, default=True, locked=True)

_GATES: Final = {
    "AllAlpha": _ALPHA,
    "AllBeta": _BETA._replace(default=False),
    "AtomicFIFO": _BETA,
    "ClearingNominatedNodeNameAfterBinding": _BETA,
    "ClientsAllowCARotation": _BETA,
    "ClientsAllowCBOR": _ALPHA,
    "ClientsAllowTLSCacheGC": _BETA,
    "ClientsPreferCBOR": _ALPHA,
    "ComponentFlagz": _BETA,
    "ComponentStatusz": _BETA,
    "ContextualLogging": _BETA,
    "CoordinatedLeaderElection": _BETA._replace(default=False),
    "DRAAdminAccess": _LOCKED._replace(needs=_DRA),
    "DRAConsumableCapacity": _BETA._replace(needs=_DRA),
    "DRADeviceBindingConditions": _BETA._replace(needs=_DEVICE_STATUS),
    "DRADeviceTaintRules": _BETA._replace(default=False, needs=(*_DRA, "DRADeviceTaints")),
    "DRADeviceTaints": _BETA._replace(needs=_DRA),
    "DRAExtendedResource": _BETA._replace(needs=_DRA),
    "DRAListTypeAttributes": _ALPHA._replace(needs=_DRA),
    "DRANodeAllocatableResources": _ALPHA._replace(needs=_DRA),
    "DRAPartitionableDevices": _BETA._replace(needs=_DRA),
    "DRAPrioritizedList": Gate(Stage.GA, default=True, needs=_DRA),
    "DRAResourceClaimDeviceStatus": _BETA,
    "DRAResourceClaimGranularStatusAuthorization": _BETA._replace(needs=_DEVICE_STATUS),
    "DRASchedulerFilterTimeout": _BETA._replace(needs=_DRA),
    "DRAWorkloadResourceClaims": _ALPHA._replace(needs=(*_DRA, *_WORKLOAD)),
    "DynamicResourceAllocation": _LOCKED,
    "GangScheduling": _ALPHA._replace(needs=_WORKLOAD),
    "GenericWorkload": _ALPHA,
    "ImageVolume": _LOCKED,
    "InOrderInformers": _LOCKED,
    "InOrderInformersBatchProcess": _BETA,
    "InPlacePodLevelResourcesVerticalScaling": _BETA,
    "InPlacePodVerticalScaling": _LOCKED,
    "LoggingAlphaOptions": _ALPHA,
    "LoggingBetaOptions": _BETA,
    "MatchLabelKeysInPodAffinity": _LOCKED,
    "MatchLabelKeysInPodTopologySpread": _BETA,
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": _BETA,
    "MutableCSINodeAllocatableCount": _LOCKED,
    "NativeHistograms": _ALPHA,
    "NodeDeclaredFeatures": _BETA,
    "NodeInclusionPolicyInPodTopologySpread": _LOCKED,
    "NominatedNodeNameForExpectation": _BETA,
    "OpportunisticBatching": _BETA,
    "PodLevelResources": _BETA,
    "PodObservedGenerationTracking": _LOCKED,
    "PodSchedulingReadiness": _LOCKED,
    "SchedulerAsyncAPICalls": _BETA._replace(default=False),
    "SchedulerAsyncPreemption": _BETA,
    "SchedulerPopFromBackoffQ": _BETA,
    "SchedulerQueueingHints": _LOCKED,
    "SidecarContainers": _LOCKED,
    "StorageCapacityScoring": _ALPHA,
    "TaintTolerationComparisonOperators": _ALPHA,
    "TopologyAwareWorkloadScheduling": _ALPHA._replace(needs=_WORKLOAD),
    "UnlockWhileProcessingFIFO": _BETA,
    "VolumeAttributesClass": _LOCKED,
    "VolumeLimitScaling": _ALPHA,
    "WatchListClient": _BETA,
    "WorkloadAwarePreemption": _ALPHA._replace(needs=("GangScheduling",)),
}

# Clusters give one list of gates to all their components, and kube-scheduler knows all of them.
# No rule of a scheduler reads these.
# Gates of one stage, default and lock, together.
_OTHER_GATES: Final = {
    Gate(Stage.ALPHA, default=False, locked=False): (
        "APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage "
        "CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth "
        "CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook "
        "ContainerStopSignals CrossNamespaceVolumeDataSource DRAResourcePoolStatus "
        "EventedPLEG HPAScaleToZero ImageVolumeWithDigest "
        "InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory "
        "KubeletInUserNamespace ManifestBasedAdmissionControlConfig MemoryQoS "
        "MutablePVNodeAffinity PersistentVolumeClaimUnusedSinceTime "
        "PodAndContainerStatsFromCRI PodLevelResourceManagers PodLogsQuerySplitStreams "
        "PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi "
        "ShardedListAndWatch StorageVersionAPI TopologyManagerPolicyAlphaOptions "
        "UserNamespacesHostNetworkSupport WindowsCPUAndMemoryAffinity WorkloadWithJob "
    ),
    Gate(Stage.BETA, default=False, locked=False): (
        "ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode "
        "LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet "
        "PodCertificateRequest SELinuxMount StorageVersionMigrator "
    ),
    Gate(Stage.BETA, default=True, locked=False): (
        "APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth "
        "AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions "
        "CRDObservedGenerationTracking ConstrainedImpersonation ContainerCheckpoint "
        "ContainerRestartRules DeclarativeValidationBeta "
        "DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles "
        "ExtendWebSocketsToKubelet GracefulNodeShutdown "
        "GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride "
        "InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax "
        "KubeletEnsureSecretPulledImages KubeletSeparateDiskGC "
        "KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot "
        "MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs "
        "OpenAPIEnums PLEGOnDemandRelist PodDeletionCost PodReadyToStartContainersCondition "
        "PodTopologyLabelsAdmission PortForwardWebsockets PreventStaticPodAPIReferences "
        "RelaxedServiceNameValidation ReloadKubeletClientCAFile "
        "ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus "
        "ResourceHealthStatusMessage RestartAllContainersOnContainerExits "
        "RotateKubeletServerCertificate ServiceAccountNodeAudienceRestriction "
        "SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet "
        "StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet "
        "StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison "
        "StorageVersionHash StrictIPCIDRValidation "
        "StructuredAuthenticationConfigurationEgressSelector "
        "StructuredAuthenticationConfigurationJWKSMetrics "
        "TokenRequestServiceAccountUIDValidation TopologyManagerPolicyBetaOptions "
        "TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation "
        "UnknownVersionInteroperabilityProxy WatchCacheInitializationPostStartHook WatchList "
        "WindowsGracefulNodeShutdown "
    ),
    Gate(Stage.GA, default=True, locked=False): (
        "AllowServiceExternalIPs CustomCPUCFSQuotaPeriod InformerResourceVersion "
        "MutatingAdmissionPolicy "
    ),
    Gate(Stage.GA, default=True, locked=True): (
        "APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource "
        "AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache "
        "CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets "
        "ConsistentListFromCache CustomResourceFieldSelectors DeclarativeValidation "
        "DisableAllocatorDualWrite ExecProbeTimeout ExternalServiceAccountTokenSigner "
        "ImageMaximumGCAge JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy "
        "JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI "
        "KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing "
        "LogarithmicScaleDown MultiCIDRServiceAllocator NFTablesProxyMode NodeLogQuery "
        "NodeSwap OrderedNamespaceDeletion PodLifecycleSleepAction "
        "PodLifecycleSleepActionAllowZero PreferSameTrafficDistribution ProcMountType "
        "RecoverVolumeExpansionFailure RecursiveReadOnlyMounts RelaxedDNSSearchValidation "
        "RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization "
        "RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod "
        "SeparateTaintEvictionController ServiceAccountTokenJTI "
        "ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation "
        "ServiceAccountTokenPodNodeInfo StreamingCollectionEncodingToJSON "
        "StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration "
        "SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions "
        "UserNamespacesSupport WinDSR WinOverlay "
    ),
    Gate(Stage.DEPRECATED, default=False, locked=False): (
        "AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests "
        "ChangeContainerStatusOnKubeletRestart DeclarativeValidationTakeover KMSv1 "
        "KubeletRegistrationGetOnExistsOnly WindowsHostNetwork "
    ),
    Gate(Stage.DEPRECATED, default=True, locked=False): (
        "DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods "
        "ServiceCIDRStatusFieldWiping StorageNamespaceIndex "
    ),
    Gate(Stage.DEPRECATED, default=False, locked=True): (
        "AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC "
    ),
    Gate(Stage.DEPRECATED, default=True, locked=True): (
        "AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion "
    ),
}


EDITION: Final = Edition(
    version=Version.V1_36,
    release="v1.36.4",
    gates=_GATES,
    taint_rules=True,
    other_gates={name: gate for gate, names in _OTHER_GATES.items() for name in names.split()},
    plugins={
        "SchedulingGates": 0,
        "PrioritySort": 0,
        "NodeUnschedulable": 0,
        "NodeName": 0,
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodePorts": 0,
        "NodeResourcesFit": 1,
        "VolumeRestrictions": 0,
        "NodeVolumeLimits": 0,
        "VolumeBinding": 0,
        "VolumeZone": 0,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "DefaultPreemption": 0,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "DefaultBinder": 0,
    },
    gated_plugins={
        "NodeDeclaredFeatures": {"NodeDeclaredFeatures": 0},
        "GangScheduling": {"GangScheduling": 0},
        "TopologyAwareWorkloadScheduling": {
            "TopologyPlacementGenerator": 0,
            "PodGroupPodsCount": 1,
        },
    },
)
