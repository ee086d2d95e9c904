"""DecisionRing keeps the last decisions of the loop, and /debug/decisions shows them.

A record costs the loop one small object: names and messages are those of the decision, and other
texts are composed for a request. No pod, diagnosis or cycle state is kept.

Differs:  victims of a pod group's preemption are not recorded: the group evicts them, not one of
          its pods.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

import msgspec

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
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import Status
from kubesched.queue.moves import QueuePlace
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, FailedAttempt, Placed, Rejected, RejectedAgain
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Observer
from kubesched.snapshot.pod_info import uid_of

DECISIONS: Final = "/debug/decisions"

_LIMIT: Final = 1000
_PARAMETERS: Final = ("pod", "node", "limit")


class DecisionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which records to return.

    Attributes:
        namespace: The namespace of `pod`.
        pod: The name of a pod that they are about or that they evict; "" for any.
        node: The chosen or nominated node; "" for any.
        limit: At most so many, the newest.
    """

    namespace: str = ""
    pod: str = ""
    node: str = ""
    limit: int = _LIMIT


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
    given = {name: request.query_values(name) for name in _PARAMETERS}
    pod, node, limit = ("".join(given[name][:1]) for name in _PARAMETERS)
    namespace, slash, name = pod.partition("/")
    if pod and not (namespace and slash and name):
        raise ValueError(f"pod={pod}: write NAMESPACE/NAME")
    if limit and (not limit.isdecimal() or not int(limit)):
        raise ValueError(f"limit={limit}: write a number from 1")
    return DecisionQuery(
        namespace=namespace, pod=name, node=node, limit=int(limit) if limit else _LIMIT
    )


# The ring.

_NONE: Final[frozenset[str]] = frozenset()


class _Preemption(msgspec.Struct, frozen=True, gc=False):
    """What PostFilter decided; each victim as namespace, name, uid and priority."""

    node: str = ""
    victims: tuple[tuple[str, str, str, int], ...] = ()
    criterion: str = ""


_NOTHING: Final = _Preemption()


class _Kept(msgspec.Struct, frozen=True, gc=False):
    """A record as it is kept, before its texts are composed."""

    now_ns: int
    namespace: str
    name: str
    uid: str
    profile: str
    outcome: RecordedOutcome
    node: str
    evaluated: int
    feasible: int
    message: str = ""
    plugins: frozenset[str] = _NONE
    preemption: _Preemption = _NOTHING

    def concerns(self, namespace: str, name: str) -> bool:
        """Whether it is about a pod, or evicts it."""
        if self.name == name and self.namespace == namespace:
            return True
        return any(victim[:2] == (namespace, name) for victim in self.preemption.victims)


class DecisionRing(Observer):
    """The last records, the oldest of which is dropped for a new one.

    Attributes:
        capacity: The number of records that are kept.
        recorded: The number of records so far, kept or not.
    """

    def __init__(self, capacity: int, now_ns: Callable[[], int]) -> None:
        """Start empty; `now_ns` returns the time of day in nanoseconds since the epoch."""
        self.capacity = capacity
        self.recorded = 0
        self._now_ns = now_ns
        self._records: deque[_Kept] = deque(maxlen=capacity)
        # For `failed`, which is always called next.
        self._preemption = _NOTHING
        self._unbound = ""

    def decided(self, decision: Decision, now: float) -> None:
        """Record a placement; rejections and failures are recorded by `failed`."""
        if isinstance(decision, Placed):
            pod = decision.pod
            self._add(
                _Kept(
                    self._now_ns(),
                    pod.namespace,
                    pod.name,
                    pod.uid,
                    pod.scheduler_name,
                    RecordedOutcome.PLACED,
                    decision.node_name,
                    decision.evaluated,
                    decision.feasible,
                )
            )
        elif isinstance(decision, Rejected):
            self._preemption = _preemption_of(decision)

    def rejected_again(self, again: RejectedAgain, now: float) -> None:
        """Record the attempts, at most as many as are kept."""
        self.recorded += max(0, again.pods - self.capacity)
        for _, attempt in again.each(self.capacity):
            self.failed(attempt, now)

    def binding_failed(self, assumed: Assumed, status: Status, now: float) -> None:
        """Keep the node for the record of the failed attempt."""
        self._unbound = assumed.node_name

    def failed(self, attempt: FailedAttempt, now: float) -> None:
        """Record an attempt without a binding."""
        preemption, self._preemption = self._preemption, _NOTHING
        node, self._unbound = self._unbound, ""
        queued, pod = attempt.queued, attempt.queued.pod_info
        evaluated = feasible = 0
        if node:
            outcome = RecordedOutcome.BINDING_FAILED
        else:
            is_rejected = attempt.status.is_rejected
            outcome = RecordedOutcome.REJECTED if is_rejected else RecordedOutcome.FAILED
            newest = self._records[-1] if self._records else None
            if attempt.diagnosis is not None:
                evaluated = len(attempt.diagnosis.node_to_status)
            if (
                newest is not None
                and newest.uid == pod.uid
                and newest.outcome is RecordedOutcome.PLACED
            ):
                # Reserve, Permit or the pod's group refused the node that was just chosen.
                self._records.pop()
                self.recorded -= 1
                node, evaluated, feasible = newest.node, newest.evaluated, newest.feasible
        self._add(
            _Kept(
                self._now_ns(),
                pod.namespace,
                pod.name,
                pod.uid,
                attempt.scheduler_name,
                outcome,
                node,
                evaluated,
                feasible,
                attempt.message,
                queued.rejecting_plugins,
                preemption,
            )
        )

    def _add(self, kept: _Kept) -> None:
        self._records.append(kept)
        self.recorded += 1

    def newest(self, query: DecisionQuery) -> tuple[DecisionRecord, ...]:
        """Return the records that a query asks for, the newest first."""
        matching = (kept for kept in reversed(self._records) if _matches(kept, query))
        return tuple(map(_record, islice(matching, query.limit)))


