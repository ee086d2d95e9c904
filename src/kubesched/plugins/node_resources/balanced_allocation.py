"""Balanced allocation: how evenly a row's resources would be used, compared with how they are.

Upstream: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go (v1.36)
Invariants: every float operation is upstream's, in upstream's order, so truncation agrees.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.normalize import NODE_SCORE_MAX
from kubesched.plugins.node_resources.int64 import quotient, truncate, wrap
from kubesched.plugins.node_resources.scoring import Amounts

_HALF = NODE_SCORE_MAX // 2


class BalancedAllocation:
    """From 50 (the pod unbalances the row) over 75 (nothing changes) to 100."""

    def score_row(
        self,
        requested: Sequence[int],
        allocated: Sequence[int],
        allocatable: Sequence[int],
        weights: Sequence[int],
    ) -> int:
        """Return the score of one row."""
        gain = wrap(
            _balance_of_row(requested, allocatable) - _balance_of_row(allocated, allocatable)
        )
        return _HALF + quotient(wrap(_HALF + gain), 2)

    def score_rows(
        self,
        requested: Sequence[Amounts],
        allocated: Sequence[Amounts],
        allocatable: Sequence[Amounts],
        weights: Sequence[int],
    ) -> Amounts:
        """Return the scores of rows."""
        offered = [column.astype(np.float64) for column in allocatable]
        scores = _balance_of_rows(requested, offered)
        scores -= _balance_of_rows(allocated, offered)
        scores += _HALF
        scores >>= 1  # halves, rounding down: there is nothing negative here
        scores += _HALF
        return scores


def _balance_of_row(used: Sequence[int], allocatable: Sequence[int]) -> int:
    fractions = [
        min(float(amount) / float(offered), 1.0)
        for amount, offered in zip(used, allocatable, strict=True)
    ]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        # Not sum(), which compensates for rounding.
        total = squares = 0.0
        for fraction in fractions:
            total += fraction
        mean = total / len(fractions)
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = sqrt(squares / len(fractions))
    return truncate((1 - deviation) * NODE_SCORE_MAX)


def _balance_of_rows(used: Sequence[Amounts], offered: Sequence[NDArray[np.float64]]) -> Amounts:
    # In place: at thousands of rows, fresh memory costs more than the arithmetic.
    fractions = [amounts / whole for amounts, whole in zip(used, offered, strict=True)]
    for fraction in fractions:
        np.minimum(fraction, 1.0, out=fraction)
    score = np.subtract(1.0, _deviation(fractions), out=fractions[0])
    score *= NODE_SCORE_MAX
    return score.astype(np.int64)


def _deviation(fractions: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the standard deviation per row; overwrites the fractions."""
    first, *others = fractions
    if not others:
        return np.zeros_like(first)
    if len(others) == 1:
        first -= others[0]
        first /= 2
        return np.abs(first, out=first)
    mean = first.copy()
    for fraction in others:
        mean += fraction
    mean /= len(fractions)
    squares = np.zeros_like(mean)
    for fraction in fractions:
        distance = np.subtract(fraction, mean, out=fraction)
        distance *= distance
        squares += distance
    squares /= len(fractions)
    return np.sqrt(squares, out=squares)
