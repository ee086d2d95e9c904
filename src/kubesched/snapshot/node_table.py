"""The node table as plugins read it: one row per node, one column per property.

Upstream: pkg/scheduler/backend/cache/snapshot.go and framework/types.go, NodeInfo (v1.36)
Reads:    nodes, and the pods on them
Invariants: usage columns equal the sums over the row's pods (`check()`); public arrays are
            read-only; a selection of rows never changes the table it was taken from.
Differs:  nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Node, Taint
from kubesched.api.integers import INT64_MAX, wrap
from kubesched.api.quantity import value
from kubesched.snapshot.coded import Coded
from kubesched.snapshot.host_ports import NO_PORTS, UsedPorts
from kubesched.snapshot.images import ImageStates
from kubesched.snapshot.pod_info import PodInfo, PodTemplate

D = TypeVar("D", bound=np.generic)

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
_NUMBERS = ("non_zero_requested", "pod_counts", "requested", "allowed_pods", "allocatable")
_REQUESTED = 3
"""The first row of `NodeTable.numbers` for a requested amount, after the number of pods."""
NUMBERS_FIXED = 4
"""The number of rows of `NodeTable.numbers` that are not of resources."""
PLAIN_MAX = 1 << 46
"""Sums and percentages of amounts up to here are exact in int64 and in float64."""


class NodeTable(ABC):
    """Read access to the columns.

    Attributes:
        names: Node names per row.
        nodes: The Node objects per row.
        pods: The pods per row, by uid, in order of arrival.
        used_ports: The host ports in use per row.
        unschedulable: bool per row, `spec.unschedulable`.
        taints: The taint list per row.
        declared_features: `status.declaredFeatures` per row.
        zones: The zone key per row (region and zone; "" if the node has neither).
        allowed_pods: int64 per row, allocatable pods.
        pod_counts: int64 per row.
        allocatable: int64, resources x rows; cpu in milli, everything else in whole units.
        requested: int64, resources x rows; the sums of the pods' requests.
        non_zero_requested: int64, 2 x rows: cpu and memory, with defaults for containers without
            requests.
        numbers: int64 with one column per row, and possibly more columns: the previous five
            together, so that selecting rows takes one operation; see `parts_of`.
        resources: Resource name -> first index of `allocatable` and `requested`.
        rare: Resource name -> rows that perhaps have it or have pods that request it, for resources
            beyond the number that columns are kept for. Their amounts are derived when asked for.
        is_plain: Whether every amount is known to be between 0 and PLAIN_MAX.
        row_of: Node name -> row.
        images: The images of all nodes of the table.
    """

    names: Sequence[str]
    nodes: Sequence[Node]
    pods: Sequence[dict[str, PodInfo]]
    used_ports: Coded[UsedPorts]
    unschedulable: NDArray[np.bool_]
    taints: Coded[tuple[Taint, ...]]
    declared_features: Coded[tuple[str, ...]]
    zones: Coded[str]
    allowed_pods: NDArray[np.int64]
    pod_counts: NDArray[np.int64]
    allocatable: NDArray[np.int64]
    requested: NDArray[np.int64]
    non_zero_requested: NDArray[np.int64]
    numbers: NDArray[np.int64]
    resources: dict[str, int]
    rare: dict[str, set[int]]
    is_plain: bool
    row_of: dict[str, int]
    images: ImageStates

    def __len__(self) -> int:
        return len(self.names)

    @abstractmethod
    def label(self, key: str) -> Coded[str | None]:
        """Return the column of a label; None if a node lacks it."""

    def take(self, rows: NDArray[np.intp]) -> SelectedRows:
        """Return a table of these rows, which can be changed without changing this one."""
        return SelectedRows(self, rows)

    def row_view(self, row: int) -> RowView:
        """Return a read-only table of one row."""
        return RowView(self, row)

    def allocatable_of(self, resource: str) -> NDArray[np.int64]:
        """Return the allocatable amount per row; 0 for nodes without the resource."""
        at = self.resources.get(resource)
        return self.rare_amounts_of(resource)[0] if at is None else self.allocatable[at]

    def requested_of(self, resource: str) -> NDArray[np.int64]:
        """Return the requested amount per row."""
        at = self.resources.get(resource)
        return self.rare_amounts_of(resource)[1] if at is None else self.requested[at]

    def rows_with(self, resource: str) -> Collection[int] | None:
        """Return the rows that perhaps have a resource without a column; None if not known."""
        return None

    def rare_amounts_of(self, resource: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the allocatable and the requested amounts of a resource without a column."""
        offered, used = np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        rows = self.rows_with(resource)
        for row in range(len(self)) if rows is None else rows:
            offered[row], used[row] = self._rare_amounts_on(row, resource)
        return offered, used

    def amounts_on(self, row: int, resource: str) -> tuple[int, int]:
        """Return the allocatable and the requested amount of a row."""
        at = self.resources.get(resource)
        if at is None:
            return self._rare_amounts_on(row, resource)
        return self.allocatable.item(at, row), self.requested.item(at, row)

    def _rare_amounts_on(self, row: int, resource: str) -> tuple[int, int]:
        """Return these amounts of a resource without a column."""
        held = [info.template.held.get(resource, 0) for info in self.pods[row].values()]
        return value(self.nodes[row].status.allocatable.get(resource, 0)), wrap(sum(held))

    def amounts_of(self, resources: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the allocatable and the requested amounts, int64, resources x rows."""
        at = [self.resources.get(name, -1) for name in resources]
        first, count = at[0] if at else 0, len(at)
        if first >= 0 and at == list(range(first, first + count)):
            # Cpu and memory, as nearly always: no copy is needed.
            return self.allocatable[first : first + count], self.requested[first : first + count]
        return (
            np.stack([self.allocatable_of(name) for name in resources]),
            np.stack([self.requested_of(name) for name in resources]),
        )

    def free_for(self, resources: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return what is free and what is allocatable: pod slots, then these resources, x rows."""
        at = [self.resources.get(name, -1) for name in resources]
        count = len(at)
        if at == list(range(count)):
            # Cpu and memory, as nearly always: no copy is needed.
            numbers, rows = self.numbers, len(self)
            allowed = _allowed_pods_at(numbers)
            offered = numbers[allowed : allowed + 1 + count, :rows]
            return offered - numbers[_REQUESTED - 1 : _REQUESTED + count, :rows], offered
        offered = np.stack([self.allowed_pods, *map(self.allocatable_of, resources)])
        return offered - np.stack([self.pod_counts, *map(self.requested_of, resources)]), offered

    def amounts_of_pods(self, pods: Sequence[PodInfo]) -> NDArray[np.int64]:
        """Return what each pod adds to a row of `numbers`; one column per pod.

        The allocatable amounts, which no pod changes, are left out.
        """
        codes: dict[PodTemplate, int] = {}
        index = [codes.setdefault(info.template, len(codes)) for info in pods]
        size = _REQUESTED + len(self.resources)
        # Lists, because writing single numbers into an array takes longer.
        amounts = [self._amounts_of(template, size) for template in codes]
        return np.array(amounts, np.int64).reshape(-1, size)[index].T

    def _amounts_of(self, template: PodTemplate, size: int) -> list[int]:
        amounts = [0] * size
        amounts[: _REQUESTED - 1] = template.held_non_zero
        amounts[_REQUESTED - 1] = 1
        for name, amount in template.held.items():
            resource = self.resources.get(name)
            if resource is not None:
                amounts[_REQUESTED + resource] = amount
        return amounts if max(amounts) <= INT64_MAX else list(map(wrap, amounts))

    def check(self) -> None:
        """Assert that the usage columns equal the sums over the pods."""
        found = zip(
            self.names,
            self.pods,
            self.pod_counts.tolist(),
            self.requested.T.tolist(),
            self.non_zero_requested.T.tolist(),
            strict=True,
        )
        for name, pods, pod_count, requested, non_zero in found:
            sums = dict.fromkeys(self.resources, 0)
            cpu = memory = 0
            for template, count in Counter(info.template for info in pods.values()).items():
                for resource, amount in template.held.items():
                    if resource in sums:
                        sums[resource] += amount * count
                cpu += template.held_non_zero[0] * count
                memory += template.held_non_zero[1] * count
            assert pod_count == len(pods), f"{name}: pod count drifted"
            for resource, at in self.resources.items():
                amount = requested[at]
                assert amount == wrap(sums[resource]), f"{name}: {resource} drifted"
                assert not self.is_plain or 0 <= amount <= PLAIN_MAX, f"{name}: is not plain"
            assert non_zero == [wrap(cpu), wrap(memory)], name


class SelectedRows(NodeTable):
    """Some rows of a table with usage of their own, for what-if questions.

    Attributes:
        origin: The table and the rows; None when pods have been added or removed since.
    """

    def __init__(self, table: NodeTable, rows: NDArray[np.intp] | slice) -> None:
        self._table = table
        self._rows = rows
        self.origin: tuple[NodeTable, NDArray[np.intp] | slice] | None = (table, rows)
        self.is_plain = table.is_plain
        self.resources = table.resources
        self.rare = table.rare
        self.images = table.images

    def __getattr__(self, name: str) -> object:
        # Columns are taken on first use, because a plugin reads only a few of them.
        if name == "numbers" or name in _NUMBERS:
            self._take_numbers()
            return self.__dict__[name]
        column = getattr(self._table, name)
        if isinstance(column, np.ndarray):
            taken: object = self._take(column)
        elif isinstance(column, Coded):
            taken = column.take(self._rows)
        elif name == "pods":
            taken = [dict(column[row]) for row in self._places()]
        elif name == "row_of":
            taken = {name: row for row, name in enumerate(self.names)}
        elif isinstance(column, list):
            taken = [column[row] for row in self._places()]
        else:
            return column
        self.__dict__[name] = taken
        return taken

    def _take_numbers(self) -> None:
        numbers, rows = self._table.numbers, self._rows
        taken = numbers[:, rows] if isinstance(rows, slice) else numbers.take(rows, axis=1)
        self.numbers = taken
        parts = parts_of(taken, len(self.resources))
        self.non_zero_requested, self.pod_counts, self.requested = parts[:3]
        self.allowed_pods, self.allocatable = parts[3:]

    def _take(self, column: NDArray[D]) -> NDArray[D]:
        if not isinstance(self._rows, slice):
            return column.take(self._rows, axis=-1)
        return column[self._rows] if column.ndim == 1 else column[:, self._rows]

    def _places(self) -> Sequence[int]:
        if isinstance(self._rows, slice):
            return range(self._rows.start, self._rows.stop)
        rows: list[int] = self._rows.tolist()
        return rows

    def __len__(self) -> int:
        if isinstance(self._rows, slice):
            return int(self._rows.stop - self._rows.start)
        return len(self._rows)

    def label(self, key: str) -> Coded[str | None]:
        """Return the column of a label; None if a node lacks it."""
        return self._table.label(key).take(self._rows)

    def rare_amounts_of(self, resource: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return them as the table has them, as long as no pod has been added or removed."""
        if self.origin is None:
            return super().rare_amounts_of(resource)
        offered, used = self._table.rare_amounts_of(resource)
        return self._take(offered), self._take(used)

    def add_pod(self, info: PodInfo, row: int = 0) -> None:
        """Account for `info` on `row`."""
        self.pods[row][info.uid] = info
        self._account(info, row, 1)

    def remove_pod(self, info: PodInfo, row: int = 0) -> None:
        """Stop accounting for `info` on `row`."""
        del self.pods[row][info.uid]
        self._account(info, row, -1)

    def add_pods(self, pods: Sequence[tuple[int, PodInfo]]) -> None:
        """Account for each pod on its row; faster than `add_pod` for many pods."""
        for row, info in pods:
            self.pods[row][info.uid] = info
        self._account_all(pods, 1)

    def remove_pods(self, pods: Sequence[tuple[int, PodInfo]]) -> None:
        """Stop accounting for each pod on its row; faster than `remove_pod` for many pods."""
        for row, info in pods:
            del self.pods[row][info.uid]
        self._account_all(pods, -1)

    def remove_all_pods(self) -> None:
        """Stop accounting for all pods of all rows."""
        self.origin = None
        self.pods = [{} for _ in range(len(self))]
        self.numbers[: _allowed_pods_at(self.numbers)] = 0
        self.used_ports = Coded(np.zeros(len(self), np.int32), [NO_PORTS], {NO_PORTS: 0})

    def add_amounts(self, amounts: NDArray[np.int64]) -> None:
        """Add to the amounts of each row, as returned by `amounts_of_pods`, and to nothing else.

        Afterwards the table is right only for filters of scope USAGE, and for requests of resources
        that have columns.
        """
        self.is_plain, self.origin = False, None
        self.numbers[: len(amounts)] += amounts

    def _account_all(self, pods: Sequence[tuple[int, PodInfo]], sign: int) -> None:
        if not pods:
            return
        self.is_plain, self.origin = False, None
        amounts = self.amounts_of_pods([info for _, info in pods]) * sign
        rows = np.array([row for row, _ in pods], np.intp)
        order = np.argsort(rows, kind="stable")
        changed, first = np.unique(rows[order], return_index=True)
        sums = np.add.reduceat(amounts[:, order], first, axis=1)
        self.numbers[: len(sums), changed] += sums
        for row, info in pods:
            if info.template.host_ports:
                self._account_ports(info.template, row, sign)

    def _account(self, info: PodInfo, row: int, sign: int) -> None:
        template = info.template
        self.origin = None
        self.pod_counts[row] += sign
        for name, amount in template.held.items():
            at = self.resources.get(name)
            if at is not None:
                self.is_plain &= increase(self.requested, at, row, sign * amount)
        for at, amount in enumerate(template.held_non_zero):
            self.is_plain &= increase(self.non_zero_requested, at, row, sign * amount)
        if template.host_ports:
            self._account_ports(template, row, sign)

    def _account_ports(self, template: PodTemplate, row: int, sign: int) -> None:
        used, ports = self.used_ports[row], template.host_ports
        left = used.plus(ports) if sign > 0 else used.minus(ports)
        self.used_ports = self.used_ports.with_row(row, left)


class RowView(SelectedRows):
    """One read-only row. It is built for every pod that is placed, so it must be cheap."""

    def __init__(self, table: NodeTable, row: int) -> None:
        super().__init__(table, slice(row, row + 1))
        self.nodes, self.names = (table.nodes[row],), (table.names[row],)
        self._take_numbers()

    def __len__(self) -> int:
        return 1


def parts_of(
    numbers: NDArray[np.int64], resources: int | None = None
) -> tuple[NDArray[np.int64], ...]:
    """Return the parts of `numbers` in the order of `_NUMBERS`.

    There is room for more resources than there are; None means all the room.
    """
    allowed = _allowed_pods_at(numbers)
    room = allowed - _REQUESTED
    resources = room if resources is None else resources
    return (
        numbers[: _REQUESTED - 1],
        numbers[_REQUESTED - 1],
        numbers[_REQUESTED : _REQUESTED + resources],
        numbers[allowed],
        numbers[allowed + 1 : allowed + 1 + resources],
    )


def _allowed_pods_at(numbers: NDArray[np.int64]) -> int:
    return _REQUESTED + (len(numbers) - NUMBERS_FIXED) // 2


def increase(column: NDArray[np.int64], at: int, row: int, amount: int) -> bool:
    """Add to an amount; return whether the total is plain."""
    total = column.item(at, row) + amount
    if 0 <= total <= PLAIN_MAX:
        column[at, row] = total
        return True
    column[at, row] = wrap(total)
    return False
