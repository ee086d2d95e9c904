"""Outcomes: what became of the pods that a scheduler tried, kept up to date by its loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from kubesched.api.core import Pod
from kubesched.api.meta import controller_of
from kubesched.explain.details import awaited
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import NOBODY_REJECTED, Decision, FailedAttempt, Placed
from kubesched.scheduler.eviction import EvictionObserver, Preemption
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Observer
from kubesched.simulator.instant_server import InstantServer
from kubesched.simulator.report import Eviction, PodPlacement, Unplaced
from kubesched.snapshot.pod_info import PodInfo, uid_of


class Outcomes(Observer, EvictionObserver):
    """The last outcome of each pod that was tried, by uid.

    Attributes:
        placements: Pods that were bound and are still there, in the order of binding.
        unplaced: Pods whose last attempt failed, and which are still there.
        evictions: Evicted pods, in order.
        displaced: Pods that were bound and then deleted.
        had_choice: Bound pods with more than one feasible node.
        victims: The pods that were evicted for a pod; for a group, by the group's uid.
        attempts: Number of attempts by pod.
        failed_at: `server.changes` at the last failed attempt.
        on_attempt: Called after each attempt.
    """

    def __init__(self, scheduler: Scheduler, server: InstantServer) -> None:
        """Follow a scheduler and the server it writes to."""
        self.placements: dict[str, PodPlacement] = {}
        self.unplaced: dict[str, Unplaced] = {}
        self.evictions: list[Eviction] = []
        self.displaced: dict[str, None] = {}
        self.had_choice: set[str] = set()
        self.victims: dict[str, tuple[str, ...]] = {}
        self.attempts: Counter[str] = Counter()
        self.failed_at: dict[str, int] = {}
        self.on_attempt: Callable[[], None] = lambda: None
        self._nominated: set[str] = set()
        self._scheduler = scheduler
        self._server = server
        scheduler.steps.observers = (*scheduler.steps.observers, self)
        scheduler.evictions.observer = self
        server.on_pod_deleted = self._deleted

    def decided(self, decision: Decision, now: float) -> None:
        """Count the attempt."""
        uid = decision.pod.uid
        self.attempts[uid] += 1
        nominator = self._scheduler.queue.nominator
        if nominator and isinstance(decision, Placed):
            if nominator.node_of(uid) == decision.node_name:
                self._nominated.add(uid)
            else:
                self._nominated.discard(uid)
        self.on_attempt()

    def bound(self, assumed: Assumed, now: float) -> None:
        """Note the placement."""
        pod = assumed.pod
        self.unplaced.pop(pod.uid, None)
        if assumed.feasible > 1:
            self.had_choice.add(pod.uid)
        self.placements[pod.uid] = PodPlacement(
            pod.key,
            assumed.node_name,
            assumed.queued.attempts,
            pod.uid in self._nominated,
            self.victims.get(pod.uid, ()),
            awaited(assumed.profile, assumed),
        )

    def failed(self, attempt: FailedAttempt, now: float) -> None:
        """Note why the pod has no node."""
        queued, status, diagnosis = attempt.queued, attempt.status, attempt.diagnosis
        plugins = queued.rejecting_plugins
        if diagnosis is None or diagnosis is NOBODY_REJECTED:
            plugins = frozenset({status.plugin} if status.plugin else ())
        pod = queued.pod_info
        self.failed_at[pod.uid] = self._server.changes
        self.unplaced[pod.uid] = Unplaced(
            pod.key,
            attempt.message,
            reasons_of(attempt, len(self._scheduler.cache.nodes)),
            tuple(sorted(plugins)),
            queued.attempts,
            preempted=self.victims.get(pod.uid, ()),
            error=not status.is_rejected,
        )

    def evicted(self, victim: PodInfo, preemption: Preemption) -> None:
        """Note the eviction."""
        preemptor = preemption.preemptor
        earlier = self.victims.get(preemptor.uid, ())
        self.victims[preemptor.uid] = (*earlier, victim.key)
        controller = controller_of(victim.pod.metadata)
        self.evictions.append(
            Eviction(
                victim.key,
                victim.node_name,
                preemptor.key,
                victim.priority,
                f"{controller.kind} {controller.name}" if controller else "",
                victim.uid in self.displaced,
            )
        )

    def preempted(self, preemption: Preemption, started: float, *, is_success: bool) -> None:
        """Try the preemptor again, without backoff: its victims are gone."""
        self._scheduler.activate(preemption.preemptor.pods)

    def _deleted(self, pod: Pod) -> None:
        uid = uid_of(pod)
        self.unplaced.pop(uid, None)
        if self.placements.pop(uid, None) is not None:
            self.displaced[uid] = None


def reasons_of(attempt: FailedAttempt, num_all_nodes: int) -> tuple[str, ...]:
    """Return why an attempt failed: sorted reasons without numbers of nodes."""
    diagnosis = attempt.diagnosis
    if diagnosis is None or diagnosis is NOBODY_REJECTED:
        return (attempt.message,)
    if diagnosis.pre_filter_message:
        return (diagnosis.pre_filter_message,)
    return tuple(sorted(diagnosis.reason_counts(num_all_nodes)))
