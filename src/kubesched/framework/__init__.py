"""The contract between the scheduler and its plugins: extension points, statuses, services.

Its names are what a plugin imports; they and their meaning stay within a major version.
"""

from kubesched.api.core import Namespace, Node, Pod
from kubesched.api.field_errors import FieldError, child, invalid, required
from kubesched.api.meta import KubeObject, KubeStruct
from kubesched.api.scheme import custom_resource
from kubesched.config.args import PluginArgs, decode_args
from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.cluster_event import (
    ASSIGNED_POD,
    NODE,
    POD,
    UNSCHEDULABLE_POD,
    WILDCARD,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    Filing,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import FilterReads, Handle
from kubesched.framework.per_row import NodeRow, PerRowFilter, PerRowScore
from kubesched.framework.plugin import (
    NODE_SCORE_MAX,
    NODE_SCORE_MIN,
    NOT_SHARED,
    PRE_FILTER_SKIP,
    PRE_SCORE_SKIP,
    UNSIGNED,
    BindPlugin,
    FilterPlugin,
    NeededKind,
    NoState,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    PreScoreResult,
    QueueSortPlugin,
    ReservePlugin,
    Scope,
    ScorePlugin,
    normalize_reversed,
    normalize_scores,
)
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from kubesched.framework.waiting_pods import WaitingPod, WaitingPods
from kubesched.snapshot.coded import Coded
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable, SelectedRows
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo, PodTemplate
from kubesched.snapshot.pod_sums import PodSum
from kubesched.snapshot.snapshot import Snapshot

__all__ = [
    "ASSIGNED_POD",
    "NODE",
    "NODE_SCORE_MAX",
    "NODE_SCORE_MIN",
    "NOT_SHARED",
    "POD",
    "PRE_FILTER_SKIP",
    "PRE_SCORE_SKIP",
    "SKIP",
    "SUCCESS",
    "UNSCHEDULABLE_POD",
    "UNSIGNED",
    "WILDCARD",
    "Action",
    "BindPlugin",
    "ClusterEvent",
    "ClusterEventWithHint",
    "Code",
    "Coded",
    "CycleState",
    "FeatureGates",
    "FieldError",
    "Filing",
    "FilterPlugin",
    "FilterReads",
    "Handle",
    "KubeObject",
    "KubeStruct",
    "Namespace",
    "NeededKind",
    "NoState",
    "Node",
    "NodeColumns",
    "NodeRow",
    "NodeTable",
    "NodeToStatus",
    "Objects",
    "PerRowFilter",
    "PerRowScore",
    "PermitPlugin",
    "Plugin",
    "PluginArgs",
    "Pod",
    "PodInfo",
    "PodSum",
    "PodTemplate",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "PreScoreResult",
    "QueueSortPlugin",
    "QueuedPodInfo",
    "ReservePlugin",
    "Scope",
    "ScorePlugin",
    "SelectedRows",
    "Snapshot",
    "Status",
    "WaitingPod",
    "WaitingPods",
    "child",
    "custom_resource",
    "decode_args",
    "failure",
    "invalid",
    "normalize_reversed",
    "normalize_scores",
    "required",
    "unresolvable",
    "unschedulable",
]
