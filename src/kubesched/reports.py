"""The records that answers are made of, with the documents that `-o json` prints.

Within `v1` fields are added, never removed or renamed.
"""

from kubesched.answers.cluster_comparison import (
    ClusterComparison,
    ClusterDifference,
    ComparedCluster,
    PodDifference,
    WorkloadDifference,
)
from kubesched.answers.cluster_view import ClusterView, PendingGroup, ViewedNodes
from kubesched.answers.documents import DOCUMENTS, schema_of
from kubesched.answers.drain import DrainedPod, DrainReport, PodFate
from kubesched.answers.fit import FitReport, MorePods, PodsOnNode, WorkloadFit
from kubesched.answers.missing_nodes import MissingNodes, NodesOfShape
from kubesched.answers.pod_outcomes import PodsWithoutNode, PreemptedPod
from kubesched.answers.room import Room, StoppingReason
from kubesched.answers.top import PendingRequests, ResourceRequests, TopGroup, TopReport, TopRow
from kubesched.answers.trial import ChangeKind, SuggestedChange
from kubesched.answers.upgrade import CompactReport, NodesAtOnce, NodeThatBlocks, UpgradeReport
from kubesched.answers.whatif import ClusterUse, MovedPod, WhatIfReport
from kubesched.answers.why import Cause, CauseExample, LastAttempt, PodState, WhyReport
from kubesched.explain.decision_records import (
    DecisionRecord,
    DecisionRecords,
    EvictedPod,
    QueuePart,
    QueueState,
    RecordedOutcome,
)
from kubesched.explain.document import Document
from kubesched.explain.report import (
    Answer,
    NodeScore,
    NodeVerdict,
    NotHelped,
    PluginScore,
    PodExplanation,
    PodOutcome,
    PostFilterStep,
    PreemptionCandidate,
    PreemptionExplanation,
    PreFilterStep,
    RetryEvents,
    Unknown,
    Victim,
)
from kubesched.explain.shadow_report import (
    Disagreement,
    ReplayReport,
    ScoreDifference,
    ShadowReport,
    ShadowVerdict,
)
from kubesched.framework.plugin import Decides
from kubesched.simulator.playback import (
    NodeChanges,
    Playback,
    PlaybackNodes,
    PlaybackPods,
    PodReasons,
    WorkloadOnNodes,
)
from kubesched.simulator.report import (
    Eviction,
    Gated,
    Ignored,
    NodeUse,
    PodPlacement,
    ResourceUse,
    SimulationReport,
    Summary,
    Unplaced,
    ZoneUse,
)
from kubesched.simulator.series import SeriesValues
from kubesched.simulator.timeline_report import (
    Histogram,
    Measure,
    MoveCount,
    RequestCount,
    ResourceReport,
    Series,
    TimelineComparison,
    TimelineReport,
    Totals,
    WaitReport,
)

__all__ = [
    "DOCUMENTS",
    "Answer",
    "Cause",
    "CauseExample",
    "ChangeKind",
    "ClusterComparison",
    "ClusterDifference",
    "ClusterUse",
    "ClusterView",
    "CompactReport",
    "ComparedCluster",
    "Decides",
    "DecisionRecord",
    "DecisionRecords",
    "Disagreement",
    "Document",
    "DrainReport",
    "DrainedPod",
    "EvictedPod",
    "Eviction",
    "FitReport",
    "Gated",
    "Histogram",
    "Ignored",
    "LastAttempt",
    "Measure",
    "MissingNodes",
    "MorePods",
    "MoveCount",
    "MovedPod",
    "NodeChanges",
    "NodeScore",
    "NodeThatBlocks",
    "NodeUse",
    "NodeVerdict",
    "NodesAtOnce",
    "NodesOfShape",
    "NotHelped",
    "PendingGroup",
    "PendingRequests",
    "Playback",
    "PlaybackNodes",
    "PlaybackPods",
    "PluginScore",
    "PodDifference",
    "PodExplanation",
    "PodFate",
    "PodOutcome",
    "PodPlacement",
    "PodReasons",
    "PodState",
    "PodsOnNode",
    "PodsWithoutNode",
    "PostFilterStep",
    "PreFilterStep",
    "PreemptedPod",
    "PreemptionCandidate",
    "PreemptionExplanation",
    "QueuePart",
    "QueueState",
    "RecordedOutcome",
    "ReplayReport",
    "RequestCount",
    "ResourceReport",
    "ResourceRequests",
    "ResourceUse",
    "RetryEvents",
    "Room",
    "ScoreDifference",
    "Series",
    "SeriesValues",
    "ShadowReport",
    "ShadowVerdict",
    "SimulationReport",
    "StoppingReason",
    "SuggestedChange",
    "Summary",
    "TimelineComparison",
    "TimelineReport",
    "TopGroup",
    "TopReport",
    "TopRow",
    "Totals",
    "Unknown",
    "Unplaced",
    "UpgradeReport",
    "Victim",
    "ViewedNodes",
    "WaitReport",
    "WhatIfReport",
    "WhyReport",
    "WorkloadDifference",
    "WorkloadFit",
    "WorkloadOnNodes",
    "ZoneUse",
    "schema_of",
]
