"""Shortages: which rows have too little left for a pod, and of what.

Upstream: pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest (v1.36)
Reads:    nodes.{allocatable,requested,allowed_pods,pod_counts}
Differs:  a node's reasons come in a fixed order: pods, cpu, memory, ephemeral-storage, then the
          others by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status
from kubesched.plugins.node_resources.int64 import wrap
from kubesched.snapshot.node_table import NodeTable

_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_BYTES: Final = frozenset({"memory", "ephemeral-storage"})
_TOO_MANY_PODS: Final = "Too many pods"
_ROWS_FEW: Final = 3
"""Up to this number of rows, Python integers are faster than arrays."""

# The answer for a row is an integer: bit 0 means that even the empty node would be too small, bit 1
# that the node has too many pods, bit 2 + i that request i is not met.
_UNRESOLVABLE: Final = 1
_PODS: Final = 2
_FIRST: Final = 2
_REQUESTS_MAX: Final = 60
_BITS: Final = 1 << np.arange(_FIRST, _FIRST + _REQUESTS_MAX)


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
    """The requested resources of a pod, and what follows from them for any table.

    Attributes:
        items: The resources.
        names: Their names.
        amounts: int64, resources x 1.
    """

    __slots__ = ("amounts", "items", "names")

    def __init__(self, items: Iterable[ResourceRequest]) -> None:
        self.items = tuple(items)
        self.names = tuple([request.resource for request in self.items])
        self.amounts = np.array([request.amount for request in self.items], np.int64)[:, None]


def find_shortages(requests: Requests, nodes: NodeTable) -> NodeToStatus:
    """Reject the rows that lack a pod slot or one of the requested resources."""
    if len(nodes) > _ROWS_FEW and len(requests.items) <= _REQUESTS_MAX:
        found = _keys_of_rows(requests, nodes)
        if found is None:
            return NodeToStatus.passing(len(nodes))
        return NodeToStatus.encode(found, lambda key: _status_of(key, requests.names))
    keys = [_key_of_row(requests, nodes, row) for row in range(len(nodes))]
    if not any(keys):
        return NodeToStatus.passing(len(keys))
    return NodeToStatus.of([_status_of(key, requests.names) for key in keys])


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
    if resource in _BYTES or resource.startswith("hugepages-"):
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


def _keys_of_rows(requests: Requests, nodes: NodeTable) -> NDArray[np.int64] | None:
    """Return the answers for all rows; None if every row meets the requests."""
    every, items, bits = requests, requests.items, _BITS[: len(requests.items)]
    rare = _rare_requests(requests, nodes) if nodes.rare else {}
    if rare:
        common = [at for at in range(len(items)) if at not in rare]
        items, bits = tuple([items[at] for at in common]), bits[common]
        requests = Requests(items)
    full = nodes.pod_counts >= nodes.allowed_pods
    offered, used = nodes.amounts_of(requests.names)
    short = (offered - used) < requests.amounts
    for at, request in enumerate(items):
        if request.delegated:
            short[at] &= offered[at] > 0
    is_short, is_full = np.count_nonzero(short), np.count_nonzero(full)
    if not is_short and not is_full and not rare:
        return None
    # Nearly all rows lack the rare resources; the others are looked at one by one.
    keys = np.full(len(nodes), _lacking(every, rare), np.int64)
    if is_short:
        keys |= bits @ short
        keys |= np.logical_or.reduce(short & (offered < requests.amounts), axis=0)
    if is_full:
        keys |= full * _PODS
    for row in {row for rows in rare.values() for row in rows}:
        keys[row] = _key_of_row(every, nodes, row)
    return keys


def _rare_requests(requests: Requests, nodes: NodeTable) -> dict[int, Collection[int]]:
    """Return the requests for resources of few rows, by position, with these rows."""
    rare: dict[int, Collection[int]] = {}
    for at, name in enumerate(requests.names):
        rows = nodes.rows_with(name)
        if rows is not None and len(rows) <= _ROWS_FEW:
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
