"""LeastAllocated: the more of a row's resources would be left, the higher its score.

Upstream: pkg/scheduler/framework/plugins/noderesources/least_allocated.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.plugins.node_resources.int64 import (
    percent,
    percentages,
    quotient,
    weighted_mean,
    wrap,
)
from kubesched.plugins.node_resources.scoring import Amounts


class LeastAllocated:
    """The weighted mean of the free percentages, rounded down twice."""

    def score_row(
        self,
        requested: Sequence[int],
        allocated: Sequence[int],
        allocatable: Sequence[int],
        weights: Sequence[int],
    ) -> int:
        """Return the score of one row; 0 without resources."""
        total = weight_sum = 0
        for asked, offered, weight in zip(requested, allocatable, weights, strict=True):
            if asked <= offered:
                total += percent(wrap(offered - asked), offered) * weight
            weight_sum += weight
        return quotient(wrap(total), weight_sum) if weight_sum else 0

    def score_rows(
        self,
        requested: Sequence[Amounts],
        allocated: Sequence[Amounts],
        allocatable: Sequence[Amounts],
        weights: Sequence[int],
    ) -> Amounts:
        """Return the scores of rows."""
        free = [
            percentages(np.maximum(offered - asked, 0), offered)
            for asked, offered in zip(requested, allocatable, strict=True)
        ]
        return weighted_mean(free, weights)
