"""LivelockGuard lets virtual time pass where pods are tried again and again at one moment.

Otherwise the virtual clock would never move: with a Permit timeout of 0, for example, each attempt
leads to the next one, as it does where a pod evicts others whose replacements are in its way.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import FailedAttempt, RejectedAgain
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Observer
from kubesched.snapshot.pod_info import PodInfo

if TYPE_CHECKING:
    from kubesched.scheduler.eviction import Preemption

_ATTEMPTS_MAX: Final = 10
"""With in-tree plugins fewer are needed."""
_PREEMPTIONS_MAX: Final = 100


class LivelockGuard(Observer):
    """Counts attempts that changed nothing, and preemptions, by pod, at the current time."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Follow a scheduler, and let it wait for time to pass after too many attempts."""
        self._attempts: Counter[str] = Counter()
        self._preemptions: Counter[str] = Counter()
        self._failed_last = 0.0
        self._waits = False
        self._preempts_too_often = False
        self._now = scheduler.now
        scheduler.observers.append(self)
        scheduler.may_decide = self._may_decide

    def failed(self, attempt: FailedAttempt, now: float) -> None:
        """Count the attempt."""
        if now != self._failed_last:
            self._failed_last = now
            self._preemptions.clear()
            self._preempts_too_often = False
            self._restart()
        uid = attempt.queued.pod_info.uid
        self._attempts[uid] += 1
        self._waits |= self._attempts[uid] >= _ATTEMPTS_MAX

    def rejected_again(self, again: RejectedAgain, now: float) -> None:
        """Count nothing: equal pods are rejected together only after a change."""

    def bound(self, assumed: Assumed, now: float) -> None:
        """Start again: the cluster has changed."""
        self._restart()

    def evicted(self, victim: PodInfo, preemption: Preemption) -> None:
        """Start again: the cluster has changed."""
        self._restart()

    def preempted(self, preemption: Preemption, started: float, *, is_success: bool) -> None:
        """Count the preemption."""
        uid = preemption.preemptor.uid
        self._preemptions[uid] += 1
        self._preempts_too_often |= self._preemptions[uid] >= _PREEMPTIONS_MAX

    def _restart(self) -> None:
        self._attempts.clear()
        self._waits = False

    def _may_decide(self) -> bool:
        waits = self._waits or self._preempts_too_often
        return not waits or self._now() != self._failed_last
