"""The binding cycle: wait on Permit, run PreBind, bind; on failure undo everything.

Each placed pod has a task. If anything fails here, the task undoes what the scheduling cycle
assumed and reserved. After `queue.done` no plugin can make the pod unschedulable.

Upstream: pkg/scheduler/schedule_one.go, bindingCycle (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from kubesched.api.core import Pod
from kubesched.api.errors import ApiError
from kubesched.framework import phase_timer as phases
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PreBindPlugin
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import SKIP, SUCCESS, Code, Status, failure
from kubesched.framework.waiting_pods import WaitingPod
from kubesched.scheduler.api_client import ApiClient, UnansweredWrites
from kubesched.scheduler.plugin_failure import PluginFailure, failed_with, failure_of, reported
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.status_writer import StatusWriter
from kubesched.snapshot.pod_info import PodInfo


class Assumed(msgspec.Struct, frozen=True):
    """An assumed pod whose binding is under way.

    Attributes:
        queued: The pod as the queue knows it, with attempts and timestamps.
        pod: The pod, as assumed on its node.
        cycle: The state of the scheduling cycle.
        profile: The profile that placed it.
        started: When its scheduling cycle began, in seconds of the loop's clock.
        evaluated: Number of nodes evaluated.
        feasible: Number of feasible nodes among them.
    """

    queued: QueuedPodInfo
    pod: PodInfo
    cycle: CycleState
    profile: Profile
    started: float
    evaluated: int
    feasible: int


class ApiBinder:
    """Binds through an API server.

    Attributes:
        unanswered: The writes that the server has to answer, these Bindings and others.
    """

    def __init__(self, api: ApiClient, unanswered: UnansweredWrites) -> None:
        """Set up without a Binding."""
        self._api = api
        self.unanswered = unanswered

    async def bind(self, pod: Pod, node_name: str) -> Status:
        """Create the Binding; a refusal becomes a status with the server's message."""
        try:
            with self.unanswered:
                await self._api.bind(pod, node_name)
        except ApiError as error:
            return failure(error.message)
        return SUCCESS


