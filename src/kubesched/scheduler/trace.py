"""Trace records what every plugin answered in one cycle, for explain, evaluate and logs.

Without a reader there is no trace and no extra cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.status import NodeToStatus, Status


@dataclass(slots=True)
class ScoreTrace:
    """One score plugin's answers, per feasible row in the order of `Trace.feasible_rows`."""

    plugin: str
    weight: int
    raw: NDArray[np.int64]
    normalized: NDArray[np.int64]

    @property
    def weighted(self) -> NDArray[np.int64]:
        """The weighted scores, as added to the total."""
        return self.normalized * self.weight


@dataclass(slots=True)
class FilterTrace:
    """One filter's answers for the rows it ran on."""

    plugin: str
    rows: NDArray[np.intp]
    answers: NodeToStatus


@dataclass(slots=True)
class Trace:
    """The record of one cycle.

    Attributes:
        all_filters: Run every filter on every row instead of stopping at the first rejection.
        pre_filter: Plugin name -> status.
        pre_filter_status: The combined status.
        restricted_to: Node names that PreFilter plugins allow; None for all nodes.
        restricting_plugins: The plugins that restricted them.
        filters: With `all_filters`, each filter's answers, in the order of the profile.
        statuses: The first rejection per row of the table; success also for rows not tried.
        failed_filters: If filtering failed, the statuses of all filters for the rows they ran on;
            failures have the code ERROR.
        nominated_hit: The pod's own nominated node was tried first and fits.
        tried_rows: Rows that filters ran on.
        feasible_rows: Rows that passed.
        pre_score: Plugin name -> status.
        scores: One per score plugin that did not skip.
        totals: int64 per feasible row; None if there was nothing to choose.
        post_filters: Plugin name -> result, in the order run.
        cycle: The cycle state.
    """

    all_filters: bool = False
    pre_filter: dict[str, Status] = field(default_factory=dict)
    pre_filter_status: Status | None = None
    restricted_to: frozenset[str] | None = None
    restricting_plugins: tuple[str, ...] = ()
    filters: list[FilterTrace] = field(default_factory=list)
    statuses: NodeToStatus = field(default_factory=lambda: NodeToStatus.passing(0))
    failed_filters: NodeToStatus | None = None
    nominated_hit: bool = False
    tried_rows: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    feasible_rows: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    pre_score: dict[str, Status] = field(default_factory=dict)
    scores: list[ScoreTrace] = field(default_factory=list)
    totals: NDArray[np.int64] | None = None
    post_filters: dict[str, PostFilterResult] = field(default_factory=dict)
    cycle: CycleState | None = None
