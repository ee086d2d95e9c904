"""The report of a simulation as data: placed and unplaced pods, and utilisation of nodes.

Invariants: `placements` are in the order of placing; `unplaced`, `gated` and `ignored` in order of
            arrival; `nodes` by name; `zones` by region and zone. Amounts are integers: cpu in
            millicores, memory and ephemeral-storage in bytes, everything else in units.
"""

from __future__ import annotations

from kubesched.explain.document import Document, DocumentPart
from kubesched.explain.report import Unknown

_SHARE_DIGITS = 4


class PodPlacement(DocumentPart, frozen=True):
    """A pod with a node at the end.

    Attributes:
        pod: `namespace/name`.
        node: Its node.
        attempts: Number of attempts.
        nominated: Whether it was nominated to the node before the attempt that succeeded.
        preempted: The pods that were evicted for it.
        waits_for: Steps before it can be bound, such as provisioning a volume.
    """

    pod: str
    node: str
    attempts: int = 1
    nominated: bool = False
    preempted: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()


class Unplaced(DocumentPart, frozen=True):
    """A pod that has no node at the end.

    Attributes:
        pod: `namespace/name`.
        message: The message of the condition PodScheduled=False, as kubectl shows it.
        reasons: The reasons in the message, sorted and without numbers.
        plugins: The plugins that rejected it, sorted; empty after an error.
        attempts: Number of attempts.
        nominated_node: The node it is nominated to; empty if none.
        preempted: The pods that were evicted for it without success.
        error: Whether a plugin failed, so that it is unknown whether the pod fits.
        unknown: Whether it may fit, because the files lack objects that the rejection depends on.
    """

    pod: str
    message: str
    reasons: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    attempts: int = 1
    nominated_node: str = ""
    preempted: tuple[str, ...] = ()
    error: bool = False
    unknown: bool = False


class Gated(DocumentPart, frozen=True):
    """A pod that a PreEnqueue plugin holds back.

    Attributes:
        pod: `namespace/name`.
        plugin: The PreEnqueue plugin.
        message: The reason.
        unknown: Whether it may not be held back, because the files lack objects that decide it.
    """

    pod: str
    plugin: str
    message: str
    unknown: bool = False


class Ignored(DocumentPart, frozen=True):
    """A pod without a node for which this scheduler is not responsible.

    Attributes:
        pod: `namespace/name`.
        scheduler_name: The scheduler that is responsible.
        reason: Why it was ignored.
    """

    pod: str
    scheduler_name: str
    reason: str


class Eviction(DocumentPart, frozen=True):
    """An evicted pod; its controller, if it has one, would replace it.

    Attributes:
        pod: `namespace/name`.
        node: The node it was on.
        preemptor: The pod that it was evicted for.
        priority: The priority of the evicted pod.
        controller: `Kind name` of its controller; empty if it has none.
        placed_here: Whether it was placed in this simulation.
    """

    pod: str
    node: str
    preemptor: str
    priority: int
    controller: str = ""
    placed_here: bool = False


class ResourceUse(DocumentPart, frozen=True):
    """Requests of a resource before and after the simulation.

    Attributes:
        resource: The resource name.
        allocatable: The allocatable amount.
        requested_before: The requested amount before the first placement.
        requested_after: The requested amount at the end.
        share_before: Requested divided by allocatable; None if nothing is allocatable.
        share_after: The same at the end.
    """

    resource: str
    allocatable: int
    requested_before: int
    requested_after: int
    share_before: float | None
    share_after: float | None


def resource_use(resource: str, allocatable: int, before: int, after: int) -> ResourceUse:
    """Return the use of a resource with its shares."""
    shares = (share_of(requested, allocatable) for requested in (before, after))
    return ResourceUse(resource, allocatable, before, after, *shares)


def share_of(requested: int, allocatable: int) -> float | None:
    """Return requested divided by allocatable, rounded; None if nothing is allocatable."""
    return round(requested / allocatable, _SHARE_DIGITS) if allocatable > 0 else None


class NodeUse(DocumentPart, frozen=True):
    """The utilisation of a node.

    Attributes:
        node: Its name.
        region: Empty if the node has none.
        zone: Empty if the node has none.
        placed: Number of pods that were placed in this simulation and stayed.
        resources: cpu, memory and pods first, then the others by name.
    """

    node: str
    region: str
    zone: str
    placed: int
    resources: tuple[ResourceUse, ...]


class ZoneUse(DocumentPart, frozen=True):
    """The utilisation of a zone; nodes without zone labels have empty names.

    Attributes:
        region: The region's name.
        zone: The zone's name.
        nodes: Number of nodes.
        placed: Number of pods placed there.
        resources: The use of each resource.
    """

    region: str
    zone: str
    nodes: int
    placed: int
    resources: tuple[ResourceUse, ...]


class Summary(DocumentPart, frozen=True):
    """Counts and totals.

    Attributes:
        pods: Number of pods to place, without ignored ones.
        placed: Number of pods with a node at the end.
        unplaced: Number of pods without a node.
        gated: Number of pods that PreEnqueue plugins hold back.
        not_tried: Number of pods that were not tried before the interruption.
        displaced: Number of pods that were placed and then evicted for others.
        ignored: Number of pods for which this scheduler is not responsible.
        evicted: Number of evicted pods, including `displaced` ones.
        attempts: Number of scheduling cycles.
        nodes: Number of nodes.
        nodes_used: Number of nodes on which a pod was placed.
        resources: Utilisation of all nodes together.
    """

    pods: int
    placed: int
    unplaced: int
    gated: int
    not_tried: int
    displaced: int
    ignored: int
    evicted: int
    attempts: int
    nodes: int
    nodes_used: int
    resources: tuple[ResourceUse, ...]


class SimulationReport(Document, frozen=True):
    """Where the pending pods of a cluster go, and which stay pending.

    Attributes:
        partial: Whether the simulation was interrupted; the report then has the decisions so far.
        seed: The seed of the random source that broke ties.
        summary: Counts and totals.
        placements: Pods with a node.
        unplaced: Pods without a node.
        gated: Pods that PreEnqueue plugins hold back.
        ignored: Pods of other schedulers, and terminating pods.
        evictions: Evicted pods, in order of eviction.
        zones: Utilisation per zone.
        nodes: Utilisation per node.
        unknown: The kinds that the outcome depends on and the files lack.
    """

    partial: bool
    seed: int
    summary: Summary
    placements: tuple[PodPlacement, ...]
    unplaced: tuple[Unplaced, ...]
    gated: tuple[Gated, ...]
    ignored: tuple[Ignored, ...]
    evictions: tuple[Eviction, ...]
    zones: tuple[ZoneUse, ...]
    nodes: tuple[NodeUse, ...]
    unknown: tuple[Unknown, ...] = ()
