"""DecisionRing keeps the last decisions of the loop, and /debug/decisions shows them.

A record costs the loop one small object, and its time is formatted for a request. No pod, diagnosis
or cycle state is kept.

Differs:  victims of a pod group's preemption are not recorded: the group evicts them, not one of
          its pods.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace

from kubesched.api.media_types import JSON
from kubesched.api.times import micro_time, moment_at
from kubesched.app.http_exchange import HttpRequest, HttpResponse, error_response
from kubesched.explain.decision_records import (
    DecisionRecord,
    DecisionRecords,
    EvictedPod,
    QueuePart,
    QueueState,
    RecordedOutcome,
)
from kubesched.explain.explain import retry_events
from kubesched.framework.preemption.report import PreemptionReport
from kubesched.framework.status import Status
from kubesched.queue.moves import QueuePlace
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, FailedAttempt, Placed, Rejected, RejectedAgain
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Observer
from kubesched.snapshot.pod_info import uid_of

DECISIONS: Final = "/debug/decisions"

_LIMIT: Final = 1000


class DecisionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which records to return.

    Attributes:
        pod: The pod that they are about or that they evict, as `namespace/name`; "" for any.
        node: The chosen or nominated node; "" for any.
        limit: At most so many, the newest.
    """

    pod: str = ""
    node: str = ""
    limit: int = _LIMIT

    def matches(self, record: DecisionRecord) -> bool:
        """Whether a record is one of them."""
        if self.pod and self.pod != record.pod and not record.evicts(self.pod):
            return False
        return not self.node or self.node in (record.node, record.nominated_node)


def decision_page(
    request: HttpRequest, read: Callable[[DecisionQuery], DecisionRecords]
) -> HttpResponse:
    """Return the document for a request; 400 for an invalid query."""
    try:
        query = _query_of(request)
    except ValueError as error:
        return error_response(str(error), 400)
    return HttpResponse(content_type=JSON, body=msgspec.json.encode(read(query).to_dict()))


def _query_of(request: HttpRequest) -> DecisionQuery:
    pod, node, limit = (
        next(iter(request.query_values(name)), "") for name in ("pod", "node", "limit")
    )
    if pod and not all(pod.partition("/")):
        raise ValueError(f"pod={pod}: write NAMESPACE/NAME")
    if limit and (not limit.isdecimal() or not int(limit)):
        raise ValueError(f"limit={limit}: write a number from 1")
    return DecisionQuery(pod=pod, node=node, limit=int(limit) if limit else _LIMIT)


# The ring.


class DecisionRing(Observer):
    """The last records, at most `capacity`; `recorded` counts those that were dropped, too."""

    def __init__(self, capacity: int, now_ns: Callable[[], int]) -> None:
        """Start empty; `now_ns` returns the time of day in nanoseconds since the epoch."""
        self.capacity = capacity
        self.recorded = 0
        self._now_ns = now_ns
        # Records without their times, which take longest to format, and the times.
        self._records: deque[tuple[DecisionRecord, int]] = deque(maxlen=capacity)
        # For `failed`, which is always called next.
        self._preempting: Rejected | None = None
        self._unbound = ""

    def decided(self, decision: Decision, started: float) -> None:
        """Record a placement; rejections and failures are recorded by `failed`."""
        if isinstance(decision, Placed):
            pod = decision.pod
            self._add(
                DecisionRecord(
                    time="",
                    pod=pod.key,
                    uid=pod.uid,
                    profile=pod.scheduler_name,
                    outcome=RecordedOutcome.PLACED,
                    node=decision.node_name,
                    evaluated_nodes=decision.evaluated,
                    feasible_nodes=decision.feasible,
                )
            )
        elif isinstance(decision, Rejected):
            self._preempting = decision if decision.nominated_node_name else None

    def rejected_again(self, again: RejectedAgain, now: float) -> None:
        """Record the attempts, at most as many as are kept."""
        self.recorded += max(0, again.pods - self.capacity)
        for _, attempt in again.each(self.capacity):
            self.failed(attempt, now)

    def binding_failed(self, assumed: Assumed, status: Status, now: float) -> None:
        """Keep the node for the record of the failed attempt."""
        self._unbound = assumed.pod.node_name

    def failed(self, attempt: FailedAttempt, now: float) -> None:
        """Record an attempt without a binding."""
        preempting, self._preempting = self._preempting, None
        node, self._unbound = self._unbound, ""
        pod = attempt.queued.pod_info
        outcome = RecordedOutcome.BINDING_FAILED
        evaluated = feasible = 0
        if not node:
            is_rejected = attempt.status.is_rejected
            outcome = RecordedOutcome.REJECTED if is_rejected else RecordedOutcome.FAILED
            if attempt.diagnosis is not None:
                evaluated = len(attempt.diagnosis.node_to_status)
            newest = self._records[-1][0] if self._records else None
            if (
                newest is not None
                and newest.uid == pod.uid
                and newest.outcome is RecordedOutcome.PLACED
            ):
                # Reserve, Permit or the pod's group refused the node that was just chosen.
                self._records.pop()
                self.recorded -= 1
                node = newest.node
                evaluated, feasible = newest.evaluated_nodes, newest.feasible_nodes
        record = DecisionRecord(
            time="",
            pod=pod.key,
            uid=pod.uid,
            profile=attempt.scheduler_name,
            outcome=outcome,
            node=node,
            evaluated_nodes=evaluated,
            feasible_nodes=feasible,
            message=attempt.message,
            rejecting_plugins=tuple(sorted(attempt.queued.rejecting_plugins)),
        )
        self._add(record if preempting is None else _with_preemption(record, preempting))

    def _add(self, record: DecisionRecord) -> None:
        self._records.append((record, self._now_ns()))
        self.recorded += 1

    def newest(self, query: DecisionQuery) -> tuple[DecisionRecord, ...]:
        """Return the records that a query asks for, the newest first."""
        matching = (kept for kept in reversed(self._records) if query.matches(kept[0]))
        return tuple(
            replace(record, time=micro_time(moment_at(now_ns)))
            for record, now_ns in islice(matching, query.limit)
        )


