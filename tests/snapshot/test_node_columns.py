from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubesched.api.core import Node
from kubesched.snapshot.host_ports import ANY_ADDRESS, HostPort
from kubesched.snapshot.node_columns import NodeColumns, zone_key
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_sums import PodSum
from kubesched.testing.builders import PodFields, make_node, make_pod_info, make_table

LABELS = ("zone", "disk", "topology.kubernetes.io/zone")
IMAGE_SIZES = {"a": 1, "b": 2}
QUESTIONS: dict[str, PodSum] = {
    "web": PodSum(lambda group: int(group.labels.get("app") == "web")),
    "web, by label": PodSum(
        lambda group: int(group.labels.get("app") == "web"), markers=[("app", "web")]
    ),
    "terminating": PodSum(lambda group: 3 * group.is_terminating),
}

resource_limits = st.sampled_from([3, 4, 64])
node_fields = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(st.sampled_from(LABELS), st.sampled_from(["x", "y", ""])),
        "taints": st.lists(
            st.sampled_from([{"key": "k", "effect": "NoSchedule"}, {"key": "l", "effect": "X"}]),
            max_size=2,
        ),
        "unschedulable": st.booleans(),
        "allocatable": st.dictionaries(
            st.sampled_from(["cpu", "memory", "pods", "a.com/a", "a.com/b", "a.com/c"]),
            st.sampled_from([0, 1, "1500m", "9223372036854775807"]),
        ),
        "images": st.sampled_from([{}, IMAGE_SIZES, {"a": 1}]),
        "declared_features": st.sampled_from([(), ("A",), ("A", "B")]),
    }
)
pod_fields = st.fixed_dictionaries(
    {
        "namespace": st.sampled_from(["default", "other"]),
        "labels": st.sampled_from([{}, {"app": "web"}, {"app": "db"}]),
        "requests": st.dictionaries(
            st.sampled_from(["cpu", "memory", "a.com/a", "d.com/d", "e.com/e"]),
            st.sampled_from([0, 1, "100m", "9223372036854775807"]),
        ),
        "host_ports": st.sampled_from([(), (80,), (80, 81)]),
        "volumes": st.sampled_from(
            [(), ({"name": "v", "persistentVolumeClaim": {"claimName": "c"}},)]
        ),
        "metadata": st.sampled_from([{}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}]),
    }
)


def picture(
    table: NodeColumns,
    labels: Collection[str] = LABELS,
    questions: Collection[str] = tuple(QUESTIONS),
) -> dict[str, object]:
    """The contents of a table, row by row, as plain values."""
    rows = range(len(table))
    resources = sorted((*table.resources, *table.rare))
    return {
        "names": list(table.names),
        "nodes": list(table.nodes),
        "row_of": dict(sorted(table.row_of.items())),
        "pods": [sorted(pods) for pods in table.pods],
        "ports": [sorted(map(repr, table.used_ports[row])) for row in rows],
        "users_of_ports": [
            sorted(table.used_ports.rows_with([HostPort(ANY_ADDRESS, "TCP", number)]))
            for number in (80, 81)
        ],
        "unschedulable": table.unschedulable.tolist(),
        "taints": [table.taints[row] for row in rows],
        "features": [table.declared_features[row] for row in rows],
        "zones": [table.zones[row] for row in rows],
        "labels": {key: [table.label(key)[row] for row in rows] for key in labels},
        "pods_numbers": [table.allowed_pods.tolist(), table.pod_counts.tolist()],
        "amounts": {
            name: (table.allocatable_of(name).tolist(), table.requested_of(name).tolist())
            for name in resources
            if table.allocatable_of(name).any() or table.requested_of(name).any()
        },
        "non_zero": table.non_zero_requested.tolist(),
        "images": {
            name: (state.size_bytes, sorted(state.nodes))
            for name in IMAGE_SIZES
            if (state := table.images.get(name)) is not None
        },
        "node_count": table.images.node_count,
        "claims": {
            claim: table.claim_users(*str(claim).split("/")) for claim in table._claim_users
        },
        "order": sorted(table.snapshot_order.tolist()),
        "groups": {group.key: group.rows for group in table.groups},
        "views": {key: table.groups.count(QUESTIONS[key]).column().tolist() for key in questions},
    }


