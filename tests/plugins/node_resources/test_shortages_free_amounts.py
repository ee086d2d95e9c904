"""What every row has free."""

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.plugins.node_resources.shortages import FreeAmounts
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import Amounts, make_node, make_pod_info


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
