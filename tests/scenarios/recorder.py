"""Recorder writes a line for each action of a scheduler, with the virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kubesched.api.core import Pod
from kubesched.cache.cache import Cache
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import Status
from kubesched.queue.hinting import ask_hint
from kubesched.queue.moves import SCHEDULE_ATTEMPT_FAILURE, ClusterChange, QueueMove, QueuePlace
from kubesched.queue.registrations import Registration
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, Failed, Placed, Rejected
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Observer
from kubesched.snapshot.pod_info import PodInfo

PLACES: Final = {
    QueuePlace.ACTIVE: "activeQ",
    QueuePlace.BACKOFF: "backoffQ",
    QueuePlace.UNSCHEDULABLE: "unschedulablePods",
    QueuePlace.IN_FLIGHT: "in flight",
    QueuePlace.NOWHERE: "-",
}


def short(key: str) -> str:
    """Return a pod's `namespace/name` without the default namespace."""
    return key.removeprefix("default/")


def name_of(pod: Pod) -> str:
    """Return a pod's name as transcripts have it."""
    return short(f"{pod.metadata.namespace}/{pod.metadata.name}")


def seconds_of(now: float) -> str:
    """Return a time or duration in seconds, as short as possible."""
    return f"{now:.2f}".rstrip("0").rstrip(".")


def rejectors_of(queued: QueuedPodInfo) -> str:
    """Return the plugins that rejected a pod; pending ones with a question mark."""
    pending = queued.pending_plugins
    names = (f"{name}?" if name in pending else name for name in sorted(queued.rejecting_plugins))
    return f"[{' '.join(names)}]"


class Recorder(Observer):
    """Keeps lines until they are taken.

    Attributes:
        categories: Which lines are kept; empty for all.
    """

    def __init__(self) -> None:
        self.categories: frozenset[str] = frozenset()
        self._lines: list[str] = []
        self._said: dict[str, str] = {}

    def message(self, pod: str, text: str) -> str:
        """Return a message in quotes; the pod's last one is not repeated."""
        return "<message>" if self._said.get(pod) == text else f'"{text}"'

    def write(self, category: str, text: str) -> None:
        """Write a line."""
        if not self.categories or category in self.categories:
            now = seconds_of(asyncio.get_running_loop().time())
            self._lines.append(f"{now:<7} {category:<8} {text}")

    def take(self) -> list[str]:
        """Return the lines since the last call."""
        lines, self._lines = self._lines, []
        return lines

    def follow(self, scheduler: Scheduler) -> None:
        """Record a scheduler."""
        queue = scheduler.queue
        queue.observers.append(lambda move: self._moved(move, queue))
        # The queue of a live scheduler is handed what times hints in the same place.
        queue.hints._ask = self._asked
        self._follow_cache(scheduler.cache)

    # kubesched.scheduler.loop.Observer

    def decided(self, decision: Decision, started: float) -> None:
        """Write a decision."""
        name = short(decision.pod.key)
        if not isinstance(decision, Placed):
            self._said[name] = decision.message
        match decision:
            case Placed(node_name=node, feasible=feasible):
                self.write("decided", f"{name}: placed on {node}, {feasible} feasible")
            case Rejected(message=message):
                self.write("decided", f"{name}: rejected: {message}")
                if decision.nominated_node_name:
                    victims = ", ".join(short(victim.key) for victim in decision.victims)
                    node = decision.nominated_node_name
                    self.write("decided", f"{name}: nominated to {node}, victims {victims or '-'}")
            case Failed(message=message):
                self.write("decided", f"{name}: failed: {message}")

    def bound(self, assumed: Assumed, now: float) -> None:
        """Write a binding."""
        self.write("bound", f"{short(assumed.pod.key)} to {assumed.pod.node_name}")

    def binding_failed(self, assumed: Assumed, status: Status, now: float) -> None:
        """Write that a binding cycle failed."""
        name = short(assumed.pod.key)
        by = f" by {status.plugin}" if status.plugin else ""
        self._said[name] = status.message
        self.write("binding", f"{name} failed, {status.code.label}{by}: {status.message}")

    # The queue.

    def _moved(self, move: QueueMove, queue: SchedulingQueue) -> None:
        origin, destination = PLACES[move.origin], PLACES[move.destination]
        line = f"{short(move.pod)}: {origin} > {destination} by {move.event}"
        queued = queue.get_pod(move.pod)
        if move.gating_plugin:
            line += f", gated by {move.gating_plugin}"
        elif move.event == SCHEDULE_ATTEMPT_FAILURE and queued is not None:
            line += f" {rejectors_of(queued)}"
        self.write("queue", line)

    def _asked(self, registration: Registration, change: ClusterChange, pod: Pod) -> bool:
        event = change.event.label
        line = f"{name_of(pod)}: {registration.plugin} on {event}"
        try:
            is_worth_it = ask_hint(registration, change, pod)
        except Exception:
            self.write("hint", f"{line}: Error")
            raise
        self.write("hint", f"{line}: {'Queue' if is_worth_it else 'QueueSkip'}")
        return is_worth_it

    # The cache.

    def _follow_cache(self, cache: Cache) -> None:
        assume, forget = cache.assume_pod, cache.forget_pod

        def assume_pod(info: PodInfo, node_name: str) -> PodInfo:
            there = assume(info, node_name)
            self.write("cache", f"{short(info.key)} assumed on {node_name}")
            return there

        def forget_pod(info: PodInfo) -> None:
            forget(info)
            self.write("cache", f"{short(info.key)} forgotten")

        replacements: dict[str, Callable[..., object]] = {
            "assume_pod": assume_pod,
            "forget_pod": forget_pod,
        }
        for name, replacement in replacements.items():
            setattr(cache, name, replacement)
