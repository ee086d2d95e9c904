"""Fragmentation, computed by hand."""

from __future__ import annotations

import pytest

from kubesched.simulator.utilisation import AveragePod, fragmentation
from kubesched.testing.builders import make_node, make_pod, make_table

GIB = 1024**3


def test_the_average_pod() -> None:
    """The mean of the requests, without resources that no pod requests."""
    average = AveragePod()
    average.add({"cpu": 1000, "memory": 0})
    average.add({"cpu": 3000})
    assert average.amounts() == {"cpu": 2000.0}


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param({}, {"cpu": 0.0, "memory": 0.75}, id="empty"),
        pytest.param({"cpu": "1"}, {"cpu": 1 / 3, "memory": 1 - 2 / 16}, id="one-core-left-over"),
        pytest.param({"cpu": "4"}, {"cpu": 0.0, "memory": 1.0}, id="no-core-left"),
        pytest.param({"memory": "15Gi"}, {"cpu": 0.5, "memory": 0.0}, id="memory-is-scarce"),
    ],
)
def test_fragmentation(used: dict[str, str], expected: dict[str, float]) -> None:
    """A node of 4 cores and 16 GiB, and pods of 2 cores and 1 or 2 GiB."""
    node = make_node("node-1", allocatable={"cpu": "4", "memory": "16Gi"})
    pods = [make_pod("a", node_name="node-1", requests=used)] if used else []
    memory = 1 if "memory" in used else 2
    got = fragmentation(make_table([node], pods), {"cpu": 2000.0, "memory": memory * float(GIB)})
    assert pytest.approx(expected) == got


def test_no_fragmentation_without_nodes_or_pods() -> None:
    """There is nothing to measure."""
    assert fragmentation(make_table([]), {"cpu": 1.0}) == {}
    assert fragmentation(make_table([make_node()]), {}) == {}
    assert fragmentation(make_table([make_node()]), {"example.com/unknown": 1.0, "pods": 1.0}) == {}


def test_a_node_with_the_maximum_number_of_pods() -> None:
    """All of its free amounts are fragmented."""
    node = make_node("node-1", allocatable={"pods": 1})
    table = make_table([node], [make_pod("a", node_name="node-1")])
    assert fragmentation(table, {"cpu": 1000.0}) == {"cpu": 1.0}
