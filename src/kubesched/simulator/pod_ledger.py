"""PodLedger tracks all pods of the simulated API server: the pending ones, and bookings on nodes.

It is updated with every change. Readers that register receive each step of a pod.

Invariants: a pending pod has no node; a node's bookings are the sum over pods that are bound to it
            and not finished (`check()`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from kubesched.api.core import FINISHED, Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.api.quantity import resource_values
from kubesched.cluster.store import Change, ChangeType
from kubesched.framework.preemption.eligibility import is_preempted
from kubesched.simulator.object_server import ObjectServer
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

    def pod_disrupted(self, pod: Pod, now: float) -> None:
        """A pod was marked as a preemption victim."""

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
        allocatable: Node name -> its allocatable, in units of bookings; in order of creation.
        rebound: Pods whose node changed although they had one: (key, old, new).
    """

    def __init__(
        self,
        server: ObjectServer,
        is_ours: Callable[[Pod], bool],
        now: Callable[[], float],
    ) -> None:
        """Start with the current objects; `now` returns the time in seconds.

        `is_ours` says whether the simulated scheduler is responsible for a pod.
        """
        self.waiting: dict[str, Waiting] = {}
        self.bookings: dict[str, Booking] = {}
        self.booked: dict[str, dict[str, int]] = {}
        self.allocatable: dict[str, Mapping[str, int]] = {}
        self.rebound: list[tuple[str, str, str]] = []
        self._readers: list[LedgerReader] = []
        self._is_ours = is_ours
        self._now = now
        self._capacity: dict[str, int] = {}
        for node in server.all(Node):
            self._node_is(node.metadata.name, node)
        for pod in server.all(Pod):
            self._add(pod)
        # Each change is read as it is made, so the ledger is always current.
        server.store.on_write = self._read

    def add_reader(self, reader: LedgerReader) -> None:
        """Pass the current state to a reader, then every later step."""
        self._readers.append(reader)
        reader.capacity_changed(self._capacity, self._now())

    def _read(self, change: Change[KubeObject]) -> None:
        item, old = change.value, change.previous
        is_deleted = change.type is ChangeType.DELETED
        if isinstance(item, Pod):
            assert old is None or isinstance(old, Pod), "an object keeps its kind"
            self._pod_is(old, item, is_deleted=is_deleted)
        elif isinstance(item, Node):
            self._node_changed(item.metadata.name, None if is_deleted else item)

    # Nodes.

    def _node_changed(self, name: str, after: Node | None) -> None:
        has_changed = self._node_is(name, after)
        for reader in self._readers:
            reader.node_changed(name, after, self._now())
            if has_changed:
                reader.capacity_changed(self._capacity, self._now())

    def _node_is(self, name: str, node: Node | None) -> bool:
        """Record a node's allocatable; return whether it changed."""
        before = self.allocatable.get(name, {})
        after = {} if node is None else resource_values(node.status.allocatable)
        if node is None:
            self.allocatable.pop(name, None)
        else:
            self.allocatable[name] = after
        for resource in dict.fromkeys((*before, *after)):
            change = after.get(resource, 0) - before.get(resource, 0)
            self._capacity[resource] = self._capacity.get(resource, 0) + change
        return before != after

    # Pods.

    def _pod_is(self, old: Pod | None, pod: Pod, *, is_deleted: bool) -> None:
        if is_deleted or pod.status.phase in FINISHED:
            self._deleted(pod)
        elif old is None:
            self._add(pod)
        else:
            self._changed(old, pod)

    def _add(self, pod: Pod) -> None:
        if pod.status.phase in FINISHED:
            return
        if pod.spec.node_name:
            self._book(pod, None)
        elif self._is_ours(pod):
            self.waiting[pod.metadata.uid] = Waiting(pod.metadata.key, self._now())
            for reader in self._readers:
                reader.pod_arrived(pod, self._now())

    def _changed(self, old: Pod, pod: Pod) -> None:
        if pod.spec.node_name != old.spec.node_name:
            if old.spec.node_name:
                key = pod.metadata.key
                self.rebound.append((key, old.spec.node_name, pod.spec.node_name))
                self._deleted(old)
            self._book(pod, self.waiting.pop(pod.metadata.uid, None))
        if is_preempted(pod) and not is_preempted(old):
            for reader in self._readers:
                reader.pod_disrupted(pod, self._now())

    def _book(self, pod: Pod, waiting: Waiting | None) -> None:
        name, amounts = pod.spec.node_name, {**PodInfo(pod).template.held, "pods": 1}
        booking = self.bookings[pod.metadata.uid] = Booking(name, amounts)
        booked = self.booked.setdefault(name, {})
        for resource, amount in amounts.items():
            booked[resource] = booked.get(resource, 0) + amount
        for reader in self._readers:
            reader.pod_bound(pod, booking, waiting, self._now())

    def _deleted(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        waiting = self.waiting.pop(uid, None)
        booking = self.bookings.pop(uid, None)
        if waiting is not None:
            for reader in self._readers:
                reader.pending_pod_deleted(pod, waiting, self._now())
        if booking is not None:
            self._release(booking)
            for reader in self._readers:
                reader.pod_released(pod, booking, self._now())

    def _release(self, booking: Booking) -> None:
        booked = self.booked[booking.node_name]
        for resource, amount in booking.amounts.items():
            booked[resource] -= amount
        if not booked["pods"]:
            del self.booked[booking.node_name]

    def check(self) -> None:
        """Assert that the ledger is consistent."""
        assert not self.waiting.keys() & self.bookings.keys(), "a pod waits and has a node"
        sums: dict[str, dict[str, int]] = {}
        for booking in self.bookings.values():
            on_node = sums.setdefault(booking.node_name, {})
            for resource, amount in booking.amounts.items():
                on_node[resource] = on_node.get(resource, 0) + amount
        assert sums == self.booked or _without_zeros(sums) == _without_zeros(self.booked), (
            "a node's bookings are not the sum of its pods'"
        )


def _without_zeros(booked: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {
        name: {resource: amount for resource, amount in amounts.items() if amount}
        for name, amounts in booked.items()
    }
