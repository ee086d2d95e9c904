"""NodeColumns is the whole node table, which the cache updates with every node and pod.

Upstream: pkg/scheduler/backend/cache/node_tree.go, component-helpers/node/topology,
          pkg/scheduler/backend/cache/snapshot.go and framework/types.go, NodeInfo (v1.36)
Reads:    nodes, and the pods on them
Invariants: usage columns equal the sums over the row's pods (`check()`); public arrays are
            read-only.
Differs:  rows are not in the order of upstream's node list, which `snapshot_order` has.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, MutableSequence
from itertools import count, zip_longest
from typing import Final, TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kubesched.api.core import Node, Taint
from kubesched.api.quantity import resource_value, value
from kubesched.snapshot.changes import ChangeLog
from kubesched.snapshot.coded import Coded, CodedColumn
from kubesched.snapshot.host_ports import NO_PORTS, UsedPortsColumn
from kubesched.snapshot.images import ImageStates
from kubesched.snapshot.label_groups import LabelGroups
from kubesched.snapshot.node_table import (
    CPU,
    MEMORY,
    NUMBERS_FIXED,
    PLAIN_MAX,
    NodeTable,
    increase,
    parts_of,
)
from kubesched.snapshot.pod_info import PodInfo

V = TypeVar("V")
D = TypeVar("D", bound=np.generic)

_versions = count(1)
NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_RARE_PLAIN_MAX: Final = PLAIN_MAX >> 16
"""Up to this amount, the sum of a resource over 65,536 pods is plain."""


class NodeColumns(NodeTable):
    """The whole table, which the cache updates row by row.

    Attributes:
        resources_max: The number of resources with columns; the others are rare.
        labels_max: The number of labels with columns above which these are made again after a node
            has changed.
        groups: The pods on nodes, grouped by the properties that selectors read.
        epoch: Increases when a node is added, removed or changed; invalidates cached answers.
        labels_epoch: Increases when a node is added, removed or gets other labels, and when columns
            of labels are made again.
        changes: Rows where a pod was added or removed; forgotten with each epoch.
        row_versions: A number per row, which changes with the row's pods. No number is used twice,
            in any table, so a row with an equal number has the same pods.
    """

    resources_max: int = 64
    labels_max: int = 512

    def __init__(self) -> None:
        self.names: list[str] = []
        self.nodes: list[Node] = []
        self.pods: list[dict[str, PodInfo]] = []
        self.used_ports: UsedPortsColumn = UsedPortsColumn()
        self.row_of: dict[str, int] = {}
        self.is_plain = True
        self.resources = {name: at for at, name in enumerate(NATIVE)}
        self.rare: dict[str, set[int]] = {}
        self.taints: CodedColumn[tuple[Taint, ...]] = CodedColumn()
        self.declared_features: CodedColumn[tuple[str, ...]] = CodedColumn()
        self.zones: CodedColumn[str] = CodedColumn()
        self._names_by_zone: dict[str, dict[str, None]] = {}
        self.groups = LabelGroups()
        self.images = ImageStates()
        self.epoch = 0
        self.labels_epoch = 0
        self.changes: ChangeLog[int] = ChangeLog(array("q"))
        self.row_versions = array("q")
        self._labels: dict[str, CodedColumn[str | None]] = {}
        self._claim_users: dict[str, int] = {}
        self._listed: dict[str, None] = {}
        self._order: NDArray[np.intp] | None = None
        self._all_names: tuple[str, ...] | None = None
        self._name_ranks: NDArray[np.int64] | None = None
        self._unschedulable: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._numbers: NDArray[np.int64] = np.zeros((NUMBERS_FIXED, 0), np.int64)
        self._allocate(rows=16, resources=4)

    # Queries of the whole table.

    def label(self, key: str) -> Coded[str | None]:
        """Return the column of a label; None if a node lacks it."""
        column = self._labels.get(key)
        if column is None:
            values = [node.metadata.labels.get(key) for node in self.nodes]
            column = self._labels[key] = CodedColumn(values)
        return column

    def claim_users(self, namespace: str, claim: str) -> int:
        """Return the number of pods on nodes that use a claim in a persistentVolumeClaim volume."""
        return self._claim_users.get(f"{namespace}/{claim}", 0)

    def usage(self, row: int) -> Hashable:
        """Return a hashable value that is equal for rows with equal amounts and pod counts."""
        numbers = self.numbers[:, row].tobytes()
        if not self.rare:
            return numbers
        rare = [amounts for amounts in self._amounts_on(row) if self.rare.keys() & amounts.keys()]
        return numbers, tuple(tuple(amounts.items()) for amounts in rare)

    @property
    def snapshot_order(self) -> NDArray[np.intp]:
        """The rows in upstream's order, one of each zone in turn, in each zone by arrival.

        As upstream, a node that changes its zone, or is removed and added again before this is
        read, keeps its place until another node comes or leaves.
        """
        if self._order is None:
            if self._listed.keys() != self.row_of.keys():
                turns = zip_longest(*self._names_by_zone.values())
                names = (name for turn in turns for name in turn if name is not None)
                self._listed = dict.fromkeys(names)
            self._order = np.array([self.row_of[name] for name in self._listed], np.intp)
        return self._order

    @property
    def all_names(self) -> tuple[str, ...]:
        """The node names per row, as a tuple that later changes of the table do not affect."""
        if self._all_names is None:
            self._all_names = tuple(self.names)
        return self._all_names

    @property
    def name_ranks(self) -> NDArray[np.int64]:
        """The place of each row in the order of node names."""
        if self._name_ranks is None:
            self._name_ranks = np.argsort(np.argsort(np.array(self.names, np.object_)))
        return self._name_ranks

    def rows_with(self, resource: str) -> Collection[int] | None:
        """Return the rows that perhaps have a resource without a column; None if it has one."""
        return None if resource in self.resources else self.rare.get(resource, ())

    # Changes.

    def add_node(self, node: Node) -> int:
        """Append a row without pods; return its index."""
        row = len(self.names)
        name = node.metadata.name
        assert name not in self.row_of, f"node {name} is in the table already"
        if row == len(self._allowed_pods):
            self._allocate(2 * row, len(self._requested))
        self.row_of[name] = row
        self.names.append(name)
        self.row_versions.append(next(_versions))
        self.nodes.append(node)
        self.pods.append({})
        self.used_ports.append(NO_PORTS)
        for column, value_ in self._coded_values(node):
            column.append(value_)
        self._enter_zone(row)
        self._order = None
        self.groups.append_row()
        self.images.add(node)
        self._renew_views()
        self._write_numbers(node, row)
        self.labels_epoch += 1
        self._begin_epoch()
        return row

    def update_node(self, node: Node) -> None:
        """Replace the node of a row."""
        row = self.row_of[node.metadata.name]
        previous = self.nodes[row]
        self.nodes[row] = node
        if _lasting(previous) == _lasting(node):
            return
        zone = self.zones[row]
        for column, value_ in self._coded_values(node):
            column.set(row, value_)
        if zone != self.zones[row]:
            self._leave_zone(zone, node.metadata.name)
            self._enter_zone(row)
        self._write_numbers(node, row)
        if previous.metadata.labels != node.metadata.labels:
            self.labels_epoch += 1
        if previous.status.images != node.status.images:
            self.images.remove(previous)
            self.images.add(node)
        self._begin_epoch()

    def remove_node(self, name: str) -> list[PodInfo]:
        """Remove a row and return its pods; the last row takes its place."""
        row = self.row_of.pop(name)
        pods = list(self.pods[row].values())
        for info in pods:
            self.remove_pod(info, row)
        removed = self.nodes[row]
        self.images.remove(removed)
        self._leave_zone(self.zones[row], name)
        self._order = None
        last = len(self.names) - 1
        _swap_remove(self.names, row)
        _swap_remove(self.row_versions, row)
        _swap_remove(self.nodes, row)
        _swap_remove(self.pods, row)
        if row != last:
            self.row_of[self.names[row]] = row
            for resource in self.rare.keys() & {
                name for each in self._amounts_on(row) for name in each
            }:
                self.rare[resource].add(row)
        for rows in self.rare.values():
            rows.discard(last)
        self.used_ports.swap_remove(row)
        for coded, _ in self._coded_values(removed):
            coded.swap_remove(row)
        for column in (self._unschedulable, self._numbers):
            column[..., row] = column[..., last]
            column[..., last] = 0
        self.groups.swap_remove_row(row)
        self._renew_views()
        self.labels_epoch += 1
        self._begin_epoch()
        return pods

    def _enter_zone(self, row: int) -> None:
        self._names_by_zone.setdefault(self.zones[row], {})[self.names[row]] = None

    def _leave_zone(self, zone: str, name: str) -> None:
        names = self._names_by_zone[zone]
        del names[name]
        if not names:
            del self._names_by_zone[zone]

    def add_pod(self, info: PodInfo, row: int) -> None:
        """Add a pod to a row."""
        assert info.uid not in self.pods[row], f"{info} is on {self.names[row]} already"
        self.pods[row][info.uid] = info
        for name, amount in info.template.held.items():
            if name not in self.resources:
                self._add_resource(name, row, amount)
        self._account(info, row, 1)
        self.groups.add(info, row)

    def add_pods(self, pods: Iterable[tuple[int, PodInfo]]) -> None:
        """Add each pod to its row."""
        for row, info in pods:
            self.add_pod(info, row)

    def replace_pod(self, info: PodInfo, row: int, *, as_newest: bool = False) -> None:
        """Replace a pod of a row by a version that leaves every column unchanged.

        `as_newest` lists it last, as if it had been removed and added.
        """
        pods = self.pods[row]
        if as_newest:
            del pods[info.uid]
        pods[info.uid] = info
        self.row_versions[row] = next(_versions)

    def relabel_pod(self, before: PodInfo, info: PodInfo, row: int) -> None:
        """Replace a pod of a row by a version that occupies the same, and list it last."""
        self.groups.remove(before, row)
        self.replace_pod(info, row, as_newest=True)
        self.groups.add(info, row)
        self._note_change(row)

    def remove_pod(self, info: PodInfo, row: int) -> None:
        """Remove a pod from a row."""
        del self.pods[row][info.uid]
        self._account(info, row, -1)
        self.groups.remove(info, row)

    def _account(self, info: PodInfo, row: int, sign: int) -> None:
        template = info.template
        for name, amount in template.held.items():
            at = self.resources.get(name)
            if at is not None:
                self.is_plain &= increase(self._requested, at, row, sign * amount)
        cpu, memory = template.held_non_zero
        self.is_plain &= increase(self._non_zero_requested, CPU, row, sign * cpu)
        self.is_plain &= increase(self._non_zero_requested, MEMORY, row, sign * memory)
        self._pod_counts[row] += sign
        if template.host_ports:
            used, ports = self.used_ports[row], template.host_ports
            self.used_ports.set(row, used.plus(ports) if sign > 0 else used.minus(ports))
        for claim in info.claim_names:
            key = f"{info.namespace}/{claim}"
            users = self._claim_users.get(key, 0) + sign
            if users:
                self._claim_users[key] = users
            else:
                del self._claim_users[key]
        self._note_change(row)

    # Columns.

    def _coded_values(self, node: Node) -> list[tuple[CodedColumn[Hashable], Hashable]]:
        labels = node.metadata.labels
        pairs: list[tuple[object, Hashable]] = [
            (self.taints, node.spec.taints),
            (self.declared_features, node.status.declared_features),
            (self.zones, zone_key(labels)),
            *((column, labels.get(key)) for key, column in self._labels.items()),
        ]
        return pairs  # type: ignore[return-value]  # each column with its own kind of value

    def _write_numbers(self, node: Node, row: int) -> None:
        self._unschedulable[row] = node.spec.unschedulable
        amounts = node.status.allocatable
        self._allowed_pods[row] = value(amounts.get("pods", 0))
        for name, amount in amounts.items():
            if name != "pods" and name not in self.resources:
                self._add_resource(name, row, value(amount))
        column = [0] * len(self._allocatable)
        for name, amount in amounts.items():
            if name != "pods" and name in self.resources:
                column[self.resources[name]] = resource_value(name, amount)
        self._allocatable[:, row] = column
        self.is_plain &= 0 <= min(column) and max(column) <= PLAIN_MAX

    def _add_resource(self, name: str, row: int, amount: int) -> None:
        """Add a column for a resource of a row, if there are not too many."""
        if len(self.resources) >= self.resources_max:
            self.rare.setdefault(name, set()).add(row)
            self.is_plain &= 0 <= amount <= _RARE_PLAIN_MAX
            return
        at = self.resources[name] = len(self.resources)
        if at == len(self._requested):
            self._allocate(len(self._allowed_pods), 2 * at)
        self._renew_views()

    def _amounts_on(self, row: int) -> Iterator[Mapping[str, object]]:
        """Yield what the node of a row offers, and what its pods hold, by resource."""
        yield self.nodes[row].status.allocatable
        for info in self.pods[row].values():
            yield info.template.held

    def _allocate(self, rows: int, resources: int) -> None:
        unschedulable = np.zeros(rows, np.bool_)
        numbers = np.zeros((NUMBERS_FIXED + 2 * resources, rows), np.int64)
        unschedulable[: len(self._unschedulable)] = self._unschedulable
        for old, new in zip(parts_of(self._numbers), parts_of(numbers), strict=True):
            new[tuple(slice(0, size) for size in old.shape)] = old
        self._unschedulable, self._numbers = unschedulable, numbers
        parts = parts_of(numbers)
        self._non_zero_requested, self._pod_counts, self._requested = parts[:3]
        self._allowed_pods, self._allocatable = parts[3:]
        self._renew_views()

    def _renew_views(self) -> None:
        """Renew the read-only views after the shape of the storage changed."""
        rows, resources = len(self.names), len(self.resources)
        self.unschedulable = _read_only(self._unschedulable[:rows])
        self.allowed_pods = _read_only(self._allowed_pods[:rows])
        self.pod_counts = _read_only(self._pod_counts[:rows])
        self.allocatable = _read_only(self._allocatable[:resources, :rows])
        self.requested = _read_only(self._requested[:resources, :rows])
        self.non_zero_requested = _read_only(self._non_zero_requested[:, :rows])
        # Whole, because rows can be selected quickly only from contiguous memory.
        self.numbers = _read_only(self._numbers[:])

    def _note_change(self, row: int) -> None:
        self.changes.add(row)
        self.row_versions[row] = next(_versions)

    def _begin_epoch(self) -> None:
        self.epoch += 1
        if len(self._labels) > self.labels_max:
            # Pods may each ask for a key of their own. The keys that are in use get new columns.
            for column in self._labels.values():
                column.version += 1
            self._labels.clear()
            self.labels_epoch += 1
        self._all_names = self._name_ranks = None
        self.changes.forget()
        self.changes.kept_min = 2 * len(self.names) + 2048


def _lasting(node: Node) -> Node:
    """Return the node without what changes all the time and no plugin may rely on."""
    conditions = tuple([replace(one, last_heartbeat_time=None) for one in node.status.conditions])
    return replace(
        node,
        metadata=replace(node.metadata, resource_version=""),
        status=replace(node.status, conditions=conditions, volumes_in_use=(), volumes_attached=()),
    )


def _swap_remove(column: MutableSequence[V], row: int) -> None:
    column[row] = column[-1]
    column.pop()


def _read_only(array: NDArray[D]) -> NDArray[D]:
    array.flags.writeable = False
    return array


# Zones.


def zone_key(labels: Mapping[str, str]) -> str:
    """Return region and zone as one key; "" if the node has neither."""
    # A legacy label takes precedence even if it is empty.
    region = labels.get(
        "failure-domain.beta.kubernetes.io/region", labels.get("topology.kubernetes.io/region", "")
    )
    zone = labels.get(
        "failure-domain.beta.kubernetes.io/zone", labels.get("topology.kubernetes.io/zone", "")
    )
    return f"{region}:\x00:{zone}" if region or zone else ""
