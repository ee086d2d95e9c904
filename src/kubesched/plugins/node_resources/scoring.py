"""Scores rows by the allocatable, used and requested amounts of each resource.

Most of the arithmetic of a score does not depend on the pod. It is kept as a few numbers per row
and done again for the rows that change, so that a pod costs few operations on all rows.

Upstream: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go (v1.36)
Reads:    nodes.allocatable, nodes.requested, nodes.non_zero_requested
Invariants: all rows at once and one row at a time give equal scores; numbers that are kept equal
            new ones.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.integers import wrap
from kubesched.api.names import is_scalar_resource_name
from kubesched.config.args import ResourceSpec
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.node_columns import NATIVE, NodeColumns
from kubesched.snapshot.node_table import CPU, MEMORY, PLAIN_MAX, NodeTable, SelectedRows

Amounts = NDArray[np.int64]
Numbers = NDArray[np.float64]
_NON_ZERO_ROWS: Final = {"cpu": CPU, "memory": MEMORY}
_ROWS_FEW: Final = 3
"""Up to this number of rows, Python integers are faster than arrays."""
_RESOURCES_MAX: Final = 62
"""The number of resources whose presence fits into the bits of an int64."""


class DeviceCount(msgspec.Struct, frozen=True, gc=False):
    """How many devices of a class a node can use, and how many of them are allocated."""

    allocatable: int
    allocated: int


Devices = Mapping[str, DeviceCount]
"""Node name -> devices, for nodes whose allocatable amounts lack the resource."""


class Scored(msgspec.Struct, frozen=True, gc=False):
    """The scored resources of a pod.

    Attributes:
        resources: Their names.
        weights: Their weights.
        non_zero_rows: Their rows in `nodes.non_zero_requested`; None to use `nodes.requested`.
    """

    resources: tuple[str, ...] = ()
    weights: tuple[int, ...] = ()
    non_zero_rows: tuple[int | None, ...] = ()

    def take(self, places: Sequence[int]) -> Scored:
        """Return some of the resources."""
        return Scored(
            tuple([self.resources[at] for at in places]),
            tuple([self.weights[at] for at in places]),
            tuple([self.non_zero_rows[at] for at in places]),
        )


class Demands:
    """The scored resources of a pod and its requests for them.

    Attributes:
        scored: The resources.
        amounts: The requests: CPU in thousandths of a core, others in whole units.
        column: `amounts` as an array, resources x 1.
        devices: Place of a resource -> the devices that back it.
        are_plain: Whether all requests are from 0 to PLAIN_MAX and no devices count.
    """

    __slots__ = ("amounts", "are_plain", "column", "devices", "scored")

    def __init__(
        self,
        scored: Scored = Scored(),
        amounts: Sequence[int] = (),
        devices: Mapping[int, Devices] | None = None,
    ) -> None:
        self.scored = scored
        self.amounts = amounts
        self.column: Numbers = np.array(amounts, np.float64)[:, None]
        self.devices = devices or {}
        self.are_plain = not self.devices and all(
            [0 <= amount <= PLAIN_MAX for amount in amounts]  # noqa: C419 - faster for two
        )


class ResourceScorer(Protocol):
    """A scoring formula.

    Sequences have one entry per resource that the row has, and arrays are resources x rows.
    Allocatable amounts are not 0. `allocated` is the use without the pod, `requested` with it.
    """

    def score_row(
        self,
        requested: Sequence[int],
        allocated: Sequence[int],
        allocatable: Sequence[int],
        weights: Sequence[int],
    ) -> int:
        """Return the score of one row, for any int64 amounts."""

    def prepare_row(self, allocated: Sequence[int], allocatable: Sequence[int]) -> Sequence[float]:
        """Return what the score of a row depends on, besides the pod and the allocatable amounts.

        Amounts are as for `prepare`.
        """

    def prepare(self, allocated: Amounts, allocatable: Amounts) -> Amounts | Numbers:
        """Return `prepare_row` of many rows, as numbers x rows.

        There is at least one resource, and all amounts are from 0 to PLAIN_MAX.
        """

    def score_rows(
        self, prepared: Numbers, allocatable: Numbers, amounts: Numbers, weights: Sequence[int]
    ) -> Amounts:
        """Return the scores of prepared rows as int64; `amounts` are the pod's requests.

        They are from 0 to PLAIN_MAX and broadcast to resources x rows. Nothing is overwritten.
        """


def demands_of(
    resources: Sequence[ResourceSpec], requests: Mapping[str, int], *, non_zero: bool
) -> Demands:
    """Return the scored resources for a pod with these requests.

    Args:
        resources: The configured resources.
        requests: Resource name -> amount.
        non_zero: Whether pods without CPU or memory requests count with upstream's defaults.
    """
    there = [
        spec
        for spec in resources
        if spec.name in NATIVE
        or (requests.get(spec.name, 0) != 0 and is_scalar_resource_name(spec.name))
    ]
    return Demands(
        _scored(tuple(there), non_zero), tuple([requests.get(spec.name, 0) for spec in there])
    )


@lru_cache(256)
def _scored(resources: tuple[ResourceSpec, ...], non_zero: bool) -> Scored:
    names = tuple([spec.name for spec in resources])
    return Scored(
        names,
        tuple([spec.weight for spec in resources]),
        tuple([_NON_ZERO_ROWS.get(name) if non_zero else None for name in names]),
    )


class NodeScorer:
    """Scores the rows of tables by a formula."""

    def __init__(self, formula: ResourceScorer) -> None:
        self._formula = formula
        self._kept: dict[Scored, _PreparedRows] = {}

    def score(self, demands: Demands, nodes: NodeTable) -> Amounts:
        """Return the score per row, as int64."""
        rows, scored = len(nodes), demands.scored
        if rows <= _ROWS_FEW or len(scored.resources) > _RESOURCES_MAX:
            return np.array([self.score_row(demands, nodes, row) for row in range(rows)], np.int64)
        if not scored.resources:
            return np.full(rows, self._formula.score_row((), (), (), ()), np.int64)
        if demands.are_plain:
            prepared = self._prepared(scored, nodes)
            if prepared is not None:
                return self._score_prepared(demands, prepared)
        allocatable, allocated = _columns(scored, demands.devices, nodes)
        return self._score_by_presence(demands, allocatable, allocated)

    def _score_prepared(self, demands: Demands, prepared: Numbers) -> Amounts:
        """Score rows as `_prepare` returns them."""
        numbers = len(prepared) - len(demands.amounts)
        return self._formula.score_rows(
            prepared[:numbers], prepared[numbers:], demands.column, demands.scored.weights
        )

    def _prepared(self, scored: Scored, nodes: NodeTable) -> Numbers | None:
        """Return the prepared rows; None if a row lacks a resource or an amount is not plain."""
        if isinstance(nodes, NodeColumns):
            kept = self._kept.get(scored)
            if kept is None:
                kept = self._kept[scored] = _PreparedRows(self._formula, scored)
            return kept.of(nodes)
        if isinstance(nodes, SelectedRows) and nodes.origin:
            table, rows = nodes.origin
            prepared = self._prepared(scored, table)
            if prepared is not None:
                return prepared[:, rows] if isinstance(rows, slice) else prepared.take(rows, axis=1)
        return _prepare_table(self._formula, scored, nodes)

    def score_row(self, demands: Demands, nodes: NodeTable, row: int) -> int:
        """Return the score of a row."""
        requested: list[int] = []
        allocated: list[int] = []
        allocatable: list[int] = []
        weights: list[int] = []
        for at, amount in enumerate(demands.amounts):
            offered, used = _item(demands.scored, demands.devices, at, nodes, row)
            if offered:
                allocatable.append(offered)
                allocated.append(used)
                requested.append(wrap(used + amount))
                weights.append(demands.scored.weights[at])
        return self._formula.score_row(requested, allocated, allocatable, weights)

    def _score_by_presence(
        self, demands: Demands, allocatable: Amounts, allocated: Amounts
    ) -> Amounts:
        """Score groups of rows that have the same resources."""
        presence = np.zeros(len(allocatable[0]), np.int64)
        for bit, column in enumerate(allocatable):
            presence |= (column != 0).astype(np.int64) << bit
        scores = np.empty_like(presence)
        for bits in np.unique(presence).tolist():
            rows = np.flatnonzero(presence == bits)
            there = [at for at in range(len(demands.amounts)) if bits >> at & 1]
            if there:
                scores[rows] = self._score_rows(
                    Demands(demands.scored.take(there), [demands.amounts[at] for at in there]),
                    allocatable[there][:, rows],
                    allocated[there][:, rows],
                )
            else:
                scores[rows] = self._formula.score_row((), (), (), ())
        return scores

    def _score_rows(self, demands: Demands, allocatable: Amounts, allocated: Amounts) -> Amounts:
        """Score rows that have every resource; one row at a time if amounts may overflow."""
        if demands.are_plain and _are_plain(allocatable) and _are_plain(allocated):
            prepared = _prepare(self._formula, allocated, allocatable)
            return self._score_prepared(demands, prepared)
        requested = allocated + np.array(demands.amounts, np.int64)[:, None]
        return np.array(
            [
                self._formula.score_row(*columns, demands.scored.weights)
                for columns in zip(
                    requested.T.tolist(), allocated.T.tolist(), allocatable.T.tolist(), strict=True
                )
            ],
            np.int64,
        )


class _PreparedRows:
    """The prepared rows of a table for some resources, kept up to date."""

    _ONE_BY_ONE_MAX: Final = 16

    def __init__(self, formula: ResourceScorer, scored: Scored) -> None:
        self._formula = formula
        self._scored = scored
        self._changed: ChangeReader[int] = ChangeReader()
        self._numbers: Numbers | None = None

    def of(self, nodes: NodeColumns) -> Numbers | None:
        """Return one column per row; None if a row lacks a resource or an amount is not plain."""
        changed = self._changed.read(nodes.changes)
        if changed is None or not nodes.is_plain or 4 * len(changed) > len(nodes):
            self._numbers = _prepare_table(self._formula, self._scored, nodes)
        elif self._numbers is not None:
            # Whether a row has a resource changes only together with its Node object.
            self._renew(self._numbers, changed, nodes)
        return self._numbers

    def _renew(self, numbers: Numbers, changed: Sequence[int], nodes: NodeColumns) -> None:
        if len(changed) > self._ONE_BY_ONE_MAX:
            rows = np.array(changed, np.intp)
            allocatable, allocated = _columns(self._scored, {}, nodes.take(rows))
            numbers[:, rows] = _prepare(self._formula, allocated, allocatable)
            return
        places = range(len(self._scored.resources))
        for row in dict.fromkeys(changed):
            items = [_item(self._scored, {}, at, nodes, row) for at in places]
            offered, used = zip(*items, strict=True)
            # One by one, which is faster than to make an array of so few numbers.
            for at, number in enumerate(self._formula.prepare_row(used, offered)):
                numbers[at, row] = number


def _prepare_table(formula: ResourceScorer, scored: Scored, nodes: NodeTable) -> Numbers | None:
    if nodes.is_plain:
        allocatable, allocated = _columns(scored, {}, nodes)
        if np.count_nonzero(allocatable) == allocatable.size:
            return _prepare(formula, allocated, allocatable)
    return None


def _prepare(formula: ResourceScorer, allocated: Amounts, allocatable: Amounts) -> Numbers:
    """Return the prepared rows and, below, their allocatable amounts, which no pod changes."""
    prepared = formula.prepare(allocated, allocatable)
    return np.concatenate((prepared, allocatable), dtype=np.float64)


def score_together(
    formula: ResourceScorer, demands: Demands, nodes: NodeTable, rows: Sequence[int]
) -> int:
    """Return the score of some rows as if they were one node."""
    requested: list[int] = []
    allocated: list[int] = []
    allocatable: list[int] = []
    weights: list[int] = []
    for at, amount in enumerate(demands.amounts):
        items = [_item(demands.scored, demands.devices, at, nodes, row) for row in rows]
        offered = wrap(sum(offered for offered, _ in items))
        if offered:
            used = wrap(sum(used for _, used in items))
            allocatable.append(offered)
            allocated.append(used)
            requested.append(wrap(used + amount))
            weights.append(demands.scored.weights[at])
    return formula.score_row(requested, allocated, allocatable, weights)


def _item(
    scored: Scored, devices: Mapping[int, Devices], place: int, nodes: NodeTable, row: int
) -> tuple[int, int]:
    """Return the allocatable and the used amount of a resource on a row."""
    offered, used = nodes.amounts_on(row, scored.resources[place])
    if offered == 0:
        count = devices[place].get(nodes.names[row]) if place in devices else None
        return (count.allocatable, count.allocated) if count else (0, 0)
    non_zero_row = scored.non_zero_rows[place]
    if non_zero_row is None:
        return offered, used
    return offered, nodes.non_zero_requested.item(non_zero_row, row)


def _columns(
    scored: Scored, devices: Mapping[int, Devices], nodes: NodeTable
) -> tuple[Amounts, Amounts]:
    """Return the allocatable and the used amounts, each as resources x rows; not to be changed."""
    offered, used = nodes.amounts_of(scored.resources)
    if scored.non_zero_rows == (CPU, MEMORY):
        used = nodes.non_zero_requested
    elif scored.non_zero_rows.count(None) < len(scored.non_zero_rows):
        used = used.copy()
        for at, non_zero_row in enumerate(scored.non_zero_rows):
            if non_zero_row is not None:
                used[at] = nodes.non_zero_requested[non_zero_row]
    for at, counts in devices.items():
        offered, used = offered.copy(), used.copy()
        for row in np.flatnonzero(offered[at] == 0).tolist():
            count = counts.get(nodes.names[row])
            if count is not None:
                offered[at, row] = count.allocatable
                used[at, row] = count.allocated
    return offered, used


def _are_plain(amounts: Amounts) -> bool:
    return 0 <= int(amounts.min()) and int(amounts.max()) <= PLAIN_MAX
