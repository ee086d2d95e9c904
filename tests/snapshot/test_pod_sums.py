from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.snapshot.coded import CodedColumn
from kubesched.snapshot.pod_sums import DomainSums, PodCounts, PodSum
from kubesched.testing.builders import make_node, make_pod, make_table

ROWS = 200


@given(
    st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(-3, 3))),
    st.sampled_from([1, 3, ROWS]),
    st.booleans(),
    st.booleans(),
)
def test_listed_rows_and_an_array_are_the_same_counts(
    additions: list[tuple[int, int]], domains: int, is_array: bool, some: bool
) -> None:
    """Sums per row and per domain are right as a list and as an array."""
    counts, expected = PodCounts(range(ROWS)), [0] * ROWS
    if is_array:
        for row in range(ROWS):
            counts.add(row, 1)
            expected[row] = 1
    for row, number in additions:
        counts.add(row, number)
        expected[row] += number
    assert expected == counts.column().tolist()
    label: CodedColumn[str | None] = CodedColumn()
    for row in range(ROWS):
        label.append(str(row % domains))
    rows = np.arange(ROWS) % 2 == 0 if some else None
    sums = [0] * len(label.values)
    for row, number in enumerate(expected):
        if rows is None or rows[row]:
            sums[label.codes[row]] += number
    assert sums == counts.by_code(label, rows).tolist()


def test_rows_come_and_go() -> None:
    """The last row takes the place of a removed one, as a list and as an array."""
    for filled in (2, ROWS):
        rows = [*range(ROWS)]
        counts = PodCounts(rows)
        for row in range(ROWS - filled, ROWS):
            counts.add(row, row)
        counts.add(0, -counts.column().item(0))
        rows.append(ROWS)
        assert 0 == counts.column()[ROWS]
        counts.add(ROWS, 7)
        rows.pop()
        for _ in range(2):
            counts.move(ROWS, 0)
            assert [7, ROWS - 1] == counts.column()[[0, ROWS - 1]].tolist()
        rows.append(ROWS)
        assert 0 == counts.column()[ROWS]


@settings(max_examples=25)
@given(st.integers(0, 999))
def test_sums_by_code_follow_the_pods_and_the_label(seed: int) -> None:
    """Sums that are kept equal those of counts that see the label for the first time."""
    random, counts, numbers = Random(seed), PodCounts(range(ROWS)), [1] * ROWS
    zones: CodedColumn[str | None] = CodedColumn([str(row % 3) for row in range(ROWS)])
    hosts: CodedColumn[str | None] = CodedColumn([str(row) for row in range(ROWS)])
    for row in range(ROWS):
        counts.add(row, 1)
    for _ in range(12):
        row, number = random.randrange(ROWS), random.randrange(-2, 3)
        if random.random() < 0.7:
            counts.add(row, number)
            numbers[row] += number
        else:
            zones.set(row, random.choice(("0", "1", "9", None)))
        for label in (zones, hosts) if random.random() < 0.7 else ():
            expected = [0] * len(label.values)
            for code, of_row in zip(label.codes.tolist(), numbers, strict=True):
                expected[code] += of_row
            found = counts.by_code(label)
            assert expected == found.tolist()
            # The caller may change what it got.
            found[0] = 99


# Sums by domain.


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
