"""NodeResourcesFit: the scores of the strategies."""

from __future__ import annotations

import pytest

from kubesched.testing.builders import Amounts, Json, make_pod
from tests.plugins.node_resources.fits import (
    GPU,
    amounts,
    equal_nodes,
    filtered,
    new_plugin,
    scored,
    strategy_args,
)

LEAST = strategy_args("LeastAllocated", ("cpu", 1), ("memory", 2))
MOST_GPU = strategy_args("MostAllocated", (GPU, 1), ("cpu", 1))
MOSTLY_GPU = strategy_args("MostAllocated", (GPU, 9), ("cpu", 1))
LEAST_MEMORY = strategy_args("LeastAllocated", ("memory", 1))
LEAST_PODS = strategy_args("LeastAllocated", ("pods", 1), ("ephemeral-storage", 1))
FALLING = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
RATIO = strategy_args("RequestedToCapacityRatio", ("cpu", 1), ("memory", 1), shape=FALLING)
SMALL, LARGE, ASKED = amounts(4000, 10000), amounts(10000, 20000), amounts(3000, 5000)
STORAGE = "ephemeral-storage"


@pytest.mark.parametrize(
    ("args", "allocatable", "used", "asked", "expected"),
    [
        pytest.param(None, SMALL, None, ASKED, 37, id="least"),
        pytest.param(LEAST, SMALL, None, ASKED, 41, id="least, weighted"),
        pytest.param(None, LARGE, ASKED, ASKED, 45, id="least, in use"),
        pytest.param(
            None,
            LARGE,
            amounts(3000, 0),
            ASKED,
            57,
            id="least, an explicit 0 is no missing request",
        ),
        pytest.param(None, amounts(0, 0), None, {"cpu": 1}, 0, id="nothing allocatable"),
        pytest.param(None, amounts(1000, 0), None, {"cpu": "100m"}, 90, id="0 does not count"),
        pytest.param(
            None, {"cpu": 1, "memory": "400Mi"}, None, {}, 70, id="defaults of the pod: 90 and 50"
        ),
        pytest.param(None, {"cpu": 1, "memory": "800Mi"}, {}, {}, 65, id="defaults of a bound pod"),
        pytest.param(strategy_args("MostAllocated"), SMALL, None, ASKED, 62, id="most"),
        pytest.param(
            MOST_GPU, {"cpu": 4, GPU: 8}, {"cpu": 1, GPU: 2}, {"cpu": 1, GPU: 2}, 50, id="devices"
        ),
        pytest.param(
            MOSTLY_GPU, {"cpu": 4, GPU: 8}, {"cpu": 1, GPU: 2}, {"cpu": 2}, 75, id="devices unasked"
        ),
        pytest.param(RATIO, SMALL, None, ASKED, 38, id="ratio, rounded to the nearest"),
        pytest.param(
            LEAST_PODS, {STORAGE: 100}, {STORAGE: 10}, {STORAGE: 20}, 70, id="pods are not scored"
        ),
        pytest.param(
            LEAST_MEMORY, {"memory": 10**17}, None, {"memory": 0}, -84, id="petabytes overflow"
        ),
        pytest.param(
            LEAST_MEMORY,
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
