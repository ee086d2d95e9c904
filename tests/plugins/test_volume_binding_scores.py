"""Scores by storage utilization."""

import pytest

from kubesched.config.args import UtilizationShapePoint
from kubesched.plugins.shared.score_curve import ScoreCurve
from kubesched.plugins.volume_binding import score_pod_volumes
from kubesched.plugins.volumes.decisions import PodVolumes, StaticBinding
from tests.plugins.volume_objects import make_claim, make_volume

RISING = ScoreCurve(
    [
        UtilizationShapePoint(utilization=0, score=0),
        UtilizationShapePoint(utilization=100, score=10),
    ]
)


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
