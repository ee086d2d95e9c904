"""Which rows of the table a selection consists of."""

from __future__ import annotations

import numpy as np

from kubesched.snapshot.objects import ObjectStore
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod_info, make_table


def test_rows_of() -> None:
    """A table has all its rows; a selection has those selected, even of another selection."""
    table = make_table([make_node(name) for name in "abc"])
    snapshot = Snapshot(nodes=table, objects=ObjectStore())
    selected = table.take(np.array([2, 0]))
    every = np.arange(3)
    assert [0, 1, 2] == every[snapshot.rows_of(table)].tolist()
    assert [2, 0] == every[snapshot.rows_of(selected)].tolist()
    assert [1] == every[snapshot.rows_of(table.row_view(1))].tolist()
    assert [0] == every[snapshot.rows_of(selected.take(np.array([1])))].tolist()
    selected.add_pod(make_pod_info("p"))
    assert [2, 0] == every[snapshot.rows_of(selected)].tolist()
