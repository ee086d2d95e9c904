"""DecisionRecorder writes what a scheduler observes and decides, one JSON line each.

    {"type":"RECORDING","version":1,"recordedBy":"run","schedulerNames":["default-scheduler"]}
    {"type":"ADDED","at":0.0,"object":{...}}             also MODIFIED and DELETED, as in a watch
    {"type":"SYNCED","at":0.2}                           the cluster is known
    {"type":"DECIDED","at":1.5,"decision":{"pod":"shop/web-1","uid":"...","node":"n1"}}
    {"type":"UNDONE","at":1.6,"decision":{...}}          the pod was not bound to that node
    {"type":"END","at":60.0}

Invariants: the lines are in the order in which cache and queue change, so a scheduler that applies
            those before a decision is in the state in which the decision was made.
Differs:  upstream records nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Final

import msgspec

from kubesched.api.codec import encode_json
from kubesched.api.meta import KubeObject, ResourceEventHandler
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, FailedAttempt, Placed, Rejected
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Observer

RECORDING_VERSION: Final = 1
_SECONDS_DIGITS: Final = 6
_NO_OBJECT: Final = msgspec.Raw(b"")


class LineType(StrEnum):
    """What a line of a recording is."""

    RECORDING = "RECORDING"
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"
    DECIDED = "DECIDED"
    UNDONE = "UNDONE"
    END = "END"


class RecordedBy(StrEnum):
    """The command that wrote a recording."""

    RUN = "run"
    SIMULATE = "simulate"
    SHADOW = "shadow"


class RecordedDecision(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A decision.

    Attributes:
        pod: `namespace/name`.
        uid: The pod's uid.
        node: The chosen node; "" if there is none.
        message: Why there is none.
        nominated_node: The node to nominate the pod to; "" clears a nomination, None keeps it.
        next_start: Where the next search begins, if searches look at a part of the nodes.
        version: The resource version of the pod with the decision, if it was observed.
    """

    pod: str
    uid: str
    node: str = ""
    message: str = ""
    nominated_node: str | None = None
    next_start: int = 0
    version: str = ""


class RecordedLine(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A line of a recording; fields that do not apply are omitted.

    Attributes:
        type: What it is.
        at: Seconds since the recording began.
        object: The object of a watch event, as JSON.
        final_state_unknown: Whether the last state before a deletion was missed.
        decision: What was decided or undone.
        version: The version of the format.
        recorded_by: The command that wrote it.
        scheduler_names: The schedulers whose decisions are recorded.
    """

    type: LineType
    at: float = 0.0
    object: msgspec.Raw = _NO_OBJECT
    final_state_unknown: bool = False
    decision: RecordedDecision | None = None
    version: int = 0
    recorded_by: RecordedBy | None = None
    scheduler_names: tuple[str, ...] = ()


class DecisionRecorder(Observer):
    """Writes a recording.

    It observes the decisions of a scheduler's loop, and wraps its event handlers: each event is
    written after they have applied it.
    """

    def __init__(
        self,
        recorded_by: RecordedBy,
        write: Callable[[bytes], object],
        keep: Callable[[KubeObject], KubeObject],
    ) -> None:
        """Set up; `write` will receive each line with its newline.

        `keep` returns what is recorded of an object, without credentials.
        """
        self._recorded_by = recorded_by
        self._write = write
        self._keep = keep
        self._encode = msgspec.json.Encoder().encode
        self._handlers: ResourceEventHandler
        self._scheduler: Scheduler
        self._began: float | None = None
        self._placed: set[str] = set()

    def connect(self, handlers: ResourceEventHandler, scheduler: Scheduler) -> None:
        """Begin, before the first event: pass events to the handlers of a scheduler."""
        self._handlers = handlers
        self._scheduler = scheduler
        self._put(
            RecordedLine(
                LineType.RECORDING,
                self._at(),
                version=RECORDING_VERSION,
                recorded_by=self._recorded_by,
                scheduler_names=tuple(scheduler.profiles),
            )
        )

    def synced(self) -> None:
        """Write that the cluster is known."""
        self._put(RecordedLine(LineType.SYNCED, self._at()))

    @property
    def has_begun(self) -> bool:
        """Whether anything was written."""
        return self._began is not None

    def end(self) -> None:
        """Write the last line, without which a recording is incomplete."""
        self._put(RecordedLine(LineType.END, self._at()))

    # Events.

    def added(self, item: KubeObject) -> None:
        """Apply and write an added object."""
        self._handlers.added(item)
        self._put_object(LineType.ADDED, item)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Apply and write a changed object."""
        self._handlers.updated(old, new)
        self._put_object(LineType.MODIFIED, new)

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Apply and write a deletion."""
        self._handlers.deleted(item, is_final_state_known=is_final_state_known)
        self._put_object(LineType.DELETED, item, final_state_unknown=not is_final_state_known)

    def _put_object(
        self, type_: LineType, item: KubeObject, *, final_state_unknown: bool = False
    ) -> None:
        # Where the handlers defer a change, its line has to wait as well.
        again = partial(self._put_object, type_, item, final_state_unknown=final_state_unknown)
        if self._scheduler.defers(again):
            return
        encoded = msgspec.Raw(encode_json(self._keep(item)))
        self._put(RecordedLine(type_, self._at(), encoded, final_state_unknown=final_state_unknown))

    # Decisions.

    def observed(self, decision: RecordedDecision) -> None:
        """Write a decision of another scheduler."""
        self._put_decision(LineType.DECIDED, decision)

    def decided(self, decision: Decision, started: float) -> None:
        """Write a decision."""
        pod = decision.pod
        node = message = ""
        nominated: str | None = ""
        if isinstance(decision, Placed):
            node = decision.node_name
            self._placed.add(pod.uid)
        else:
            message = decision.message
        if isinstance(decision, Rejected):
            nominated = decision.nominated_node_name
        next_start = self._scheduler.cycles[pod.scheduler_name].sampler.next_start
        found = RecordedDecision(pod.key, pod.uid, node, message, nominated, next_start)
        self._put_decision(LineType.DECIDED, found)

    def bound(self, assumed: Assumed, now: float) -> None:
        """Note that the pod stays on its node."""
        self._placed.discard(assumed.pod.uid)

    def failed(self, attempt: FailedAttempt, now: float) -> None:
        """Write that a pod was taken off its node again, if it was placed."""
        pod = attempt.queued.pod_info
        if pod.uid in self._placed:
            self._placed.remove(pod.uid)
            self._put_decision(LineType.UNDONE, RecordedDecision(pod.key, pod.uid))

    def _put_decision(self, type_: LineType, decision: RecordedDecision) -> None:
        self._put(RecordedLine(type_, self._at(), decision=decision))

    def _at(self) -> float:
        now = self._scheduler.now()
        if self._began is None:
            self._began = now
        return round(now - self._began, _SECONDS_DIGITS)

    def _put(self, line: RecordedLine) -> None:
        self._write(self._encode(line) + b"\n")
