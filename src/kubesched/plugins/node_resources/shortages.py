"""Shortages: which rows have too little left for a pod, and of what.

Upstream: pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest (v1.36)
Reads:    nodes.{allocatable,requested,allowed_pods,pod_counts}
Differs:  a node's reasons come in a fixed order: pods, cpu, memory, ephemeral-storage, then the
          others by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.integers import wrap
from kubesched.api.names import is_measured_in_bytes
from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import PLAIN_MAX, NodeTable, SelectedRows

_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_TOO_MANY_PODS: Final = "Too many pods"
_RARE_FEW: Final = 3
"""Up to this number of rows that perhaps have a resource, they are looked at one by one."""

# The answer for a row is an integer: bit 0 means that even the empty node would be too small, bit 1
# that the node has too many pods, bit 2 + i that request i is not met.
_UNRESOLVABLE: Final = 1
_PODS: Final = 2
_FIRST: Final = 2
_REQUESTS_MAX: Final = 60
_BITS: Final = 1 << np.arange(1, _FIRST + _REQUESTS_MAX)


class ResourceRequest(msgspec.Struct, frozen=True, gc=False):
    """A requested resource.

    Attributes:
        resource: The resource's name.
        amount: CPU in thousandths of a core, others in whole units.
        delegated: Whether devices provide it on nodes whose allocatable amounts lack it.
    """

    resource: str
    amount: int
    delegated: bool = False


class Requests:
    """The requested resources of a pod, and the positions of those delegated to devices."""

    __slots__ = ("_column", "by_name", "delegated", "items", "names")

    def __init__(self, items: Iterable[ResourceRequest]) -> None:
        self.items = tuple(items)
        self.by_name = {request.resource: request.amount for request in self.items}
        self.names = tuple(self.by_name)
        self.delegated = tuple([at for at, each in enumerate(self.items) if each.delegated])
        self._column: NDArray[np.int64] | None = None

    @property
    def amounts(self) -> NDArray[np.int64]:
        """The amounts as int64, 1 + resources x 1; the first is a pod slot."""
        if self._column is None:
            self._column = np.array([1, *self.by_name.values()], np.int64)[:, None]
        return self._column


def shortages_of_row(requests: Requests, nodes: NodeTable, row: int) -> Status:
    """Reject a row that lacks a pod slot or one of the requested resources."""
    return _status_of(_key_of_row(requests, nodes, row), requests.names)


def find_shortages(requests: Requests, nodes: NodeTable) -> NodeToStatus:
    """Reject the rows that lack a pod slot or one of the requested resources."""
    names, rows = requests.names, len(nodes)
    if rows == 1 or len(names) > _REQUESTS_MAX:
        keys = [_key_of_row(requests, nodes, row) for row in range(rows)]
        if not any(keys):
            return NodeToStatus.passing(rows)
        return NodeToStatus.of([_status_of(key, names) for key in keys])
    if nodes.rare and (rare := _rare_requests(requests, nodes)):
        return _find_with_rare(requests, nodes, rare)
    short, offered = _find_short(requests, nodes)
    if not np.count_nonzero(short):
        return NodeToStatus.passing(rows)
    found = _keys_of(requests, short, offered)
    return NodeToStatus.encode(found, lambda key: _status_of(key, names))


class FreeAmounts:
    """The least that any row of a table has free: pods that need less fit everywhere.

    It knows one table at a time. What it knows is at most the least free amounts, which pods make
    smaller.
    """

    _CHANGED_MAX: Final = 16

    def __init__(self) -> None:
        self._changed: ChangeReader[int] = ChangeReader()
        self._least: dict[str, int] = {}
        # 0 means that nothing is known.
        self._least_slots = 0

    def suffice(self, requests: Mapping[str, int], nodes: NodeTable) -> bool:
        """Whether every row of a table or of a selection has a pod slot and these amounts free.

        False if that is not known. Amounts that do not suffice are forgotten: in a full cluster,
        few pods fit everywhere.
        """
        if not self._least_slots:
            return False
        table = nodes.origin[0] if isinstance(nodes, SelectedRows) and nodes.origin else nodes
        if not isinstance(table, NodeColumns):
            return False
        self._update(table)
        least = self._least
        if not least.keys() >= requests.keys():
            return False
        if not all([least[name] >= amount for name, amount in requests.items()]):  # noqa: C419
            self._least_slots = 0
        return self._least_slots > 0

    def _update(self, table: NodeColumns) -> None:
        changed = self._changed.read(table.changes)
        if changed is None or len(changed) > self._CHANGED_MAX or not table.is_plain:
            self._least_slots = 0
            return
        for row in changed:
            slots = table.allowed_pods.item(row) - table.pod_counts.item(row)
            self._least_slots = max(0, min(self._least_slots, slots))
            for name, amount in self._least.items():
                offered, used = table.amounts_on(row, name)
                if offered - used < amount:
                    self._least[name] = offered - used

    def measure(self, names: Iterable[str], nodes: NodeTable) -> None:
        """Read all rows of a table; it pays after all rows were found to have enough."""
        if isinstance(nodes, NodeColumns) and nodes.is_plain:
            names = tuple(dict.fromkeys((*names, *self._least)))
            self._changed.read(nodes.changes)
            free, _ = nodes.free_for(names)
            least_slots, *least = free.min(axis=1, initial=PLAIN_MAX).tolist()
            self._least_slots = max(0, least_slots)
            self._least = dict(zip(names, least, strict=True))


def describe_shortages(requests: Requests, nodes: NodeTable) -> Iterator[str]:
    """Yield one text for each thing that the only row of `nodes` lacks."""
    key = _key_of_row(requests, nodes, 0)
    if key & _PODS:
        taken, allowed = int(nodes.pod_counts[0]), int(nodes.allowed_pods[0])
        yield f"pods: requested 1, free {allowed - taken} of {allowed}"
    for bit, request in enumerate(requests.items, _FIRST):
        if key >> bit & 1:
            offered = int(nodes.allocatable_of(request.resource)[0])
            free = offered - int(nodes.requested_of(request.resource)[0])
            amounts = (format_amount(request.resource, n) for n in (request.amount, free, offered))
            yield "{}: requested {}, free {} of {}".format(request.resource, *amounts)


def format_amount(resource: str, amount: int) -> str:
    """Return an exact amount for users: `1.5` cores for 1500, `512Mi`, `3`."""
    if resource == "cpu":
        return _decimal(amount, 1000)
    if is_measured_in_bytes(resource):
        return _bytes(amount)
    return str(amount)


def _key_of_row(requests: Requests, nodes: NodeTable, row: int) -> int:
    key = _PODS if nodes.pod_counts.item(row) >= nodes.allowed_pods.item(row) else 0
    bit = 1 << _FIRST
    for request in requests.items:
        offered, used = nodes.amounts_on(row, request.resource)
        if request.amount > wrap(offered - used) and not (request.delegated and offered <= 0):
            key |= bit | (request.amount > offered)
        bit <<= 1
    return key


def _find_short(
    requests: Requests, nodes: NodeTable
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return whether each request is not met, and what is offered: 1 + resources x rows."""
    free, offered = nodes.free_for(requests.names)
    short = free < requests.amounts
    for at in requests.delegated:
        short[1 + at] &= offered[1 + at] > 0
    return short, offered


