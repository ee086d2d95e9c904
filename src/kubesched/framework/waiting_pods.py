"""WaitingPods: pods that have a node and wait for Permit plugins before they are bound.

Upstream: pkg/scheduler/framework/runtime/waiting_pods_map.go (v1.36)
Invariants: a pod has at most one verdict, the first.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from kubesched.api.go_text import go_duration
from kubesched.framework.status import SUCCESS, Code, Status
from kubesched.snapshot.pod_info import PodInfo

PERMIT_TIMEOUT_SECONDS_MAX: Final = 15 * 60.0

Timer = Callable[[float, Callable[[], None]], Callable[[], None]]
"""(delay in seconds, action) -> function that cancels the timer."""


class WaitingPod:
    """A pod and the plugins that it waits for.

    Attributes:
        pod: The pod.
        node_name: Its node.
        verdict: The decision; None while the pod waits.
    """

    def __init__(
        self, pod: PodInfo, node_name: str, timeouts_seconds: Mapping[str, float], timer: Timer
    ) -> None:
        self.pod = pod
        self.node_name = node_name
        self.verdict: Status | None = None
        self._on_verdict: Callable[[], None] | None = None
        self._cancel_timers = {
            plugin: timer(seconds, partial(self._expire, plugin, seconds))
            for plugin, seconds in timeouts_seconds.items()
        }

    def _expire(self, plugin: str, seconds: float) -> None:
        waited = go_duration(seconds)
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    @property
    def pending_plugins(self) -> Sequence[str]:
        """The plugins that have not allowed it yet."""
        return list(self._cancel_timers)

    def allow(self, plugin: str) -> None:
        """Record the approval of `plugin`; the last approval decides."""
        cancel = self._cancel_timers.pop(plugin, None)
        if cancel is None:
            return
        cancel()
        if not self._cancel_timers:
            self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """Reject the pod; return False if there is a verdict already."""
        return self._decide(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """Reject the pod in favour of a more important one; return False as `reject`."""
        return self._decide(Status(Code.ERROR, plugin=plugin, error=message))

    def when_decided(self, action: Callable[[], None]) -> None:
        """Call `action` when there is a verdict, immediately if there is one."""
        if self.verdict is not None:
            action()
        else:
            self._on_verdict = action

    def _decide(self, verdict: Status) -> bool:
        if self.verdict is not None:
            return False
        self.verdict = verdict
        for cancel in self._cancel_timers.values():
            cancel()
        if self._on_verdict is not None:
            self._on_verdict()
        return True


class WaitingPods:
    """All waiting pods of all profiles, by uid."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        """Return a waiting pod, or None if the pod does not wait."""
        return self._pods.get(uid)

    def add(self, waiting: WaitingPod) -> None:
        """Add a pod."""
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        """Remove a pod, if present."""
        self._pods.pop(uid, None)
