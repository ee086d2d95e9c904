"""The loop: pop a pod, run its scheduling cycle, start its binding cycle; undo what fails.

With `eventhandlers` the only file that knows both queue and cache. Time is the event loop's, so
the simulator runs this file unchanged on virtual time.

    async with asyncio.TaskGroup() as group: group.create_task(scheduler.run())
    handlers.handle(...)        # informers bring changes; `scheduler.wake()` follows by itself

Upstream: pkg/scheduler/schedule_one.go, pkg/scheduler/scheduler.go (v1.36)
Invariants: a popped pod ends in exactly one of: binding, back in the queue, gone.
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Final, TypeVarTuple

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.cache.cache import Cache
from kubesched.framework.cluster_event import ASSIGNED_POD, Action, ClusterEvent
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.pod_group_states import pod_group_name_of
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import Code, NodeToStatus, Status
from kubesched.framework.waiting_pods import WaitingPod, WaitingPods
from kubesched.queue.scheduling_queue import QueueError, SchedulingQueue
from kubesched.scheduler.api_client import ApiClient, EventRecord, PodConditionPatch
from kubesched.scheduler.binding import ApiBinder, Assumed, BindingCycle
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.decision import NOBODY_REJECTED, Decision, Failed, Placed, Rejected
from kubesched.scheduler.eviction import Evictions, Preemption, Preemptor
from kubesched.scheduler.extended_cycle import ExtendedCycle
from kubesched.scheduler.extenders import Extenders
from kubesched.scheduler.flushing import Flushing
from kubesched.scheduler.observer import Observer
from kubesched.scheduler.phase_timer import POST_BIND
from kubesched.scheduler.placer import Placer
from kubesched.scheduler.pod_group_cycle import PodGroupCycle
from kubesched.scheduler.pod_lister import PodLister
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.sampling import NodeSampler
from kubesched.scheduler.scheduling_log import log_attempt, log_bound, log_failure, log_scores
from kubesched.snapshot.pod_info import PodInfo

Arguments = TypeVarTuple("Arguments")

PODS_TO_ACTIVATE: Final = "kubernetes.io/pods-to-activate"

_NOTE_BYTES_MAX: Final = 1024
_PODS_PER_SLICE: Final = 16
"""After so many pods other tasks get their turn."""

_NONE: Final[frozenset[str]] = frozenset()
_ASSIGNED_POD_DELETE: Final = ClusterEvent(ASSIGNED_POD, Action.DELETE)

log = logging.getLogger(__name__)


class Scheduler:
    """Schedules the pods of a queue.

    Attributes:
        profiles: By scheduler name.
        cycles: The profiles' scheduling cycles, by the same name.
        cache: Nodes and pods on nodes.
        queue: Pods that wait.
        waiting_pods: Pods that Permit plugins hold.
        evictions: Preemptions under way.
        placer: Puts pods on their nodes.
        pods: The pods as last observed; kept by the event handlers.
        observers: Are told what it does.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        cache: Cache,
        queue: SchedulingQueue,
        pods: PodLister,
        api: ApiClient,
        waiting_pods: WaitingPods,
        evictions: Evictions,
        observers: Sequence[Observer] = (),
        extenders: Extenders | None = None,
    ) -> None:
        self.profiles = profiles
        self.cache = cache
        self.queue = queue
        self._api = api
        self.observers = observers
        self.pods = pods
        sampler = NodeSampler()
        self.cycles: Mapping[str, SchedulingCycle] = {
            name: SchedulingCycle(profile, sampler)
            if extenders is None
            else ExtendedCycle(profile, sampler, extenders)
            for name, profile in profiles.items()
        }
        self.waiting_pods = waiting_pods
        self.placer = Placer(cache, queue.nominator)
        self.evictions = evictions
        self.status_writer = evictions.status_writer
        self._binding = BindingCycle(self.status_writer, self._done)
        self.evictions.cancel_binding = self._binding.cancel
        if extenders is not None:
            self._binding.bind_instead = extenders.bind
        self._held: list[Callable[[], None]] | None = None
        self._pod_groups = None
        if cache.pod_groups is not None:
            self._pod_groups = PodGroupCycle(self, cache.pod_groups)
        self._wake = asyncio.Event()
        self._stopped = False
        self._flushing = Flushing(queue, self.wake)
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._binding_numbers = count()
        self._bindings: dict[int, asyncio.Task[None]] = {}

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        if self._event_loop is None:
            self._event_loop = asyncio.get_running_loop()
        return self._event_loop

    def now(self) -> float:
        """Seconds on the event loop's clock."""
        # Several times per pod, so not through the property.
        return (self._event_loop or self._loop).time()

    def _done(self, uid: str) -> None:
        self.queue.done(uid, self.now())

    # Running.

    async def run(self) -> None:
        """Schedule until stopped."""
        self._flushing.start()
        popped = 0
        try:
            while not self._stopped:
                queued = self.queue.pop(self.now())
                if queued is None and self.queue.is_closed:
                    break
                if queued is None:
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                await self.schedule_one(queued)
                popped += 1
                if popped % _PODS_PER_SLICE == 0:
                    await asyncio.sleep(0)
        finally:
            self._flushing.stop()

    def wake(self) -> None:
        """Look at the queue again: something may be ready."""
        self._wake.set()

    def stop(self) -> None:
        """End `run` after the pod at hand; bindings under way go on."""
        self._stopped = True
        self.wake()

    def bind_through_api_only(self) -> None:
        """Leave out plugins at PreBind, Bind and PostBind, and extenders that bind.

        They may write elsewhere, or wait for others to react to what they wrote.
        """
        binder = ApiBinder(self._api)

        async def bind(pod: PodInfo, node_name: str) -> Status:
            return await binder.bind(pod.pod, node_name)

        self._binding.bind_instead = bind
        for profile in self.profiles.values():
            profile.pre_bind_plugins = ()
            profile.post_bind_plugins = ()

    async def end_preparations(self, grace_seconds: float) -> None:
        """End binding cycles that still wait for permission, volumes or devices after a while.

        Nothing is undone: this is for a process that is about to end.
        """
        preparing = self._binding.preparing
        if preparing:
            await asyncio.wait(preparing, timeout=grace_seconds)
        for task in tuple(preparing):
            task.cancel()

    async def drain(self) -> None:
        """Wait for bindings, evictions and status writes under way."""
        while running := [task for task in self._bindings.values() if not task.done()]:
            await asyncio.gather(*running, return_exceptions=True)
        await self.evictions.drain()
        await self.status_writer.drain()

    @property
    def bindings(self) -> int:
        """How many binding cycles are under way."""
        return len(self._bindings)

    def activate(self, pods: Sequence[PodInfo]) -> None:
        """Try these pods now, whatever their backoff."""
        self.queue.activate(pods, self.now())
        self.wake()

    # One pod.

    async def schedule_one(self, queued: QueuedPodInfo) -> None:
        """Run the scheduling cycle of a popped pod, or of its whole group, and hand it on."""
        pod = queued.pod_info
        if self._pod_groups is not None and pod_group_name_of(pod.pod):
            with self._holding_changes():
                await self._pod_groups.run(queued)
            return
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None:
            log.error("Pod %s asks for unknown scheduler %s", pod.key, pod.spec.scheduler_name)
            self.queue.done(pod.uid, self.now())
        elif self.is_skipped(pod, profile):
            self.queue.done(pod.uid, self.now())
        else:
            started = self.now()
            decision = await self.decide(pod, profile)
            if isinstance(decision, Rejected):
                decision = await self.preempt(decision, profile)
            self.tell(decision, started)
            self._carry_out(decision, queued, profile, started)

    async def decide(self, pod: PodInfo, profile: Profile) -> Decision:
        """Decide where the pod goes in the cluster as it is now."""
        snapshot = self.cache.snapshot(self.queue.nominator)
        cycle = self.cycles[profile.scheduler_name]
        trace = log_attempt(pod)
        if isinstance(cycle, ExtendedCycle):
            with self._holding_changes():
                return await cycle.schedule_with_extenders(pod, snapshot)
        decision = cycle.schedule_one(pod, snapshot, trace)
        if trace is not None:
            log_scores(pod, trace, snapshot)
        return decision

    def tell(self, decision: Decision, started: float) -> None:
        """Tell the observers that a cycle ended, which began at `started`."""
        for observer in self.observers:
            observer.decided(decision, started)

    def between_cycles(self, change: Callable[[*Arguments], None], *args: *Arguments) -> None:
        """Change cache and queue: now, or when the cycle that waits for extenders has ended."""
        if self._held is None:
            change(*args)
        else:
            self._held.append(partial(change, *args))

    @property
    def holds_changes(self) -> bool:
        """Whether something was observed that is taken in when the cycle at hand ends."""
        return bool(self._held)

    @contextmanager
    def _holding_changes(self) -> Iterator[None]:
        """Keep the snapshot, which is no copy, as it is while a cycle waits for extenders."""
        if self._held is not None:
            # Inside the cycle of a pod group, which holds changes to its own end.
            yield
            return
        held = self._held = []
        try:
            yield
        finally:
            self._held = None
            for change in held:
                change()

    def is_skipped(self, pod: PodInfo, profile: Profile) -> bool:
        """Whether there is nothing to decide: the pod goes away, or was placed meanwhile."""
        if pod.is_terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self._record(pod.pod, profile, "Warning", "FailedScheduling", "Scheduling", note)
            return True
        return self.cache.is_assumed(pod.uid)

    def _carry_out(
        self, decision: Decision, queued: QueuedPodInfo, profile: Profile, started: float
    ) -> None:
        match decision:
            case Placed():
                self.place(decision, queued, profile, started)
            case Rejected():
                status = Status(Code.UNSCHEDULABLE, (decision.message,))
                self.fail(
                    queued,
                    profile,
                    status,
                    nominated_node_name=decision.nominated_node_name,
                    diagnosis=decision.diagnosis,
                    started=started,
                )
            case Failed():
                # Nobody rejected the pod, even where there is no node to try.
                self.fail(
                    queued,
                    profile,
                    decision.status,
                    nominated_node_name="",
                    diagnosis=NOBODY_REJECTED,
                    started=started,
                )

    def place(
        self, placed: Placed, queued: QueuedPodInfo, profile: Profile, started: float
    ) -> None:
        """Assume the pod where it was placed and start its binding cycle, or put it back."""
        node_name, cycle = placed.node_name, placed.cycle
        found = self.placer.place(profile, cycle, placed.pod, node_name)
        if found.pod is None:
            self.fail(queued, profile, found.status, nominated_node_name="", started=started)
            return
        if found.timeouts_seconds:
            waiting = WaitingPod(found.pod, node_name, found.timeouts_seconds, _timer)
            self.waiting_pods.add(waiting)
        seen = placed.evaluated, placed.feasible
        assumed = Assumed(queued, found.pod, node_name, cycle, profile, started, *seen)
        # The task takes itself off the list: a callback costs another turn of the event loop.
        number = next(self._binding_numbers)
        self._bindings[number] = self._loop.create_task(self._bind(number, assumed))
        self._activate_requested(cycle)

    async def preempt(self, decision: Rejected, profile: Profile) -> Rejected:
        """Start the evictions that were decided; return the decision as it stands then."""
        node_name = decision.nominated_node_name
        if not node_name or not decision.victims:
            return decision
        preemptor = Preemptor.of_pod(decision.pod)
        preemption = Preemption(preemptor, node_name, decision.victims, profile.scheduler_name)
        in_background = profile.feature_gates.enabled("SchedulerAsyncPreemption")
        error = await self.evictions.carry_out(preemption, in_background=in_background)
        if error:
            return decision.with_failed_preemption(error, len(self.cache.nodes))
        return decision

    def _activate_requested(self, cycle: CycleState) -> None:
        requested = cycle.shared.get(PODS_TO_ACTIVATE)
        if isinstance(requested, dict) and requested:
            pods = list(requested.values())
            requested.clear()
            self.activate(pods)

    # Binding.

    async def _bind(self, number: int, assumed: Assumed) -> None:
        try:
            status = await self._binding.run(assumed)
            if status.is_success:
                self._bound(assumed)
            else:
                self.between_cycles(self._binding_failed, assumed, status)
        finally:
            del self._bindings[number]

    def _bound(self, assumed: Assumed) -> None:
        now = self.now()
        log_bound(assumed)
        note = f"Successfully assigned {assumed.pod.key} to {assumed.node_name}"
        self._record(assumed.pod.pod, assumed.profile, "Normal", "Scheduled", "Binding", note)
        for observer in self.observers:
            observer.bound(assumed, now)
        _post_bind(assumed)
        self._activate_requested(assumed.cycle)

    def _binding_failed(self, assumed: Assumed, status: Status) -> None:
        now = self.now()
        pod = assumed.pod
        was_there = self.placer.undo(assumed.profile, assumed.cycle, pod, assumed.node_name)
        for observer in self.observers:
            observer.binding_failed(assumed, status, now)
        if was_there and not status.is_rejected:
            self.queue.move_all(_ASSIGNED_POD_DELETE, assumed_pod(pod), None, now)
        self.fail(
            assumed.queued,
            assumed.profile,
            status,
            nominated_node_name="",
            started=assumed.started,
        )
        if was_there and status.is_rejected:
            # Its own release must not wake the pod itself.
            self.queue.move_all(
                _ASSIGNED_POD_DELETE,
                assumed_pod(pod),
                None,
                now,
                lambda other: other.pod_info.uid != pod.uid,
            )
        self.wake()

    # When there is no place.

    def fail(
        self,
        queued: QueuedPodInfo,
        profile: Profile,
        status: Status,
        *,
        nominated_node_name: str | None,
        diagnosis: Diagnosis | None = None,
        started: float,
    ) -> None:
        """Put the pod back into the queue and say why; the attempt began at `started`."""
        pod = queued.pod_info
        for observer in self.observers:
            observer.failed(profile.scheduler_name, status, started, self.now())
        message = status.message
        if diagnosis is None and status.is_rejected and self.queue.is_in_flight(pod.uid):
            # Reserve, Permit or the wait for it: the story of one node.
            diagnosis = Diagnosis.of_filter(("",), NodeToStatus.of([status]))
            message = diagnosis.fit_error(1)
        log_failure(pod, status, message)
        queued.unschedulable_plugins = diagnosis.unschedulable_plugins if diagnosis else _NONE
        queued.pending_plugins = diagnosis.pending_plugins if diagnosis else _NONE
        queued.gating_plugin, queued.gating_plugin_events = "", ()
        known = self.pods.get(pod.namespace, pod.name)
        if known is None or known.spec.node_name:
            self.queue.done(pod.uid, self.now())
        elif known.metadata.uid != pod.pod.metadata.uid:
            self.queue.done(pod.uid, self.now())
            return
        else:
            if known is not pod.pod:
                queued.pod_info = pod = PodInfo(known)
            try:
                self.queue.add_unschedulable_if_not_present(queued, self.now())
            except QueueError as error:
                # It came back another way meanwhile, and only the queue need not have it twice.
                log.error("Failed to put pod back: %s", error)  # noqa: TRY400 - its words say all
            self.wake()
        self.queue.nominator.add(pod, nominated_node_name)
        note = _truncate(message)
        self._record(pod.pod, profile, "Warning", "FailedScheduling", "Scheduling", note)
        reason = "Unschedulable" if status.is_rejected else "SchedulerError"
        self.status_writer.write(
            pod.pod,
            PodConditionPatch("PodScheduled", "False", reason, message),
            nominated_node_name,
        )

    def _record(
        self, pod: Pod, profile: Profile, kind: str, reason: str, action: str, note: str
    ) -> None:
        self._api.record_event(
            EventRecord(
                pod, kind, reason, action, note, reporting_controller=profile.scheduler_name
            )
        )


def _post_bind(assumed: Assumed) -> None:
    timer = assumed.profile.timer
    began = timer.now()
    for plugin in assumed.profile.post_bind_plugins:
        assumed.profile.notify(
            plugin, plugin.post_bind, assumed.cycle, assumed.pod, assumed.node_name
        )
    timer.passed(POST_BIND, Code.SUCCESS, began)


def assumed_pod(there: PodInfo) -> Pod:
    """Return an assumed pod as hints expect it: with the node that it frees."""
    return replace(there.pod, spec=replace(there.pod.spec, node_name=there.node_name))


def _timer(delay_seconds: float, action: Callable[[], None]) -> Callable[[], None]:
    return asyncio.get_running_loop().call_later(delay_seconds, action).cancel


def _truncate(message: str) -> str:
    """Cut a message to what an event's note may hold, in bytes."""
    text = message.encode()
    if len(text) <= _NOTE_BYTES_MAX:
        return message
    return text[: _NOTE_BYTES_MAX - 4].decode(errors="ignore") + " ..."
