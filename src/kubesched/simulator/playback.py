"""Playback is what happened to the nodes and pods of a simulation over time, to be shown again.

It is columnar, so that 50,000 pods take a few megabytes: a list has one value per row, and each
name appears once.

Invariants: lists of one part have the same length; times are in seconds since the beginning and
            rise in lists of changes; rows of pods are in the order of arrival.
"""

from __future__ import annotations

from enum import StrEnum

from kubesched.explain.document import Document, DocumentPart


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
