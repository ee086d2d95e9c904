"""DecisionLog writes the scheduler's decisions and actions as JSON lines.

The same scenario and seed give the same bytes; `digest` allows comparing runs without the bytes.

Invariants: a line depends on virtual time and on decisions alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec

from kubesched.framework.status import Status
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, Failed, Placed, Rejected, RejectedAgain
from kubesched.scheduler.observer import Observer

_SECONDS_DIGITS: Final = 6


class DecisionLine(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A line of the log; fields that do not apply are omitted.

    Attributes:
        at: Virtual seconds.
        what: `placed`, `rejected`, `failed`, `bound` or `bindingFailed`.
        pod: `namespace/name`.
        followers: How many equal pods behind it the line is about, too.
        node: The chosen or nominated node.
        feasible: Number of feasible nodes.
        message: The reason of a rejection or failure.
        victims: The pods to evict.
    """

    at: float
    what: str
    pod: str
    node: str = ""
    feasible: int = 0
    message: str = ""
    victims: tuple[str, ...] = ()
    followers: int = 0


class DecisionLog(Observer):
    """Writes each decision and action as a line of JSON, and counts the lines."""

    def __init__(self, write: Callable[[bytes], object] | None = None) -> None:
        """Start an empty log; `write` receives each line, None computes the digest only."""
        self.lines = 0
        self._write = write
        self._hash = hashlib.sha256()
        self._encode = msgspec.json.Encoder().encode

    @property
    def digest(self) -> str:
        """SHA-256 of all lines so far, in hexadecimal."""
        return self._hash.hexdigest()

    def decided(self, decision: Decision, now: float) -> None:
        """Log a decision."""
        at, key = round(now, _SECONDS_DIGITS), decision.pod.key
        match decision:
            case Placed(node_name=node_name, feasible=feasible):
                self._put(DecisionLine(at, "placed", key, node_name, feasible))
            case Rejected(message=message):
                node_name = decision.nominated_node_name or ""
                victims = tuple(victim.key for victim in decision.victims)
                self._put(DecisionLine(at, "rejected", key, node_name, 0, message, victims))
            case Failed(message=message):
                self._put(DecisionLine(at, "failed", key, message=message))

    def rejected_again(self, again: RejectedAgain, now: float) -> None:
        """Log that equal pods were rejected as before, in one line."""
        at, decision = round(again.started, _SECONDS_DIGITS), again.decision
        key, message, followers = decision.pod.key, decision.message, again.pods - 1
        self._put(DecisionLine(at, "rejected", key, message=message, followers=followers))

    def bound(self, assumed: Assumed, now: float) -> None:
        """Log that a pod was bound."""
        at, key = round(now, _SECONDS_DIGITS), assumed.pod.key
        self._put(DecisionLine(at, "bound", key, assumed.node_name))

    def binding_failed(self, assumed: Assumed, status: Status, now: float) -> None:
        """Log a failed binding."""
        at, key = round(now, _SECONDS_DIGITS), assumed.pod.key
        node_name, message = assumed.node_name, status.message
        self._put(DecisionLine(at, "bindingFailed", key, node_name, message=message))

    def _put(self, line: DecisionLine) -> None:
        written = self._encode(line) + b"\n"
        self.lines += 1
        self._hash.update(written)
        if self._write is not None:
            self._write(written)
