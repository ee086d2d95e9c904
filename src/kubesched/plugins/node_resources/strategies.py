"""The scoring strategies of NodeResourcesFit.

LeastAllocated prefers nodes with many free resources, MostAllocated nodes with few.
RequestedToCapacityRatio maps utilization to a score along a configured curve.

Upstream: pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,
          requested_to_capacity_ratio}.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kubesched.api.integers import INT64_MAX, quotient, wrap
from kubesched.config.args import UtilizationShapePoint
from kubesched.plugins.node_resources.scoring import Amounts, Numbers
from kubesched.plugins.shared.score_curve import PERCENT, ScoreCurve

_PERCENT_EXACT_MAX: Final = INT64_MAX // PERCENT


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
    """The weighted mean of the scores above 0, rounded to the nearest integer."""

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        self._curve = ScoreCurve(shape)
        self._scores: Amounts = np.array(self._curve.scores, np.int64)

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
            score = self._curve.at(utilization)
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
            scores = self._scores[utilization]
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


def percent(part: int, whole: int) -> int:
    """Return `part` in percent of `whole`, rounded toward zero."""
    if 0 <= part <= _PERCENT_EXACT_MAX and whole > 0:
        return part * PERCENT // whole
    return quotient(wrap(part * PERCENT), whole)


def divide(dividends: Numbers, divisors: Numbers) -> Numbers:
    """Return whole quotients, rounded down. Overwrites the dividends.

    Floats divide much faster than integers. The result is exact for whole numbers, dividends up to
    100 times a plain amount and plain divisors: such a dividend is below 2**53, and a quotient that
    is not whole differs from the next whole number by far more than the rounding error.
    """
    dividends /= divisors
    return np.floor(dividends, out=dividends)


def weighted_mean(columns: Numbers, weights: Sequence[int]) -> Amounts:
    """Return the weighted mean per row of columns x rows, rounded down. Overwrites the first."""
    total: Numbers = columns[0]
    if weights[0] != 1:
        total *= weights[0]
    for column, weight in zip(columns[1:], weights[1:], strict=True):
        total += column if weight == 1 else column * weight
    weight_sum = sum(weights)
    if weight_sum & weight_sum - 1:
        total /= weight_sum
    else:
        # Multiplying is faster, and exact for a power of two.
        total *= 1 / weight_sum
    return total.astype(np.int64)