def _matches(kept: _Kept, query: DecisionQuery) -> bool:
    if query.pod and not kept.concerns(query.namespace, query.pod):
        return False
    return not query.node or query.node in (kept.node, kept.preemption.node)


def _preemption_of(decision: Rejected) -> _Preemption:
    node = decision.nominated_node_name
    if not node:
        return _NOTHING
    assert decision.post_filter is not None, "it has nominated the node"
    report = decision.post_filter.details
    criterion = report.decided_by if isinstance(report, PreemptionReport) else None
    return _Preemption(
        node,
        tuple((pod.namespace, pod.name, pod.uid, pod.priority) for pod in decision.victims),
        criterion or "",
    )


def _record(kept: _Kept) -> DecisionRecord:
    preemption = kept.preemption
    return DecisionRecord(
        time=micro_time(moment_at(kept.now_ns)),
        pod=f"{kept.namespace}/{kept.name}",
        uid=kept.uid,
        profile=kept.profile,
        outcome=kept.outcome,
        node=kept.node,
        evaluated_nodes=kept.evaluated,
        feasible_nodes=kept.feasible,
        message=kept.message,
        rejecting_plugins=tuple(sorted(kept.plugins)),
        nominated_node=preemption.node,
        victims=tuple(
            EvictedPod(f"{namespace}/{name}", uid, priority)
            for namespace, name, uid, priority in preemption.victims
        ),
        criterion=str(preemption.criterion),
    )


# Where a pod is in the queue.

_PARTS: Final = {
    QueuePlace.ACTIVE: QueuePart.ACTIVE,
    QueuePlace.BACKOFF: QueuePart.BACKOFF,
    QueuePlace.UNSCHEDULABLE: QueuePart.UNSCHEDULABLE,
    QueuePlace.IN_FLIGHT: QueuePart.IN_FLIGHT,
}


def queue_state(scheduler: Scheduler, namespace: str, name: str, now_ns: int) -> QueueState | None:
    """Return where a pod is in the queue; None if the scheduler does not hold it.

    `now_ns` is the time of day in nanoseconds since the epoch.
    """
    now = scheduler.now()

    def text_of(seconds: float) -> str:
        return micro_time(moment_at(now_ns + round((seconds - now) * 1e9)))

    pod = scheduler.pods.get(namespace, name)
    uid = "" if pod is None else uid_of(pod)
    waiting = scheduler.waiting_pods.get(uid)
    in_flight = _in_flight(scheduler, uid)
    if waiting is not None:
        return QueueState(
            part=QueuePart.WAITING_ON_PERMIT,
            attempts=0 if in_flight is None else in_flight.attempts,
            since="" if in_flight is None else text_of(in_flight.timestamp),
            node=waiting.node_name,
            waits_for=tuple(waiting.pending_plugins),
        )
    if scheduler.cache.is_assumed(uid):
        there = scheduler.cache.get_pod(uid)
        assert there is not None, "an assumed pod is in the cache"
        return QueueState(
            part=QueuePart.BINDING,
            attempts=0 if in_flight is None else in_flight.attempts,
            node=there.node_name,
        )
    key = f"{namespace}/{name}"
    queued = in_flight or scheduler.queue.get_pod(key)
    if queued is None:
        return None
    place = QueuePlace.IN_FLIGHT if in_flight else scheduler.queue.place_of(key)
    return _queued_state(scheduler, queued, place, text_of)


def _in_flight(scheduler: Scheduler, uid: str) -> QueuedPodInfo | None:
    if not scheduler.queue.is_in_flight(uid):
        return None
    pods: Iterable[QueuedPodInfo] = scheduler.queue.pods(QueuePlace.IN_FLIGHT)
    return next(queued for queued in pods if queued.pod_info.uid == uid)


def _queued_state(
    scheduler: Scheduler,
    queued: QueuedPodInfo,
    place: QueuePlace,
    text_of: Callable[[float], str],
) -> QueueState:
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