def from_scratch(table: NodeColumns) -> NodeColumns:
    """Build a new table from the same nodes and pods, which are added at once."""
    fresh = NodeColumns()
    for node in table.nodes:
        fresh.add_node(node)
    fresh.add_pods((row, pod) for row, pods in enumerate(table.pods) for pod in pods.values())
    fresh.check()
    return fresh


def node_side(table: NodeTable, row: int) -> object:
    """The fields of a Node that plugins read."""
    node = table.nodes[row]
    return (
        node.metadata.labels,
        node.spec.taints,
        node.spec.unschedulable,
        node.status.allocatable,
        node.status.declared_features,
    )


class TableMachine(RuleBasedStateMachine):
    """Nodes and pods are added, updated and removed in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.table = NodeColumns()
        self.number = 0
        self.labels: dict[str, None] = {}
        self.questions: dict[str, None] = {}
        self.remembered: tuple[int, list[object], list[list[str]]] = (-1, [], [])
        self.labelled: tuple[int, object] = (-1, None)
        self.read = 0

    def draw_row(self, data: st.DataObject) -> int:
        """Choose a row."""
        return data.draw(st.integers(0, len(self.table) - 1))

    @initialize(resources_max=resource_limits, labels_max=st.sampled_from([0, 1, 64]))
    def start(self, resources_max: int, labels_max: int) -> None:
        """Amounts of resources without columns are derived, and columns of labels made again."""
        self.table = NodeColumns()
        self.table.resources_max, self.table.labels_max = resources_max, labels_max

    @rule(fields=node_fields)
    def add_node(self, fields: dict[str, Any]) -> None:
        """Add a node."""
        self.number += 1
        row = self.table.add_node(make_node(f"node-{self.number}", **fields))
        assert len(self.table) - 1 == row

    @precondition(lambda self: len(self.table) > 0)
    @rule(data=st.data(), fields=node_fields)
    def update_node(self, data: st.DataObject, fields: dict[str, Any]) -> None:
        """Update a node."""
        name = self.table.names[self.draw_row(data)]
        self.table.update_node(make_node(name, **fields))

    @precondition(lambda self: len(self.table) > 0)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        """Remove a node with its pods."""
        row = self.draw_row(data)
        expected = sorted(self.table.pods[row])
        assert expected == sorted(pod.uid for pod in self.table.remove_node(self.table.names[row]))

    @precondition(lambda self: len(self.table) > 0)
    @rule(data=st.data(), fields=pod_fields)
    def add_pod(self, data: st.DataObject, fields: PodFields) -> None:
        """Add a pod."""
        self.number += 1
        pod, row = make_pod_info(f"pod-{self.number}", **fields), self.draw_row(data)
        # Two holders of one port would leave a trace: the first to go frees it, as upstream.
        assume(not any(self.table.used_ports[row].conflicts(p) for p in pod.template.host_ports))
        self.table.add_pod(pod, row)

    @precondition(lambda self: any(self.table.pods))
    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        """Delete a pod."""
        choices = [(row, uid) for row, pods in enumerate(self.table.pods) for uid in pods]
        row, uid = data.draw(st.sampled_from(choices))
        self.table.remove_pod(self.table.pods[row][uid], row)

    @rule(key=st.sampled_from(LABELS))
    def ask_label(self, key: str) -> None:
        """Start to keep a column."""
        self.labels[key] = None

    @rule(key=st.sampled_from(sorted(QUESTIONS)))
    def ask_groups(self, key: str) -> None:
        """Start to keep a view."""
        self.questions[key] = None

    @invariant()
    def sums_hold(self) -> None:
        """Usage columns and views equal the sums over the pods."""
        self.table.check()
        self.table.groups.check()

    @invariant()
    def equals_one_built_from_scratch(self) -> None:
        """The table equals a new one with the same nodes and pods."""
        # Only columns and views that were read are compared: they may be created at any time.
        asked = (self.labels, self.questions)
        assert picture(from_scratch(self.table), *asked) == picture(self.table, *asked)

    @invariant()
    def labels_epoch_notes_names_and_labels(self) -> None:
        """As long as it is the same, rows have the same names and labels, with the same codes."""
        nodes, codes = self.table.nodes, self.table.label(LABELS[0]).codes.tolist()
        now = [(node.metadata.name, node.metadata.labels) for node in nodes], codes
        epoch, before = self.labelled
        assert epoch != self.table.labels_epoch or before == now
        self.labelled = self.table.labels_epoch, now

    @invariant()
    def changes_name_every_row_that_changed(self) -> None:
        """Readers of `changes` miss none."""
        table = self.table
        epoch, nodes, pods = self.remembered
        if epoch == table.epoch:
            changes = set(table.changes.since(self.read) or ())
            for row in range(len(table)):
                assert nodes[row] == node_side(table, row)
                assert pods[row] == list(table.pods[row]) or row in changes
        rows = range(len(table))
        self.remembered = (
            table.epoch,
            [node_side(table, row) for row in rows],
            [list(pods) for pods in table.pods],
        )
        self.read = table.changes.version


TestTable = pytest.mark.slow(TableMachine.TestCase)
TestTable.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def add_nodes(table: NodeColumns, nodes: list[dict[str, Any]]) -> None:
    """Add nodes with these fields."""
    for at, fields in enumerate(nodes):
        table.add_node(make_node(f"node-{at}", **fields))


@given(
    st.lists(node_fields, min_size=1, max_size=4),
    st.lists(pod_fields, max_size=6),
    resource_limits,
    st.data(),
)
@settings(max_examples=80, deadline=None)
def test_selected_rows_are_a_table_of_their_own(
    nodes: list[dict[str, Any]], pods: list[PodFields], resources_max: int, data: st.DataObject
) -> None:
    """What-if pods change a selection as they would change the table, which stays unchanged."""
    table = NodeColumns()
    table.resources_max = resources_max
    add_nodes(table, nodes)
    infos = [make_pod_info(f"pod-{at}", **fields) for at, fields in enumerate(pods)]
    places = data.draw(
        st.lists(st.integers(0, len(table) - 1), min_size=len(infos), max_size=len(infos))
    )
    half = len(infos) // 2
    for info, row in zip(infos[:half], places, strict=False):
        table.add_pod(info, row)
    for name in sorted({name for info in infos for name in info.template.held}):
        if name not in table.resources:
            table._add_resource(name, 0, 0)
    before = picture(table)
    rows = data.draw(st.permutations(range(len(table))))
    chosen = table.take(np.array(rows, np.intp))
    for info, row in zip(infos[half:], places[half:], strict=True):
        chosen.add_pod(info, rows.index(row))
    gone = infos[: half // 2]
    for info, row in zip(gone, places, strict=False):
        chosen.remove_pod(info, rows.index(row))
    chosen.check()
    assert before == picture(table)

    for info, row in zip(infos[half:], places[half:], strict=True):
        table.add_pod(info, row)
    for info, row in zip(gone, places, strict=False):
        table.remove_pod(info, row)
    assert [table.names[row] for row in rows] == list(chosen.names)
    assert {name: at for at, name in enumerate(chosen.names)} == chosen.row_of
    assert [sorted(table.pods[row]) for row in rows] == [sorted(pods) for pods in chosen.pods]
    assert table.pod_counts[rows].tolist() == chosen.pod_counts.tolist()
    assert table.requested[:, rows].tolist() == chosen.requested.tolist()
    for name in (*table.resources, *table.rare, "absent"):
        assert table.requested_of(name)[rows].tolist() == chosen.requested_of(name).tolist()
        assert table.allocatable_of(name)[rows].tolist() == chosen.allocatable_of(name).tolist()
        assert table.amounts_on(rows[0], name) == chosen.amounts_on(0, name)
        assert table.amounts_on(rows[0], name) == table.row_view(rows[0]).amounts_on(0, name)
    assert table.non_zero_requested[:, rows].tolist() == chosen.non_zero_requested.tolist()
    assert table.allocatable[:, rows].tolist() == chosen.allocatable.tolist()
    for key in LABELS:
        assert [table.label(key)[row] for row in rows] == [
            chosen.label(key)[at] for at in range(len(rows))
        ]


@pytest.mark.parametrize("resources_max", [3, 64])
def test_rows_of_equal_usage(resources_max: int) -> None:
    """Rows differ in their usage if they differ in a resource without a column."""
    table = NodeColumns()
    table.resources_max = resources_max
    for at, amount in enumerate((1, 1, 2, 1)):
        table.add_node(make_node(f"node-{at}", allocatable={"cpu": 1, "a.com/a": amount}))
    table.add_pod(make_pod_info("held", requests={"a.com/a": 1}), 3)
    for row in range(3):
        table.add_pod(make_pod_info("plain"), row)
    first, same, offers_more, holds = map(table.usage, range(4))
    assert first == same
    assert len({first, offers_more, holds}) == 3


def test_columns_of_labels_are_limited() -> None:
    """Sums of pods by label are right after the label's column was made again."""
    table = make_table(make_node(f"n{at}", labels={"zone": "ab"[at % 2]}) for at in range(200))
    table.labels_max = 1
    for row in range(200):
        table.add_pod(make_pod_info(f"p{row}", labels={"app": "web"}), row)
    counts, before = QUESTIONS["web"].over(table.groups), table.label("zone")
    assert [100, 100] == counts.by_code(before).tolist()
    table.label("disk")
    labels_epoch = table.labels_epoch
    table.update_node(make_node("n0", labels={"zone": "a"}, unschedulable=True))
    assert table.labels_epoch > labels_epoch, "codes may have changed"
    row = table.add_node(make_node("new", labels={"zone": "a"}))
    table.add_pod(make_pod_info("new", labels={"app": "web"}), row)
    after = table.label("zone")
    assert before is not after
    assert [101, 100] == counts.by_code(after).tolist()


