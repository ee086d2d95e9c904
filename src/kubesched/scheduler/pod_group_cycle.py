"""The scheduling cycle of a pod group: try all its pods, then place all of them or none.

    gather    pop the other pods of the group, too
    try       place pod after pod tentatively: assume, reserve, Permit;
                  with topology, in one placement after another, keeping the best
    revert    undo the tentative placements in reverse order
    submit    if Permit let some pod pass: place each pod that found a node, to wait at Permit for
                  the others; requeue the rest
              if a pod has to preempt: requeue all, nominated to the nodes they found
              if Permit let no pod pass: requeue all, perhaps after evictions for the group
    report    write the group's condition PodGroupScheduled

Upstream: pkg/scheduler/schedule_one_podgroup.go (v1.36)
Reads:    pod.spec.schedulingGroup, priority; PodGroups
Invariants: no tentative placement outlives the cycle.
Differs:  pods are tried in the table itself, not in a copy, so changes of the cluster wait until
          the cycle has ended, and the anti-affinity of a tentatively placed pod applies to later
          pods also on nodes where upstream misses it; pods of equal priority that became ready at
          once, and placements, are tried in the order of their arrival, upstream in random order;
          an unknown group is reported, upstream loses the message; plugins cannot find out whether
          a cycle is a group's.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from kubesched.api.conditions import find_condition
from kubesched.api.scheduling import PodGroup
from kubesched.cache.pod_groups import PodGroupStore
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_groups import (
    Placement,
    PodGroupAssignments,
    pod_group_name_of,
    state_not_found,
)
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import Code, Status, failure, unschedulable
from kubesched.scheduler.decision import Failed, FailedAttempt, Placed, Rejected
from kubesched.scheduler.placement_search import PlacementSearch
from kubesched.scheduler.pod_group_outcome import (
    SCHEDULED,
    MemberAttempt,
    Outcome,
    condition_of,
    final_attempt,
    outcome_of,
    refused,
)
from kubesched.scheduler.pod_group_preemption import preempt_for_group
from kubesched.scheduler.pod_scheduling import PodScheduling
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.pod_info import PodInfo

log = logging.getLogger(__name__)


class PodGroupCycle:
    """Schedules pods that belong to groups, a group at a time."""

    def __init__(self, steps: PodScheduling, pod_groups: PodGroupStore) -> None:
        """Set up with the steps of one pod and the states of all pod groups."""
        self._steps = steps
        self._pod_groups = pod_groups

    async def run(self, queued: QueuedPodInfo) -> None:
        """Schedule the group of a popped pod."""
        pod = queued.pod_info
        name = pod_group_name_of(pod.pod)
        members = self._gather(queued, name)
        if members is None:
            text = state_not_found(pod.namespace, name)
            status = failure(f"error while retrieving pod group state: {text}")
            self._fail_all([queued], status, nominated_node_name=None)
            return
        profile = self._profile_of(members)
        if isinstance(profile, Status):
            self._fail_all(members, profile, nominated_node_name="")
            return
        members = [one for one in members if not self._steps.skip(one.pod_info)]
        if not members:
            return
        started = self._steps.now()
        outcome = await self._try(pod.namespace, name, members, profile)
        for observer in self._steps.observers:
            observer.pod_group_tried(profile.scheduler_name, started, self._steps.now())
        if outcome.status.code is Code.UNSCHEDULABLE:
            outcome = await self._preempt(pod, name, members, outcome, profile)
        self._submit(members, outcome, profile)
        for observer in self._steps.observers:
            observer.pod_group_decided(profile.scheduler_name, outcome, started, self._steps.now())
        self._report(pod.namespace, name, outcome.status)

    # Gather.

    def _gather(self, queued: QueuedPodInfo, name: str) -> list[QueuedPodInfo] | None:
        """Pop the other pods of the group; return all members in the order of trying."""
        state = self._pod_groups.get(queued.pod_info.namespace, name)
        if state is None:
            return None
        members = [queued]
        now = self._steps.now()
        for other in state.unscheduled_pods:
            if other.name != queued.pod_info.name:
                popped = self._steps.queue.pop_specific_pod(other, now)
                if popped is not None:
                    members.append(popped)
        return sorted(members, key=_order)

    def _profile_of(self, members: Sequence[QueuedPodInfo]) -> Profile | Status:
        """Return the one profile of all members, or a failure."""
        first = members[0].pod_info.scheduler_name
        for member in members:
            name = member.pod_info.scheduler_name
            if name != first:
                return failure(
                    "all pods in a single pod group should have the same .spec.schedulerName set, "
                    f'got: "{name}" and "{first}"'
                )
        profile = self._steps.profiles.get(first)
        return profile or failure(f'profile not found for scheduler name "{first}"')

    def _fail_all(
        self, members: Sequence[QueuedPodInfo], status: Status, nominated_node_name: str | None
    ) -> None:
        for member in members:
            if member.pod_info.scheduler_name not in self._steps.profiles:
                log.error("Pod %s names an unknown scheduler", member.pod_info.key)
                self._steps.done(member.pod_info.uid)
                continue
            now = self._steps.now()
            self._steps.notify_decided(Failed(member.pod_info, status), now)
            self._steps.fail(FailedAttempt(member, status, None, now), nominated_node_name)

    # Try.

    async def _try(
        self, namespace: str, name: str, members: Sequence[QueuedPodInfo], profile: Profile
    ) -> Outcome:
        """Try all nodes, or placement after placement, and return the best outcome."""
        if not profile.feature_gates.enabled("TopologyAwareWorkloadScheduling"):
            return await self._try_pods(members, profile)
        search = PlacementSearch(self._steps.cache, profile, namespace, name)
        generated = search.generate()
        if not generated.status.is_success:
            return Outcome(generated.status, ())
        restriction = self._steps.cycles[profile.scheduler_name].restriction
        outcomes: list[Outcome] = []
        for placement in generated.placements:
            restriction.rows = search.rows_of(placement)
            try:
                outcome = await self._try_pods(members, profile)
            finally:
                restriction.rows = None
            if outcome.status.code is Code.ERROR:
                return outcome
            outcomes.append(outcome)
        return _best(search, generated.placements, outcomes)

    async def _try_pods(self, members: Sequence[QueuedPodInfo], profile: Profile) -> Outcome:
        """Place pod after pod tentatively, then undo all."""
        attempts: list[MemberAttempt] = []
        try:
            for member in members:
                attempt = await self._attempt(member, profile)
                attempts.append(attempt)
                if attempt.status.code is Code.ERROR:
                    text = attempt.status.message
                    status = failure(f"failed to schedule other pod from a pod group: {text}")
                    return Outcome(status, attempts)
            return outcome_of(attempts)
        finally:
            for attempt in reversed(attempts):
                self._revert(attempt, profile)

    async def _attempt(self, queued: QueuedPodInfo, profile: Profile) -> MemberAttempt:
        started = self._steps.now()
        decision = await self._steps.decide(queued.pod_info, profile)
        match decision:
            case Placed():
                attempt = MemberAttempt(queued, decision)
                attempt = self._place(attempt, decision.node_name, decision.cycle, profile)
            case Rejected():
                decision = await self._steps.preempt(decision, profile)
                nominated = decision.nominated_node_name
                attempt = MemberAttempt(
                    queued, decision, decision.status, nominated, decision.diagnosis
                )
                if nominated:
                    # The later pods see it where it will be when its victims are gone.
                    attempt = self._place(attempt, nominated, decision.cycle, profile)
            case Failed():
                attempt = MemberAttempt(queued, decision, decision.status)
        duration_seconds = self._steps.now() - started
        return msgspec.structs.replace(attempt, duration_seconds=duration_seconds)

    def _place(
        self, attempt: MemberAttempt, node_name: str, cycle: CycleState, profile: Profile
    ) -> MemberAttempt:
        """Assume the pod, run Reserve and Permit; on failure undo all."""
        pod = attempt.queued.pod_info
        found = self._steps.placer.place(profile, cycle, pod, node_name)
        if found.pod is not None:
            return msgspec.structs.replace(attempt, there=found.pod, permit=found.status)
        self._nominate_again(attempt)
        # Reserve or Permit failed on a single node.
        return msgspec.structs.replace(refused(attempt, found.status), diagnosis=None)

    def _revert(self, attempt: MemberAttempt, profile: Profile) -> None:
        decision, there = attempt.decision, attempt.there
        if there is None or isinstance(decision, Failed):
            return
        if self._steps.placer.undo(profile, decision.cycle, there):
            self._nominate_again(attempt)

    def _nominate_again(self, attempt: MemberAttempt) -> None:
        """Restore the pod's nomination, which assuming it has cleared."""
        pod = attempt.queued.pod_info
        if pod.pod.status.nominated_node_name:
            self._steps.queue.nominator.add(pod, pod.pod.status.nominated_node_name)

    # Preempt.

    async def _preempt(
        self,
        pod: PodInfo,
        name: str,
        members: Sequence[QueuedPodInfo],
        outcome: Outcome,
        profile: Profile,
    ) -> Outcome:
        """Evict pods for the group as a whole, if the feature is on and it helps."""
        if not profile.feature_gates.enabled("WorkloadAwarePreemption"):
            return outcome

        async def what_if() -> Status:
            return (await self._try(pod.namespace, name, members, profile)).status

        pods = tuple(member.pod_info for member in members)
        group = self._steps.cache.objects.get(PodGroup, name, pod.namespace)
        if group is None:
            cause = f'podgroup.scheduling.k8s.io "{name}" not found'
            status = failure(f"failed to get pod group object: {cause}")
        else:
            status = await preempt_for_group(self._steps, profile, group, pods, what_if)
        if status.is_success:
            return msgspec.structs.replace(outcome, waits_for_preemption=True)
        if not status.is_rejected:
            return msgspec.structs.replace(outcome, status=status)
        found = outcome.status
        reasons = (*found.reasons, status.message)
        return msgspec.structs.replace(
            outcome, status=msgspec.structs.replace(found, reasons=reasons)
        )

    # Submit.

    def _submit(self, members: Sequence[QueuedPodInfo], outcome: Outcome, profile: Profile) -> None:
        for attempt in outcome.attempts:
            started = self._steps.now() - attempt.duration_seconds
            decision = attempt.decision
            if isinstance(decision, Placed) and outcome.status.is_success:
                self._steps.notify_decided(decision, started)
                self._steps.place(decision, attempt.queued, profile, started)
            else:
                self._put_back(final_attempt(attempt, outcome), started)
        for member in members[len(outcome.attempts) :]:
            failed = Failed(member.pod_info, outcome.status)
            nominated = None if outcome.status.is_rejected else ""
            untried = MemberAttempt(member, failed, outcome.status, nominated)
            self._put_back(untried, self._steps.now())

    def _put_back(self, attempt: MemberAttempt, started: float) -> None:
        self._steps.notify_decided(attempt.decision, started)
        failed = FailedAttempt(attempt.queued, attempt.status, attempt.diagnosis, started)
        self._steps.fail(failed, attempt.nominated_node_name)

    # Report.

    def _report(self, namespace: str, name: str, status: Status) -> None:
        """Write the group's condition; a group that was scheduled once keeps it."""
        group = self._steps.cache.objects.get(PodGroup, name, namespace)
        if group is None:
            log.error("Pod group %s/%s was deleted; its status is not written", namespace, name)
            return
        condition = condition_of(status)
        known = find_condition(group.status.conditions, SCHEDULED)
        if known is not None:
            if known.status == "True" and condition.status != "True":
                return
            is_observed = known.observed_generation == group.metadata.generation
            written = (SCHEDULED, known.status, known.reason, known.message)
            if is_observed and written == msgspec.structs.astuple(condition):
                return
        self._steps.status_writer.write_pod_group(group, condition)


def _order(queued: QueuedPodInfo) -> tuple[int, int]:
    """Sort by falling priority, then by the first entry into the active queue."""
    return -queued.pod_info.priority, queued.initial_attempt


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
        return msgspec.structs.replace(first, status=unschedulable(text))
    if len(fitting) == 1:
        return fitting[0][1]
    assignments = [
        PodGroupAssignments(placement, outcome.proposed) for placement, outcome in fitting
    ]
    chosen = search.best(assignments)
    return Outcome(chosen, ()) if isinstance(chosen, Status) else fitting[chosen][1]
