"""The steps of scheduling one pod: decide, preempt, place, bind; or fail and requeue it.

The loop takes these steps for single pods, the cycle of pod groups for the pods of a group.

Upstream: pkg/scheduler/schedule_one.go (v1.36)
Invariants: a placed pod ends in a binding or is failed; a failed pod is back in the queue or gone.
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final, TypeVarTuple

from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Pod
from kubesched.cache.cache import Cache, PodLister
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.phase_timer import POST_BIND
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import NodeToStatus, Status, unschedulable
from kubesched.framework.waiting_pods import WaitingPod, WaitingPods
from kubesched.queue.moves import ASSIGNED_POD_DELETE
from kubesched.queue.scheduling_queue import QueueError, SchedulingQueue
from kubesched.scheduler.api_client import ApiClient
from kubesched.scheduler.binding import ApiBinder, Assumed, BindingCycle
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.decision import (
    NOBODY_REJECTED,
    Decision,
    Failed,
    FailedAttempt,
    Placed,
    Rejected,
)
from kubesched.scheduler.eviction import Evictions, Preemption, Preemptor
from kubesched.scheduler.extended_cycle import ExtendedCycle
from kubesched.scheduler.extenders import Extenders
from kubesched.scheduler.observer import Observer
from kubesched.scheduler.placer import Placer
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.sampling import NodeSampler
from kubesched.scheduler.scheduling_log import log_attempt, log_bound, log_failure, log_scores
from kubesched.snapshot.pod_info import PodInfo

Arguments = TypeVarTuple("Arguments")

PODS_TO_ACTIVATE: Final = "kubernetes.io/pods-to-activate"

_NOTE_BYTES_MAX: Final = 1024

log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class PodScheduling:
    """Schedules one pod at a time; bindings continue in tasks of their own.

    Attributes:
        profiles: By scheduler name.
        cache: Nodes and pods on nodes.
        queue: Pending pods.
        pods: The pods as last observed; the event handlers keep it current.
        api: Records events.
        binder: Binds for DefaultBinder.
        waiting_pods: Pods that wait on Permit.
        evictions: Preemptions under way.
        observers: Receive decisions, bindings, failures and preemptions.
        extenders: The configured extenders; None if there are none.
        cycles: The profiles' scheduling cycles, by scheduler name.
        placer: Assumes pods and undoes it.
        bindings: The binding cycles under way, by a number of their own.
        now: Returns the seconds on the event loop's clock.
        start_binding: Starts a binding cycle, by default in a task of its own.
        records_events: Whether events are written at all.
    """

    profiles: Mapping[str, Profile]
    cache: Cache
    queue: SchedulingQueue
    pods: PodLister
    api: ApiClient
    binder: ApiBinder
    waiting_pods: WaitingPods
    evictions: Evictions
    observers: list[Observer]
    extenders: Extenders | None

    def __post_init__(self) -> None:
        """Set up what the steps need besides."""
        extenders, sampler = self.extenders, NodeSampler()
        self.status_writer = self.evictions.status_writer
        self.cycles: Mapping[str, SchedulingCycle] = {
            name: SchedulingCycle(profile, sampler)
            if extenders is None
            else ExtendedCycle(profile, sampler, extenders)
            for name, profile in self.profiles.items()
        }
        self.placer = Placer(self.cache, self.queue.nominator)
        self.binding = BindingCycle(self.status_writer, self.done)
        self.evictions.cancel_binding = self.binding.cancel
        if extenders is not None:
            self.binding.bind_instead = extenders.bind
        self.awakened = asyncio.Event()
        self.records_events = True
        self._held: list[Callable[[], None]] | None = None
        loop = asyncio.get_running_loop()
        self.now = loop.time
        self.start_binding: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
        self.start_binding = loop.create_task
        self._binding_numbers = count()
        self.bindings: dict[int, asyncio.Task[None]] = {}

    def done(self, uid: str) -> None:
        """End the flight of a pod: events no longer concern its attempt."""
        self.queue.done(uid, self.now())

    def wake(self) -> None:
        """Check the queue again: a pod may be ready."""
        self.awakened.set()

    def activate(self, pods: Sequence[PodInfo]) -> None:
        """Try these pods now, ignoring their backoff."""
        self.queue.activate(pods, self.now())
        self.wake()

    async def schedule(
        self, queued: QueuedPodInfo, profile: Profile, decision: Decision | None = None
    ) -> None:
        """Run the scheduling cycle of a popped pod and carry the decision out.

        `decision` is what was decided about the pod just now; None if nothing was.
        """
        started = self.now()
        if decision is None:
            decision = await self.decide(queued.pod_info, profile)
        if isinstance(decision, Rejected):
            decision = await self.preempt(decision, profile)
        self.notify_decided(decision, started)
        match decision:
            case Placed():
                self.place(decision, queued, profile, started)
            case Rejected():
                attempt = FailedAttempt(queued, decision.status, decision.diagnosis, started)
                self.fail(attempt, decision.nominated_node_name, rejected=decision)
            case Failed():
                # No plugin rejected the pod, even if there is no node to try.
                self.fail(FailedAttempt(queued, decision.status, NOBODY_REJECTED, started))

    # Decide.

    def skip(self, pod: PodInfo) -> bool:
        """End the flight of a terminating or assumed pod, which needs no decision.

        Return whether the pod is one.
        """
        if pod.is_terminating:
            self.record_failure(pod, f"skip schedule deleting pod: {pod.key}")
            self.queue.nominator.strip_pod(pod.uid)
        elif not self.cache.is_assumed(pod.uid):
            return False
        self.done(pod.uid)
        return True

    async def decide(self, pod: PodInfo, profile: Profile) -> Decision:
        """Decide where the pod goes in the cluster as it is now."""
        cycle = self.cycles[profile.scheduler_name]
        if not isinstance(cycle, ExtendedCycle):
            return self.decide_at_once(pod, cycle)
        snapshot = self.cache.snapshot(self.queue.nominator)
        trace = log_attempt(pod)
        with self.holding_changes():
            decision = await cycle.schedule_with_extenders(pod, snapshot, trace)
            log_scores(pod, trace, snapshot)
        return decision

    def decide_at_once(self, pod: PodInfo, cycle: SchedulingCycle) -> Decision:
        """Decide with a cycle that waits for no extender."""
        snapshot = self.cache.snapshot(self.queue.nominator)
        trace = log_attempt(pod)
        decision = cycle.schedule_one(pod, snapshot, trace)
        log_scores(pod, trace, snapshot)
        return decision

    async def preempt(self, decision: Rejected, profile: Profile) -> Rejected:
        """Start the decided evictions; return the decision, changed if that failed."""
        node_name = decision.nominated_node_name
        if not node_name or not decision.victims:
            return decision
        preemptor = Preemptor.of_pod(decision.pod)
        preemption = Preemption(preemptor, node_name, decision.victims, profile.scheduler_name)
        error = await self.evictions.carry_out(preemption)
        if error:
            return decision.with_failed_preemption(error, len(self.cache.nodes))
        return decision

    def notify_decided(self, decision: Decision, started: float) -> None:
        """Notify the observers of a cycle that began at `started` and has ended."""
        for observer in self.observers:
            observer.decided(decision, started)

    # Changes meanwhile.

    def defers(self, change: Callable[[*Arguments], None], *args: *Arguments) -> bool:
        """Whether a change of cache and queue waits for the end of the current cycle.

        It does while a cycle waits for extenders; `change` is called again at the cycle's end.
        """
        if self._held is None:
            return False
        self._held.append(partial(change, *args))
        return True

    @property
    def holds_changes(self) -> bool:
        """Whether changes wait for the end of the current cycle."""
        return bool(self._held)

    @contextmanager
    def holding_changes(self) -> Iterator[None]:
        """Hold changes back while a cycle waits for extenders: its snapshot is not a copy."""
        if self._held is not None:
            # Inside a pod group's cycle, which holds changes until its own end.
            yield
            return
        held = self._held = []
        try:
            yield
        finally:
            self._held = None
            for change in held:
                change()

    # Place and bind.

    def place(
        self, placed: Placed, queued: QueuedPodInfo, profile: Profile, started: float
    ) -> None:
        """Assume the pod on its node and start its binding cycle; on failure requeue it."""
        cycle = placed.cycle
        found = self.placer.place(profile, cycle, placed.pod, placed.node_name)
        if found.pod is None:
            self.fail(FailedAttempt(queued, found.status, None, started))
            return
        if found.timeouts_seconds:
            waiting = WaitingPod(found.pod, placed.node_name, found.timeouts_seconds, _timer)
            self.waiting_pods.add(waiting)
        assumed = Assumed(
            queued, found.pod, cycle, profile, started, placed.evaluated, placed.feasible
        )
        # The task removes itself from the list: a done callback would cost another loop iteration.
        number = next(self._binding_numbers)
        self.bindings[number] = self.start_binding(self._bind(number, assumed))
        self._activate_requested(cycle)

    def _activate_requested(self, cycle: CycleState) -> None:
        requested = cycle.shared.get(PODS_TO_ACTIVATE)
        if isinstance(requested, dict) and requested:
            pods = list(requested.values())
            requested.clear()
            self.activate(pods)

    async def _bind(self, number: int, assumed: Assumed) -> None:
        try:
            status = await self.binding.run(assumed)
            if status.is_success:
                self._bound(assumed)
            else:
                self._binding_failed(assumed, status)
        finally:
            del self.bindings[number]

    def _bound(self, assumed: Assumed) -> None:
        now = self.now()
        log_bound(assumed)
        profile, cycle, pod = assumed.profile, assumed.cycle, assumed.pod
        if self.records_events:
            note = f"Successfully assigned {pod.key} to {pod.node_name}"
            self._record(pod, "Normal", "Scheduled", "Binding", note)
        for observer in self.observers:
            observer.bound(assumed, now)
        with profile.timer.phases[POST_BIND]:
            for plugin in profile.post_bind_plugins:
                profile.notify(plugin, plugin.post_bind, cycle, pod, pod.node_name)
        self._activate_requested(cycle)

    def _binding_failed(self, assumed: Assumed, status: Status) -> None:
        if self.defers(self._binding_failed, assumed, status):
            return
        now = self.now()
        pod = assumed.pod
        was_there = self.placer.undo(assumed.profile, assumed.cycle, pod)
        for observer in self.observers:
            observer.binding_failed(assumed, status, now)
        if was_there and not status.is_rejected:
            self.queue.move_all(ASSIGNED_POD_DELETE, assumed_pod(pod), None, now)
        self.fail(FailedAttempt(assumed.queued, status, None, assumed.started))
        if was_there and status.is_rejected:
            # The event of its own release must not wake this pod.
            self.queue.move_all(
                ASSIGNED_POD_DELETE,
                assumed_pod(pod),
                None,
                now,
                lambda other: other.pod_info.uid != pod.uid,
            )
        self.wake()

    # Fail.

    def fail(
        self,
        attempt: FailedAttempt,
        nominated_node_name: str | None = "",
        *,
        rejected: Rejected | None = None,
    ) -> None:
        """Requeue the pod, and write condition and event.

        "" as the node clears a nomination, None leaves it alone; `rejected` is what the cycle
        decided, if it rejected the pod.
        """
        queued, status, diagnosis = attempt.queued, attempt.status, attempt.diagnosis
        pod = queued.pod_info
        if diagnosis is None and status.is_rejected and self.queue.is_in_flight(pod.uid):
            # Reserve, Permit or the wait on it failed on a single node.
            diagnosis = Diagnosis.of_filter(("",), NodeToStatus.of([status]))
            status = unschedulable(diagnosis.fit_error(1))
            attempt = replace(attempt, status=status, diagnosis=diagnosis)
        message = status.message
        log_failure(pod, attempt)
        rejected_by = NOBODY_REJECTED if diagnosis is None else diagnosis
        queued.unschedulable_plugins = rejected_by.unschedulable_plugins
        queued.pending_plugins = rejected_by.pending_plugins
        queued.gating_plugin = ""
        reason = "Unschedulable" if status.is_rejected else "SchedulerError"
        condition = ConditionPatch("PodScheduled", "False", reason, message)
        queued.standing_message = ""
        now = self.now()
        for observer in self.observers:
            observer.failed(attempt, now)
        known = self.pods.get(pod.namespace, pod.name)
        if known is None or known.spec.node_name:
            self.queue.done(pod.uid, now)
        elif known.metadata.uid != pod.pod.metadata.uid:
            self.queue.done(pod.uid, now)
            return
        else:
            if known is not pod.pod:
                queued.pod_info = pod = PodInfo(known, pod)
            elif (
                rejected is not None
                and self.status_writer.is_written(known, condition, nominated_node_name)
                and self.cycles[pod.scheduler_name].holds_for_template(rejected)
            ):
                queued.standing_message = message
            try:
                self.queue.add_unschedulable_if_not_present(queued, now)
            except QueueError as error:
                # The pod was queued again meanwhile; it must not be queued twice.
                log.error("Failed to put pod back: %s", error)
            self.wake()
        self.queue.nominator.add(pod, nominated_node_name)
        self.record_failure(pod, message)
        self.status_writer.write(pod.pod, condition, nominated_node_name)

    def record_failure(self, pod: PodInfo, message: str) -> None:
        """Write the event of a failed attempt."""
        if self.records_events:
            note = _truncate(message)
            self._record(pod, "Warning", "FailedScheduling", "Scheduling", note)

    def _record(self, pod: PodInfo, kind: str, reason: str, action: str, note: str) -> None:
        event = EventRecord(
            pod.pod, kind, reason, action, note, reporting_controller=pod.scheduler_name
        )
        self.api.record_event(event)


def assumed_pod(assumed: PodInfo) -> Pod:
    """Return an assumed pod as queueing hints expect it: with the node it frees."""
    return replace(assumed.pod, spec=replace(assumed.pod.spec, node_name=assumed.node_name))


def _timer(delay_seconds: float, action: Callable[[], None]) -> Callable[[], None]:
    return asyncio.get_running_loop().call_later(delay_seconds, action).cancel


def _truncate(message: str) -> str:
    """Truncate a message to the byte limit of an event's note."""
    text = message.encode()
    if len(text) <= _NOTE_BYTES_MAX:
        return message
    return text[: _NOTE_BYTES_MAX - 4].decode(errors="ignore") + " ..."
