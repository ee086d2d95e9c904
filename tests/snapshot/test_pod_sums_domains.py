from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubesched.snapshot.pod_sums import DomainSums, PodCounts, PodSum
from kubesched.testing.builders import make_node, make_pod, make_table

rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", "", None]), st.integers(-9, 9)), min_size=1, max_size=8
)


@given(rows, st.lists(st.tuples(st.integers(0, 7), st.integers(-3, 3)), max_size=4), st.data())
def test_sums_equal_a_dictionary(
    cells: list[tuple[str | None, int]], moves: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Sums per label value, moved or not, are those of a plain loop; no label, no domain."""
    table = make_table(
        make_node(f"n{at}", labels={} if value is None else {"zone": value})
        for at, (value, _) in enumerate(cells)
    )
    label = table.label("zone")
    counts = PodCounts(cells)
    for at, (_, amount) in enumerate(cells):
        counts.add(at, amount)
    sums = DomainSums.of(label, counts)
    expected: dict[str, int] = {}
    for value, amount in cells:
        if value is not None:
            expected[value] = expected.get(value, 0) + amount
    moved = sums.clone()
    for row, amount in moves:
        value = cells[row % len(cells)][0]
        moved.move(label.take(np.array([row % len(cells)])), amount)
        if value is not None:
            expected[value] += amount
    found = [0 if value is None else expected[value] for value, _ in cells]
    assert found == moved.at(label).tolist()
    limit = data.draw(st.integers(-5, 5))
    assert [count > limit for count in found] == moved.above(label, limit).tolist()
    assert any(expected.values()) == moved.has_any
    assert not DomainSums.zero(label).has_any
    for row, (value, _) in enumerate(cells):
        before = sum(amount for other, amount in cells if other == value)
        assert (0 if value is None else before) == sums.at(label)[row]


def test_pod_sums_are_kept_by_identity() -> None:
    """The same question gets the same, kept column; another question its own."""
    pods = [make_pod("p", labels={"app": "foo"}, node_name="n0")]
    table = make_table([make_node("n0"), make_node("n1")], pods)
    one = PodSum(lambda group: 2 if group.labels.get("app") == "foo" else 0)
    counts = one.over(table.groups)
    assert [2, 0] == counts.column().tolist()
    assert counts is one.over(table.groups)
    elsewhere = PodSum(lambda _group: 1, frozenset({"other"}))
    assert [0, 0] == elsewhere.over(table.groups).column().tolist()
