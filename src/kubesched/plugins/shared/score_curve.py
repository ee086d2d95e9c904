"""The score of each utilization, on lines through the points of a shape.

Upstream: pkg/scheduler/framework/plugins/helper/shape_score.go (v1.36)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final

from kubesched.api.integers import quotient
from kubesched.config.args import UtilizationShapePoint
from kubesched.framework.plugin import NODE_SCORE_MAX

PERCENT: Final = 100
_SHAPE_SCORE_MAX: Final = 10


class ScoreCurve:
    """The scores of the utilizations from 0 to 100 percent."""

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        """Take points of ascending utilization; the curve is flat before and after them."""
        scale = NODE_SCORE_MAX // _SHAPE_SCORE_MAX
        self._points = [(point.utilization, point.score * scale) for point in shape]

    @cached_property
    def scores(self) -> list[int]:
        """101 scores from 0 to 100."""
        return [_interpolate(self._points, utilization) for utilization in range(PERCENT + 1)]

    def at(self, utilization: int) -> int:
        """Return the score of a utilization in percent; what is outside 0..100 is cut off."""
        return self.scores[min(max(utilization, 0), PERCENT)]


def _interpolate(points: Sequence[tuple[int, int]], utilization: int) -> int:
    if utilization <= points[0][0]:
        return points[0][1]
    for (left, score), (right, next_score) in pairwise(points):
        if utilization <= right:
            # Cut toward zero, so falling lines are rounded up.
            return score + quotient((next_score - score) * (utilization - left), right - left)
    return points[-1][1]
