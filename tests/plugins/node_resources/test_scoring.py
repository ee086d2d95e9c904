"""The scoring formulas: one row, all rows, and a slow twin agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from math import floor, sqrt
from random import Random
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.config.args import ResourceSpec, UtilizationShapePoint
from kubesched.plugins.node_resources.balanced_allocation import BalancedAllocation
from kubesched.plugins.node_resources.scoring import NodeScorer, ResourceScorer, demands_of
from kubesched.plugins.node_resources.strategies import (
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
)
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import PLAIN_MAX
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod_info, make_snapshot

Row = Sequence[tuple[int, int, int]]  # requested, allocated, allocatable
Amounts = dict[str, str | int]
Twin = Callable[[Row, Sequence[int]], int]

GPU: Final = "example.com/gpu"
SHAPES = {
    "rising": ((0, 0), (100, 10)),
    "falling": ((0, 10), (100, 0)),
    "hill": ((10, 0), (33, 10), (34, 3), (70, 1)),
    "flat": ((50, 4),),
}


def _share(part: int, whole: int) -> int:
    return floor(Fraction(part * 100, whole))


def _least(row: Row, weights: Sequence[int]) -> int:
    scores = [0 if asked > there else _share(there - asked, there) for asked, _, there in row]
    total = sum(s * w for s, w in zip(scores, weights, strict=True))
    return floor(Fraction(total, sum(weights)))


def _most(row: Row, weights: Sequence[int]) -> int:
    scores = [_share(min(asked, there), there) for asked, _, there in row]
    total = sum(s * w for s, w in zip(scores, weights, strict=True))
    return floor(Fraction(total, sum(weights)))


def _ratio(shape: Sequence[tuple[int, int]]) -> Twin:
    def curve(x: int) -> int:
        if x <= shape[0][0]:
            return shape[0][1] * 10
        for (x0, y0), (x1, y1) in pairwise(shape):
            if x <= x1:
                return y0 * 10 + int(Fraction((y1 - y0) * 10 * (x - x0), x1 - x0))
        return shape[-1][1] * 10

    def score(row: Row, weights: Sequence[int]) -> int:
        total = weight_sum = 0
        for (asked, _, there), weight in zip(row, weights, strict=True):
            points = curve(100 if asked > there else _share(asked, there))
            if points > 0:
                total += points * weight
                weight_sum += weight
        return floor(Fraction(total, weight_sum) + Fraction(1, 2)) if weight_sum else 0

    return score


def _balanced(row: Row, weights: Sequence[int]) -> int:
    def balance(pairs: Sequence[tuple[int, int]]) -> int:
        shares = [float(used) / float(there) for used, there in pairs]
        shares = [1.0 if share > 1 else share for share in shares]
        spread = 0.0
        if len(shares) == 2:
            spread = abs((shares[0] - shares[1]) / 2)
        if len(shares) > 2:
            mean = 0.0
            for share in shares:
                mean = mean + share
            mean = mean / float(len(shares))
            square = 0.0
            for share in shares:
                square = square + (share - mean) * (share - mean)
            spread = sqrt(square / float(len(shares)))
        return int((1 - spread) * 100.0)

    after = balance([(asked, there) for asked, _, there in row])
    before = balance([(used, there) for _, used, there in row])
    return 50 + (50 + after - before) // 2


SCORERS = [
    pytest.param(LeastAllocated(), _least, id="LeastAllocated"),
    pytest.param(MostAllocated(), _most, id="MostAllocated"),
    pytest.param(BalancedAllocation(), _balanced, id="BalancedAllocation"),
    *(
        pytest.param(
            RequestedToCapacityRatio([UtilizationShapePoint(*point) for point in shape]),
            _ratio(shape),
            id=f"RequestedToCapacityRatio-{name}",
        )
        for name, shape in SHAPES.items()
    ),
]


@st.composite
def _rows(draw: st.DrawFn) -> tuple[list[Row], list[int]]:
    """Rows of the same resources, small amounts as often as huge ones."""
    resources = draw(st.integers(1, 4))
    most = draw(st.sampled_from([10, 1000, 1 << 37, PLAIN_MAX]))
    amount = st.one_of(st.integers(0, 12), st.integers(0, most))

    def entry() -> tuple[int, int, int]:
        there = draw(st.integers(1, most))
        used = draw(amount)
        return used + draw(amount), used, there

    rows: list[Row] = [[entry() for _ in range(resources)] for _ in range(draw(st.integers(1, 4)))]
    weights = draw(st.lists(st.integers(1, 100), min_size=resources, max_size=resources))
    return rows, weights


@pytest.mark.parametrize(("scorer", "twin"), SCORERS)
@given(_rows())
def test_formulas(scorer: ResourceScorer, twin: Twin, given_: tuple[list[Row], list[int]]) -> None:
    """One row at a time and all rows at once give the twin's scores."""
    rows, weights = given_
    expected = [twin(row, weights) for row in rows]
    # Amounts, resources, rows.
    requested, allocated, allocatable = np.array(rows, np.int64).transpose(2, 1, 0)
    amounts = (requested - allocated).astype(np.float64)
    prepared = scorer.prepare(allocated, allocatable).astype(np.float64)
    all_rows = scorer.score_rows(prepared, allocatable.astype(np.float64), amounts, weights)
    one_row = [
        scorer.score_row(
            [entry[0] for entry in row],
            [entry[1] for entry in row],
            [entry[2] for entry in row],
            weights,
        )
        for row in rows
    ]
    assert expected == one_row
    assert expected == all_rows.tolist()
    for at in range(len(rows)):
        row = scorer.prepare_row(allocated[:, at].tolist(), allocatable[:, at].tolist())
        assert prepared[:, at].tolist() == [float(number) for number in row]
    assert all(0 <= score <= 100 for score in expected)


