"""Scores rows by the allocatable, used and requested amounts of each resource.

Upstream: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go (v1.36)
Reads:    nodes.allocatable, nodes.requested, nodes.non_zero_requested
Invariants: all rows at once and one row at a time give equal scores.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.resource_names import is_scalar_resource_name
from kubesched.config.args import ResourceSpec
from kubesched.plugins.node_resources.int64 import wrap
from kubesched.snapshot.node_table import CPU, MEMORY, PLAIN_MAX, NodeTable

Amounts = NDArray[np.int64]
NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_NON_ZERO_ROWS: Final = {"cpu": CPU, "memory": MEMORY}
_ROWS_FEW: Final = 8
"""Up to this number of rows, Python integers are faster than arrays."""
_RESOURCES_MAX: Final = 62
"""The number of resources whose presence fits into the bits of an int64."""


class DeviceCount(msgspec.Struct, frozen=True, gc=False):
    """How many devices of a class a node can use, and how many of them are allocated."""

    allocatable: int
    allocated: int


class Demand(msgspec.Struct, frozen=True, gc=False):
    """A scored resource and the pod's request for it.

    Attributes:
        resource: The resource's name.
        amount: The request: CPU in thousandths of a core, others in whole units.
        weight: The resource's weight.
        non_zero_row: Its row in `nodes.non_zero_requested`; None to use `nodes.requested`.
        devices: Node name -> devices, for nodes whose allocatable amounts lack the resource; None
            if no device class backs it.
    """

    resource: str
    amount: int
    weight: int
    non_zero_row: int | None = None
    devices: Mapping[str, DeviceCount] | None = None


class ResourceScorer(Protocol):
    """A scoring formula.

    Each sequence has one entry per resource of the row; allocatable amounts are not 0. `requested`
    is the use with the pod, `allocated` the use without it.
    """

    def score_row(
        self,
        requested: Sequence[int],
        allocated: Sequence[int],
        allocatable: Sequence[int],
        weights: Sequence[int],
    ) -> int:
        """Return the score of one row, for any int64 amounts."""
        ...

    def score_rows(
        self,
        requested: Sequence[Amounts],
        allocated: Sequence[Amounts],
        allocatable: Sequence[Amounts],
        weights: Sequence[int],
    ) -> Amounts:
        """Return the scores of many rows, as int64.

        There is at least one resource, and all amounts are from 0 to PLAIN_MAX.
        """
        ...


def demands_of(
    resources: Sequence[ResourceSpec],
    requests: Mapping[str, int],
    *,
    non_zero: bool,
    devices_of: Callable[[str], Mapping[str, DeviceCount] | None] = lambda _: None,
) -> tuple[Demand, ...]:
    """Return the scored resources for a pod with these requests.

    Args:
        resources: The configured resources.
        requests: Resource name -> amount.
        non_zero: Whether pods without CPU or memory requests count with upstream's defaults.
        devices_of: Resource name -> devices that back it.
    """
    return tuple(
        Demand(
            spec.name,
            requests.get(spec.name, 0),
            spec.weight,
            _NON_ZERO_ROWS.get(spec.name) if non_zero else None,
            devices_of(spec.name),
        )
        for spec in resources
        if spec.name in NATIVE
        or (requests.get(spec.name, 0) != 0 and is_scalar_resource_name(spec.name))
    )


def score_nodes(scorer: ResourceScorer, demands: Sequence[Demand], nodes: NodeTable) -> Amounts:
    """Return the score per row, as int64."""
    rows = len(nodes)
    if rows <= _ROWS_FEW or len(demands) > _RESOURCES_MAX:
        return np.array([_score_row(scorer, demands, nodes, row) for row in range(rows)], np.int64)
    if not demands:
        return np.full(rows, scorer.score_row((), (), (), ()), np.int64)
    allocatable, allocated = _columns(demands, nodes)
    is_plain = nodes.is_plain and all(0 <= demand.amount <= PLAIN_MAX for demand in demands)
    if any(demand.devices for demand in demands):
        is_plain = False
    if all(column.all() for column in allocatable):
        return _score_rows(scorer, demands, allocatable, allocated, is_plain)
    return _score_by_presence(scorer, demands, allocatable, allocated, is_plain)


def score_together(
    scorer: ResourceScorer, demands: Sequence[Demand], nodes: NodeTable, rows: Sequence[int]
) -> int:
    """Return the score of some rows as if they were one node."""
    requested: list[int] = []
    allocated: list[int] = []
    allocatable: list[int] = []
    weights: list[int] = []
    for demand in demands:
        items = [_item(demand, nodes, row) for row in rows]
        offered = wrap(sum(offered for offered, _ in items))
        if offered:
            used = wrap(sum(used for _, used in items))
            allocatable.append(offered)
            allocated.append(used)
            requested.append(wrap(used + demand.amount))
            weights.append(demand.weight)
    return scorer.score_row(requested, allocated, allocatable, weights)


def _score_row(
    scorer: ResourceScorer, demands: Sequence[Demand], nodes: NodeTable, row: int
) -> int:
    requested: list[int] = []
    allocated: list[int] = []
    allocatable: list[int] = []
    weights: list[int] = []
    for demand in demands:
        offered, used = _item(demand, nodes, row)
        if offered:
            allocatable.append(offered)
            allocated.append(used)
            requested.append(wrap(used + demand.amount))
            weights.append(demand.weight)
    return scorer.score_row(requested, allocated, allocatable, weights)


def _item(demand: Demand, nodes: NodeTable, row: int) -> tuple[int, int]:
    at = nodes.resources.get(demand.resource)
    offered = 0 if at is None else nodes.allocatable.item(at, row)
    if at is None or offered == 0:
        count = demand.devices.get(nodes.names[row]) if demand.devices else None
        return (count.allocatable, count.allocated) if count else (0, 0)
    if demand.non_zero_row is None:
        return offered, nodes.requested.item(at, row)
    return offered, nodes.non_zero_requested.item(demand.non_zero_row, row)


def _columns(demands: Sequence[Demand], nodes: NodeTable) -> tuple[list[Amounts], list[Amounts]]:
    allocatable: list[Amounts] = []
    allocated: list[Amounts] = []
    for demand in demands:
        offered = nodes.allocatable_of(demand.resource)
        if demand.non_zero_row is None:
            used = nodes.requested_of(demand.resource)
        else:
            used = nodes.non_zero_requested[demand.non_zero_row]
        if demand.devices:
            offered, used = _with_devices(demand.devices, offered, used, nodes)
        allocatable.append(offered)
        allocated.append(used)
    return allocatable, allocated


def _with_devices(
    devices: Mapping[str, DeviceCount], offered: Amounts, used: Amounts, nodes: NodeTable
) -> tuple[Amounts, Amounts]:
    offered, used = offered.copy(), used.copy()
    for row in np.flatnonzero(offered == 0).tolist():
        count = devices.get(nodes.names[row])
        if count is not None:
            offered[row] = count.allocatable
            used[row] = count.allocated
    return offered, used


def _score_by_presence(
    scorer: ResourceScorer,
    demands: Sequence[Demand],
    allocatable: Sequence[Amounts],
    allocated: Sequence[Amounts],
    is_plain: bool,
) -> Amounts:
    """Score groups of rows that have the same resources."""
    presence = np.zeros(len(allocatable[0]), np.int64)
    for bit, column in enumerate(allocatable):
        presence |= (column != 0).astype(np.int64) << bit
    scores = np.empty_like(presence)
    for bits in np.unique(presence).tolist():
        rows = np.flatnonzero(presence == bits)
        there = [at for at in range(len(demands)) if bits >> at & 1]
        if there:
            scores[rows] = _score_rows(
                scorer,
                [demands[at] for at in there],
                [allocatable[at][rows] for at in there],
                [allocated[at][rows] for at in there],
                is_plain,
            )
        else:
            scores[rows] = scorer.score_row((), (), (), ())
    return scores


def _score_rows(
    scorer: ResourceScorer,
    demands: Sequence[Demand],
    allocatable: Sequence[Amounts],
    allocated: Sequence[Amounts],
    is_plain: bool,
) -> Amounts:
    """Score rows that have every resource; one row at a time if amounts may overflow."""
    weights = [demand.weight for demand in demands]
    requested = [used + demand.amount for used, demand in zip(allocated, demands, strict=True)]
    # Viewed as unsigned, negative numbers are the largest.
    amounts = (*allocatable, *allocated, *requested)
    if is_plain or all(column.view(np.uint64).max() <= PLAIN_MAX for column in amounts):
        return scorer.score_rows(requested, allocated, allocatable, weights)
    return np.array(
        [
            scorer.score_row(*columns, weights)
            for columns in zip(_rows(requested), _rows(allocated), _rows(allocatable), strict=True)
        ],
        np.int64,
    )


def _rows(columns: Sequence[Amounts]) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))
