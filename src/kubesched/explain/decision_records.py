"""The decisions that a running scheduler remembers, and a pod's place in its queue, as data."""

from __future__ import annotations

from enum import StrEnum

from kubesched.explain.document import Document, DocumentPart
from kubesched.explain.report import RetryEvents


class RecordedOutcome(StrEnum):
    """How an attempt to schedule a pod ended."""

    PLACED = "Placed"
    REJECTED = "Rejected"
    FAILED = "Failed"
    BINDING_FAILED = "BindingFailed"


class EvictedPod(DocumentPart, frozen=True):
    """A pod that is evicted for another.

    Attributes:
        pod: `namespace/name`.
        uid: Its uid.
        priority: Its priority.
    """

    pod: str
    uid: str
    priority: int


class DecisionRecord(DocumentPart, frozen=True, kw_only=True):
    """One attempt to schedule a pod.

    Attributes:
        time: When it was decided, or when the binding failed: RFC 3339 in UTC, in microseconds.
        pod: `namespace/name`.
        uid: The pod's uid.
        profile: The scheduler name of the profile that decided.
        outcome: Placed: a node was chosen, and the pod is bound to it unless a later record says
            otherwise. Rejected: plugins rejected it, or there are no nodes. Failed: an error.
            BindingFailed: the pod could not be bound to the chosen node.
        node: The chosen node, also if a later step failed; empty if there is none.
        evaluated_nodes: Number of nodes that filters were run on.
        feasible_nodes: Number of them that fit.
        message: Why the pod got no node, as in its condition; empty if it was placed.
        rejecting_plugins: The plugins that rejected it, sorted.
        nominated_node: The node that the pod was nominated to by this attempt.
        victims: The pods to evict from that node for this pod.
        criterion: What decided between the nodes where evicting pods would have helped.
    """

    time: str
    pod: str
    uid: str
    profile: str
    outcome: RecordedOutcome
    node: str = ""
    evaluated_nodes: int = 0
    feasible_nodes: int = 0
    message: str = ""
    rejecting_plugins: tuple[str, ...] = ()
    nominated_node: str = ""
    victims: tuple[EvictedPod, ...] = ()
    criterion: str = ""

    def evicts(self, pod: str, uid: str = "") -> bool:
        """Whether a pod, `namespace/name`, is one of the victims; with "", whatever its uid."""
        return any(victim.pod == pod and uid in ("", victim.uid) for victim in self.victims)


class QueuePart(StrEnum):
    """Where a pending pod is in the scheduler."""

    ACTIVE = "Active"
    BACKOFF = "Backoff"
    UNSCHEDULABLE = "Unschedulable"
    GATED = "Gated"
    IN_FLIGHT = "InFlight"
    WAITING_ON_PERMIT = "WaitingOnPermit"
    BINDING = "Binding"


class QueueState(DocumentPart, frozen=True, kw_only=True):
    """Where a pod is in the queue of a running scheduler.

    Attributes:
        part: Active: it is tried next in its order. Backoff: it is tried when its backoff ends, or
            earlier if the scheduler is idle. Unschedulable: it waits for an event. Gated: a plugin
            keeps it out of the queue. InFlight: it is being scheduled. WaitingOnPermit: it has a
            node and waits for plugins. Binding: it is being bound.
        attempts: How often it was tried.
        since: When its last attempt ended, or when it was added: RFC 3339 in UTC, in microseconds;
            empty if the queue does not hold it.
        node: The node it waits for or is being bound to.
        waits_for: The plugins that have not yet permitted the binding.
        retry_after: The plugins that rejected it last, each with the events that requeue the pod.
        backoff_ends: When its backoff ends, in the same form; empty if it is not backing off.
    """

    part: QueuePart
    attempts: int = 0
    since: str = ""
    node: str = ""
    waits_for: tuple[str, ...] = ()
    retry_after: tuple[RetryEvents, ...] = ()
    backoff_ends: str = ""


class DecisionRecords(Document, frozen=True, kw_only=True):
    """The last decisions of a running scheduler, as served at /debug/decisions.

    Attributes:
        leads: Whether this replica schedules; another one has the records otherwise.
        capacity: The number of records that are kept.
        recorded: The number of records since the start of the process, kept or not.
        records: Those that were asked for, the newest first.
        queue: Where the pod that was asked for is in the queue; null if the scheduler does not hold
            it, or if no pod was asked for.
    """

    leads: bool
    capacity: int
    recorded: int
    records: tuple[DecisionRecord, ...] = ()
    queue: QueueState | None = None
