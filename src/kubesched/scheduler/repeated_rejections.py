"""RepeatedRejections rejects pods again, together with all equal ones, when this changes nothing.

In a full cluster a pod that ends requeues all pending pods. The first takes its place, and the
others are rejected as before. If a rejection is remembered for all pods of a template
(`scheduler.rejection_memory`) and equals the last one of each of them, their attempts only have to
be counted: conditions and the order of the queue do not change.

Upstream: nothing like it; moves, attempts, events and metrics are those of single attempts in
          pkg/scheduler/schedule_one.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from functools import partial

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.scheduler.decision import Decision, FailedAttempt, Rejected, RejectedAgain
from kubesched.scheduler.extended_cycle import ExtendedCycle
from kubesched.scheduler.pod_scheduling import PodScheduling
from kubesched.scheduler.scheduling_log import log_failure, logs_failures


class RepeatedRejections:
    """Rejects the first pods of the queue again."""

    def __init__(self, steps: PodScheduling) -> None:
        self._steps = steps

    def carry_out(self) -> Decision | None:
        """Reject the next pods in one step, up to the first whose rejection is not a repeated one.

        Return what was decided about that pod, which is still queued; None if nothing was.
        """
        queue = self._steps.queue
        first = queue.peek()
        if first is None or not first.standing_message:
            return None
        rejections: dict[str, Rejected] = {}
        last: Decision | None = None

        def is_rejected(queued: QueuedPodInfo) -> bool:
            nonlocal last
            last = self._decide_again(queued)
            if not isinstance(last, Rejected) or not self._is_repeated(queued, last):
                return False
            rejections[queued.key] = last
            last = None
            return True

        taken = queue.take_again(is_rejected)
        if taken:
            now = self._steps.now()
            for queued in queue.try_again(taken, now):
                self._reject(queued, rejections[queued.key], now)
        return last

    def _decide_again(self, queued: QueuedPodInfo) -> Decision | None:
        """Decide about a pod whose last rejection still stands; None for other pods."""
        pod = queued.pod_info
        cycle = self._steps.cycles.get(pod.scheduler_name)
        if not queued.standing_message or cycle is None or isinstance(cycle, ExtendedCycle):
            return None
        return self._steps.decide_at_once(pod, cycle)

    def _is_repeated(self, queued: QueuedPodInfo, decision: Rejected) -> bool:
        """Whether a rejection is that of the last attempt, and that of all pods like this one."""
        return (
            decision.message == queued.standing_message
            and decision.diagnosis.unschedulable_plugins == queued.unschedulable_plugins
            and decision.diagnosis.pending_plugins == queued.pending_plugins
            and self._steps.cycles[queued.pod_info.scheduler_name].holds_for_template(decision)
        )

    def _reject(self, queued: QueuedPodInfo, rejected: Rejected, now: float) -> None:
        """Reject a pod and those that follow it; the queue is left as it is."""
        steps = self._steps
        pods = steps.queue.cohorts.size(queued)
        # The first was counted when it was decided.
        steps.cycles[queued.pod_info.scheduler_name].rejecting.count_again(rejected, pods - 1)
        attempt = FailedAttempt(queued, rejected.status, rejected.diagnosis, now)
        again = RejectedAgain(rejected, attempt, partial(steps.queue.cohorts.members, queued), pods)
        for observer in steps.observers:
            observer.rejected_again(again, now)
        if steps.records_events or logs_failures():
            for pod in steps.queue.cohorts.objects(queued):
                log_failure(pod, attempt)
                steps.record_failure(pod, attempt.message)
