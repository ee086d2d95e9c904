"""The writes of an API server, in order."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

import msgspec

from kubesched.apiserver.stored_object import StoredObject
from kubesched.cluster.store import Change, ChangeType

LEASES: Final = "leases.coordination.k8s.io"
PODS: Final = "pods"

WRITER: Final[ContextVar[str]] = ContextVar("WRITER", default="")
"""The replica that sent the current request, "" for the harness."""


class LeaseWrite(msgspec.Struct, frozen=True):
    """A write of the lease.

    Attributes:
        seconds: The time.
        writer: The replica that wrote it.
        holder: The identity in it; "" once it was released.
        transitions: Its `leaseTransitions`.
        lease_seconds: Its `leaseDurationSeconds`.
    """

    seconds: float
    writer: str
    holder: str
    transitions: int
    lease_seconds: int


class Bound(msgspec.Struct, frozen=True):
    """A pod that was bound.

    Attributes:
        seconds: The time.
        writer: The replica that bound it.
        pod: Its name.
        uid: Its uid.
        node: The node's name.
        former_node: The node it had before; "" in a correct history.
    """

    seconds: float
    writer: str
    pod: str
    uid: str
    node: str
    former_node: str = ""


class Posted(msgspec.Struct, frozen=True):
    """A request for a binding.

    Attributes:
        seconds: The time of the answer.
        writer: The replica that sent it.
        pod: The pod's name.
        code: The status of the answer; 0 for no answer.
    """

    seconds: float
    writer: str
    pod: str
    code: int


class Pod(msgspec.Struct, frozen=True):
    """A pod that was created or deleted.

    Attributes:
        seconds: The time.
        name: Its name.
        uid: Its uid.
        is_there: Whether it was created.
    """

    seconds: float
    name: str
    uid: str
    is_there: bool


Entry = LeaseWrite | Bound | Posted | Pod


class History:
    """All writes of a server, also across its restarts.

    Attributes:
        entries: The writes in order.
        holder: The replica that wrote the lease last, "" if it gave it back.
        unbound: Names of pods without a node.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.holder = ""
        self.unbound: dict[str, None] = {}

    def add_change(self, change: Change[StoredObject], seconds: float) -> None:
        """Record a write."""
        if change.key.kind == LEASES:
            self._add_lease(change.value.plain, seconds)
        elif change.key.kind == PODS:
            self._add_pod(change, seconds)

    def _add_lease(self, plain: dict[str, Any], seconds: float) -> None:
        spec = plain["spec"]
        entry = LeaseWrite(
            seconds,
            WRITER.get(),
            spec.get("holderIdentity") or "",
            spec.get("leaseTransitions") or 0,
            spec.get("leaseDurationSeconds") or 0,
        )
        self.holder = entry.writer if entry.holder else ""
        self.entries.append(entry)

    def _add_pod(self, change: Change[StoredObject], seconds: float) -> None:
        metadata, name = change.value.plain["metadata"], change.key.name
        is_there = change.type is not ChangeType.DELETED
        if change.type is not ChangeType.MODIFIED:
            self.entries.append(Pod(seconds, name, metadata["uid"], is_there))
        node, former = _node_of(change.value), _node_of(change.previous)
        if is_there and not node:
            self.unbound[name] = None
        else:
            self.unbound.pop(name, None)
        if is_there and node != former:
            entry = Bound(seconds, WRITER.get(), name, metadata["uid"], node, former)
            self.entries.append(entry)


def _node_of(stored: StoredObject | None) -> str:
    return "" if stored is None else stored.plain["spec"].get("nodeName") or ""
