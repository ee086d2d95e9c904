"""The scoring strategies of NodeResourcesFit.

LeastAllocated prefers nodes with many free resources, MostAllocated nodes with few.
RequestedToCapacityRatio maps utilization to a score along a configured curve.

Upstream: pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,
          requested_to_capacity_ratio}.go, pkg/scheduler/framework/plugins/helper/shape_score.go
          (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kubesched.config.args import UtilizationShapePoint
from kubesched.framework.normalize import NODE_SCORE_MAX
from kubesched.plugins.node_resources.int64 import (
    PERCENT,
    divide,
    percent,
    quotient,
    weighted_mean,
    wrap,
)
from kubesched.plugins.node_resources.scoring import Amounts, Numbers

_SHAPE_SCORE_MAX: Final = 10


class LeastAllocated:
    """The weighted mean of the free percentages; percentages and mean are rounded down."""

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

    def prepare_row(self, allocated: Sequence[int], allocatable: Sequence[int]) -> Sequence[float]:
        """Return 100 times what is free of each resource."""
        return [PERCENT * (all_ - used) for all_, used in zip(allocatable, allocated, strict=True)]

    def prepare(self, allocated: Amounts, allocatable: Amounts) -> Amounts:
        """Return `prepare_row` of many rows, as numbers x rows."""
        return PERCENT * (allocatable - allocated)

    def score_rows(
        self, prepared: Numbers, allocatable: Numbers, amounts: Numbers, weights: Sequence[int]
    ) -> Amounts:
        """Return the scores of prepared rows."""
        free = prepared - PERCENT * amounts
        np.maximum(free, 0.0, out=free)
        return weighted_mean(divide(free, allocatable), weights)


class _ByUse:
    """A score that depends on the use of each resource."""

    def prepare_row(self, allocated: Sequence[int], allocatable: Sequence[int]) -> Sequence[float]:
        """Return the use of each resource."""
        return allocated

    def prepare(self, allocated: Amounts, allocatable: Amounts) -> Amounts:
        """Return `prepare_row` of many rows, as numbers x rows."""
        return allocated


class MostAllocated(_ByUse):
    """The weighted mean of the used percentages; percentages and mean are rounded down."""

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
            # Pods without requests count with defaults, so use may exceed the allocatable amount.
            total += percent(min(asked, offered), offered) * weight
            weight_sum += weight
        return quotient(wrap(total), weight_sum) if weight_sum else 0

    def score_rows(
        self, prepared: Numbers, allocatable: Numbers, amounts: Numbers, weights: Sequence[int]
    ) -> Amounts:
        """Return the scores of prepared rows."""
        return weighted_mean(_used_percentages(prepared + amounts, allocatable), weights)


class RequestedToCapacityRatio(_ByUse):
    """The weighted mean of the scores above 0, rounded to the nearest integer.

    Attributes:
        curve: int64, the score of each utilization from 0 to 100 percent.
    """

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        points = [
            (point.utilization, point.score * (NODE_SCORE_MAX // _SHAPE_SCORE_MAX))
            for point in shape
        ]
        scores = [_interpolate(points, utilization) for utilization in range(PERCENT + 1)]
        self.curve: Amounts = np.array(scores, np.int64)
        self._scores: Final = scores

    def score_row(
        self,
        requested: Sequence[int],
        allocated: Sequence[int],
        allocatable: Sequence[int],
        weights: Sequence[int],
    ) -> int:
        """Return the score of one row; 0 if no resource scores above 0."""
        total = weight_sum = 0
        for asked, offered, weight in zip(requested, allocatable, weights, strict=True):
            utilization = PERCENT if asked > offered else percent(wrap(asked), offered)
            # Outside 0..100 the curve is flat.
            score = self._scores[min(max(utilization, 0), PERCENT)]
            if score > 0:
                total += score * weight
                weight_sum += weight
        return (2 * total + weight_sum) // (2 * weight_sum) if weight_sum else 0

    def score_rows(
        self, prepared: Numbers, allocatable: Numbers, amounts: Numbers, weights: Sequence[int]
    ) -> Amounts:
        """Return the scores of prepared rows."""
        total = np.zeros(prepared.shape[1], np.int64)
        weight_sum = np.zeros_like(total)
        utilizations = _used_percentages(prepared + amounts, allocatable).astype(np.intp)
        for utilization, weight in zip(utilizations, weights, strict=True):
            scores = self.curve[utilization]
            total += scores * weight
            weight_sum += (scores > 0) * weight
        np.maximum(weight_sum, 1, out=weight_sum)
        means: Amounts = (2 * total + weight_sum) // (2 * weight_sum)
        return means


def _used_percentages(used: Numbers, allocatable: Numbers) -> Numbers:
    """Return `percent` of the use, at most 100, as resources x rows. Overwrites the use."""
    np.minimum(used, allocatable, out=used)
    used *= PERCENT
    return divide(used, allocatable)


def _interpolate(points: Sequence[tuple[int, int]], utilization: int) -> int:
    """Return the score at `utilization` on the line through the points, flat beyond its ends."""
    left, score = points[0]
    if utilization <= left:
        return score
    for right, next_score in points[1:]:
        if utilization <= right:
            rise = (next_score - score) * (utilization - left)
            return score + quotient(rise, right - left)
        left, score = right, next_score
    return score
