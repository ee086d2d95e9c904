"""The curve of scores by utilization."""

import pytest

from kubesched.config.args import UtilizationShapePoint
from kubesched.plugins.shared.score_curve import ScoreCurve


@pytest.mark.parametrize(
    ("at", "points", "expected"),
    [
        pytest.param(0, [(0, 0), (100, 10)], 0, id="start"),
        pytest.param(33, [(0, 0), (100, 10)], 33, id="rising"),
        pytest.param(100, [(0, 0), (100, 10)], 100, id="end"),
        pytest.param(33, [(0, 10), (100, 0)], 67, id="falling"),
        pytest.param(1, [(0, 1), (3, 0)], 7, id="falling lines round up"),
        pytest.param(1, [(0, 0), (3, 1)], 3, id="rising lines round down"),
        pytest.param(5, [(10, 4), (20, 8)], 40, id="before the first point"),
        pytest.param(50, [(10, 4), (20, 8)], 80, id="after the last point"),
        pytest.param(15, [(10, 4), (20, 8), (30, 0)], 60, id="first of three"),
        pytest.param(-7, [(10, 4), (20, 8)], 40, id="negative, after an overflow"),
        pytest.param(25, [(10, 4), (20, 8), (30, 0)], 40, id="second of three"),
    ],
)
def test_at(at: int, points: list[tuple[int, int]], expected: int) -> None:
    """Scores lie on lines between points, cut toward zero from the point before."""
    shape = [UtilizationShapePoint(utilization=u, score=s) for u, s in points]
    assert expected == ScoreCurve(shape).at(at)
