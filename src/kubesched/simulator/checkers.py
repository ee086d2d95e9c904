"""Checkers assert invariants while a simulation runs.

- No node is overcommitted, as far as the scheduler could know.
- No pod is bound twice.
- No pod is lost: each pending pod that the scheduler has observed is in the queue, in flight,
  waiting on Permit, or assumed on a node.
- Queue, cache and ledger pass their own checks.

Cheap checks run after each change, the others periodically.

Invariants: checking changes nothing.
"""

from __future__ import annotations

from kubesched.api.core import Pod
from kubesched.cluster.store import Key
from kubesched.scheduler.loop import Scheduler
from kubesched.simulator.object_server import PODS
from kubesched.simulator.pod_ledger import Booking, LedgerReader, PodLedger, Waiting
from kubesched.simulator.world import World


class InvariantError(AssertionError):
    """An invariant is violated; the message has the time and the pod."""


class Checkers(LedgerReader):
    """Checks one simulation; `checks` counts the full checks."""

    def __init__(self, world: World, scheduler: Scheduler, ledger: PodLedger) -> None:
        self._world = world
        self._scheduler = scheduler
        self._ledger = ledger
        self._excused: dict[str, None] = {}
        self.checks = 0
        self._problems: list[str] = []
        world.api.on_unanswered = self._exempt
        ledger.add_reader(self)

    def _exempt(self, node_name: str) -> None:
        """Exempt a node with a binding whose response was lost: it may be overcommitted."""
        self._excused[node_name] = None

    # What changed.

    def pod_bound(self, pod: Pod, booking: Booking, waiting: Waiting | None, now: float) -> None:
        """Mark the node of a newly bound pod to be checked."""
        if waiting is None or booking.node_name in self._excused:
            return
        allocatable = self._ledger.allocatable.get(booking.node_name)
        if allocatable is None:
            return
        booked = self._ledger.booked[booking.node_name]
        for resource, amount in booking.amounts.items():
            if amount and booked[resource] > allocatable.get(resource, 0):
                self._problems.append(
                    f"at {now:.3f} s node {booking.node_name} has {booked[resource]} of "
                    f"{allocatable.get(resource, 0)} {resource} requested when pod "
                    f"{pod.metadata.key} is bound"
                )

    def step(self) -> None:
        """Raise a violation found since the last step.

        Raises:
            InvariantError: if an invariant is violated.
        """
        for key, old, new in self._ledger.rebound:
            self._problems.append(f"pod {key} was bound to {old} and then to {new}")
        if self._problems:
            raise InvariantError(f"seed {self._world.random_streams.seed}: {self._problems[0]}")

    # Everything.

    def check(self, now: float) -> None:
        """Run all checks.

        Raises:
            InvariantError: if an invariant is violated.
            AssertionError: if the queue, cache or ledger is inconsistent.
        """
        self.step()
        self._scheduler.queue.check()
        self._scheduler.cache.check()
        self._ledger.check()
        for uid, waiting in self._ledger.waiting.items():
            if self._scheduler.holds_changes:
                break  # Observed changes are applied at the end of the cycle.
            if not self._is_tracked(uid, waiting.key):
                raise InvariantError(
                    f"seed {self._world.random_streams.seed}: at {now:.3f} s pod {waiting.key}, "
                    f"which waits since {waiting.since:.3f} s, is nowhere"
                )
        self.checks += 1

    def _is_tracked(self, uid: str, key: str) -> bool:
        scheduler = self._scheduler
        if (
            key in scheduler.queue
            or scheduler.queue.is_in_flight(uid)
            or scheduler.cache.is_assumed(uid)
            or scheduler.waiting_pods.get(uid) is not None
        ):
            return True
        # A pod that the scheduler has not observed yet cannot be lost.
        namespace, _, name = key.partition("/")
        known = self._world.informers[PODS].known.get(Key(PODS, namespace, name))
        return known is None or known.metadata.uid != uid
