"""Playback is what happened to the nodes and pods of a simulation over time, to be shown again.

    recorder = PlaybackRecorder()
    report = simulate(scenario, registry, recorder=recorder)
    playback = recorder.playback(report.scenario, report.duration_seconds)

It is columnar, so that 50,000 pods take a few megabytes: a list has one value per row, and each
name appears once.

Invariants: lists of one part have the same length; times are in seconds since the beginning and
            rise in lists of changes; rows of pods are in the order of arrival; memory grows with
            the number of pods, up to a limit; the record then ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kubesched.api.core import Node, Pod
from kubesched.api.meta import controller_of
from kubesched.api.quantity import resource_values
from kubesched.api.well_known import ZONE
from kubesched.explain.document import Document, DocumentPart
from kubesched.scheduler.decision import Decision, FailedAttempt, Rejected
from kubesched.scheduler.observer import Observer
from kubesched.simulator.node_life import Disruption, is_unreachable
from kubesched.simulator.pod_ledger import Booking, LedgerReader, Waiting
from kubesched.simulator.rehearsal import reasons_of
from kubesched.simulator.utilisation import FIRST_RESOURCES
from kubesched.snapshot.pod_info import PodInfo


class PodEnd(StrEnum):
    """Why a pod left its node, or the cluster."""

    NONE = ""  # it is there at the end
    FINISHED = "finished"
    DELETED = "deleted"
    PREEMPTED = "preempted"
    DRAINED = "drained"
    EVICTED = "evicted"
    REMOVED = "removed"


class NodeState(StrEnum):
    """The state of a node."""

    READY = "ready"
    CORDONED = "cordoned"
    UNREACHABLE = "unreachable"
    GONE = "gone"


class PlaybackNodes(DocumentPart, frozen=True):
    """The nodes, one row each, in the order in which they joined; columns.

    Attributes:
        names: Their names.
        zones: `topology.kubernetes.io/zone`, empty without one.
        allocatable: Per resource of the document, a list with an amount per node.
    """

    names: tuple[str, ...]
    zones: tuple[str, ...]
    allocatable: tuple[tuple[int, ...], ...]


class NodeChanges(DocumentPart, frozen=True):
    """Changes of the nodes' states, by time; columns. A node is not there before its first.

    Attributes:
        at: When.
        nodes: Row of the node.
        states: The state from then on, as a position in the document's `nodeStates`.
    """

    at: tuple[float, ...]
    nodes: tuple[int, ...]
    states: tuple[int, ...]


class WorkloadOnNodes(DocumentPart, frozen=True):
    """Pods of one owner with the same priority and requests.

    Attributes:
        kind: The controller's kind; `Pod` for pods without one.
        namespace: The namespace.
        name: The controller's name; for pods without one their label `app`, empty without that.
        priority: Of the pods.
        priority_class: The name of their priority class; empty if they have none.
        requests: Resource -> what one of the pods requests.
    """

    kind: str
    namespace: str
    name: str
    priority: int
    priority_class: str
    requests: dict[str, int]


class PlaybackPods(DocumentPart, frozen=True):
    """The pods, one row each; columns. A pod that is created again is another row.

    Attributes:
        names: `namespace/name`.
        workloads: Row of their workload.
        arrived: When they were created.
        nodes: Row of their node; -1 for pods that never got one.
        bound: When they got it; -1 for those.
        ended: When they left their node or were deleted; -1 for those that are there at the end.
        ends: Why they left, as a position in the document's `podEnds`.
    """

    names: tuple[str, ...]
    workloads: tuple[int, ...]
    arrived: tuple[float, ...]
    nodes: tuple[int, ...]
    bound: tuple[float, ...]
    ended: tuple[float, ...]
    ends: tuple[int, ...]


class PodReasons(DocumentPart, frozen=True):
    """Why attempts to place pods failed, by time, if it differs from the last attempt; columns.

    Attributes:
        at: When.
        pods: Row of the pod.
        reasons: The reasons, as a position in the document's `reasons`.
    """

    at: tuple[float, ...]
    pods: tuple[int, ...]
    reasons: tuple[int, ...]


class Playback(Document, frozen=True):
    """What happened to nodes and pods over time, in columns.

    Attributes:
        title: Name of the scenario.
        end_seconds: How long the record is.
        is_whole: Whether it is the whole simulation; records end at 200,000 pods.
        resources: The resources: cpu in millicores, everything else in whole units.
        node_states: The names of node states.
        pod_ends: Why pods leave their nodes; the first is empty.
        reasons: Texts, each with all reasons of an attempt and without numbers of nodes.
        workloads: What the pods belong to.
        nodes: The nodes.
        node_changes: What happened to nodes.
        pods: The pods.
        pod_reasons: Why pods waited.
        restarted_at: When the node of a pod failed and came back, so that the pod started over.
        restarted: Rows of these pods.
        preempted: Rows of the pods that were preempted.
        preemptors: Rows of the pods that preempted them.
        lost: Rows of pods that ended early and that no controller creates again.
    """

    title: str
    end_seconds: float
    is_whole: bool
    resources: tuple[str, ...]
    node_states: tuple[str, ...]
    pod_ends: tuple[str, ...]
    reasons: tuple[str, ...]
    workloads: tuple[WorkloadOnNodes, ...]
    nodes: PlaybackNodes
    node_changes: NodeChanges
    pods: PlaybackPods
    pod_reasons: PodReasons
    restarted_at: tuple[float, ...] = ()
    restarted: tuple[int, ...] = ()
    preempted: tuple[int, ...] = ()
    preemptors: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


# The record.

PODS_MAX: Final = 200_000
_DIGITS: Final = 3
_STATES: Final = tuple(NodeState)
_ENDS: Final = tuple(PodEnd)
_Workload = tuple[str, str, str, int, str, tuple[tuple[str, int], ...]]


@dataclass(slots=True)
class _PodRow:
    """A pod; see PlaybackPods."""

    name: str
    workload: int
    arrived: float
    node: int = -1
    bound: float = -1.0
    ended: float = -1.0
    end: PodEnd = PodEnd.NONE
    reason: int = -1

    def values(self) -> tuple[Any, ...]:
        """Return the values of the pod's row, in the order of PlaybackPods."""
        times = self.arrived, self.node, self.bound, self.ended
        return (self.name, self.workload, *times, _ENDS.index(self.end))


