from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.snapshot.node_columns import NodeColumns, zone_key
from kubesched.testing.builders import make_node

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


def one_of_each_zone_in_turn(zones: dict[str, list[str]]) -> list[str]:
    """Compute the round-robin order by hand."""
    queues = [list(names) for names in zones.values()]
    order: list[str] = []
    while any(queues):
        order += [queue.pop(0) for queue in queues if queue]
    return order


nodes = st.sampled_from([f"node-{number}" for number in range(6)])


@given(st.lists(st.tuples(nodes, st.sampled_from(["", "a", "b", "c"])), max_size=20))
def test_snapshot_order_takes_one_node_of_each_zone_in_turn(changes: list[tuple[str, str]]) -> None:
    """Zones and their nodes are in order of arrival, whatever comes, moves and leaves ("")."""
    table = NodeColumns()
    zones: dict[str, list[str]] = {}
    expected: list[str] = []
    for name, zone in changes:
        is_known, node = name in table.row_of, make_node(name, labels={ZONE: zone})
        old = next((one for one, names in zones.items() if name in names), "")
        if zone != old:
            left = {one: [each for each in names if each != name] for one, names in zones.items()}
            zones = {one: names for one, names in left.items() if names}
            if zone:
                zones.setdefault(zone, []).append(name)
        if zone and is_known:
            table.update_node(node)
        elif zone:
            table.add_node(node)
        elif is_known:
            table.remove_node(name)
        if is_known != bool(zone):
            expected = one_of_each_zone_in_turn(zones)
        assert expected == [table.names[row] for row in table.snapshot_order]
