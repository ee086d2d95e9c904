"""The outcome of a simulation as data: who went where, who did not, and how full nodes are then.

Invariants: `placements` stand in the order in which they were made; `unplaced`, `gated` and
            `ignored` in order of arrival; `nodes` by name; `zones` by region and zone. Amounts are
            whole numbers: cpu in thousandths of a core, memory and ephemeral-storage in bytes,
            everything else in pieces.
"""

from __future__ import annotations

import msgspec

from kubesched.explain.report import Unknown

_SHARE_DIGITS = 4


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A part of the report: frozen, JSON names in camelCase."""


class Placement(_Part, frozen=True):
    """A pod that has a node at the end.

    Attributes:
        pod: `namespace/name`.
        node: Where it is.
        attempts: How often it was tried.
        nominated: Whether it was promised the node before the attempt that succeeded.
        preempted: The pods that were evicted for it.
        waits_for: What has to happen before it can be bound, such as a volume being made.
    """

    pod: str
    node: str
    attempts: int = 1
    nominated: bool = False
    preempted: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()


class Unplaced(_Part, frozen=True):
    """A pod that fits nowhere at the end.

    Attributes:
        pod: `namespace/name`.
        message: The message of the condition PodScheduled=False, as kubectl shows it.
        reasons: What stands in the message, sorted and without numbers.
        plugins: The plugins that rejected it, sorted; empty if it could not be judged.
        attempts: How often it was tried.
        nominated_node: The node it is promised; empty if none.
        preempted: The pods that were evicted for it all the same.
        error: Whether a plugin failed, so that nobody knows whether it fits.
        unknown: Whether it may fit, because the files lack what the rejection rests on.
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


class Gated(_Part, frozen=True):
    """A pod that may not be tried.

    Attributes:
        pod: `namespace/name`.
        plugin: The PreEnqueue plugin that says so.
        message: Why.
        unknown: Whether it may be tried, because the files lack what the answer rests on.
    """

    pod: str
    plugin: str
    message: str
    unknown: bool = False


class Ignored(_Part, frozen=True):
    """A pod without a node that is not for this scheduler to place.

    Attributes:
        pod: `namespace/name`.
        scheduler_name: Whose it is.
        reason: Why it was left alone.
    """

    pod: str
    scheduler_name: str
    reason: str


class Eviction(_Part, frozen=True):
    """A pod that had to go; its controller, if it has one, would create another.

    Attributes:
        pod: `namespace/name`.
        node: Where it was.
        preemptor: The pod that it went for.
        priority: Of the evicted pod.
        controller: `Kind name` of what would create it again; empty if nothing would.
        placed_here: Whether it was placed in this simulation.
    """

    pod: str
    node: str
    preemptor: str
    priority: int
    controller: str = ""
    placed_here: bool = False


class ResourceUse(_Part, frozen=True):
    """How much of a resource is requested before and after.

    Attributes:
        resource: Kubernetes' name of it.
        allocatable: What there is.
        requested_before: What pods asked for before the first placement.
        requested_after: What they ask for at the end.
        share_before: Requested of allocatable, 1 is all; None if there is nothing to share.
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
    shares = (_share(requested, allocatable) for requested in (before, after))
    return ResourceUse(resource, allocatable, before, after, *shares)


def _share(requested: int, allocatable: int) -> float | None:
    return round(requested / allocatable, _SHARE_DIGITS) if allocatable > 0 else None


class NodeUse(_Part, frozen=True):
    """How full a node is.

    Attributes:
        node: Its name.
        region: Empty if the node has none.
        zone: Empty if the node has none.
        placed: How many pods came in this simulation and stayed.
        resources: cpu, memory and pods first, then the others by name.
    """

    node: str
    region: str
    zone: str
    placed: int
    resources: tuple[ResourceUse, ...]


class ZoneUse(_Part, frozen=True):
    """How full the nodes of a zone are together; region and zone are empty for the rest."""

    region: str
    zone: str
    nodes: int
    placed: int
    resources: tuple[ResourceUse, ...]


class Summary(_Part, frozen=True):
    """The numbers that come first.

    Attributes:
        pods: How many pods were to be placed; ignored ones do not count.
        placed: How many have a node at the end.
        unplaced: How many fit nowhere.
        gated: How many may not be tried.
        not_tried: How many were not reached before the interruption.
        displaced: How many were placed and then evicted for others.
        ignored: How many pods without a node are not this scheduler's to place.
        evicted: How many pods were evicted, `displaced` ones included.
        attempts: How many scheduling cycles were run.
        nodes: How many nodes there are.
        nodes_used: On how many of them a pod was placed.
        resources: Use of all nodes together.
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


class SimulationReport(_Part, frozen=True):
    """What becomes of the pods, and of the nodes.

    Attributes:
        partial: Whether the simulation was interrupted; what was decided till then is here.
        seed: Of the random source that broke ties.
        summary: The numbers that come first.
        placements: Pods that have a node.
        unplaced: Pods that fit nowhere.
        gated: Pods that may not be tried.
        ignored: Pods of other schedulers, and pods being deleted.
        evictions: Pods that had to go, in this order.
        zones: Utilisation per zone.
        nodes: Utilisation per node.
        unknown: What the files do not say, though the outcome depends on it.
    """

    partial: bool
    seed: int
    summary: Summary
    placements: tuple[Placement, ...]
    unplaced: tuple[Unplaced, ...]
    gated: tuple[Gated, ...]
    ignored: tuple[Ignored, ...]
    evictions: tuple[Eviction, ...]
    zones: tuple[ZoneUse, ...]
    nodes: tuple[NodeUse, ...]
    unknown: tuple[Unknown, ...] = ()
