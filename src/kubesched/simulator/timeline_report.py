"""The outcome of a simulation over time as data.

Invariants: everything has a bounded size, whatever the duration; lists are sorted or in order of
            time; times are virtual seconds; shares go from 0 to 1.
"""

from __future__ import annotations

import msgspec

from kubesched.simulator.series import SeriesValues


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A part of the report: frozen, JSON names in camelCase."""


class Totals(_Part, frozen=True):
    """How many of everything.

    Attributes:
        arrived: Pods created without a node, for this scheduler.
        bound: Pods bound.
        finished: Pods that ran to their end.
        gave_up: Pods that were deleted before they got a node.
        disrupted: Pods that had to make room for others.
        drained: Pods that left their node because it was drained.
        evicted: Pods deleted from a failed node when their toleration ended.
        removed: Pods deleted because their node was gone.
        restarted: Pods that started over when their failed node came back.
        lost: Pods without a controller that were stopped before their end, for whatever reason:
            nothing creates them again.
        pending: Pods without a node at the end.
        running: Pods with a node at the end.
        attempts: Scheduling cycles.
        rejected: Attempts that found no node.
        failed: Attempts that ended in an error.
        binding_failures: Bindings that were undone.
        nodes: Nodes at the end.
    """

    arrived: int = 0
    bound: int = 0
    finished: int = 0
    gave_up: int = 0
    disrupted: int = 0
    drained: int = 0
    evicted: int = 0
    removed: int = 0
    restarted: int = 0
    lost: int = 0
    pending: int = 0
    running: int = 0
    attempts: int = 0
    rejected: int = 0
    failed: int = 0
    binding_failures: int = 0
    nodes: int = 0


class WaitReport(_Part, frozen=True):
    """How long pods waited from their creation to their binding.

    Attributes:
        priority: Which pods: those of this priority, or `all`, or `other`.
        arrived: How many came.
        bound: How many were bound.
        pending: How many wait at the end.
        disrupted: How many had to make room.
        mean_seconds: None if none was bound; so are the others.
        p50_seconds: Half of them waited no longer.
        p90_seconds: 90 % of them waited no longer.
        p99_seconds: 99 % of them waited no longer.
        max_seconds: None waited longer.
        pending_pod_hours: Hours that pods spent waiting, those that still do included.
    """

    priority: str
    arrived: int
    bound: int
    pending: int
    disrupted: int
    mean_seconds: float | None
    p50_seconds: float | None
    p90_seconds: float | None
    p99_seconds: float | None
    max_seconds: float | None
    pending_pod_hours: float


class ResourceReport(_Part, frozen=True):
    """How much of a resource was promised to pods.

    Attributes:
        resource: Kubernetes' name of it.
        mean_share: Of what nodes offered, weighted by time; None if they offered nothing.
        peak_share: The most at any moment.
        final_share: At the end.
        mean_fragmentation: Share of what was free that no average pod could have used, because
            something else on its node was missing; None if that was never looked at.
    """

    resource: str
    mean_share: float | None
    peak_share: float
    final_share: float
    mean_fragmentation: float | None


class MoveCount(_Part, frozen=True):
    """How often pods moved from one part of the queue to another because of an event."""

    origin: str
    destination: str
    event: str
    count: int


class RequestCount(_Part, frozen=True):
    """How many requests of a kind were sent, and how many of them failed."""

    kind: str
    sent: int
    failed: int


class Series(_Part, frozen=True):
    """Numbers over time.

    Attributes:
        name: What it is; series with the same `chart` belong into one picture.
        chart: Which picture.
        unit: Such as `pods`, `share`, `per hour`.
        values: The numbers.
    """

    name: str
    chart: str
    unit: str
    values: SeriesValues


class Histogram(_Part, frozen=True):
    """How many pods waited how long.

    Attributes:
        bounds_seconds: Upper bounds; the last bar has none.
        counts: One more than bounds.
    """

    bounds_seconds: tuple[float, ...]
    counts: tuple[int, ...]


class TimelineReport(_Part, frozen=True):
    """What happened.

    Attributes:
        scenario: Its name.
        seed: Of all random sources.
        partial: Whether the simulation was interrupted before its end.
        duration_seconds: How long it took, in virtual time.
        totals: How many of everything.
        waits: All pods first, then by falling priority.
        wait_histogram: Over all bound pods.
        resources: cpu, memory and pods first, then the others by name.
        moves: By falling count.
        requests: To the API server.
        relists: How often the scheduler had to list everything again.
        checks: How often all invariants were checked.
        decisions: How many lines the decision log has.
        decision_digest: SHA-256 of the decision log.
        series: In the order in which they are to be shown.
    """

    scenario: str
    seed: int
    partial: bool
    duration_seconds: float
    totals: Totals
    waits: tuple[WaitReport, ...]
    wait_histogram: Histogram
    resources: tuple[ResourceReport, ...]
    moves: tuple[MoveCount, ...]
    requests: tuple[RequestCount, ...]
    relists: int
    checks: int
    decisions: int
    decision_digest: str
    series: tuple[Series, ...]
