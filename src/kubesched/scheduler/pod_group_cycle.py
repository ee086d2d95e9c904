"""The scheduling cycle of a pod group: try all its pods, then place all of them or none.

    gather    pop the other pods of the group, too
    try       place pod after pod tentatively: assume, reserve, Permit;
                  with topology, in one placement after another, keeping the best
    revert    undo the tentative placements in reverse order
    submit    if Permit let some pod pass: place each pod that found a node, to wait at Permit for
                  the others; requeue the rest
              if a pod has to preempt: requeue all, nominated to the nodes they found
              if Permit let no pod pass: requeue all, perhaps after evictions for the group, whose
                  victims DefaultPreemption finds
    report    write the group's condition PodGroupScheduled

Upstream: pkg/scheduler/schedule_one_podgroup.go;
          pkg/scheduler/backend/cache/snapshot.go, BackupSnapshot (v1.36)
Reads:    pod.spec.schedulingGroup, priority; PodGroups
Rejects:  Unschedulable if the group would have to preempt and has topology constraints, or
          DefaultPreemption does not run.
Invariants: no tentative placement outlives the cycle; the search for victims leaves the table as it
          was, down to the order of the pods of a row.
Differs:  pods, and evictions for a group, are tried in the table itself, not in a copy, so changes
          of the cluster wait until the cycle has ended, and the affinity and anti-affinity of a
          tentatively placed pod count for later pods also on nodes where upstream misses them;
          pods of equal priority that became ready at once, and placements, are tried in the order
          of their arrival, upstream in random order; an unknown group is reported, upstream loses
          the message; plugins cannot find out whether a cycle is a group's.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from kubesched.api.scheduling import PodGroup
from kubesched.framework.phase_timer import POST_FILTER
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.pod_groups import (
    Placement,
    PodGroupAssignments,
    pod_group_name_of,
    state_not_found,
)
from kubesched.framework.preemption.group_victims import group_priority
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import SUCCESS, Code, Status, failure, unschedulable
from kubesched.scheduler.decision import Failed, FailedAttempt, Placed, Rejected
from kubesched.scheduler.eviction import Preemption, Preemptor
from kubesched.scheduler.placement_search import PlacementSearch
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.pod_group_outcome import (
    MemberAttempt,
    Outcome,
    condition_of,
    final_attempt,
    outcome_of,
    refused,
)
from kubesched.scheduler.pod_scheduling import PodScheduling
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo

TARGET: Final = "cluster"
"""Used in place of a node name when a group preempts."""

NOT_REGISTERED: Final = (
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
HAS_CONSTRAINTS: Final = (
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)

log = logging.getLogger(__name__)


async def schedule_pod_group(steps: PodScheduling, queued: QueuedPodInfo) -> None:
    """Schedule the group of a popped pod."""
    members = _gather(steps, queued)
    if isinstance(members, Status):
        _fail_all(steps, [queued], members, nominated_node_name=None)
        return
    profile = _profile_of(steps, members)
    if isinstance(profile, Status):
        _fail_all(steps, members, profile, nominated_node_name="")
        return
    members = [member for member in members if not steps.skip(member.pod_info)]
    if members:
        await PodGroupCycle(steps, profile, members).run()


# Gather.


def _gather(steps: PodScheduling, queued: QueuedPodInfo) -> list[QueuedPodInfo] | Status:
    """Pop the other pods of the group; return all members in the order of trying."""
    pod, name = queued.pod_info, pod_group_name_of(queued.pod_info.pod)
    state = steps.cache.pod_groups.get(pod.namespace, name)
    if state is None:
        text = state_not_found(pod.namespace, name)
        return failure(f"error while retrieving pod group state: {text}")
    now = steps.now()
    others = [other for other in state.unscheduled_pods if other.name != pod.name]
    popped = [queued, *(steps.queue.pop_specific_pod(other, now) for other in others)]
    members = [member for member in popped if member is not None]
    for member in members:
        # They are in no queue until the cycle ends.
        steps.queue.nominator.strip_pod(member.pod_info.uid)
    return sorted(members, key=_order)


def _order(queued: QueuedPodInfo) -> tuple[int, int]:
    """Sort by falling priority, then by the first entry into the active queue."""
    return -queued.pod_info.priority, queued.initial_attempt


def _profile_of(steps: PodScheduling, members: Sequence[QueuedPodInfo]) -> Profile | Status:
    """Return the one profile of all members, or a failure."""
    first = members[0].pod_info.scheduler_name
    for member in members:
        name = member.pod_info.scheduler_name
        if name != first:
            return failure(
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{name}" and "{first}"'
            )
    profile = steps.profiles.get(first)
    return profile or failure(f'profile not found for scheduler name "{first}"')


def _fail_all(
    steps: PodScheduling,
    members: Sequence[QueuedPodInfo],
    status: Status,
    nominated_node_name: str | None,
) -> None:
    for member in members:
        if member.pod_info.scheduler_name not in steps.profiles:
            log.error("Pod %s names an unknown scheduler", member.pod_info.key)
            steps.done(member.pod_info.uid)
            continue
        now = steps.now()
        steps.notify_decided(Failed(member.pod_info, status), now)
        steps.fail(FailedAttempt(member, status, None, now), nominated_node_name)


class PodGroupCycle:
    """One cycle of a pod group."""

    def __init__(
        self, steps: PodScheduling, profile: Profile, members: Sequence[QueuedPodInfo]
    ) -> None:
        """Set up for a group's popped pods, all of one profile, in the order of trying."""
        first = members[0].pod_info
        self._steps = steps
        self._profile = profile
        self._members = members
        self._namespace, self._name = first.namespace, pod_group_name_of(first.pod)
        self._group = steps.cache.objects.get(PodGroup, self._name, self._namespace)

    async def run(self) -> None:
        """Try the members, place or requeue them, and write the group's condition."""
        steps, scheduler_name = self._steps, self._profile.scheduler_name
        started = steps.now()
        outcome = await self._try()
        for observer in steps.observers:
            observer.pod_group_tried(scheduler_name, started, steps.now())
        if outcome.status.code is Code.UNSCHEDULABLE:
            outcome = await self._preempt(outcome)
        self._submit(outcome)
        for observer in steps.observers:
            observer.pod_group_decided(scheduler_name, outcome, started, steps.now())
        self._report(outcome.status)

    # Try.

    async def _try(self) -> Outcome:
        """Try all nodes, or placement after placement, and return the best outcome."""
        if not self._profile.feature_gates.enabled("TopologyAwareWorkloadScheduling"):
            return await self._try_members()
        search = PlacementSearch(self._steps.cache, self._profile, self._namespace, self._name)
        generated = search.generate()
        if not generated.status.is_success:
            return Outcome(generated.status, ())
        restriction = self._steps.cycles[self._profile.scheduler_name].restriction
        outcomes: list[Outcome] = []
        for placement in generated.placements:
            with restriction.to(search.rows_of(placement)):
                outcome = await self._try_members()
            if outcome.status.code is Code.ERROR:
                return outcome
            outcomes.append(outcome)
        return _best(search, generated.placements, outcomes)

    async def _try_members(self) -> Outcome:
        """Place pod after pod tentatively, then undo all."""
        attempts: list[MemberAttempt] = []
        try:
            for member in self._members:
                attempt = await self._attempt(member)
                attempts.append(attempt)
                if attempt.status.code is Code.ERROR:
                    text = attempt.status.message
                    status = failure(f"failed to schedule other pod from a pod group: {text}")
                    return Outcome(status, attempts)
            return outcome_of(attempts)
        finally:
            for attempt in reversed(attempts):
                self._revert(attempt)

    async def _attempt(self, queued: QueuedPodInfo) -> MemberAttempt:
        started = self._steps.now()
        decision = await self._steps.decide(queued.pod_info, self._profile)
        match decision:
            case Placed():
                attempt = self._place(MemberAttempt(queued, decision), decision.node_name)
            case Rejected():
                decision = await self._steps.preempt(decision, self._profile)
                nominated = decision.nominated_node_name
                attempt = MemberAttempt(
                    queued, decision, decision.status, nominated, decision.diagnosis
                )
                if nominated:
                    # The later pods see it where it will be when its victims are gone.
                    attempt = self._place(attempt, nominated)
            case Failed():
                attempt = MemberAttempt(queued, decision, decision.status)
        return replace(attempt, duration_seconds=self._steps.now() - started)

    def _place(self, attempt: MemberAttempt, node_name: str) -> MemberAttempt:
        """Assume the pod, run Reserve and Permit; on failure undo all."""
        decision = attempt.decision
        assert not isinstance(decision, Failed), "a failed pod has no node"
        found = self._steps.placer.place(self._profile, decision.cycle, decision.pod, node_name)
        if found.pod is not None:
            return replace(attempt, assumed=found.pod, permit=found.status)
        self._nominate_again(attempt)
        # Reserve or Permit failed on a single node.
        return replace(refused(attempt, found.status), diagnosis=None)

    def _revert(self, attempt: MemberAttempt) -> None:
        decision, assumed = attempt.decision, attempt.assumed
        if assumed is None or isinstance(decision, Failed):
            return
        if self._steps.placer.undo(self._profile, decision.cycle, assumed):
            self._nominate_again(attempt)

    def _nominate_again(self, attempt: MemberAttempt) -> None:
        """Restore the pod's nomination, which assuming it has cleared."""
        pod, nominator = attempt.queued.pod_info, self._steps.queue.nominator
        if pod.pod.status.nominated_node_name:
            nominator.add(pod, pod.pod.status.nominated_node_name)
            nominator.strip_pod(pod.uid)

    # Preempt.

    async def _preempt(self, outcome: Outcome) -> Outcome:
        """Evict pods for the group as a whole, if the feature is on and it helps."""
        if not self._profile.feature_gates.enabled("WorkloadAwarePreemption"):
            return outcome
        if self._group is None:
            cause = f'podgroup.scheduling.k8s.io "{self._name}" not found'
            status = failure(f"failed to get pod group object: {cause}")
        else:
            status = await self._evict_for(self._group)
        if status.is_success:
            return replace(outcome, waits_for_preemption=True)
        if not status.is_rejected:
            return replace(outcome, status=status)
        found = outcome.status
        return replace(outcome, status=replace(found, reasons=(*found.reasons, status.message)))

    async def _evict_for(self, group: PodGroup) -> Status:
        """Evict the victims found; return success if the group then fits, else the rejection."""
        if not self._profile.pod_group_post_filter_plugins:
            return unschedulable(NOT_REGISTERED)
        constraints = group.spec.scheduling_constraints
        if constraints is not None and constraints.topology:
            return unschedulable(HAS_CONSTRAINTS)
        pods = tuple(member.pod_info for member in self._members)
        result = await self._find_victims(group, pods)
        if not result.status.is_success:
            return result.status
        metadata, priority = group.metadata, group_priority(group)
        preemptor = Preemptor("podgroup", metadata.uid, metadata.key, priority, pods)
        preemption = Preemption(preemptor, TARGET, result.victims, self._profile.scheduler_name)
        error = await self._steps.evictions.carry_out(preemption)
        return failure(error) if error else SUCCESS

    async def _find_victims(self, group: PodGroup, pods: Sequence[PodInfo]) -> PostFilterResult:
        steps, profile = self._steps, self._profile
        plugin = profile.pod_group_post_filter_plugins[0]
        snapshot = steps.cache.snapshot(steps.queue.nominator)
        restriction = steps.cycles[profile.scheduler_name].restriction
        trial = Trial(steps.cache.nodes, self._try)
        try:
            with restriction.without_post_filters():
                return await profile.ask_async(
                    POST_FILTER, plugin, plugin.pod_group_post_filter, group, pods, snapshot, trial
                )
        except PluginFailure as failed:
            return PostFilterResult(failed.status)
        finally:
            trial.restore()

    # Submit.

    def _submit(self, outcome: Outcome) -> None:
        for attempt in outcome.attempts:
            started = self._steps.now() - attempt.duration_seconds
            decision = attempt.decision
            if isinstance(decision, Placed) and outcome.status.is_success:
                self._steps.notify_decided(decision, started)
                self._steps.place(decision, attempt.queued, self._profile, started)
            else:
                self._put_back(final_attempt(attempt, outcome), started)
        for member in self._members[len(outcome.attempts) :]:
            failed = Failed(member.pod_info, outcome.status)
            nominated = None if outcome.status.is_rejected else ""
            untried = MemberAttempt(member, failed, outcome.status, nominated)
            self._put_back(untried, self._steps.now())

    def _put_back(self, attempt: MemberAttempt, started: float) -> None:
        self._steps.notify_decided(attempt.decision, started)
        failed = FailedAttempt(attempt.queued, attempt.status, attempt.diagnosis, started)
        self._steps.fail(failed, attempt.nominated_node_name)

    # Report.

    def _report(self, status: Status) -> None:
        """Write the group's condition."""
        if self._group is None:
            where = f"{self._namespace}/{self._name}"
            log.error("Pod group %s was deleted; its status is not written", where)
        else:
            self._steps.status_writer.write_pod_group(self._group, condition_of(status))


