"""The feature gates of Kubernetes 1.36, as data: default, stage, lock and dependencies of each.

All components of a cluster often share one flag. So gates that only other components read are
listed, too: they are accepted and checked, but have no effect.

Upstream: pkg/features, apiserver/pkg/features, client-go/features, component-base (v1.36)
Differs:  the gates that `refused` explains cannot be turned on: CoordinatedLeaderElection,
          DRAListTypeAttributes, DRANodeAllocatableResources and DRAWorkloadResourceClaims.
"""

from enum import StrEnum

import msgspec


class Stage(StrEnum):
    """The maturity of a feature; AllAlpha and AllBeta switch all gates of a stage."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class GateSpec(msgspec.Struct, frozen=True):
    """One gate.

    Attributes:
        name: Its name.
        default: Whether it is on by default.
        stage: Its maturity.
        locked: Whether the default cannot be changed.
        depends_on: The gates that must be on if it is on.
        no_effect: Why no decision depends on it; "" if some do.
        refused: Why it cannot be turned on; "" if it can.
    """

    name: str
    default: bool
    stage: Stage
    locked: bool = False
    depends_on: tuple[str, ...] = ()
    no_effect: str = ""
    refused: str = ""


def _gate(
    name: str,
    default: bool,
    stage: Stage,
    *,
    locked: bool = False,
    depends_on: tuple[str, ...] = (),
    no_effect: str = "",
    refused: str = "",
) -> GateSpec:
    return GateSpec(name, default, stage, locked, depends_on, no_effect, refused)


_API_SERVER = "the API server reads it"
_CLIENT = "how objects are read from the API server does not change which objects they are"


SCHEDULER_GATES = (
    _gate("SchedulerQueueingHints", True, Stage.GA, locked=True),
    _gate("SchedulerPopFromBackoffQ", True, Stage.BETA),
    _gate("SchedulerAsyncPreemption", True, Stage.BETA),
    _gate(
        "SchedulerAsyncAPICalls",
        False,
        Stage.BETA,
        no_effect="writes never hold up the next decision here, with or without it",
    ),
    _gate(
        "OpportunisticBatching",
        True,
        Stage.BETA,
        no_effect="remembered answers equal those of asking again, so they are always used",
    ),
    _gate("NominatedNodeNameForExpectation", True, Stage.BETA),
    _gate(
        "ClearingNominatedNodeNameAfterBinding",
        True,
        Stage.BETA,
        no_effect=_API_SERVER,
    ),
    _gate("GenericWorkload", False, Stage.ALPHA),
    _gate("GangScheduling", False, Stage.ALPHA, depends_on=("GenericWorkload",)),
    _gate("TopologyAwareWorkloadScheduling", False, Stage.ALPHA, depends_on=("GenericWorkload",)),
    _gate("WorkloadAwarePreemption", False, Stage.ALPHA, depends_on=("GangScheduling",)),
    _gate(
        "WorkloadWithJob",
        False,
        Stage.ALPHA,
        depends_on=("GenericWorkload",),
        no_effect="the Job controller reads it",
    ),
    _gate("NodeDeclaredFeatures", True, Stage.BETA),
    _gate("PodLevelResources", True, Stage.BETA),
    _gate("InPlacePodVerticalScaling", True, Stage.GA, locked=True),
    _gate(
        "InPlacePodVerticalScalingExclusiveCPUs",
        False,
        Stage.ALPHA,
        depends_on=("InPlacePodVerticalScaling",),
        no_effect="the kubelet reads it",
    ),
    _gate(
        "InPlacePodLevelResourcesVerticalScaling",
        True,
        Stage.BETA,
        depends_on=(
            "InPlacePodVerticalScaling",
            "PodLevelResources",
            "NodeDeclaredFeatures",
        ),
    ),
    _gate("TaintTolerationComparisonOperators", False, Stage.ALPHA),
    _gate("MatchLabelKeysInPodTopologySpread", True, Stage.BETA),
    _gate(
        "MatchLabelKeysInPodTopologySpreadSelectorMerge",
        True,
        Stage.BETA,
        depends_on=("MatchLabelKeysInPodTopologySpread",),
        no_effect=_API_SERVER,
    ),
    _gate("MatchLabelKeysInPodAffinity", True, Stage.GA, locked=True),
    _gate("NodeInclusionPolicyInPodTopologySpread", True, Stage.GA, locked=True),
    _gate("StorageCapacityScoring", False, Stage.ALPHA),
    _gate("VolumeLimitScaling", False, Stage.ALPHA),
    _gate("VolumeAttributesClass", True, Stage.GA, locked=True),
    _gate("SidecarContainers", True, Stage.GA, locked=True),
    _gate(
        "CoordinatedLeaderElection",
        False,
        Stage.BETA,
        refused="leaders are elected by Lease alone",
    ),
    _gate("PodObservedGenerationTracking", True, Stage.GA, locked=True),
    _gate("PodSchedulingReadiness", True, Stage.GA, locked=True),
    _gate("ComponentFlagz", True, Stage.BETA),
    _gate("ComponentStatusz", True, Stage.BETA),
    _gate(
        "WatchListClient",
        True,
        Stage.BETA,
        no_effect=_CLIENT,
    ),
    _gate("InOrderInformers", True, Stage.GA, locked=True),
    _gate(
        "AtomicFIFO",
        True,
        Stage.BETA,
        no_effect=_CLIENT,
    ),
    _gate("DynamicResourceAllocation", True, Stage.GA, locked=True),
    _gate("DRAAdminAccess", True, Stage.GA, locked=True, depends_on=("DynamicResourceAllocation",)),
    _gate("DRAConsumableCapacity", True, Stage.BETA, depends_on=("DynamicResourceAllocation",)),
    _gate(
        "DRADeviceBindingConditions",
        True,
        Stage.BETA,
        depends_on=(
            "DynamicResourceAllocation",
            "DRAResourceClaimDeviceStatus",
        ),
    ),
    _gate("DRADeviceTaintRules", False, Stage.BETA, depends_on=("DRADeviceTaints",)),
    _gate("DRADeviceTaints", True, Stage.BETA, depends_on=("DynamicResourceAllocation",)),
    _gate("DRAExtendedResource", True, Stage.BETA, depends_on=("DynamicResourceAllocation",)),
    _gate(
        "DRAListTypeAttributes",
        False,
        Stage.ALPHA,
        depends_on=("DynamicResourceAllocation",),
        refused="attributes of devices that are lists are not compared",
    ),
    _gate(
        "DRANodeAllocatableResources",
        False,
        Stage.ALPHA,
        depends_on=("DynamicResourceAllocation",),
        refused="what devices take of a node's allocatable resources is not counted",
    ),
    _gate("DRAPartitionableDevices", True, Stage.BETA, depends_on=("DynamicResourceAllocation",)),
    _gate("DRAPrioritizedList", True, Stage.GA, depends_on=("DynamicResourceAllocation",)),
    _gate("DRAResourceClaimDeviceStatus", True, Stage.BETA),
    _gate(
        "DRAResourceClaimGranularStatusAuthorization",
        True,
        Stage.BETA,
        depends_on=(
            "DynamicResourceAllocation",
            "DRAResourceClaimDeviceStatus",
        ),
        no_effect=_API_SERVER,
    ),
    _gate(
        "DRAResourcePoolStatus",
        False,
        Stage.ALPHA,
        depends_on=("DynamicResourceAllocation",),
        no_effect="the API server and a controller read it",
    ),
    _gate("DRASchedulerFilterTimeout", True, Stage.BETA, depends_on=("DynamicResourceAllocation",)),
    _gate(
        "DRAWorkloadResourceClaims",
        False,
        Stage.ALPHA,
        depends_on=(
            "DynamicResourceAllocation",
            "GenericWorkload",
        ),
        refused="claims of pod groups are not allocated",
    ),
    _gate(
        "AllowParsingUserUIDFromCertAuth",
        True,
        Stage.BETA,
        no_effect="the uid of a client certificate is always read",
    ),
    _gate("ClientsAllowCARotation", True, Stage.BETA, no_effect=_CLIENT),
    _gate("ClientsAllowCBOR", False, Stage.ALPHA, no_effect="requests and answers are JSON"),
    _gate("ClientsAllowTLSCacheGC", True, Stage.BETA, no_effect=_CLIENT),
    _gate("ClientsPreferCBOR", False, Stage.ALPHA, no_effect="requests and answers are JSON"),
    _gate("ContextualLogging", True, Stage.BETA, no_effect="it changes log lines alone"),
    _gate("InOrderInformersBatchProcess", True, Stage.BETA, no_effect=_CLIENT),
    _gate("InformerResourceVersion", True, Stage.GA, no_effect=_CLIENT),
    _gate("LoggingAlphaOptions", False, Stage.ALPHA),
    _gate("LoggingBetaOptions", True, Stage.BETA, no_effect="JSON is always a format of logs"),
    _gate(
        "NativeHistograms",
        False,
        Stage.ALPHA,
        no_effect="histograms are always of the classic form",
    ),
    _gate("RemoteRequestHeaderUID", True, Stage.BETA),
    _gate("UnlockWhileProcessingFIFO", True, Stage.BETA, no_effect=_CLIENT),
)
"""What kube-scheduler reads: its plugins, its client, its logs and its secure port."""

OTHER_GATES = (
    _gate("APIResponseCompression", True, Stage.BETA),
    _gate("APIServerIdentity", True, Stage.BETA),
    _gate("APIServerTracing", True, Stage.GA, locked=True),
    _gate("APIServingWithRoutine", False, Stage.ALPHA),
    _gate("AggregatedDiscoveryRemoveBetaType", True, Stage.DEPRECATED, locked=True),
    _gate("AllowDNSOnlyNodeCSR", False, Stage.DEPRECATED),
    _gate("AllowInsecureKubeletCertificateSigningRequests", False, Stage.DEPRECATED),
    _gate("AllowOverwriteTerminationGracePeriodSeconds", True, Stage.DEPRECATED, locked=True),
    _gate("AllowServiceExternalIPs", True, Stage.GA),
    _gate("AllowUnsafeMalformedObjectDeletion", False, Stage.ALPHA),
    _gate("AnonymousAuthConfigurableEndpoints", True, Stage.GA, locked=True),
    _gate("AnyVolumeDataSource", True, Stage.GA, locked=True),
    _gate(
        "AuthorizeNodeWithSelectors",
        True,
        Stage.GA,
        locked=True,
        depends_on=("AuthorizeWithSelectors",),
    ),
    _gate("AuthorizePodWebsocketUpgradeCreatePermission", True, Stage.BETA),
    _gate("AuthorizeWithSelectors", True, Stage.GA, locked=True),
    _gate("BtreeWatchCache", True, Stage.GA, locked=True),
    _gate("CBORServingAndStorage", False, Stage.ALPHA),
    _gate("CPUManagerPolicyAlphaOptions", False, Stage.ALPHA),
    _gate("CPUManagerPolicyBetaOptions", True, Stage.BETA),
    _gate("CPUManagerPolicyOptions", True, Stage.GA, locked=True),
    _gate("CRDObservedGenerationTracking", True, Stage.BETA),
    _gate("CRDValidationRatcheting", True, Stage.GA, locked=True),
    _gate("CRIListStreaming", False, Stage.ALPHA),
    _gate("CSIServiceAccountTokenSecrets", True, Stage.GA, locked=True),
    _gate("CSIVolumeHealth", False, Stage.ALPHA),
    _gate("ChangeContainerStatusOnKubeletRestart", False, Stage.DEPRECATED),
    _gate("CloudControllerManagerWatchBasedRoutesReconciliation", False, Stage.ALPHA),
    _gate("CloudControllerManagerWebhook", False, Stage.ALPHA),
    _gate("ClusterTrustBundle", False, Stage.BETA),
    _gate("ClusterTrustBundleProjection", False, Stage.BETA, depends_on=("ClusterTrustBundle",)),
    _gate("ConcurrentWatchObjectDecode", False, Stage.BETA),
    _gate("ConsistentListFromCache", True, Stage.GA, locked=True),
    _gate("ConstrainedImpersonation", True, Stage.BETA),
    _gate("ContainerCheckpoint", True, Stage.BETA),
    _gate("ContainerRestartRules", True, Stage.BETA),
    _gate("ContainerStopSignals", False, Stage.ALPHA),
    _gate("CrossNamespaceVolumeDataSource", False, Stage.ALPHA),
    _gate("CustomCPUCFSQuotaPeriod", True, Stage.GA),
    _gate("CustomResourceFieldSelectors", True, Stage.GA, locked=True),
    _gate("DeclarativeValidation", True, Stage.GA, locked=True),
    _gate("DeclarativeValidationBeta", True, Stage.BETA, depends_on=("DeclarativeValidation",)),
    _gate(
        "DeclarativeValidationTakeover",
        False,
        Stage.DEPRECATED,
        depends_on=("DeclarativeValidation",),
    ),
    _gate("DeploymentReplicaSetTerminatingReplicas", True, Stage.BETA),
    _gate("DetectCacheInconsistency", True, Stage.BETA),
    _gate(
        "DisableAllocatorDualWrite",
        True,
        Stage.GA,
        locked=True,
        depends_on=("MultiCIDRServiceAllocator",),
    ),
    _gate("DisableCPUQuotaWithExclusiveCPUs", True, Stage.DEPRECATED),
    _gate("DisableNodeKubeProxyVersion", True, Stage.DEPRECATED, locked=True),
    _gate("EnvFiles", True, Stage.BETA),
    _gate("EventedPLEG", False, Stage.ALPHA),
    _gate("ExecProbeTimeout", True, Stage.GA, locked=True),
    _gate("ExtendWebSocketsToKubelet", True, Stage.BETA, depends_on=("NodeDeclaredFeatures",)),
    _gate("ExternalServiceAccountTokenSigner", True, Stage.GA, locked=True),
    _gate("GitRepoVolumeDriver", True, Stage.DEPRECATED, locked=True),
    _gate("GracefulNodeShutdown", True, Stage.BETA),
    _gate(
        "GracefulNodeShutdownBasedOnPodPriority",
        True,
        Stage.BETA,
        depends_on=("GracefulNodeShutdown",),
    ),
    _gate("HPAConfigurableTolerance", True, Stage.BETA),
    _gate("HPAScaleToZero", False, Stage.ALPHA),
    _gate("HostnameOverride", True, Stage.BETA),
    _gate("ImageMaximumGCAge", True, Stage.GA, locked=True),
    _gate("ImageVolume", True, Stage.GA, locked=True),
    _gate("ImageVolumeWithDigest", False, Stage.ALPHA, depends_on=("ImageVolume",)),
    _gate(
        "InPlacePodVerticalScalingExclusiveMemory",
        False,
        Stage.ALPHA,
        depends_on=("InPlacePodVerticalScaling",),
    ),
    _gate(
        "InPlacePodVerticalScalingInitContainers",
        True,
        Stage.BETA,
        depends_on=(
            "InPlacePodVerticalScaling",
            "NodeDeclaredFeatures",
        ),
    ),
    _gate("JobBackoffLimitPerIndex", True, Stage.GA, locked=True),
    _gate("JobManagedBy", True, Stage.GA, locked=True),
    _gate("JobPodReplacementPolicy", True, Stage.GA, locked=True),
    _gate("JobSuccessPolicy", True, Stage.GA, locked=True),
    _gate("KMSv1", False, Stage.DEPRECATED),
    _gate("KubeletCgroupDriverFromCRI", True, Stage.GA, locked=True),
    _gate("KubeletCrashLoopBackOffMax", True, Stage.BETA),
    _gate("KubeletEnsureSecretPulledImages", True, Stage.BETA),
    _gate("KubeletFineGrainedAuthz", True, Stage.GA, locked=True),
    _gate("KubeletInUserNamespace", False, Stage.ALPHA),
    _gate("KubeletPSI", True, Stage.GA, locked=True),
    _gate("KubeletPodResourcesDynamicResources", True, Stage.GA, locked=True),
    _gate("KubeletPodResourcesGet", True, Stage.GA, locked=True),
    _gate("KubeletPodResourcesListUseActivePods", True, Stage.DEPRECATED),
    _gate("KubeletRegistrationGetOnExistsOnly", False, Stage.DEPRECATED),
    _gate("KubeletSeparateDiskGC", True, Stage.BETA),
    _gate("KubeletServiceAccountTokenForCredentialProviders", True, Stage.BETA),
    _gate("KubeletTracing", True, Stage.GA, locked=True),
    _gate("ListFromCacheSnapshot", True, Stage.BETA),
    _gate("LocalStorageCapacityIsolationFSQuotaMonitoring", False, Stage.BETA),
    _gate("LogarithmicScaleDown", True, Stage.GA, locked=True),
    _gate("ManifestBasedAdmissionControlConfig", False, Stage.ALPHA),
    _gate("MaxUnavailableStatefulSet", False, Stage.BETA),
    _gate("MemoryQoS", False, Stage.ALPHA),
    _gate("MultiCIDRServiceAllocator", True, Stage.GA, locked=True),
    _gate("MutableCSINodeAllocatableCount", True, Stage.GA, locked=True),
    _gate("MutablePVNodeAffinity", False, Stage.ALPHA),
    _gate("MutablePodResourcesForSuspendedJobs", True, Stage.BETA),
    _gate("MutableSchedulingDirectivesForSuspendedJobs", True, Stage.BETA),
    _gate("MutatingAdmissionPolicy", True, Stage.GA),
    _gate("NFTablesProxyMode", True, Stage.GA, locked=True),
    _gate("NodeLogQuery", True, Stage.GA, locked=True),
    _gate("NodeSwap", True, Stage.GA, locked=True),
    _gate("OpenAPIEnums", True, Stage.BETA),
    _gate("OrderedNamespaceDeletion", True, Stage.GA, locked=True),
    _gate("PLEGOnDemandRelist", True, Stage.BETA),
    _gate("PersistentVolumeClaimUnusedSinceTime", False, Stage.ALPHA),
    _gate("PodAndContainerStatsFromCRI", False, Stage.ALPHA),
    _gate("PodCertificateRequest", False, Stage.BETA, depends_on=("AuthorizeNodeWithSelectors",)),
    _gate("PodDeletionCost", True, Stage.BETA),
    _gate("PodLevelResourceManagers", False, Stage.ALPHA, depends_on=("PodLevelResources",)),
    _gate("PodLifecycleSleepAction", True, Stage.GA, locked=True),
    _gate(
        "PodLifecycleSleepActionAllowZero",
        True,
        Stage.GA,
        locked=True,
        depends_on=("PodLifecycleSleepAction",),
    ),
    _gate("PodLogsQuerySplitStreams", False, Stage.ALPHA),
    _gate("PodReadyToStartContainersCondition", True, Stage.BETA),
    _gate("PodTopologyLabelsAdmission", True, Stage.BETA),
    _gate("PodsAPI", False, Stage.ALPHA),
    _gate("PortForwardWebsockets", True, Stage.BETA),
    _gate("PreferSameTrafficDistribution", True, Stage.GA, locked=True),
    _gate("PreventStaticPodAPIReferences", True, Stage.BETA),
    _gate("ProcMountType", True, Stage.GA, locked=True, depends_on=("UserNamespacesSupport",)),
    _gate("QOSReserved", False, Stage.ALPHA),
    _gate("RecoverVolumeExpansionFailure", True, Stage.GA, locked=True),
    _gate("RecursiveReadOnlyMounts", True, Stage.GA, locked=True),
    _gate("ReduceDefaultCrashLoopBackOffDecay", False, Stage.ALPHA),
    _gate("RelaxedDNSSearchValidation", True, Stage.GA, locked=True),
    _gate("RelaxedEnvironmentVariableValidation", True, Stage.GA, locked=True),
    _gate("RelaxedServiceNameValidation", True, Stage.BETA),
    _gate("ReloadKubeletClientCAFile", True, Stage.BETA),
    _gate("ReloadKubeletServerCertificateFile", True, Stage.BETA),
    _gate("ResilientWatchCacheInitialization", True, Stage.GA, locked=True),
    _gate("ResourceHealthStatus", True, Stage.BETA, depends_on=("DynamicResourceAllocation",)),
    _gate("ResourceHealthStatusMessage", True, Stage.BETA, depends_on=("ResourceHealthStatus",)),
    _gate(
        "RestartAllContainersOnContainerExits",
        True,
        Stage.BETA,
        depends_on=(
            "ContainerRestartRules",
            "NodeDeclaredFeatures",
        ),
    ),
    _gate("RetryGenerateName", True, Stage.GA, locked=True),
    _gate("RotateKubeletServerCertificate", True, Stage.BETA),
    _gate("RuntimeClassInImageCriApi", False, Stage.ALPHA),
    _gate("SELinuxChangePolicy", True, Stage.GA, locked=True),
    _gate("SELinuxMount", False, Stage.BETA),
    _gate("SELinuxMountReadWriteOncePod", True, Stage.GA, locked=True),
    _gate("SeparateCacheWatchRPC", True, Stage.DEPRECATED, locked=True),
    _gate("SeparateTaintEvictionController", True, Stage.GA, locked=True),
    _gate("ServiceAccountNodeAudienceRestriction", True, Stage.BETA),
    _gate("ServiceAccountTokenJTI", True, Stage.GA, locked=True),
    _gate(
        "ServiceAccountTokenNodeBinding",
        True,
        Stage.GA,
        locked=True,
        depends_on=("ServiceAccountTokenNodeBindingValidation",),
    ),
    _gate("ServiceAccountTokenNodeBindingValidation", True, Stage.GA, locked=True),
    _gate("ServiceAccountTokenPodNodeInfo", True, Stage.GA, locked=True),
    _gate("ServiceCIDRStatusFieldWiping", True, Stage.DEPRECATED),
    _gate("ShardedListAndWatch", False, Stage.ALPHA),
    _gate("SizeBasedListCostEstimate", True, Stage.BETA),
    _gate("StaleControllerConsistencyDaemonSet", True, Stage.BETA, depends_on=("AtomicFIFO",)),
    _gate("StaleControllerConsistencyJob", True, Stage.BETA, depends_on=("AtomicFIFO",)),
    _gate("StaleControllerConsistencyReplicaSet", True, Stage.BETA, depends_on=("AtomicFIFO",)),
    _gate("StaleControllerConsistencyStatefulSet", True, Stage.BETA, depends_on=("AtomicFIFO",)),
    _gate("StatefulSetSemanticRevisionComparison", True, Stage.BETA),
    _gate("StorageNamespaceIndex", True, Stage.DEPRECATED),
    _gate("StorageVersionAPI", False, Stage.ALPHA, depends_on=("APIServerIdentity",)),
    _gate("StorageVersionHash", True, Stage.BETA),
    _gate("StorageVersionMigrator", False, Stage.BETA),
    _gate("StreamingCollectionEncodingToJSON", True, Stage.GA, locked=True),
    _gate("StreamingCollectionEncodingToProtobuf", True, Stage.GA, locked=True),
    _gate("StrictIPCIDRValidation", True, Stage.BETA),
    _gate("StructuredAuthenticationConfiguration", True, Stage.GA, locked=True),
    _gate(
        "StructuredAuthenticationConfigurationEgressSelector",
        True,
        Stage.BETA,
        depends_on=("StructuredAuthenticationConfiguration",),
    ),
    _gate(
        "StructuredAuthenticationConfigurationJWKSMetrics",
        True,
        Stage.BETA,
        depends_on=("StructuredAuthenticationConfiguration",),
    ),
    _gate("SupplementalGroupsPolicy", True, Stage.GA, locked=True),
    _gate("SystemdWatchdog", True, Stage.GA, locked=True),
    _gate("TokenRequestServiceAccountUIDValidation", True, Stage.BETA),
    _gate("TopologyManagerPolicyAlphaOptions", False, Stage.ALPHA),
    _gate("TopologyManagerPolicyBetaOptions", True, Stage.BETA),
    _gate("TopologyManagerPolicyOptions", True, Stage.GA, locked=True),
    _gate("TranslateStreamCloseWebsocketRequests", True, Stage.BETA),
    _gate("UnauthenticatedHTTP2DOSMitigation", True, Stage.BETA),
    _gate(
        "UnknownVersionInteroperabilityProxy", True, Stage.BETA, depends_on=("APIServerIdentity",)
    ),
    _gate(
        "UserNamespacesHostNetworkSupport",
        False,
        Stage.ALPHA,
        depends_on=(
            "UserNamespacesSupport",
            "NodeDeclaredFeatures",
        ),
    ),
    _gate("UserNamespacesSupport", True, Stage.GA, locked=True),
    _gate("WatchCacheInitializationPostStartHook", True, Stage.BETA),
    _gate("WatchList", True, Stage.BETA),
    _gate("WinDSR", True, Stage.GA, locked=True),
    _gate("WinOverlay", True, Stage.GA, locked=True),
    _gate("WindowsCPUAndMemoryAffinity", False, Stage.ALPHA),
    _gate("WindowsGracefulNodeShutdown", True, Stage.BETA, depends_on=("GracefulNodeShutdown",)),
    _gate("WindowsHostNetwork", False, Stage.DEPRECATED),
)
"""What other components read; known so that one flag line may serve a whole cluster."""

GATES = {gate.name: gate for gate in (*SCHEDULER_GATES, *OTHER_GATES)}
