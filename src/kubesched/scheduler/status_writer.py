"""StatusWriter sends status changes in the background, one after another per pod or pod group.

Writes that change nothing are not sent, such as the condition of a pod that is rejected again for
the same reasons.

Upstream: pkg/scheduler/schedule_one.go, updatePod; pkg/scheduler/util/utils.go, PatchPodStatus and
          PatchPodGroupStatus (v1.36)
Invariants: changes of one object are sent in order, each as a patch against the result of the one
            before; a pod is bound after them.
Differs:  the loop does not wait for each response; without SchedulerAsyncAPICalls, upstream's does;
          retries have no jitter, upstream's up to a tenth of the delay.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch, find_condition
from kubesched.api.core import Pod, PodCondition
from kubesched.api.errors import ApiError
from kubesched.api.meta import Condition
from kubesched.api.scheduling import PodGroup
from kubesched.scheduler.api_client import ApiClient, UnansweredWrites

_TRIES_MAX: Final = 4
_FIRST_DELAY_SECONDS: Final = 0.01
_DELAY_FACTOR: Final = 5.0

# The watch event of a write arrives within milliseconds, so far fewer are pending at once.
_WRITTEN_MAX: Final = 4096

log = logging.getLogger(__name__)


class _Written(NamedTuple):
    """The last write to a pod or group, and the version of the object it was based on."""

    version: str
    condition: ConditionPatch | None
    nominated_node_name: str | None


class StatusWriter:
    """Writes conditions and nominations."""

    def __init__(self, api: ApiClient, unanswered: UnansweredWrites) -> None:
        self._api = api
        self._unanswered = unanswered
        self._last: dict[str, asyncio.Task[bool]] = {}
        self._written: OrderedDict[str, _Written] = OrderedDict()

    def write(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> asyncio.Future[bool]:
        """Send a change after earlier ones; the result is whether it succeeded.

        Failures are only logged.
        """
        if self.is_written(pod, condition, nominated_node_name):
            unchanged = asyncio.get_running_loop().create_future()
            unchanged.set_result(True)
            return unchanged
        return self._write(pod, lambda: self._patch(pod, condition, nominated_node_name))

    def is_written(
        self, pod: Pod, condition: ConditionPatch | None, nominated_node_name: str | None
    ) -> bool:
        """Whether the pod has this state already, and no write to it is under way."""
        if _key(pod) in self._last:
            return False
        lacks = _changes(pod, condition, nominated_node_name)
        before = self._not_observed_yet(pod, lacks=lacks)
        return not _changes(_as_written(pod, before), condition, nominated_node_name)

    def pending_write(self, pod: Pod) -> asyncio.Task[bool] | None:
        """Return the last change of a pod that is still being sent, or None."""
        return self._last.get(_key(pod)) if self._last else None

    async def _patch(
        self, pod: Pod, condition: ConditionPatch | None, nominated_node_name: str | None
    ) -> None:
        """Send a change as a patch against the server's current state. Raises ApiError."""
        lacks = _changes(pod, condition, nominated_node_name)
        before = self._not_observed_yet(pod, lacks=lacks)
        pod = _as_written(pod, before)
        if not _changes(pod, condition, nominated_node_name):
            return
        self._written.pop(_key(pod), None)
        await self._api.patch_pod_status(pod, condition, nominated_node_name)
        if before is not None:
            condition = condition or before.condition
            if nominated_node_name is None:
                nominated_node_name = before.nominated_node_name
        self._keep(pod, condition, nominated_node_name)

    def _keep(
        self,
        item: Pod | PodGroup,
        condition: ConditionPatch | None,
        nominated_node_name: str | None,
    ) -> None:
        version = item.metadata.resource_version
        self._written[_key(item)] = _Written(version, condition, nominated_node_name)
        if len(self._written) > _WRITTEN_MAX:
            self._written.popitem(last=False)

    def _not_observed_yet(self, item: Pod | PodGroup, *, lacks: bool) -> _Written | None:
        """Return the last write to an object if this version of it may be older, or None.

        The version that the write was based on is older. Others may be, as the writes before it
        made some; they count as older unless the object lacks what is to be written now.
        """
        before = self._written.get(_key(item)) if self._written else None
        version = item.metadata.resource_version
        if before is None or not version or (lacks and before.version != version):
            return None
        return before

    def write_pod_group(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Send a group's condition after earlier ones; a group that was scheduled once keeps it."""
        self._write(group, lambda: self._patch_group(group, condition))

    async def _patch_group(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Send a condition that the group lacks on the server. Raises ApiError."""
        before = self._not_observed_yet(group, lacks=_changes_group(group, condition))
        if before is not None and before.condition is not None:
            conditions = before.condition.set_in(
                group.status.conditions, Condition, group.metadata.generation, None
            )
            group = replace(group, status=replace(group.status, conditions=conditions))
        if _changes_group(group, condition):
            await self._api.patch_pod_group_status(group, condition)
            self._keep(group, condition, None)

    def _write(
        self, item: Pod | PodGroup, send: Callable[[], Awaitable[None]]
    ) -> asyncio.Task[bool]:
        key = _key(item)
        sending = self._send_after(self._last.get(key), item, send)
        task = asyncio.get_running_loop().create_task(sending)
        self._last[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))
        return task

    def _forget(self, key: str, task: asyncio.Task[bool]) -> None:
        if self._last.get(key) is task:
            del self._last[key]

    async def drain(self) -> None:
        """Wait until all changes have been sent."""
        await drain(self._last.values())

    async def _send_after(
        self,
        before: asyncio.Task[bool] | None,
        item: Pod | PodGroup,
        send: Callable[[], Awaitable[None]],
    ) -> bool:
        if before is not None:
            await asyncio.wait([before])
        try:
            with self._unanswered:
                await with_retries(send)
        except ApiError as error:
            log.warning("Failed to patch status of %s: %s", _subject(item), error)
            return False
        return True


def _subject(item: Pod | PodGroup) -> str:
    return f"{'pod' if isinstance(item, Pod) else 'pod group'} {item.metadata.key}"


def _key(item: Pod | PodGroup) -> str:
    return item.metadata.uid or _subject(item)


def _changes(pod: Pod, condition: ConditionPatch | None, nominated_node_name: str | None) -> bool:
    """Whether the pod lacks the condition or nomination; ignores observedGeneration."""
    if nominated_node_name not in {None, pod.status.nominated_node_name}:
        return True
    return condition is not None and not condition.is_in(pod.status.conditions)


def _changes_group(group: PodGroup, condition: ConditionPatch) -> bool:
    """Whether a group gets a condition that it lacks; once True, it does not become False again."""
    known = find_condition(group.status.conditions, condition.type)
    if known is None:
        return True
    if known.status == "True" and condition.status != "True":
        return False
    is_observed = known.observed_generation == group.metadata.generation
    written = (known.type, known.status, known.reason, known.message)
    return not is_observed or written != msgspec.structs.astuple(condition)


def _as_written(pod: Pod, written: _Written | None) -> Pod:
    """Return the pod as it is on the server after a write whose watch event is still to come."""
    if written is None:
        return pod
    status, patch = pod.status, written.condition
    if patch is not None:
        conditions = patch.set_in(status.conditions, PodCondition, pod.metadata.generation, None)
        status = replace(status, conditions=conditions)
    if written.nominated_node_name is not None:
        status = replace(status, nominated_node_name=written.nominated_node_name)
    return replace(pod, status=status)


async def drain(tasks: Collection[asyncio.Task[object]]) -> None:
    """Wait until all tasks are done, including those that are added meanwhile."""
    while running := [task for task in tasks if not task.done()]:
        await asyncio.wait(running)


async def with_retries(send: Callable[[], Awaitable[None]]) -> None:
    """Send a status, with retries; raises the ApiError of the last attempt."""
    delay = _FIRST_DELAY_SECONDS
    for _ in range(_TRIES_MAX - 1):
        try:
            await send()
        except ApiError as error:
            if not error.is_transient:
                raise
        else:
            return
        await asyncio.sleep(delay)
        delay *= _DELAY_FACTOR
    await send()