class Trial:
    """Removes pods from the table tentatively, to see whether the group would fit."""

    def __init__(self, nodes: NodeColumns, try_group: Callable[[], Awaitable[Outcome]]) -> None:
        self._nodes = nodes
        self._try_group = try_group
        self._before: dict[int, list[PodInfo]] = {}

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Remove pods from their rows."""
        for pod in pods:
            row = self._nodes.row_of[pod.node_name]
            self._before.setdefault(row, list(self._nodes.pods[row].values()))
            self._nodes.remove_pod(pod, row)

    def put_back(self, pods: Iterable[PodInfo]) -> None:
        """Put removed pods back on their rows."""
        for pod in pods:
            self._nodes.add_pod(pod, self._nodes.row_of[pod.node_name])

    async def schedule(self) -> Status:
        """Try the group and return success if it would be scheduled."""
        return (await self._try_group()).status

    def restore(self) -> None:
        """Restore each row's pods in their original order."""
        for row, pods in self._before.items():
            for pod in list(self._nodes.pods[row].values()):
                self._nodes.remove_pod(pod, row)
            for pod in pods:
                self._nodes.add_pod(pod, row)
        self._before.clear()


def _best(
    search: PlacementSearch, placements: Sequence[Placement], outcomes: Sequence[Outcome]
) -> Outcome:
    """Return the outcome of the best placement; if none succeeds, the first with all messages."""
    fitting = [
        (placement, outcome)
        for placement, outcome in zip(placements, outcomes, strict=True)
        if outcome.status.is_success or outcome.waits_for_preemption
    ]
    if not fitting:
        first = outcomes[0]
        cause = first.status.error or first.status.message
        text = f"0/{len(placements)} placements are available, first placement status: {cause}"
        return replace(first, status=unschedulable(text))
    if len(fitting) == 1:
        return fitting[0][1]
    assignments = [
        PodGroupAssignments(placement, outcome.proposed) for placement, outcome in fitting
    ]
    chosen = search.best(assignments)
    return Outcome(chosen, ()) if isinstance(chosen, Status) else fitting[chosen][1]
