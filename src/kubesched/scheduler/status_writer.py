"""StatusWriter sends status changes in the background, one after another per pod or pod group.

Upstream: pkg/scheduler/util/utils.go, PatchPodStatus and PatchPodGroupStatus (v1.36)
Invariants: changes of one object arrive in the order they were asked for.
Differs:  the loop does not wait for the answer; upstream's does, without SchedulerAsyncAPICalls;
          tries are not spread by up to a tenth of the delay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.errors import ApiError
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheduling import PodGroup
from kubesched.scheduler.api_client import ApiClient, PodConditionPatch, PodGroupConditionPatch

_TRIES_MAX: Final = 4
_FIRST_DELAY_SECONDS: Final = 0.01
_DELAY_FACTOR: Final = 5.0

log = logging.getLogger(__name__)


class StatusWriter:
    """Writes conditions and nominations."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._last: dict[str, asyncio.Task[bool]] = {}

    def write(
        self,
        pod: Pod,
        condition: PodConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> asyncio.Task[bool]:
        """Send a change after those that were asked for before; the task says whether it is made.

        Failures are logged only.
        """
        return self._write(
            "pod",
            pod.metadata,
            lambda: self._api.patch_pod_status(pod, condition, nominated_node_name),
        )

    def write_pod_group(
        self, group: PodGroup, condition: PodGroupConditionPatch
    ) -> asyncio.Task[bool]:
        """Send a group's condition after those that were asked for before."""
        return self._write(
            "pod group",
            group.metadata,
            lambda: self._api.patch_pod_group_status(group, condition),
        )

    def _write(
        self, kind: str, metadata: ObjectMeta, send: Callable[[], Awaitable[None]]
    ) -> asyncio.Task[bool]:
        subject = f"{kind} {metadata.namespace}/{metadata.name}"
        uid = metadata.uid or subject
        task = asyncio.ensure_future(self._send_after(self._last.get(uid), subject, send))
        self._last[uid] = task
        task.add_done_callback(lambda done: self._forget(uid, done))
        return task

    def _forget(self, uid: str, task: asyncio.Task[bool]) -> None:
        if self._last.get(uid) is task:
            del self._last[uid]

    async def drain(self) -> None:
        """Wait until everything asked for has been sent."""
        while self._last:
            await asyncio.gather(*self._last.values(), return_exceptions=True)

    async def _send_after(
        self,
        before: asyncio.Task[bool] | None,
        subject: str,
        send: Callable[[], Awaitable[None]],
    ) -> bool:
        if before is not None:
            await asyncio.wait([before])
        try:
            await with_retries(send)
        except ApiError as error:
            log.warning("Failed to patch status of %s: %s", subject, error)
            return False
        return True


async def with_retries(send: Callable[[], Awaitable[None]]) -> None:
    """Send a status, a few times if need be.

    Raises:
        ApiError: What was said to the last try.
    """
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