def _keys_of(
    requests: Requests, short: NDArray[np.bool_], offered: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the answers for all rows, given what `_find_short` returns."""
    keys: NDArray[np.int64] = _BITS[: len(short)] @ short
    keys |= np.logical_or.reduce(short[1:] & (offered[1:] < requests.amounts[1:]), axis=0)
    return keys


def _find_with_rare(
    requests: Requests, nodes: NodeTable, rare: Mapping[int, Collection[int]]
) -> NodeToStatus:
    """Find the shortages of all rows if few of them have some of the resources.

    `rare` has the positions of requests for these, with the rows that perhaps have them.
    """
    names = requests.names
    key_of = {row: _key_of_row(requests, nodes, row) for rows in rare.values() for row in rows}
    # The other rows lack them.
    lacking = _lacking(requests, rare)
    common = [at for at in range(len(requests.items)) if at not in rare]
    others = Requests([requests.items[at] for at in common])
    short, offered = _find_short(others, nodes)
    if not np.count_nonzero(short):
        statuses = {row: _status_of(key, names) for row, key in key_of.items()}
        return NodeToStatus.of_some(statuses, len(nodes), _status_of(lacking, names))
    found = _keys_of(others, short, offered)
    keys = lacking | found & (_UNRESOLVABLE | _PODS)
    for place, at in enumerate(common, _FIRST):
        keys |= (found >> place & 1) << (_FIRST + at)
    for row, key in key_of.items():
        keys[row] = key
    return NodeToStatus.encode(keys, lambda key: _status_of(key, names))


def _rare_requests(requests: Requests, nodes: NodeTable) -> dict[int, Collection[int]]:
    """Return the requests for resources of few rows, by position, with these rows."""
    rare: dict[int, Collection[int]] = {}
    for at, name in enumerate(requests.names):
        rows = nodes.rows_with(name)
        if rows is not None and len(rows) <= _RARE_FEW:
            rare[at] = rows
    return rare


def _lacking(requests: Requests, positions: Iterable[int]) -> int:
    """Return the answer for a row that offers nothing of some requests, and meets the others."""
    key = 0
    for at in positions:
        request = requests.items[at]
        if request.amount > 0 and not request.delegated:
            key |= 1 << (_FIRST + at) | _UNRESOLVABLE
    return key


@lru_cache(4096)
def _status_of(key: int, names: tuple[str, ...]) -> Status:
    if key == 0:
        return SUCCESS
    reasons = [_TOO_MANY_PODS] if key & _PODS else []
    reasons += [f"Insufficient {name}" for bit, name in enumerate(names, _FIRST) if key >> bit & 1]
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if key & _UNRESOLVABLE else Code.UNSCHEDULABLE
    return Status(code, tuple(reasons))


def _bytes(amount: int) -> str:
    """Use the largest suffix that leaves at most two decimals."""
    for power in range(len(_BINARY_SUFFIXES) - 1, 0, -1):
        unit = 1 << (10 * power)
        if abs(amount) >= unit and amount * 100 % unit == 0:
            return _decimal(amount * 100 // unit, 100) + _BINARY_SUFFIXES[power]
    return str(amount)


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(abs(amount), unit)
    sign = "-" if amount < 0 else ""
    digits = str(unit + rest)[1:].rstrip("0")
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"
