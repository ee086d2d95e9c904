"""The updated sum per row equals the sum over the row's pods."""

from hypothesis import given
from hypothesis import strategies as st

from kubesched.plugins.volumes.row_tally import RowTally
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod_info
from tests.plugins.volume_objects import claim_volumes

# Pods change more often than nodes.
ACTIONS = ["add", "remove", "ask"] * 6 + ["node", "gone", "update"]
steps = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 5), st.integers(0, 5)),
    min_size=5,
    max_size=40,
)


def weigh(pod: PodInfo) -> int:
    """The number of claims."""
    return len(pod.claim_names)


@given(steps)
def test_equals_fresh_sums(steps: list[tuple[str, int, int]]) -> None:
    """After any changes of pods and nodes, the sums equal new ones."""
    table, tally, made = NodeColumns(), RowTally(weigh), 0
    for name in "abc":
        table.add_node(make_node(name))
    for action, at, number in steps:
        made += 1
        row = at % len(table) if len(table) else 0
        if action == "node":
            table.add_node(make_node(f"n{made}"))
        elif len(table) == 0:
            continue
        elif action == "add":
            table.add_pod(make_pod_info(f"p{made}", volumes=claim_volumes(*"abcde"[:number])), row)
        elif action == "remove" and table.pods[row]:
            table.remove_pod(next(iter(table.pods[row].values())), row)
        elif action == "gone":
            table.remove_node(table.names[row])
        elif action == "update":
            table.update_node(make_node(table.names[row], labels={"x": str(made)}))
        elif action == "ask":
            tally.of(table)
    expected = [sum(map(weigh, pods.values())) for pods in table.pods]
    assert expected == tally.of(table).tolist()
    assert max(expected, default=0) == tally.most


def test_another_table() -> None:
    """Another table starts with new sums."""
    one, two, tally = NodeColumns(), NodeColumns(), RowTally(weigh)
    for table in (one, two):
        table.add_node(make_node("n"))
    one.add_pod(make_pod_info(volumes=claim_volumes("a")), 0)
    assert [1] == tally.of(one).tolist()
    assert [0] == tally.of(two).tolist()
    assert [1] == tally.of(one).tolist()
