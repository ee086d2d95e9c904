"""Checkers assert, while a simulation runs, what must hold at any moment.

- No node is promised more than it has, as far as the scheduler could know.
- No pod is bound twice.
- No pod is forgotten: each that waits, and that the scheduler has heard of, is in its queue, in
  flight, waiting for permission, or assumed on a node.
- Queue, cache and books are in order by their own checks.

Cheap checks run when something changed; the others now and then.

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
    """Something happened that must never happen; the message has the moment and the pod."""


class Checkers(LedgerReader):
    """Checks one simulation.

    Attributes:
        checks: How many times everything was checked.
    """

    def __init__(self, world: World, scheduler: Scheduler, ledger: PodLedger) -> None:
        self._world = world
        self._scheduler = scheduler
        self._ledger = ledger
        self._excused: dict[str, None] = {}
        self.checks = 0
        self._problems: list[str] = []
        world.api.on_unanswered = self._excuse
        ledger.add_reader(self)

    def _excuse(self, node_name: str) -> None:
        """A pod was bound to a node without the scheduler knowing: it may place one too many."""
        self._excused[node_name] = None

    # What changed.

    def pod_bound(self, pod: Pod, booking: Booking, waiting: Waiting | None, now: float) -> None:
        """Look at the node of a pod that the scheduler placed."""
        if waiting is None or booking.node_name in self._excused:
            return
        allocatable = self._ledger.allocatable(booking.node_name)
        if allocatable is None:
            return
        booked = self._ledger.booked[booking.node_name]
        for resource, amount in booking.amounts.items():
            if amount and booked[resource] > allocatable.get(resource, 0):
                self._problems.append(
                    f"at {now:.3f} s node {booking.node_name} is promised {booked[resource]} of "
                    f"{allocatable.get(resource, 0)} {resource} when pod {booking.key} is bound"
                )

    def step(self, now: float) -> None:
        """Raise what was found since the last step.

        Raises:
            InvariantError: Something must never happen, and did.
        """
        for key, old, new in self._ledger.rebound:
            self._problems.append(f"pod {key} was bound to {old} and then to {new}")
        if self._problems:
            raise InvariantError(f"seed {self._world.random_streams.seed}: {self._problems[0]}")

    # Everything.

    def check(self, now: float) -> None:
        """Check everything.

        Raises:
            InvariantError: Something must never happen, and did.
            AssertionError: Queue, cache or books are not in order.
        """
        self.step(now)
        self._scheduler.queue.check()
        self._scheduler.cache.check()
        self._ledger.check()
        for uid, waiting in self._ledger.waiting.items():
            if self._scheduler.holds_changes:
                break  # What it has heard of is not taken in yet; it is at the end of the cycle.
            if not self._is_remembered(uid, waiting.key):
                raise InvariantError(
                    f"seed {self._world.random_streams.seed}: at {now:.3f} s pod {waiting.key}, "
                    f"which waits since {waiting.since:.3f} s, is nowhere"
                )
        self.checks += 1

    def _is_remembered(self, uid: str, key: str) -> bool:
        scheduler = self._scheduler
        if (
            key in scheduler.queue
            or scheduler.queue.is_in_flight(uid)
            or scheduler.cache.is_assumed(uid)
            or scheduler.waiting_pods.get(uid) is not None
        ):
            return True
        # What the scheduler has not heard of it cannot have forgotten.
        namespace, _, name = key.partition("/")
        known = self._world.informers[PODS].known.get(Key(PODS, namespace, name))
        return known is None or known.metadata.uid != uid
