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


_API_SERVER = "the API server reads it"
_CLIENT = "how objects are read from the API server does not change which objects they are"


SCHEDULER_GATES = (
    GateSpec("SchedulerQueueingHints", True, Stage.GA, locked=True),
    GateSpec("SchedulerPopFromBackoffQ", True, Stage.BETA),
    GateSpec("SchedulerAsyncPreemption", True, Stage.BETA),
    GateSpec(
        "SchedulerAsyncAPICalls",
        False,
        Stage.BETA,
        no_effect="writes never hold up the next decision here, with or without it",
    ),
    GateSpec(
        "OpportunisticBatching",
        True,
        Stage.BETA,
        no_effect="remembered answers equal those of asking again, so they are always used",
    ),
    GateSpec("NominatedNodeNameForExpectation", True, Stage.BETA),
    GateSpec(
        "ClearingNominatedNodeNameAfterBinding",
        True,
        Stage.BETA,
        no_effect=_API_SERVER,
    ),
    GateSpec("GenericWorkload", False, Stage.ALPHA),
    GateSpec("GangScheduling", False, Stage.ALPHA, depends_on=("GenericWorkload",)),
    GateSpec(
        "TopologyAwareWorkloadScheduling", False, Stage.ALPHA, depends_on=("GenericWorkload",)
    ),
    GateSpec("WorkloadAwarePreemption", False, Stage.ALPHA, depends_on=("GangScheduling",)),
    GateSpec(
        "WorkloadWithJob",
        False,
        Stage.ALPHA,
        depends_on=("GenericWorkload",),
        no_effect="the Job controller reads it",
    ),
    GateSpec("NodeDeclaredFeatures", True, Stage.BETA),
    GateSpec("PodLevelResources", True, Stage.BETA),
    GateSpec("InPlacePodVerticalScaling", True, Stage.GA, locked=True),
    GateSpec(
        "InPlacePodVerticalScalingExclusiveCPUs",
        False,
        Stage.ALPHA,
        depends_on=("InPlacePodVerticalScaling",),
        no_effect="the kubelet reads it",
    ),
    GateSpec(
        "InPlacePodLevelResourcesVerticalScaling",
        True,
        Stage.BETA,
        depends_on=(
            "InPlacePodVerticalScaling",
            "PodLevelResources",
            "NodeDeclaredFeatures",
        ),
    ),
    GateSpec("TaintTolerationComparisonOperators", False, Stage.ALPHA),
    GateSpec("MatchLabelKeysInPodTopologySpread", True, Stage.BETA),
    GateSpec(
        "MatchLabelKeysInPodTopologySpreadSelectorMerge",
        True,
        Stage.BETA,
        depends_on=("MatchLabelKeysInPodTopologySpread",),
        no_effect=_API_SERVER,
    ),
    GateSpec("MatchLabelKeysInPodAffinity", True, Stage.GA, locked=True),
    GateSpec("NodeInclusionPolicyInPodTopologySpread", True, Stage.GA, locked=True),
    GateSpec("StorageCapacityScoring", False, Stage.ALPHA),
    GateSpec("VolumeLimitScaling", False, Stage.ALPHA),
    GateSpec("VolumeAttributesClass", True, Stage.GA, locked=True),
    GateSpec("SidecarContainers", True, Stage.GA, locked=True),
    GateSpec(
        "CoordinatedLeaderElection",
        False,
        Stage.BETA,
        refused="leaders are elected by Lease alone",
    ),
    GateSpec("PodObservedGenerationTracking", True, Stage.GA, locked=True),
    GateSpec("PodSchedulingReadiness", True, Stage.GA, locked=True),
    GateSpec("ComponentFlagz", True, Stage.BETA),
    GateSpec("ComponentStatusz", True, Stage.BETA),
    GateSpec(
        "WatchListClient",
        True,
        Stage.BETA,
        no_effect=_CLIENT,
    ),
    GateSpec("InOrderInformers", True, Stage.GA, locked=True),
    GateSpec(
        "AtomicFIFO",
        True,
        Stage.BETA,
        no_effect=_CLIENT,
    ),
    GateSpec("DynamicResourceAllocation", True, Stage.GA, locked=True),
    GateSpec(
        "DRAAdminAccess", True, Stage.GA, locked=True, depends_on=("DynamicResourceAllocation",)
    ),
    GateSpec("DRAConsumableCapacity", True, Stage.BETA, depends_on=("DynamicResourceAllocation",)),
    GateSpec(
        "DRADeviceBindingConditions",
        True,
        Stage.BETA,
        depends_on=(
            "DynamicResourceAllocation",
            "DRAResourceClaimDeviceStatus",
        ),
    ),
    GateSpec("DRADeviceTaintRules", False, Stage.BETA, depends_on=("DRADeviceTaints",)),
    GateSpec("DRADeviceTaints", True, Stage.BETA, depends_on=("DynamicResourceAllocation",)),
    GateSpec("DRAExtendedResource", True, Stage.BETA, depends_on=("DynamicResourceAllocation",)),
    GateSpec(
        "DRAListTypeAttributes",
        False,
        Stage.ALPHA,
        depends_on=("DynamicResourceAllocation",),
        refused="attributes of devices that are lists are not compared",
    ),
    GateSpec(
        "DRANodeAllocatableResources",
        False,
        Stage.ALPHA,
        depends_on=("DynamicResourceAllocation",),
        refused="what devices take of a node's allocatable resources is not counted",
    ),
    GateSpec(
        "DRAPartitionableDevices", True, Stage.BETA, depends_on=("DynamicResourceAllocation",)
    ),
    GateSpec("DRAPrioritizedList", True, Stage.GA, depends_on=("DynamicResourceAllocation",)),
    GateSpec("DRAResourceClaimDeviceStatus", True, Stage.BETA),
    GateSpec(
        "DRAResourceClaimGranularStatusAuthorization",
        True,
        Stage.BETA,
        depends_on=(
            "DynamicResourceAllocation",
            "DRAResourceClaimDeviceStatus",
        ),
        no_effect=_API_SERVER,
    ),
    GateSpec(
        "DRAResourcePoolStatus",
        False,
        Stage.ALPHA,
        depends_on=("DynamicResourceAllocation",),
        no_effect="the API server and a controller read it",
    ),
    GateSpec(
        "DRASchedulerFilterTimeout", True, Stage.BETA, depends_on=("DynamicResourceAllocation",)
    ),
    GateSpec(
        "DRAWorkloadResourceClaims",
        False,
        Stage.ALPHA,
        depends_on=(
            "DynamicResourceAllocation",
            "GenericWorkload",
        ),
        refused="claims of pod groups are not allocated",
    ),
    GateSpec(
        "AllowParsingUserUIDFromCertAuth",
        True,
        Stage.BETA,
        no_effect="the uid of a client certificate is always read",
    ),
    GateSpec("ClientsAllowCARotation", True, Stage.BETA, no_effect=_CLIENT),
    GateSpec("ClientsAllowCBOR", False, Stage.ALPHA, no_effect="requests and answers are JSON"),
    GateSpec("ClientsAllowTLSCacheGC", True, Stage.BETA, no_effect=_CLIENT),
    GateSpec("ClientsPreferCBOR", False, Stage.ALPHA, no_effect="requests and answers are JSON"),
    GateSpec("ContextualLogging", True, Stage.BETA, no_effect="it changes log lines alone"),
    GateSpec("InOrderInformersBatchProcess", True, Stage.BETA, no_effect=_CLIENT),
    GateSpec("InformerResourceVersion", True, Stage.GA, no_effect=_CLIENT),
    GateSpec("LoggingAlphaOptions", False, Stage.ALPHA),
    GateSpec("LoggingBetaOptions", True, Stage.BETA, no_effect="JSON is always a format of logs"),
    GateSpec(
        "NativeHistograms",
        False,
        Stage.ALPHA,
        no_effect="histograms are always of the classic form",
    ),
    GateSpec("RemoteRequestHeaderUID", True, Stage.BETA),
    GateSpec("UnlockWhileProcessingFIFO", True, Stage.BETA, no_effect=_CLIENT),
)
"""What kube-scheduler reads: its plugins, its client, its logs and its secure port."""