def test_sums_wrap_as_int64() -> None:
    """Amounts beyond 64 bits overflow as upstream's, and are right again when pods leave."""
    table = make_table([make_node()])
    pods = [make_pod_info(name, requests={"memory": (1 << 63) - 1}) for name in ("a", "b")]
    for pod in pods:
        table.add_pod(pod, 0)
    assert [-2] == table.requested_of("memory").tolist()
    assert [-2] == from_scratch(table).requested_of("memory").tolist()
    for pod in pods:
        table.remove_pod(pod, 0)
    assert [0] == table.requested_of("memory").tolist()


@pytest.mark.parametrize("column", ["unschedulable", "allocatable", "requested", "pod_counts"])
def test_columns_are_read_only(column: str) -> None:
    """Readers cannot change the table."""
    array = getattr(make_table([make_node()]), column)
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 1


def test_adding_a_node_twice_is_a_bug() -> None:
    """Names are unique."""
    node: Node = make_node()
    with pytest.raises(AssertionError, match="in the table already"):
        make_table([node, node])


def test_changes_are_bounded() -> None:
    """Old entries are dropped and counted."""
    table, pod = make_table([make_node()]), make_pod_info()
    before = table.changes.version
    for _ in range(4_000):
        table.add_pod(pod, 0)
        table.remove_pod(pod, 0)
    assert before + 8_000 == table.changes.version
    assert table.changes.since(before + 3_000) is None
    assert [0] * 1_000 == list(table.changes.since(before + 7_000) or ())


# The order of nodes.


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


def test_snapshot_order_keeps_a_node_that_comes_back_before_it_is_read() -> None:
    """Changed zones count once another node comes."""
    table = NodeColumns()
    zones = {"a-0": "a", "a-1": "a", "b-0": "b"}
    for name, zone in zones.items():
        table.add_node(make_node(name, labels={ZONE: zone}))
    assert ["a-0", "b-0", "a-1"] == [table.names[row] for row in table.snapshot_order]
    table.remove_node("a-0")
    table.add_node(make_node("a-0", labels={ZONE: "b"}))
    assert ["a-0", "b-0", "a-1"] == [table.names[row] for row in table.snapshot_order]
    table.add_node(make_node("c-0", labels={ZONE: "c"}))
    assert ["a-1", "b-0", "c-0", "a-0"] == [table.names[row] for row in table.snapshot_order]
