"""Scores by storage utilization."""

import pytest

from kubesched.config.args import UtilizationShapePoint
from kubesched.plugins.volumes.decisions import PodVolumes, StaticBinding
from kubesched.plugins.volumes.scoring import broken_linear, score_pod_volumes
from tests.plugins.volume_objects import make_claim, make_volume


def shape(*points: tuple[int, int]) -> list[UtilizationShapePoint]:
    """A shape from utilization and score."""
    return [UtilizationShapePoint(utilization=u, score=s) for u, s in points]


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
        pytest.param(25, [(10, 4), (20, 8), (30, 0)], 40, id="second of three"),
    ],
)
def test_broken_linear(at: int, points: list[tuple[int, int]], expected: int) -> None:
    """Scores lie on lines between points, cut toward zero from the point before."""
    assert expected == broken_linear(at, shape(*points))


RISING = shape((0, 0), (100, 10))


@pytest.mark.parametrize(
    ("bindings", "expected"),
    [
        pytest.param([("a", "1Gi", "4Gi")], 25, id="one"),
        pytest.param([("a", "1Gi", "4Gi"), ("a", "3Gi", "4Gi")], 50, id="one class: sums"),
        pytest.param([("a", "1Gi", "4Gi"), ("b", "3Gi", "4Gi")], 50, id="two classes: mean"),
        pytest.param([("a", "1", "100"), ("b", "2", "100")], 2, id="halves round up"),
        pytest.param([("a", "1Gi", "0")], 100, id="no capacity"),
        pytest.param([("a", "2Gi", "1Gi")], 100, id="more than there is"),
        pytest.param([("a", "8Ei", "8Ei")], 0, id="as upstream, 64 bits overflow"),
        pytest.param([], 0, id="nothing"),
    ],
)
def test_score(bindings: list[tuple[str, str, str]], expected: int) -> None:
    """Classes are scored by requested and capacity, and the mean counts."""
    volumes = PodVolumes(
        tuple(
            StaticBinding(
                make_volume(f"v{i}", storage_class=name, storage=capacity),
                make_claim(f"c{i}", storage=requested),
            )
            for i, (name, requested, capacity) in enumerate(bindings)
        )
    )
    assert expected == score_pod_volumes(volumes, RISING)