class PlaybackRecorder(LedgerReader, Observer):
    """Records one simulation, until more than `PODS_MAX` pods have arrived."""

    def __init__(self) -> None:
        self._ended: float | None = None
        self._nodes: dict[str, Node] = {}
        self._node_rows: dict[str, int] = {}
        self._node_changes: list[tuple[float, int, int]] = []
        self._states: dict[str, NodeState] = {}
        self._pods: list[_PodRow] = []
        self._rows: dict[str, int] = {}
        # Both number their keys in the order in which they first appear.
        self._workloads: dict[_Workload, int] = {}
        self._reasons: dict[str, int] = {}
        self._pod_reasons: list[tuple[float, int, int]] = []
        self._restarts: list[tuple[float, int]] = []
        self._preemptors: dict[int, int] = {}
        self._lost: list[int] = []

    # From the ledger.

    def node_changed(self, name: str, node: Node | None, now: float) -> None:
        """Record a node that joins, leaves, or changes its state."""
        if self._ended is not None:
            return
        if node is not None:
            self._nodes[name] = node
        row = self._node_rows.setdefault(name, len(self._node_rows))
        state = _state_of(node)
        if self._states.get(name) is not state:
            self._states[name] = state
            self._node_changes.append((round(now, _DIGITS), row, _STATES.index(state)))

    def pod_arrived(self, pod: Pod, now: float) -> None:
        """Record a pod without a node."""
        self._add(pod, now)

    def pod_bound(self, pod: Pod, booking: Booking, waiting: Waiting | None, now: float) -> None:
        """Record the node of a pod."""
        row = self._row(pod) or (self._add(pod, now) if waiting is None else None)
        if row is not None:
            row.node, row.bound = self._node_rows[booking.node_name], round(now, _DIGITS)

    def pod_released(self, pod: Pod, booking: Booking, now: float) -> None:
        """Record that a pod left its node."""
        self._end(pod, now)

    def pending_pod_deleted(self, pod: Pod, waiting: Waiting, now: float) -> None:
        """Record that a pod was deleted before it got a node."""
        self._end(pod, now)

    def pod_disrupted(self, pod: Pod, disruption: Disruption, now: float) -> None:
        """Record why a pod is stopped before its end."""
        row = self._row(pod)
        if row is None:
            return
        if disruption is Disruption.RESTARTED:
            self._restarts.append((round(now, _DIGITS), self._rows[pod.metadata.uid]))
        else:
            row.end = PodEnd(disruption.value)

    # From the loop.

    def decided(self, decision: Decision, started: float) -> None:
        """Record for which pod others have to go."""
        if isinstance(decision, Rejected) and self._ended is None:
            preemptor = self._rows.get(decision.pod.uid)
            for victim in decision.victims:
                row = self._rows.get(victim.uid)
                if preemptor is not None and row is not None:
                    self._preemptors[row] = preemptor

    def failed(self, attempt: FailedAttempt, now: float) -> None:
        """Record why a pod has no node."""
        at = self._rows.get(attempt.queued.pod_info.uid)
        if at is None or self._ended is not None:
            return
        text = "; ".join(reasons_of(attempt, len(self._nodes)))
        reason = self._reasons.setdefault(text, len(self._reasons))
        row = self._pods[at]
        if row.reason != reason:
            row.reason = reason
            self._pod_reasons.append((round(now, _DIGITS), at, reason))

    # Rows of pods.

    def _add(self, pod: Pod, now: float) -> _PodRow | None:
        if len(self._pods) >= PODS_MAX and self._ended is None:
            self._ended = now
        if self._ended is not None:
            return None
        metadata = pod.metadata
        self._rows[metadata.uid] = len(self._pods)
        name = metadata.key
        self._pods.append(_PodRow(name, self._workload_of(pod), round(now, _DIGITS)))
        return self._pods[-1]

    def _row(self, pod: Pod) -> _PodRow | None:
        """Return the row of a pod; None without one, and after the record has ended."""
        at = self._rows.get(pod.metadata.uid)
        return None if at is None or self._ended is not None else self._pods[at]

    def _workload_of(self, pod: Pod) -> int:
        owner, metadata, spec = controller_of(pod.metadata), pod.metadata, pod.spec
        workload = (
            "Pod" if owner is None else owner.kind,
            metadata.labels.get("app", "") if owner is None else owner.name,
            metadata.namespace,
            spec.priority or 0,
            spec.priority_class_name,
            tuple(sorted(PodInfo(pod).template.held.items())),
        )
        return self._workloads.setdefault(workload, len(self._workloads))

    def _end(self, pod: Pod, now: float) -> None:
        row = self._row(pod)
        if row is None:
            return
        row.ended = round(now, _DIGITS)
        if pod.status.phase == "Succeeded":
            row.end = PodEnd.FINISHED
            return
        if row.end is PodEnd.NONE:
            row.end = PodEnd.DELETED
        if row.node >= 0 and controller_of(pod.metadata) is None:
            self._lost.append(self._rows[pod.metadata.uid])

    # The document.

    def playback(self, title: str, end_seconds: float) -> Playback:
        """Return the record under the scenario's name, until the simulation ended."""
        amounts = [resource_values(node.status.allocatable) for node in self._nodes.values()]
        resources = self._resources(amounts)
        restarted_at, restarted = _columns(self._restarts, 2)
        preempted = [row for row in self._preemptors if self._pods[row].end is PodEnd.PREEMPTED]
        return Playback(
            title=title,
            end_seconds=round(end_seconds if self._ended is None else self._ended, _DIGITS),
            is_whole=self._ended is None,
            resources=tuple(resources),
            node_states=tuple(map(str, _STATES)),
            pod_ends=tuple(map(str, _ENDS)),
            reasons=tuple(self._reasons),
            workloads=tuple(
                WorkloadOnNodes(kind, namespace, name, priority, priority_class, dict(requests))
                for kind, name, namespace, priority, priority_class, requests in self._workloads
            ),
            nodes=PlaybackNodes(
                tuple(self._nodes),
                tuple(node.metadata.labels.get(ZONE, "") for node in self._nodes.values()),
                tuple(tuple(one.get(name, 0) for one in amounts) for name in resources),
            ),
            node_changes=NodeChanges(*_columns(self._node_changes, 3)),
            pods=PlaybackPods(*_columns([row.values() for row in self._pods], 7)),
            pod_reasons=PodReasons(*_columns(self._pod_reasons, 3)),
            restarted_at=restarted_at,
            restarted=restarted,
            preempted=tuple(preempted),
            preemptors=tuple(self._preemptors[row] for row in preempted),
            lost=tuple(self._lost),
        )

    def _resources(self, amounts: Sequence[Mapping[str, int]]) -> list[str]:
        used = {name for one in amounts for name, amount in one.items() if amount}
        used |= {name for workload in self._workloads for name, _ in workload[-1]}
        return [*FIRST_RESOURCES, *sorted(used.difference(FIRST_RESOURCES))]


def _columns(rows: Sequence[tuple[Any, ...]], count: int) -> Iterable[tuple[Any, ...]]:
    """Return the columns of rows, empty ones if there are no rows."""
    return zip(*rows, strict=True) if rows else ((),) * count


def _state_of(node: Node | None) -> NodeState:
    if node is None:
        return NodeState.GONE
    if is_unreachable(node):
        return NodeState.UNREACHABLE
    return NodeState.CORDONED if node.spec.unschedulable else NodeState.READY
