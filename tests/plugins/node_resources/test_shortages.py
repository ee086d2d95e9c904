"""Amounts as users write them, shortages, and what every row has free."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.quantity import milli_value, value
from kubesched.plugins.node_resources.shortages import (
    FreeAmounts,
    Requests,
    ResourceRequest,
    find_shortages,
    format_amount,
)
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import Amounts, make_node, make_pod_info

_NAMES = ("cpu", "a.io/x", "b.io/y")
_AMOUNTS = st.dictionaries(st.sampled_from(_NAMES), st.integers(0, 3))
_REQUESTS = st.lists(
    st.builds(
        ResourceRequest, st.sampled_from(_NAMES), st.integers(-1, 3000), delegated=st.booleans()
    ),
    unique_by=lambda request: request.resource,
)


@pytest.mark.parametrize(
    ("resource", "amount", "expected"),
    [
        pytest.param("cpu", 1500, "1.5", id="cores"),
        pytest.param("cpu", 3000, "3", id="whole cores"),
        pytest.param("cpu", -250, "-0.25", id="less than none"),
        pytest.param("cpu", 1, "0.001", id="a milli"),
        pytest.param("memory", 3 << 29, "1.5Gi", id="one and a half"),
        pytest.param("memory", 1 << 40, "1Ti", id="terabinary"),
        pytest.param("memory", (1 << 30) + 1, "1073741825", id="uneven"),
        pytest.param("memory", 0, "0", id="nothing"),
        pytest.param("memory", -(1 << 20), "-1Mi", id="overcommitted"),
        pytest.param("ephemeral-storage", 5 << 10, "5Ki", id="storage"),
        pytest.param("hugepages-2Mi", 4 << 20, "4Mi", id="huge pages"),
        pytest.param("example.com/gpu", 2048, "2048", id="devices"),
    ],
)
def test_format_amount(resource: str, amount: int, expected: str) -> None:
    """Cpu in cores, bytes with binary suffixes, the rest as counted."""
    assert expected == format_amount(resource, amount)


@given(st.integers(0, 1 << 62))
def test_amounts_lose_nothing(amount: int) -> None:
    """Formatting keeps the exact amount."""
    assert amount == value(format_amount("memory", amount))
    assert amount == milli_value(format_amount("cpu", amount))


@pytest.mark.slow
@given(st.lists(_AMOUNTS, min_size=5, max_size=9), st.data())
def test_resources_without_columns(offered: list[dict[str, int]], data: st.DataObject) -> None:
    """Shortages are the same with and without columns, and row by row."""
    requests = Requests(data.draw(_REQUESTS))
    rows = st.integers(0, len(offered) - 1)
    placed = data.draw(st.lists(st.tuples(rows, _AMOUNTS), max_size=6))
    found = []
    for resources_max in (64, 3):
        table = NodeColumns()
        table.resources_max = resources_max
        for at, amounts in enumerate(offered):
            table.add_node(make_node(f"n{at}", allocatable={"pods": 2, **amounts}))
        for at, (row, amounts) in enumerate(placed):
            table.add_pod(make_pod_info(f"p{at}", requests=amounts), row)
        together = find_shortages(requests, table)
        found.append([together[row] for row in range(len(table))])
        one_by_one = [find_shortages(requests, table.row_view(row)) for row in range(len(table))]
        found.append([statuses[0] for statuses in one_by_one])
    assert [found[0]] * 4 == found


@settings(max_examples=10)
@given(st.integers(0, 999))
def test_amounts_suffice_only_where_every_row_has_them(seed: int) -> None:
    """That holds after any history, and the whole table's amounts suffice once measured."""
    random, table, known = Random(seed), NodeColumns(), FreeAmounts()
    for at in range(6):
        table.add_node(make_node(f"n{at}", allocatable={"cpu": 2, "a.io/x": 4, "pods": 3}))
    placed: list[tuple[PodInfo, int]] = []
    for step in range(40):
        kind = random.random()
        if kind < 0.05:
            size: Amounts = {"cpu": random.randrange(3), "a.io/x": 4, "pods": random.randrange(4)}
            table.update_node(make_node("n0", allocatable=size))
        elif kind < 0.4 and placed:
            table.remove_pod(*placed.pop(random.randrange(len(placed))))
        else:
            held: Amounts = {"cpu": f"{random.randrange(700)}m", "a.io/x": random.randrange(2)}
            placed.append((make_pod_info(f"p{step}", requests=held), random.randrange(6)))
            table.add_pod(*placed[-1])
        names = random.sample(("cpu", "a.io/x", "b.io/y"), random.choice((0, 1, 1, 2)))
        asked = {name: random.randrange(900) for name in names}
        for nodes in (table, table.take(np.array(random.sample(range(6), 4)))):
            free, _ = nodes.free_for(names)
            fits = (free >= np.array([[1], *([amount] for amount in asked.values())])).all()
            assert fits or not known.suffice(asked, nodes)
            if fits:
                known.measure(names, nodes)
                assert nodes is not table or known.suffice(asked, nodes)
