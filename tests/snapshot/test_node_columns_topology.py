from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.snapshot.coded import CodedColumn
from kubesched.snapshot.node_columns import round_robin, zone_key

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, "", id="none"),
        pytest.param({REGION: "r", ZONE: "z"}, "r:\x00:z", id="stable"),
        pytest.param({OLD_REGION: "r", OLD_ZONE: "z"}, "r:\x00:z", id="legacy"),
        pytest.param({ZONE: "z"}, ":\x00:z", id="zone-only"),
        pytest.param({REGION: "r"}, "r:\x00:", id="region-only"),
        pytest.param(
            {REGION: "r1", ZONE: "z1", OLD_REGION: "r2", OLD_ZONE: "z2"},
            "r2:\x00:z2",
            id="legacy-wins",
        ),
        pytest.param({REGION: "r", ZONE: "z1", OLD_ZONE: "z2"}, "r:\x00:z2", id="each-by-itself"),
        pytest.param(
            {REGION: "r", ZONE: "z", OLD_ZONE: ""}, "r:\x00:", id="empty-legacy-label-wins"
        ),
        pytest.param({REGION: "r", ZONE: "z", OLD_REGION: "", OLD_ZONE: ""}, "", id="both-empty"),
    ],
)
def test_zone_key(labels: dict[str, str], expected: str) -> None:
    """The key is region and zone; a legacy label takes precedence."""
    assert expected == zone_key(labels)


def one_of_each_zone_in_turn(zones: list[str]) -> list[int]:
    """Compute the round-robin order by hand."""
    queues: dict[str, list[int]] = {}
    for row, zone in enumerate(zones):
        queues.setdefault(zone, []).append(row)
    order: list[int] = []
    while any(queues.values()):
        order += [queue.pop(0) for queue in queues.values() if queue]
    return order


@given(st.lists(st.sampled_from("abcd"), max_size=30))
def test_round_robin_takes_one_row_of_each_zone_in_turn(zones: list[str]) -> None:
    """The rows are the first of each zone, then the second of each, with zones by first row."""
    column: CodedColumn[str] = CodedColumn()
    for zone in zones:
        column.append(zone)
    assert one_of_each_zone_in_turn(zones) == round_robin(column).tolist()