# Name, on or off, stage, perhaps `locked`; after the colon the gates that it depends on.
_OTHER_GATES = """
APIResponseCompression on BETA
APIServerIdentity on BETA
APIServerTracing on GA locked
APIServingWithRoutine off ALPHA
AggregatedDiscoveryRemoveBetaType on DEPRECATED locked
AllowDNSOnlyNodeCSR off DEPRECATED
AllowInsecureKubeletCertificateSigningRequests off DEPRECATED
AllowOverwriteTerminationGracePeriodSeconds on DEPRECATED locked
AllowServiceExternalIPs on GA
AllowUnsafeMalformedObjectDeletion off ALPHA
AnonymousAuthConfigurableEndpoints on GA locked
AnyVolumeDataSource on GA locked
AuthorizeNodeWithSelectors on GA locked: AuthorizeWithSelectors
AuthorizePodWebsocketUpgradeCreatePermission on BETA
AuthorizeWithSelectors on GA locked
BtreeWatchCache on GA locked
CBORServingAndStorage off ALPHA
CPUManagerPolicyAlphaOptions off ALPHA
CPUManagerPolicyBetaOptions on BETA
CPUManagerPolicyOptions on GA locked
CRDObservedGenerationTracking on BETA
CRDValidationRatcheting on GA locked
CRIListStreaming off ALPHA
CSIServiceAccountTokenSecrets on GA locked
CSIVolumeHealth off ALPHA
ChangeContainerStatusOnKubeletRestart off DEPRECATED
CloudControllerManagerWatchBasedRoutesReconciliation off ALPHA
CloudControllerManagerWebhook off ALPHA
ClusterTrustBundle off BETA
ClusterTrustBundleProjection off BETA: ClusterTrustBundle
ConcurrentWatchObjectDecode off BETA
ConsistentListFromCache on GA locked
ConstrainedImpersonation on BETA
ContainerCheckpoint on BETA
ContainerRestartRules on BETA
ContainerStopSignals off ALPHA
CrossNamespaceVolumeDataSource off ALPHA
CustomCPUCFSQuotaPeriod on GA
CustomResourceFieldSelectors on GA locked
DeclarativeValidation on GA locked
DeclarativeValidationBeta on BETA: DeclarativeValidation
DeclarativeValidationTakeover off DEPRECATED: DeclarativeValidation
DeploymentReplicaSetTerminatingReplicas on BETA
DetectCacheInconsistency on BETA
DisableAllocatorDualWrite on GA locked: MultiCIDRServiceAllocator
DisableCPUQuotaWithExclusiveCPUs on DEPRECATED
DisableNodeKubeProxyVersion on DEPRECATED locked
EnvFiles on BETA
EventedPLEG off ALPHA
ExecProbeTimeout on GA locked
ExtendWebSocketsToKubelet on BETA: NodeDeclaredFeatures
ExternalServiceAccountTokenSigner on GA locked
GitRepoVolumeDriver on DEPRECATED locked
GracefulNodeShutdown on BETA
GracefulNodeShutdownBasedOnPodPriority on BETA: GracefulNodeShutdown
HPAConfigurableTolerance on BETA
HPAScaleToZero off ALPHA
HostnameOverride on BETA
ImageMaximumGCAge on GA locked
ImageVolume on GA locked
ImageVolumeWithDigest off ALPHA: ImageVolume
InPlacePodVerticalScalingExclusiveMemory off ALPHA: InPlacePodVerticalScaling
InPlacePodVerticalScalingInitContainers on BETA: InPlacePodVerticalScaling NodeDeclaredFeatures
JobBackoffLimitPerIndex on GA locked
JobManagedBy on GA locked
JobPodReplacementPolicy on GA locked
JobSuccessPolicy on GA locked
KMSv1 off DEPRECATED
KubeletCgroupDriverFromCRI on GA locked
KubeletCrashLoopBackOffMax on BETA
KubeletEnsureSecretPulledImages on BETA
KubeletFineGrainedAuthz on GA locked
KubeletInUserNamespace off ALPHA
KubeletPSI on GA locked
KubeletPodResourcesDynamicResources on GA locked
KubeletPodResourcesGet on GA locked
KubeletPodResourcesListUseActivePods on DEPRECATED
KubeletRegistrationGetOnExistsOnly off DEPRECATED
KubeletSeparateDiskGC on BETA
KubeletServiceAccountTokenForCredentialProviders on BETA
KubeletTracing on GA locked
ListFromCacheSnapshot on BETA
LocalStorageCapacityIsolationFSQuotaMonitoring off BETA
LogarithmicScaleDown on GA locked
ManifestBasedAdmissionControlConfig off ALPHA
MaxUnavailableStatefulSet off BETA
MemoryQoS off ALPHA
MultiCIDRServiceAllocator on GA locked
MutableCSINodeAllocatableCount on GA locked
MutablePVNodeAffinity off ALPHA
MutablePodResourcesForSuspendedJobs on BETA
MutableSchedulingDirectivesForSuspendedJobs on BETA
MutatingAdmissionPolicy on GA
NFTablesProxyMode on GA locked
NodeLogQuery on GA locked
NodeSwap on GA locked
OpenAPIEnums on BETA
OrderedNamespaceDeletion on GA locked
PLEGOnDemandRelist on BETA
PersistentVolumeClaimUnusedSinceTime off ALPHA
PodAndContainerStatsFromCRI off ALPHA
PodCertificateRequest off BETA: AuthorizeNodeWithSelectors
PodDeletionCost on BETA
PodLevelResourceManagers off ALPHA: PodLevelResources
PodLifecycleSleepAction on GA locked
PodLifecycleSleepActionAllowZero on GA locked: PodLifecycleSleepAction
PodLogsQuerySplitStreams off ALPHA
PodReadyToStartContainersCondition on BETA
PodTopologyLabelsAdmission on BETA
PodsAPI off ALPHA
PortForwardWebsockets on BETA
PreferSameTrafficDistribution on GA locked
PreventStaticPodAPIReferences on BETA
ProcMountType on GA locked: UserNamespacesSupport
QOSReserved off ALPHA
RecoverVolumeExpansionFailure on GA locked
RecursiveReadOnlyMounts on GA locked
ReduceDefaultCrashLoopBackOffDecay off ALPHA
RelaxedDNSSearchValidation on GA locked
RelaxedEnvironmentVariableValidation on GA locked
RelaxedServiceNameValidation on BETA
ReloadKubeletClientCAFile on BETA
ReloadKubeletServerCertificateFile on BETA
ResilientWatchCacheInitialization on GA locked
ResourceHealthStatus on BETA: DynamicResourceAllocation
ResourceHealthStatusMessage on BETA: ResourceHealthStatus
RestartAllContainersOnContainerExits on BETA: ContainerRestartRules NodeDeclaredFeatures
RetryGenerateName on GA locked
RotateKubeletServerCertificate on BETA
RuntimeClassInImageCriApi off ALPHA
SELinuxChangePolicy on GA locked
SELinuxMount off BETA
SELinuxMountReadWriteOncePod on GA locked
SeparateCacheWatchRPC on DEPRECATED locked
SeparateTaintEvictionController on GA locked
ServiceAccountNodeAudienceRestriction on BETA
ServiceAccountTokenJTI on GA locked
ServiceAccountTokenNodeBinding on GA locked: ServiceAccountTokenNodeBindingValidation
ServiceAccountTokenNodeBindingValidation on GA locked
ServiceAccountTokenPodNodeInfo on GA locked
ServiceCIDRStatusFieldWiping on DEPRECATED
ShardedListAndWatch off ALPHA
SizeBasedListCostEstimate on BETA
StaleControllerConsistencyDaemonSet on BETA: AtomicFIFO
StaleControllerConsistencyJob on BETA: AtomicFIFO
StaleControllerConsistencyReplicaSet on BETA: AtomicFIFO
StaleControllerConsistencyStatefulSet on BETA: AtomicFIFO
StatefulSetSemanticRevisionComparison on BETA
StorageNamespaceIndex on DEPRECATED
StorageVersionAPI off ALPHA: APIServerIdentity
StorageVersionHash on BETA
StorageVersionMigrator off BETA
StreamingCollectionEncodingToJSON on GA locked
StreamingCollectionEncodingToProtobuf on GA locked
StrictIPCIDRValidation on BETA
StructuredAuthenticationConfiguration on GA locked
StructuredAuthenticationConfigurationEgressSelector on BETA: StructuredAuthenticationConfiguration
StructuredAuthenticationConfigurationJWKSMetrics on BETA: StructuredAuthenticationConfiguration
SupplementalGroupsPolicy on GA locked
SystemdWatchdog on GA locked
TokenRequestServiceAccountUIDValidation on BETA
TopologyManagerPolicyAlphaOptions off ALPHA
TopologyManagerPolicyBetaOptions on BETA
TopologyManagerPolicyOptions on GA locked
TranslateStreamCloseWebsocketRequests on BETA
UnauthenticatedHTTP2DOSMitigation on BETA
UnknownVersionInteroperabilityProxy on BETA: APIServerIdentity
UserNamespacesHostNetworkSupport off ALPHA: UserNamespacesSupport NodeDeclaredFeatures
UserNamespacesSupport on GA locked
WatchCacheInitializationPostStartHook on BETA
WatchList on BETA
WinDSR on GA locked
WinOverlay on GA locked
WindowsCPUAndMemoryAffinity off ALPHA
WindowsGracefulNodeShutdown on BETA: GracefulNodeShutdown
WindowsHostNetwork off DEPRECATED
"""


def _parsed(line: str) -> GateSpec:
    gate, _, depends_on = line.partition(": ")
    name, state, stage, *locked = gate.split()
    return GateSpec(name, state == "on", Stage[stage], bool(locked), tuple(depends_on.split()))


OTHER_GATES = tuple(map(_parsed, _OTHER_GATES.strip().splitlines()))
"""The gates of other components; known so that one flag can configure a whole cluster."""

GATES = {gate.name: gate for gate in (*SCHEDULER_GATES, *OTHER_GATES)}
