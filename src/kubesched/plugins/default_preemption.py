"""DefaultPreemption: make room for a pod by evicting pods of lower priority.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption (v1.36)
Reads:    pod.spec.priority, preemptionPolicy, schedulingGroup, status.nominatedNodeName; pods on
          nodes; PodDisruptionBudgets; PodGroups
Rejects:  Unschedulable if the pod or group may not preempt, or if evicting helps on no node.
Differs:  uses the pod of the cycle, where upstream reads it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from kubesched.api.field_errors import FieldError, child, invalid
from kubesched.api.integers import Int32
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.scheduling import PodGroup
from kubesched.config.args import PluginArgs
from kubesched.config.validation import validate_range
from kubesched.framework.cluster_event import POD, Action, ClusterEventWithHint, retry_on
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    Decides,
    NeededKind,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
)
from kubesched.framework.pod_groups import PodGroupPostFilterPlugin, PodGroupTrial, pod_group_of
from kubesched.framework.preemption.budgets import DisruptionBudgets
from kubesched.framework.preemption.candidates import find_candidates
from kubesched.framework.preemption.eligibility import has_lower_priority_pods, why_not_eligible
from kubesched.framework.preemption.group_victims import choose_group_victims
from kubesched.framework.preemption.report import PreemptionReport
from kubesched.framework.preemption.verdict_memory import VerdictMemory
from kubesched.framework.preemption.victims import Question
from kubesched.framework.status import SUCCESS, NodeToStatus, Status, unresolvable
from kubesched.plugins.shared.template_memo import TemplateMemo
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_TEMPLATES_MAX: Final = 8
"""The results of so many templates are kept; each has an entry per node."""
_GROUP_MISSING: Final = "pod group for pod not found"
_GROUP_PLACED: Final = "not eligible due to placement-based pod group scheduling limitation"
_GROUP_PREEMPTS: Final = "not eligible due to workload aware preemption enabled"


class DefaultPreemptionArgs(PluginArgs, frozen=True, kw_only=True):
    """How many candidates the dry run looks for.

    Attributes:
        min_candidate_nodes_percentage: The minimum number of candidates to find, as a percentage of
            the nodes where evicting may help.
        min_candidate_nodes_absolute: The minimum number; the larger of both counts.
    """

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def wanted_among(self, potential_nodes: int) -> int:
        """Return the number of candidates that ends the dry run."""
        share = potential_nodes * self.min_candidate_nodes_percentage // 100
        return min(potential_nodes, max(share, self.min_candidate_nodes_absolute))

    def errors(self, path: str) -> Iterable[FieldError]:
        """Yield errors of numbers that are out of range, or both 0."""
        percentage = self.min_candidate_nodes_percentage
        absolute = self.min_candidate_nodes_absolute
        percentage_path = child(path, "minCandidateNodesPercentage")
        absolute_path = child(path, "minCandidateNodesAbsolute")
        yield from validate_range(percentage, percentage_path, 100)
        if absolute < 0:
            yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
        if percentage == absolute == 0:
            words = "cannot be zero at the same time as"
            yield invalid(percentage_path, percentage, f"{words} minCandidateNodesAbsolute")
            yield invalid(absolute_path, absolute, f"{words} minCandidateNodesPercentage")


class DefaultPreemption(PreEnqueuePlugin, PostFilterPlugin, PodGroupPostFilterPlugin):
    """Choose the node where evicting does the least harm; the scheduler's loop evicts the pods."""

    name: ClassVar = "DefaultPreemption"
    args_type: ClassVar = DefaultPreemptionArgs
    per_template: ClassVar = True
    waiting: ClassVar = unresolvable("waiting for the preemption for this pod to be finished")
    group_waiting: ClassVar = unresolvable(
        "waiting for the preemption for this pod group to be finished"
    )

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._args = args
        gates = handle.feature_gates
        self._is_asynchronous = gates.enabled("SchedulerAsyncPreemption")
        self._places_groups = gates.enabled("TopologyAwareWorkloadScheduling")
        self._groups_preempt = gates.enabled("WorkloadAwarePreemption")
        self._verdicts = VerdictMemory()
        # Without pods of lower priority: the last result of a template.
        self._without_victims: TemplateMemo[PostFilterResult] = TemplateMemo(_TEMPLATES_MAX)
        self._budgets: tuple[tuple[Objects, int], DisruptionBudgets] | None = None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return pod deletions, which may open the gate of `pre_enqueue`."""
        if not self._is_asynchronous:
            return ()
        return (retry_on(POD, Action.DELETE, _never, per_template=True),)

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return PodDisruptionBudgets, which protect victims."""
        yield NeededKind(PodDisruptionBudget, "they protect pods from eviction", Decides.VICTIMS)

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Reject the pod while its victims are being evicted."""
        if not self._is_asynchronous:
            return SUCCESS
        is_preempting = self.handle.services.is_preempting
        if self._groups_preempt and pod.spec.scheduling_group is not None:
            group = pod_group_of(pod, snapshot.objects)
            waits = group is not None and is_preempting(group.metadata.uid)
            return self.group_waiting if waits else SUCCESS
        return self.waiting if is_preempting(pod.uid) else SUCCESS

    def still_gates(self, pods: Sequence[PodInfo], snapshot: Snapshot) -> Sequence[bool]:
        """Return, per pod, whether its victims are still being evicted."""
        if self._groups_preempt:
            return super().still_gates(pods, snapshot)
        is_preempting = self.handle.services.is_preempting
        return [is_preempting(pod.uid) for pod in pods]

    def post_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeToStatus
    ) -> PostFilterResult:
        """Return the node to nominate and the pods to evict there."""
        # Without lower-priority pods, the result depends on the statuses and the template alone.
        depends_on_more = pod.spec.scheduling_group or pod.pod.status.nominated_node_name

        def decide() -> PostFilterResult:
            return self.decide(cycle, pod, snapshot, statuses).result(len(statuses))

        if depends_on_more or has_lower_priority_pods(pod, snapshot.nodes):
            return decide()
        return self._without_victims.get(pod.template, (statuses,), decide)

    async def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[PodInfo], snapshot: Snapshot, trial: PodGroupTrial
    ) -> PostFilterResult:
        """Return the pods of any node to evict so that the group fits."""
        return await choose_group_victims(group, pods, snapshot, trial)

    def decide(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeToStatus
    ) -> PreemptionReport:
        """Return the report with the decision and its reasons."""
        reason = self._why_group_hinders(pod, snapshot) or why_not_eligible(
            pod, snapshot.nodes, statuses
        )
        if reason:
            return PreemptionReport(reason=reason)
        budgets = self._budgets_of(snapshot.objects)
        question = Question(self.handle, cycle, pod, snapshot, budgets)
        return find_candidates(question, statuses, self._args.wanted_among, self._verdicts)

    def _budgets_of(self, objects: Objects) -> DisruptionBudgets:
        stamp = objects, objects.version(PodDisruptionBudget)
        if self._budgets is None or self._budgets[0] != stamp:
            before = None if self._budgets is None else self._budgets[1]
            self._budgets = stamp, DisruptionBudgets(objects, before)
        return self._budgets[1]

    def _why_group_hinders(self, pod: PodInfo, snapshot: Snapshot) -> str:
        if pod.spec.scheduling_group is None:
            return ""
        if self._places_groups:
            group = pod_group_of(pod, snapshot.objects)
            if group is None:
                return _GROUP_MISSING
            if group.spec.scheduling_constraints is not None:
                return _GROUP_PLACED
        return _GROUP_PREEMPTS if self._groups_preempt else ""


def _never(*_: object) -> bool:
    """Return False: the plugins that rejected the pod decide when to retry it."""
    return False
