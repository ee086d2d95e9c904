"""Observer receives what the loop does, for metrics and reports; Instruments measure it, too.

Upstream: pkg/scheduler/metrics and its callers (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import ClusterEvent
from kubesched.framework.phase_timer import Phase, PhaseTimer
from kubesched.framework.services import PluginObserver
from kubesched.framework.status import Status
from kubesched.queue.hinting import ask_hint
from kubesched.queue.moves import ClusterChange
from kubesched.queue.registrations import Registration
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, FailedAttempt, RejectedAgain
from kubesched.scheduler.pod_group_outcome import Outcome
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.pod_info import PodInfo

if TYPE_CHECKING:
    from kubesched.scheduler.eviction import Preemption
    from kubesched.scheduler.loop import Scheduler

_NOT_MEASURED: Final = Phase()


class Observer:
    """Receives what the loop does; subclasses override what they need."""

    def decided(self, decision: Decision, started: float) -> None:
        """A scheduling cycle that began at `started` has ended."""

    def bound(self, assumed: Assumed, now: float) -> None:
        """A pod was bound."""

    def binding_failed(self, assumed: Assumed, status: Status, now: float) -> None:
        """A binding cycle failed and was undone."""

    def failed(self, attempt: FailedAttempt, now: float) -> None:
        """An attempt has ended without a binding."""

    def rejected_again(self, again: RejectedAgain, now: float) -> None:
        """Equal pods were rejected as before; by default as if they were tried one by one."""
        for decision, attempt in again.each():
            self.decided(decision, again.started)
            self.failed(attempt, now)

    def preempting(self, victims: int) -> None:
        """The eviction of this number of victims begins."""

    def evicted(self, victim: PodInfo, preemption: Preemption) -> None:
        """A victim was deleted; one that was not bound yet only loses its node."""

    def preempted(self, preemption: Preemption, started: float, *, is_success: bool) -> None:
        """A preemption in the background, begun at `started`, has ended."""

    def pod_group_tried(self, scheduler_name: str, started: float, now: float) -> None:
        """All pods of a group were tried in a cycle of the group that began at `started`."""

    def pod_group_decided(
        self, scheduler_name: str, outcome: Outcome, started: float, now: float
    ) -> None:
        """The group's cycle has ended: its pods are being bound or back in the queue."""


class Instruments(Observer):
    """Observes the loop and measures what it calls; subclasses override what they need.

    Attributes:
        now: A monotonic clock in seconds; the default always shows 0.0.
    """

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        self.now = now

    def plugin_observer(self, scheduler_name: str) -> PluginObserver:
        """Return the observer of a profile's plugins."""
        return PluginObserver()

    def phase_timer(self, profile: Profile) -> PhaseTimer:
        """Return what measures a profile's phases and plugins."""
        return PhaseTimer()

    def ask_hint(self, registration: Registration, change: ClusterChange, pod: Pod) -> bool:
        """Call a queueing hint."""
        return ask_hint(registration, change, pod)

    def handling(
        self, *events: ClusterEvent, prepared_seconds: float = 0.0
    ) -> AbstractContextManager[object]:
        """Return a context in which cache and queue are updated for events.

        It began `prepared_seconds` before it is entered.
        """
        return _NOT_MEASURED

    def attach(self, scheduler: Scheduler) -> None:
        """The scheduler is assembled; its sizes may be read from now on."""