def _with_preemption(record: DecisionRecord, decision: Rejected) -> DecisionRecord:
    """Return a record with what PostFilter decided."""
    assert decision.post_filter is not None, "it has nominated the node"
    report = decision.post_filter.details
    criterion = report.decided_by if isinstance(report, PreemptionReport) else None
    return replace(
        record,
        nominated_node=decision.nominated_node_name or "",
        victims=tuple(EvictedPod(pod.key, pod.uid, pod.priority) for pod in decision.victims),
        criterion=str(criterion or ""),
    )


# Where a pod is in the queue.

_PARTS: Final = {
    QueuePlace.ACTIVE: QueuePart.ACTIVE,
    QueuePlace.BACKOFF: QueuePart.BACKOFF,
    QueuePlace.UNSCHEDULABLE: QueuePart.UNSCHEDULABLE,
    QueuePlace.IN_FLIGHT: QueuePart.IN_FLIGHT,
}


def queue_state(scheduler: Scheduler, key: str, now_ns: int) -> QueueState | None:
    """Return where a pod is in the queue; None if the scheduler does not hold it.

    `key` is `namespace/name`, `now_ns` the time of day in nanoseconds since the epoch.
    """
    now = scheduler.now()
    namespace, _, name = key.partition("/")

    def text_of(seconds: float) -> str:
        return micro_time(moment_at(now_ns + round((seconds - now) * 1e9)))

    pod = scheduler.pods.get(namespace, name)
    uid = "" if pod is None else uid_of(pod)
    waiting = scheduler.waiting_pods.get(uid)
    popped = scheduler.queue.pods(QueuePlace.IN_FLIGHT)
    in_flight = next((each for each in popped if each.pod_info.uid == uid), None)
    attempts = 0 if in_flight is None else in_flight.attempts
    if waiting is not None:
        return QueueState(
            part=QueuePart.WAITING_ON_PERMIT,
            attempts=attempts,
            since="" if in_flight is None else text_of(in_flight.timestamp),
            node=waiting.node_name,
            waits_for=tuple(waiting.pending_plugins),
        )
    if scheduler.cache.is_assumed(uid):
        there = scheduler.cache.get_pod(uid)
        assert there is not None, "an assumed pod is in the cache"
        return QueueState(part=QueuePart.BINDING, attempts=attempts, node=there.node_name)
    queued = in_flight or scheduler.queue.get_pod(key)
    if queued is None:
        return None
    place = QueuePlace.IN_FLIGHT if in_flight else scheduler.queue.place_of(key)
    profile = scheduler.profiles.get(queued.pod_info.scheduler_name)
    plugins = [queued.gating_plugin] if queued.is_gated else sorted(queued.rejecting_plugins)
    in_backoff = place is QueuePlace.BACKOFF
    return QueueState(
        part=QueuePart.GATED if queued.is_gated else _PARTS[place],
        attempts=queued.attempts,
        since=text_of(queued.timestamp),
        node=queued.pod_info.pod.status.nominated_node_name,
        retry_after=() if profile is None else retry_events(profile, plugins),
        backoff_ends=text_of(scheduler.queue.backoff_end(queued)) if in_backoff else "",
    )
