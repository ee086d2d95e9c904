"""WaitingPods are pods that were placed and that Permit plugins hold back from binding.

Upstream: pkg/scheduler/framework/runtime/waiting_pods_map.go (v1.36)
Invariants: a pod has one verdict; the first to give it wins.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from kubesched.api.go_text import go_duration
from kubesched.framework.status import SUCCESS, Code, Status
from kubesched.snapshot.pod_info import PodInfo

PERMIT_TIMEOUT_SECONDS_MAX: Final = 15 * 60.0

Timer = Callable[[float, Callable[[], None]], Callable[[], None]]
"""(delay in seconds, action) -> how to cancel it."""


class WaitingPod:
    """A pod and the plugins that it waits for.

    Attributes:
        pod: The pod.
        node_name: Where it was placed.
        verdict: What was decided; None while it waits.
    """

    def __init__(
        self, pod: PodInfo, node_name: str, timeouts_seconds: Mapping[str, float], timer: Timer
    ) -> None:
        self.pod = pod
        self.node_name = node_name
        self.verdict: Status | None = None
        self._on_verdict: Callable[[], None] | None = None
        self._cancel_timers = {
            plugin: timer(seconds, self._expire(plugin, seconds))
            for plugin, seconds in timeouts_seconds.items()
        }

    def _expire(self, plugin: str, seconds: float) -> Callable[[], None]:
        def expire() -> None:
            self.reject(
                plugin,
                f"rejected due to timeout after waiting {go_duration(seconds)} at plugin {plugin}",
            )

        return expire

    @property
    def pending_plugins(self) -> Sequence[str]:
        """The plugins that have not allowed it yet."""
        return list(self._cancel_timers)

    def allow(self, plugin: str) -> None:
        """Let it go on as far as `plugin` is concerned."""
        cancel = self._cancel_timers.pop(plugin, None)
        if cancel is None:
            return
        cancel()
        if not self._cancel_timers:
            self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """Send it back; return False if there is a verdict already."""
        return self._decide(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """Send it back because a more important pod needs the room."""
        return self._decide(Status(Code.ERROR, plugin=plugin, error=message))

    def when_decided(self, action: Callable[[], None]) -> None:
        """Call `action` once there is a verdict, now if there is one."""
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
        """Return a waiting pod, None if the pod does not wait."""
        return self._pods.get(uid)

    def add(self, waiting: WaitingPod) -> None:
        """Let a pod wait."""
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        """Forget a pod that waits no more."""
        self._pods.pop(uid, None)
