"""Instruments measure a scheduler; the default measures nothing.

Upstream: pkg/scheduler/metrics (v1.36)
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
from kubesched.queue.hinting import ask_hint
from kubesched.queue.moves import ClusterChange
from kubesched.queue.registrations import Registration
from kubesched.scheduler.observer import Observer
from kubesched.scheduler.profile import Profile

if TYPE_CHECKING:
    from kubesched.scheduler.loop import Scheduler

_NOT_MEASURED: Final = Phase()


class Instruments(Observer):
    """Observes the loop and measures what it calls; subclasses override what they need.

    Attributes:
        now: A monotonic clock in seconds; the default always shows 0.0.
    """

    def __init__(self, now: Callable[[], float] = float) -> None:
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
