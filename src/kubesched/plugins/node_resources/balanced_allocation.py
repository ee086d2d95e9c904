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
        gain = _balance_of_rows(requested, offered) - _balance_of_rows(allocated, offered)
        return _HALF + (_HALF + gain) // 2


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
    fractions = [
        np.minimum(amounts / whole, 1.0) for amounts, whole in zip(used, offered, strict=True)
    ]
    if len(fractions) == 2:
        deviation = np.abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        total = np.zeros_like(fractions[0])
        for fraction in fractions:
            total += fraction
        mean = total / len(fractions)
        squares = np.zeros_like(mean)
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = np.sqrt(squares / len(fractions))
    else:
        deviation = np.zeros_like(fractions[0])
    return ((1 - deviation) * NODE_SCORE_MAX).astype(np.int64)
