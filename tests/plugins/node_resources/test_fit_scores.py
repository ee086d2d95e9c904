"""NodeResourcesFit: the scores of the strategies."""

from __future__ import annotations

import pytest

from kubesched.testing.builders import Amounts, Json, make_pod
from tests.plugins.node_resources.fits import (
    GPU,
    equal_nodes,
    filtered,
    new_plugin,
    scored,
    strategy_args,
)


@pytest.mark.parametrize(
    ("args", "allocatable", "used", "asked", "expected"),
    [
        pytest.param(
            None,
            {"cpu": "4000m", "memory": 10000},
            None,
            {"cpu": "3000m", "memory": 5000},
            37,
            id="least",
        ),
        pytest.param(
            strategy_args("LeastAllocated", ("cpu", 1), ("memory", 2)),
            {"cpu": "4000m", "memory": 10000},
            None,
            {"cpu": "3000m", "memory": 5000},
            41,
            id="least, weighted",
        ),
        pytest.param(
            None,
            {"cpu": "10000m", "memory": 20000},
            {"cpu": "3000m", "memory": 5000},
            {"cpu": "3000m", "memory": 5000},
            45,
            id="least, in use",
        ),
        pytest.param(
            None,
            {"cpu": "10000m", "memory": 20000},
            {"cpu": "3000m", "memory": 0},
            {"cpu": "3000m", "memory": 5000},
            57,
            id="least, an explicit 0 is no missing request",
        ),
        pytest.param(None, {"cpu": 0, "memory": 0}, None, {"cpu": 1}, 0, id="nothing allocatable"),
        pytest.param(
            None,
            {"cpu": 1, "memory": 0},
            None,
            {"cpu": "100m"},
            90,
            id="resources with 0 allocatable do not count",
        ),
        pytest.param(
            None, {"cpu": 1, "memory": "400Mi"}, None, {}, 70, id="defaults of the pod: 90 and 50"
        ),
        pytest.param(None, {"cpu": 1, "memory": "800Mi"}, {}, {}, 65, id="defaults of a bound pod"),
        pytest.param(
            strategy_args("MostAllocated"),
            {"cpu": "4000m", "memory": 10000},
            None,
            {"cpu": "3000m", "memory": 5000},
            62,
            id="most",
        ),
        pytest.param(
            strategy_args("MostAllocated", (GPU, 1), ("cpu", 1)),
            {"cpu": 4, GPU: 8},
            {"cpu": 1, GPU: 2},
            {"cpu": 1, GPU: 2},
            50,
            id="most, devices",
        ),
        pytest.param(
            strategy_args("MostAllocated", (GPU, 9), ("cpu", 1)),
            {"cpu": 4, GPU: 8},
            {"cpu": 1, GPU: 2},
            {"cpu": 2},
            75,
            id="most, devices not asked for",
        ),
        pytest.param(
            strategy_args(
                "RequestedToCapacityRatio",
                ("cpu", 1),
                ("memory", 1),
                shape=[{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
            ),
            {"cpu": "4000m", "memory": 10000},
            None,
            {"cpu": "3000m", "memory": 5000},
            38,
            id="ratio, rounded to the nearest",
        ),
        pytest.param(
            strategy_args("LeastAllocated", ("pods", 1), ("ephemeral-storage", 1)),
            {"ephemeral-storage": 100},
            {"ephemeral-storage": 10},
            {"ephemeral-storage": 20},
            70,
            id="pods are not scored",
        ),
        pytest.param(
            strategy_args("LeastAllocated", ("memory", 1)),
            {"memory": 10**17},
            None,
            {"memory": 0},
            -84,
            id="a hundred petabytes overflow",
        ),
        pytest.param(
            strategy_args("LeastAllocated", ("memory", 1)),
            {"memory": 100},
            {"memory": 2**63 - 1},
            {"memory": 1},
            100,
            id="the sum of requests overflows",
        ),
        pytest.param(
            strategy_args("MostAllocated", *((f"example.com/r{i}", 1) for i in range(70))),
            {f"example.com/r{i}": 2 for i in range(70)},
            None,
            {f"example.com/r{i}": 1 for i in range(70)},
            50,
            id="more resources than bits",
        ),
    ],
)
@pytest.mark.parametrize("copies", [1, 12])
def test_scores(
    args: Json | None,
    allocatable: Amounts,
    used: Amounts | None,
    asked: Amounts,
    expected: int,
    copies: int,
) -> None:
    """The strategies on nodes with and without a pod."""
    snapshot = equal_nodes(allocatable, used, 0 if used is None else 1, copies)
    assert [expected] * copies == scored(new_plugin(args), make_pod(requests=asked), snapshot)


def test_pod_level_requests_are_filtered_but_not_scored() -> None:
    """Upstream's scorer reads only the containers' requests, here with defaults."""
    pod = make_pod(spec={"resources": {"requests": {"cpu": 3, "memory": "300Mi"}}})
    snapshot = equal_nodes({"cpu": 2, "memory": "400Mi"}, pods=0)
    assert ("Insufficient cpu",) == filtered(new_plugin(), pod, snapshot)[0].reasons
    assert [(95 + 50) // 2] == scored(new_plugin(), pod, snapshot)
