"""The loop: pop a pod and schedule it, or its whole group.

Time is the event loop's, so the simulator runs this module unchanged on virtual time.

    async with asyncio.TaskGroup() as group: group.create_task(scheduler.run())
    handlers.added(pod)         # from an informer; wakes the scheduler

Upstream: pkg/scheduler/schedule_one.go, pkg/scheduler/scheduler.go,
          pkg/scheduler/backend/queue/scheduling_queue.go, Run (v1.36)
Invariants: a popped pod ends in exactly one of: binding, back in the queue, gone; pods move in the
            same second as upstream.
Differs:  in `kubesched run`, no further pod is decided while the API server has 256 Bindings and
          status patches to answer (and up to `pods_per_slice` more); upstream waits for each
          status patch, and has no limit of Bindings. A replica whose lease may have expired
          decides nothing; upstream does until it exits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from math import floor
from typing import Final

from kubesched.framework.pod_groups import pod_group_name_of
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import Status
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.decision import Decision
from kubesched.scheduler.pod_group_cycle import schedule_pod_group
from kubesched.scheduler.pod_scheduling import PodScheduling
from kubesched.scheduler.repeated_rejections import RepeatedRejections
from kubesched.scheduler.status_writer import drain
from kubesched.snapshot.pod_info import PodInfo

_UNDECIDED_SECONDS: Final = 0.5
"""The interval at which the loop asks again whether it may decide."""

log = logging.getLogger(__name__)


class Scheduler(PodScheduling):
    """Schedules the pods of a queue.

    Attributes:
        repeated_rejections: Rejects pods again without scheduling them.
        may_decide: Returns whether pods may be decided now; if not, they stay in the queue.
        pods_per_slice: Number of pods after which the loop yields to other tasks.
    """

    pods_per_slice: int = 16

    def __post_init__(self) -> None:
        """Set up the loop; no pod is popped while too many writes are unanswered."""
        super().__post_init__()
        self.binder.unanswered.on_room = self.wake
        self.repeated_rejections = RepeatedRejections(self)
        self.may_decide: Callable[[], bool] = lambda: True
        self._stopped = False
        self._flushing = Flushing(self.queue, self.wake)

    # Running.

    async def run(self) -> None:
        """Schedule until stopped."""
        self._flushing.start()
        popped = 0
        try:
            while not self._stopped:
                if self.binder.unanswered.is_full:
                    await self._awakened()
                    continue
                if not self.may_decide():
                    await asyncio.sleep(_UNDECIDED_SECONDS)
                    continue
                decision = self.repeated_rejections.carry_out()
                queued = self.queue.pop(self.now())
                if queued is None:
                    if self.queue.is_closed:
                        break
                    await self._awakened()
                    continue
                await self.schedule_one(queued, decision)
                popped += 1
                if popped % self.pods_per_slice == 0:
                    await asyncio.sleep(0)
        finally:
            self._flushing.stop()

    async def _awakened(self) -> None:
        self.awakened.clear()
        await self.awakened.wait()

    def stop(self) -> None:
        """End `run` after the current pod; bindings under way continue."""
        self._stopped = True
        self.wake()

    def bind_through_api_only(self) -> None:
        """Bind with the API client alone: skip PreBind, Bind, PostBind and extenders.

        Plugins there may write elsewhere, or wait for a reaction to what they wrote.
        """

        async def bind(pod: PodInfo, node_name: str) -> Status:
            return await self.binder.bind(pod.pod, node_name)

        self.binding.bind_instead = bind
        for profile in self.profiles.values():
            profile.pre_bind_plugins = ()
            profile.post_bind_plugins = ()

    async def end_preparations(self, grace_seconds: float) -> None:
        """Cancel binding cycles that wait on Permit or PreBind after `grace_seconds`.

        Nothing is undone: the process is about to exit.
        """
        preparing = self.binding.preparing
        if preparing:
            await asyncio.wait(preparing, timeout=grace_seconds)
        for task in tuple(preparing):
            task.cancel()

    async def drain(self) -> None:
        """Wait for bindings, evictions and status writes under way."""
        await drain(self.bindings.values())
        await self.evictions.drain()
        await self.status_writer.drain()

    # One pod, or its group.

    async def schedule_one(self, queued: QueuedPodInfo, decision: Decision | None = None) -> None:
        """Schedule a popped pod, or the group it belongs to.

        `decision` is what was decided about a pod, perhaps this one, before it was popped.
        """
        pod = queued.pod_info
        if self.cache.pod_groups.is_enabled and pod_group_name_of(pod.pod):
            with self.holding_changes():
                await schedule_pod_group(self, queued)
            return
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None:
            log.error("Pod %s names the unknown scheduler %s", pod.key, pod.spec.scheduler_name)
            self.done(pod.uid)
        elif not self.skip(pod):
            if decision is not None and decision.pod is not pod:
                decision = None
            await self.schedule(queued, profile, decision)


# Pods whose waiting time is over.

_UNSCHEDULABLE_SECONDS: Final = 30.0
"""The interval at which upstream requeues pods that have waited too long."""


class Flushing:
    """Moves pods whose waiting time is over out of backoffQ and unschedulablePods.

    Upstream checks every second and every thirty seconds. Here a timer fires at the first of these
    moments at which there is a pod to move, so an idle queue costs nothing.
    """

    def __init__(self, queue: SchedulingQueue, wake: Callable[[], None]) -> None:
        """Set up without a timer; `wake` is called after every flush."""
        self._queue = queue
        self._wake = wake
        self._began = 0.0
        self._backoff: asyncio.TimerHandle | None = None
        self._unschedulable: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timers."""
        self._began = asyncio.get_running_loop().time()
        self._queue.on_backoff = self._plan_backoff
        self._queue.on_unschedulable = self._plan_unschedulable
        self._plan_backoff()
        self._plan_unschedulable(self._queue.late_after())

    def stop(self) -> None:
        """Cancel the timers."""
        self._queue.on_backoff = lambda: None
        self._queue.on_unschedulable = lambda _late_after: None
        for timer in (self._backoff, self._unschedulable):
            if timer is not None:
                timer.cancel()
        self._backoff = self._unschedulable = None

    # Backoff: at whole seconds.

    def _plan_backoff(self) -> None:
        loop, planned = asyncio.get_running_loop(), self._backoff
        now = loop.time()
        if planned is not None and planned.when() <= self._queue.next_second(now):
            return
        at = self._queue.next_backoff_flush(now)
        if at is None or (planned is not None and planned.when() <= at):
            return
        if planned is not None:
            planned.cancel()
        self._backoff = loop.call_at(at, self._flush_backoff)

    def _flush_backoff(self) -> None:
        self._backoff = None
        self._queue.flush_backoff(asyncio.get_running_loop().time())
        self._wake()
        self._plan_backoff()

    # Unschedulable pods: every thirty seconds since the start.

    def _plan_unschedulable(self, late_after: float | None) -> None:
        planned = self._unschedulable
        if late_after is None or (planned is not None and planned.when() <= late_after):
            return
        loop = asyncio.get_running_loop()
        rounds = floor((max(late_after, loop.time()) - self._began) / _UNSCHEDULABLE_SECONDS) + 1
        at = self._began + rounds * _UNSCHEDULABLE_SECONDS
        if planned is not None and planned.when() <= at:
            return
        if planned is not None:
            planned.cancel()
        self._unschedulable = loop.call_at(at, self._flush_unschedulable)

    def _flush_unschedulable(self) -> None:
        self._unschedulable = None
        self._queue.flush_unschedulable(asyncio.get_running_loop().time())
        self._wake()
        self._plan_unschedulable(self._queue.late_after())
