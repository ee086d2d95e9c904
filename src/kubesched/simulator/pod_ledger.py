"""PodLedger tracks all pods of the simulated API server: the pending ones, and bookings on nodes.

It is updated with every change, and its readers receive each step of a pod. Checkers are such a
reader; they assert invariants while a simulation runs:

- No node is overcommitted, as far as the scheduler could know.
- No pod is bound twice.
- No pod is lost: each pending pod that the scheduler has observed is in the queue, in flight,
  waiting on Permit, or assumed on a node.
- Queue, cache and ledger pass their own checks.

Invariants: a pending pod has no node; a node's bookings are the sum over pods that are bound to it
            and not finished (`check()`). Checking changes nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

import msgspec

from kubesched.api.core import FINISHED, Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.api.quantity import resource_values
from kubesched.cluster.store import Change, ChangeType, Key
from kubesched.framework.preemption.eligibility import is_preempted
from kubesched.scheduler.loop import Scheduler
from kubesched.simulator.node_life import Disruption
from kubesched.simulator.object_server import PODS, ObjectServer
from kubesched.simulator.world import World
from kubesched.snapshot.pod_info import PodInfo


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A pending pod: its `namespace/name`, and its creation time in seconds."""

    key: str
    since: float


class Booking(msgspec.Struct, frozen=True):
    """A pod's resources on its node: cpu in millicores, others in whole units; `pods` is 1."""

    node_name: str
    amounts: Mapping[str, int]


class LedgerReader:
    """Receives the steps of each pod; subclasses override what they need."""

    def pod_arrived(self, pod: Pod, now: float) -> None:
        """A pod without a node was created."""

    def pod_bound(self, pod: Pod, booking: Booking, waiting: Waiting | None, now: float) -> None:
        """A pod got its node; `waiting` is None if it was created with one."""

    def pod_released(self, pod: Pod, booking: Booking, now: float) -> None:
        """A pod released its node: it finished or was deleted."""

    def pending_pod_deleted(self, pod: Pod, waiting: Waiting, now: float) -> None:
        """A pending pod was deleted."""

    def pod_disrupted(self, pod: Pod, disruption: Disruption, now: float) -> None:
        """A pod was preempted, or an event of its node stopped it."""

    def node_changed(self, name: str, node: Node | None, now: float) -> None:
        """A node joined or changed; None if it left."""

    def capacity_changed(self, allocatable: Mapping[str, int], now: float) -> None:
        """Nodes changed; `allocatable` is the sum over all nodes, in units of bookings."""