class BindingCycle:
    """Binds assumed pods.

    Attributes:
        bind_instead: Called before the Bind plugins, which run only if it returns None. Extenders
            bind here. None without extenders.
        preparing: The tasks whose pod waits on Permit or is in PreBind.
    """

    def __init__(self, status_writer: StatusWriter, done: Callable[[str], None]) -> None:
        """Set up with the writer of nominations and the queue's `done`."""
        self._status_writer = status_writer
        self._done = done
        self._in_pre_bind: dict[str, asyncio.Future[Status]] = {}
        self.preparing: set[asyncio.Task[Any]] = set()
        self.bind_instead: Callable[[PodInfo, str], Awaitable[Status | None]] | None = None

    def cancel(self, uid: str, cause: str) -> bool:
        """Cancel the binding of a pod in PreBind; return False if it is too late."""
        cancelled = self._in_pre_bind.get(uid)
        if cancelled is None or cancelled.done():
            return False
        cancelled.set_result(Status(Code.ERROR, error=cause))
        return True

    async def run(self, assumed: Assumed) -> Status:
        """Bind an assumed pod; return success or the status that stopped it."""
        profile, pod = assumed.profile, assumed.pod
        timer = profile.timer
        waiting = profile.waiting_pods.get(pod.uid)
        pre_flight = SKIP
        if profile.nominates_for_expectation:
            with timer.phases[phases.PRE_BIND_PRE_FLIGHT] as phase:
                pre_flight = self._pre_flight(assumed)
                phase.code = pre_flight.code
            if not (pre_flight.is_success or pre_flight.is_skip):
                return pre_flight
            if pre_flight.is_success or waiting is not None:
                # Wait for the write: the Binding that follows clears the nomination.
                await asyncio.wait(
                    [self._status_writer.write(pod.pod, nominated_node_name=pod.node_name)]
                )
        if waiting is not None:
            with timer.phases[phases.PERMIT_WAIT] as phase, self._being_prepared():
                status = await self._wait_on_permit(assumed, waiting)
                phase.code = status.code
            if not status.is_success:
                return status
        # From here on, events during the pod's flight no longer requeue it.
        self._done(pod.uid)
        status = SUCCESS
        with timer.phases[phases.PRE_BIND] as phase:
            groups = _groups(profile.pre_bind_plugins, assumed.cycle.skip_pre_bind)
            if groups:
                with self._being_prepared():
                    status = await self._pre_bind(
                        assumed, groups, is_cancellable=pre_flight.is_success
                    )
                phase.code = status.code
        return await self._bind(assumed) if status.is_success else status

    @contextmanager
    def _being_prepared(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None, "a binding cycle runs in a task"
        self.preparing.add(task)
        try:
            yield
        finally:
            self.preparing.discard(task)

    def _pre_flight(self, assumed: Assumed) -> Status:
        """Run PreBindPreFlight; PreBind skips the plugins that have nothing to do."""
        found = SKIP
        skipped: set[str] = set()
        ask, cycle, pod = assumed.profile.ask, assumed.cycle, assumed.pod
        for plugin in assumed.profile.pre_bind_plugins:
            question = plugin.pre_bind_pre_flight
            try:
                status = ask(plugin, question, cycle, pod, pod.node_name)
            except PluginFailure as raised:
                return raised.status
            if status.is_skip:
                skipped.add(plugin.name)
            elif status.is_success:
                found = SUCCESS
            elif status.code is Code.ERROR:
                return failed_with("pre_bind_pre_flight", plugin.name, status)
            else:
                return Status(
                    Code.ERROR,
                    plugin=plugin.name,
                    error=f'PreBindPreFlight {plugin.name} returned "{status.code.label}", which '
                    "is unsupported. It is supposed to return Success, Skip, or Error status",
                )
        assumed.cycle.skip_pre_bind = skipped
        return found

    @staticmethod
    async def _wait_on_permit(assumed: Assumed, waiting: WaitingPod) -> Status:
        decided = asyncio.get_running_loop().create_future()
        waiting.when_decided(lambda: None if decided.done() else decided.set_result(None))
        try:
            await decided
        finally:
            assumed.profile.waiting_pods.remove(assumed.pod.uid)
        verdict = waiting.verdict
        assert verdict is not None, "decided pods have a verdict"
        if verdict.code is Code.ERROR:
            return Status(
                Code.ERROR,
                plugin=verdict.plugin,
                error=f"waiting on permit for pod: {verdict.message}",
            )
        return verdict

    async def _pre_bind(
        self, assumed: Assumed, groups: list[list[PreBindPlugin]], *, is_cancellable: bool
    ) -> Status:
        uid = assumed.pod.uid
        if not is_cancellable:
            return await self._run_pre_bind(assumed, groups)
        cancelled: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._in_pre_bind[uid] = cancelled
        work = asyncio.ensure_future(self._run_pre_bind(assumed, groups))
        try:
            await asyncio.wait([work, cancelled], return_when=asyncio.FIRST_COMPLETED)
            if cancelled.done():
                work.cancel()
                (status,) = await asyncio.gather(work, return_exceptions=True)
                if isinstance(status, Status) and not status.is_success:
                    return status
                return cancelled.result()
            return work.result()
        finally:
            # From here on the pod counts as prebound and its binding cannot be cancelled.
            del self._in_pre_bind[uid]
            work.cancel()

    async def _run_pre_bind(self, assumed: Assumed, groups: list[list[PreBindPlugin]]) -> Status:
        for group in groups:
            if len(group) == 1:
                status = await self._ask_pre_bind(assumed, group[0])
            else:
                status = await self._ask_together(assumed, group)
            if not status.is_success:
                return status
        return SUCCESS

    async def _ask_together(self, assumed: Assumed, group: list[PreBindPlugin]) -> Status:
        """Run plugins concurrently; the first failure cancels the others."""
        tasks = [asyncio.ensure_future(self._ask_pre_bind(assumed, plugin)) for plugin in group]
        try:
            for finished in asyncio.as_completed(tasks):
                status = await finished
                if not status.is_success:
                    return status
        except asyncio.CancelledError:
            late = (each for each, task in zip(group, tasks, strict=True) if not task.done())
            return self._cancelled_status(assumed, next(late, group[-1]))
        else:
            return SUCCESS
        finally:
            for task in tasks:
                task.cancel()

    async def _ask_pre_bind(self, assumed: Assumed, plugin: PreBindPlugin) -> Status:
        ask, cycle, pod = assumed.profile.ask_async, assumed.cycle, assumed.pod
        question = plugin.pre_bind
        try:
            status = await ask(phases.PRE_BIND, plugin, question, cycle, pod, pod.node_name)
        except asyncio.CancelledError:
            return self._cancelled_status(assumed, plugin)
        except PluginFailure as raised:
            return raised.status
        return reported("pre_bind", plugin.name, status)

    def _cancelled_status(self, assumed: Assumed, plugin: PreBindPlugin) -> Status:
        """Return the status of a plugin whose PreBind was cancelled.

        Raises CancelledError if the scheduler is ending, rather than this binding being cancelled.
        """
        cancelled = self._in_pre_bind.get(assumed.pod.uid)
        if cancelled is None or not cancelled.done():
            raise asyncio.CancelledError
        return failure_of("pre_bind", plugin.name, cancelled.result().message)

    async def _bind(self, assumed: Assumed) -> Status:
        pending = self._status_writer.pending_write(assumed.pod.pod)
        if pending is not None:
            # A status write of an earlier attempt must not arrive after the Binding.
            await asyncio.wait([pending])
        if self.bind_instead is not None:
            bound = await self.bind_instead(assumed.pod, assumed.pod.node_name)
            if bound is not None:
                return bound
        profile, cycle, pod, status = assumed.profile, assumed.cycle, assumed.pod, SKIP
        with profile.timer.phases[phases.BIND] as phase:
            for plugin in profile.bind_plugins:
                try:
                    status = await profile.ask_async(
                        phases.BIND, plugin, plugin.bind, cycle, pod, pod.node_name
                    )
                except PluginFailure as raised:
                    status = raised.status
                    break
                if not status.is_skip:
                    status = reported("bind", plugin.name, status)
                    break
            phase.code = status.code
        return status


def _groups(plugins: tuple[PreBindPlugin, ...], skipped: set[str]) -> list[list[PreBindPlugin]]:
    """Group adjacent plugins that may run concurrently; any other ends a group, even if skipped."""
    groups: list[list[PreBindPlugin]] = []
    if len(skipped) == len(plugins):
        return groups
    is_open = False
    for plugin in plugins:
        if not plugin.allows_parallel:
            is_open = False
        if plugin.name not in skipped:
            if is_open:
                groups[-1].append(plugin)
            else:
                groups.append([plugin])
                is_open = plugin.allows_parallel
    return groups
