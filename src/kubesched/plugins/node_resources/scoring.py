"""Scores rows by the allocatable, used and requested amounts of each resource.

Upstream: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go (v1.36)
Reads:    nodes.allocatable, nodes.requested, nodes.non_zero_requested
Invariants: all rows at once and one row at a time give equal scores.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
_ROWS_FEW: Final = 3
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


class Demands:
    """The scored resources of a pod, and what follows from them for any table.

    Attributes:
        items: The resources.
        resources, weights: Their names and weights.
        amounts: The requests, int64, resources x 1.
        non_zero_rows: Their rows in `nodes.non_zero_requested`; None if it is not used.
        are_plain: Whether all requests are from 0 to PLAIN_MAX and no devices count.
    """

    __slots__ = ("amounts", "are_plain", "items", "non_zero_rows", "resources", "weights")

    def __init__(self, items: Iterable[Demand]) -> None:
        self.items = tuple(items)
        self.resources = [demand.resource for demand in self.items]
        self.weights = [demand.weight for demand in self.items]
        self.amounts = np.array([demand.amount for demand in self.items], np.int64)[:, None]
        rows = [demand.non_zero_row for demand in self.items]
        self.non_zero_rows = rows if any(row is not None for row in rows) else None
        self.are_plain = not any(
            demand.devices or not 0 <= demand.amount <= PLAIN_MAX for demand in self.items
        )


class ResourceScorer(Protocol):
    """A scoring formula.

    Each sequence has one entry per resource of the row, and so have arrays: they are resources x
    rows. Allocatable amounts are not 0. `requested` is the use with the pod, `allocated` the use
    without it.
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
        requested: Amounts,
        allocated: Amounts,
        allocatable: Amounts,
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


def score_nodes(scorer: ResourceScorer, demands: Demands, nodes: NodeTable) -> Amounts:
    """Return the score per row, as int64."""
    rows, items = len(nodes), demands.items
    if rows <= _ROWS_FEW or len(items) > _RESOURCES_MAX:
        return np.array([_score_row(scorer, items, nodes, row) for row in range(rows)], np.int64)
    if not items:
        return np.full(rows, scorer.score_row((), (), (), ()), np.int64)
    allocatable, allocated = _columns(demands, nodes)
    is_plain = nodes.is_plain and demands.are_plain
    if np.count_nonzero(allocatable) == allocatable.size:
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


def _columns(demands: Demands, nodes: NodeTable) -> tuple[Amounts, Amounts]:
    """Return the allocatable and the used amounts, each as resources x rows; not to be changed."""
    offered, used = nodes.amounts_of(demands.resources)
    if demands.non_zero_rows == [CPU, MEMORY]:
        used = nodes.non_zero_requested
    elif demands.non_zero_rows is not None:
        used = used.copy()
        for at, row in enumerate(demands.non_zero_rows):
            if row is not None:
                used[at] = nodes.non_zero_requested[row]
    for at, demand in enumerate(demands.items):
        if demand.devices:
            offered, used = offered.copy(), used.copy()
            _add_devices(demand.devices, offered[at], used[at], nodes.names)
    return offered, used


def _add_devices(
    devices: Mapping[str, DeviceCount], offered: Amounts, used: Amounts, names: Sequence[str]
) -> None:
    for row in np.flatnonzero(offered == 0).tolist():
        count = devices.get(names[row])
        if count is not None:
            offered[row] = count.allocatable
            used[row] = count.allocated


def _score_by_presence(
    scorer: ResourceScorer,
    demands: Demands,
    allocatable: Amounts,
    allocated: Amounts,
    is_plain: bool,
) -> Amounts:
    """Score groups of rows that have the same resources."""
    presence = np.zeros(len(allocatable[0]), np.int64)
    for bit, column in enumerate(allocatable):
        presence |= (column != 0).astype(np.int64) << bit
    scores = np.empty_like(presence)
    for bits in np.unique(presence).tolist():
        rows = np.flatnonzero(presence == bits)
        there = [at for at in range(len(demands.items)) if bits >> at & 1]
        if there:
            scores[rows] = _score_rows(
                scorer,
                Demands(demands.items[at] for at in there),
                allocatable[there][:, rows],
                allocated[there][:, rows],
                is_plain,
            )
        else:
            scores[rows] = scorer.score_row((), (), (), ())
    return scores


def _score_rows(
    scorer: ResourceScorer,
    demands: Demands,
    allocatable: Amounts,
    allocated: Amounts,
    is_plain: bool,
) -> Amounts:
    """Score rows that have every resource; one row at a time if amounts may overflow."""
    requested = allocated + demands.amounts
    if is_plain or all(map(_are_plain, (allocatable, allocated, requested))):
        return scorer.score_rows(requested, allocated, allocatable, demands.weights)
    return np.array(
        [
            scorer.score_row(*columns, demands.weights)
            for columns in zip(
                requested.T.tolist(), allocated.T.tolist(), allocatable.T.tolist(), strict=True
            )
        ],
        np.int64,
    )


def _are_plain(amounts: Amounts) -> bool:
    return 0 <= int(amounts.min()) and int(amounts.max()) <= PLAIN_MAX
