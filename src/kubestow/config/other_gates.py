"""The feature gates of v1.36 that no rule of a scheduler reads.

Clusters give one list of gates to all their components, and kube-scheduler knows all of them. They
are accepted by name, stage and lock, and have no effect here.
"""

from collections.abc import Mapping
from typing import Final

from kubestow.config.gate import Gate, Stage

# Gates of one stage, default and lock, together.
_NAMES: Final = {
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

OTHER_GATES: Final[Mapping[str, Gate]] = {
    name: gate for gate, names in _NAMES.items() for name in names.split()
}