class PodLedger:
    """Pending pods, and bookings on nodes.

    Attributes:
        waiting: The scheduler's pending pods by uid, in order of creation.
        bookings: Bookings by the pod's uid.
        booked: Node name -> resource -> sum of the bookings.
        allocatable: Node name -> its allocatable, in units of bookings.
        rebound: Pods whose node changed although they had one: (key, old, new).
        readers: Receive every step of a pod.
    """

    def __init__(self, server: ObjectServer, is_ours: Callable[[Pod], bool]) -> None:
        """Start on an empty server; `is_ours` says whether our scheduler schedules a pod."""
        self.waiting: dict[str, Waiting] = {}
        self.bookings: dict[str, Booking] = {}
        self.booked: dict[str, Counter[str]] = {}
        self.allocatable: dict[str, Mapping[str, int]] = {}
        self.rebound: list[tuple[str, str, str]] = []
        self.readers: list[LedgerReader] = []
        self._is_ours = is_ours
        self._now = server.now
        self._capacity: Counter[str] = Counter()
        # Each change is read as it is made, so the ledger is always current.
        server.store.on_write.append(self._read)

    def disrupted(self, pod: Pod, disruption: Disruption) -> None:
        """Report that a pod is stopped before its end."""
        for reader in self.readers:
            reader.pod_disrupted(pod, disruption, self._now())

    def _read(self, change: Change[KubeObject]) -> None:
        item, old = change.value, change.previous
        is_deleted = change.type is ChangeType.DELETED
        if isinstance(item, Pod):
            assert old is None or isinstance(old, Pod), "an object keeps its kind"
            if is_deleted or item.status.phase in FINISHED:
                self._deleted(item)
            elif old is None:
                self._add(item)
            else:
                self._changed(old, item)
        elif isinstance(item, Node):
            self._node_changed(item.metadata.name, None if is_deleted else item)

    # Nodes.

    def _node_changed(self, name: str, node: Node | None) -> None:
        before = self.allocatable.pop(name, {})
        after = {} if node is None else resource_values(node.status.allocatable)
        if node is not None:
            self.allocatable[name] = after
        for resource in dict.fromkeys((*before, *after)):
            self._capacity[resource] += after.get(resource, 0) - before.get(resource, 0)
        for reader in self.readers:
            reader.node_changed(name, node, self._now())
            if before != after:
                reader.capacity_changed(self._capacity, self._now())

    # Pods.

    def _add(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._book(pod, None)
        elif self._is_ours(pod):
            self.waiting[pod.metadata.uid] = Waiting(pod.metadata.key, self._now())
            for reader in self.readers:
                reader.pod_arrived(pod, self._now())

    def _changed(self, old: Pod, pod: Pod) -> None:
        if pod.spec.node_name != old.spec.node_name:
            if old.spec.node_name:
                key = pod.metadata.key
                self.rebound.append((key, old.spec.node_name, pod.spec.node_name))
                self._deleted(old)
            self._book(pod, self.waiting.pop(pod.metadata.uid, None))
        if is_preempted(pod) and not is_preempted(old):
            self.disrupted(pod, Disruption.PREEMPTED)

    def _book(self, pod: Pod, waiting: Waiting | None) -> None:
        name, amounts = pod.spec.node_name, {**PodInfo(pod).template.held, "pods": 1}
        booking = self.bookings[pod.metadata.uid] = Booking(name, amounts)
        self.booked.setdefault(name, Counter()).update(amounts)
        for reader in self.readers:
            reader.pod_bound(pod, booking, waiting, self._now())

    def _deleted(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        waiting = self.waiting.pop(uid, None)
        booking = self.bookings.pop(uid, None)
        if waiting is not None:
            for reader in self.readers:
                reader.pending_pod_deleted(pod, waiting, self._now())
        if booking is not None:
            booked = self.booked[booking.node_name]
            booked.subtract(booking.amounts)
            if not booked["pods"]:
                del self.booked[booking.node_name]
            for reader in self.readers:
                reader.pod_released(pod, booking, self._now())

    def check(self) -> None:
        """Assert that the ledger is consistent."""
        assert not self.waiting.keys() & self.bookings.keys(), "a pod waits and has a node"
        sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for booking in self.bookings.values():
            sums[booking.node_name].update(booking.amounts)
        assert sums == self.booked, "a node's bookings are not the sum of its pods'"


# Checkers.


class InvariantError(AssertionError):
    """An invariant is violated; the message has the time and the pod."""


class Checkers(LedgerReader):
    """Checks one simulation; `checks` counts the full checks."""

    def __init__(self, world: World, scheduler: Scheduler, ledger: PodLedger) -> None:
        self._world = world
        self._scheduler = scheduler
        self._ledger = ledger
        # Nodes with a binding whose response was lost may be overcommitted.
        self._excused: set[str] = set()
        self.checks = 0
        self._problems: list[str] = []
        world.api.on_unanswered = self._excused.add
        ledger.readers.append(self)

    # Checks of each step.

    def pod_bound(self, pod: Pod, booking: Booking, waiting: Waiting | None, now: float) -> None:
        """Check that the node of a newly bound pod is not overcommitted."""
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
        """Raise InvariantError if a violation was found since the last step."""
        for key, old, new in self._ledger.rebound:
            self._problems.append(f"pod {key} was bound to {old} and then to {new}")
        if self._problems:
            raise InvariantError(f"seed {self._world.random_streams.seed}: {self._problems[0]}")

    # Checks of everything.

    def check(self, now: float) -> None:
        """Run all checks.

        Raises InvariantError if an invariant is violated, AssertionError if the queue, the cache or
        the ledger is inconsistent.
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