def _change(table: NodeColumns, placed: list[tuple[PodInfo, int]], random: Random) -> None:
    """Add a pod, remove one, or change a node."""
    kind = random.random()
    if kind < 0.02:
        size: Amounts = {"cpu": random.randrange(1, 9), "memory": "1Gi"}
        table.update_node(make_node("n0", allocatable=size))
    elif kind < 0.3 and placed:
        table.remove_pod(*placed.pop(random.randrange(len(placed))))
    else:
        requests: Amounts = {
            "cpu": f"{random.randrange(900)}m",
            "memory": random.randrange(1 << 30),
        }
        info = make_pod_info(f"pod-{random.random()}", requests=requests)
        placed.append((info, random.randrange(len(table))))
        table.add_pod(*placed[-1])


@pytest.mark.parametrize(("formula", "twin"), SCORERS)
@settings(max_examples=8)
@given(seed=st.integers(0, 999), size=st.sampled_from((4, 20, 150)), has_gpus=st.booleans())
def test_what_is_kept_per_row_equals_new_numbers(
    formula: ResourceScorer, twin: Twin, seed: int, size: int, *, has_gpus: bool
) -> None:
    """After any history, the scores equal those of a new scorer."""
    random = Random(seed)
    small: Amounts = {"cpu": 3, "memory": "1Gi"}
    offered: Amounts = {"cpu": 8, "memory": "32Gi", GPU: 4} if has_gpus else small
    nodes = [make_node(f"n{at}", allocatable=random.choice((small, offered))) for at in range(size)]
    table, keeping = make_snapshot(nodes).nodes, NodeScorer(formula)
    specs = (ResourceSpec("cpu", 1), ResourceSpec("memory", 2), ResourceSpec(GPU, 3))
    placed: list[tuple[PodInfo, int]] = []
    for changes in (0, 1, 2, 10, 20, 40, 1):
        for _ in range(changes):
            _change(table, placed, random)
        asked = {"cpu": random.randrange(2000), "memory": 1 << 29, GPU: random.randrange(2)}
        demands = demands_of(specs, asked, non_zero=random.random() < 0.5)
        expected = [
            NodeScorer(formula).score(demands, table.row_view(row)).item() for row in range(size)
        ]
        assert expected == keeping.score(demands, table).tolist()
        assert expected == keeping.score(demands, table.take(np.arange(size))).tolist()
        rows = random.sample(range(size), 4)
        some = table.take(np.array(rows))
        assert [expected[row] for row in rows] == keeping.score(demands, some).tolist()
        # A table that a pod was added to has numbers of its own.
        fuller = table.take(np.arange(size))
        fuller.add_pod(make_pod_info("guest", requests={"cpu": 1, "memory": 1}), 2)
        expected[2] = NodeScorer(formula).score(demands, fuller.take(np.array([2]))).item()
        assert expected == keeping.score(demands, fuller).tolist()


@pytest.mark.parametrize(("scorer", "twin"), SCORERS)
def test_no_resources(scorer: ResourceScorer, twin: Twin) -> None:
    """A row that has none of the resources scores 0, except that its balance cannot change."""
    expected = 75 if isinstance(scorer, BalancedAllocation) else 0
    assert expected == scorer.score_row((), (), (), ())


@pytest.mark.parametrize(
    ("scorer", "row", "expected"),
    [
        # 2 * 10^17 free bytes times 100 leave 1553255926290448384 in 64 bits.
        pytest.param(LeastAllocated(), (0, 0, 2 * 10**17), 7, id="least, positive"),
        # 10^17 * 100 wraps to -8446744073709551616; -84.46… rounds toward zero.
        pytest.param(LeastAllocated(), (0, 0, 10**17), -84, id="least, negative"),
        pytest.param(MostAllocated(), (10**17, 0, 10**17), -84, id="most, negative"),
    ],
)
def test_petabytes_overflow(
    scorer: ResourceScorer, row: tuple[int, int, int], expected: int
) -> None:
    """Beyond 92 PB the hundredfold wraps and the quotient rounds toward zero, as upstream's."""
    requested, allocated, allocatable = row
    assert expected == scorer.score_row([requested], [allocated], [allocatable], [1])
