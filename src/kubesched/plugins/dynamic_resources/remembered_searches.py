"""RememberedSearches: caches the results of device searches for pods with equal claims.

Pods of a template have equal claims, and an allocation changes a single node. So a search is
repeated only on nodes where something that it read has changed.

Reads:      claim.spec.devices
Invariants: a cached result equals that of a new search (a property test compares them).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from kubesched.api.core import Node
from kubesched.api.resource import AllocationResult, ResourceClaim
from kubesched.framework.dra import DeviceClasses
from kubesched.plugins.dynamic_resources.pools import PoolIndex

Results = tuple[AllocationResult, ...] | None
"""One result per claim, or None if there is no solution on the node."""

_CLAIMS_MAX: Final = 8

_encode = msgspec.msgpack.Encoder().encode


class Found(NamedTuple):
    """The result of a search, and what it depended on.

    Attributes:
        node: The Node object.
        taken: For each device that the node can use, whether it was allocated.
        results: The result.
    """

    node: Node
    taken: tuple[bool, ...]
    results: Results


class RememberedSearches:
    """Results by claims and node; the least recently used claims are dropped.

    Attributes:
        index, classes: The slices and classes that the searches used.
    """

    def __init__(self, index: PoolIndex, classes: DeviceClasses) -> None:
        self.index = index
        self.classes = classes
        self._by_claims: OrderedDict[bytes, dict[str, Found]] = OrderedDict()

    def of(self, claims: Sequence[ResourceClaim]) -> dict[str, Found]:
        """Return the results for claims with equal specs, by node; the caller adds to them."""
        # A search reads nothing else of claims; their names appear only in errors.
        key = _encode([claim.spec.devices for claim in claims])
        found = self._by_claims.get(key)
        if found is None:
            found = self._by_claims[key] = {}
            if len(self._by_claims) > _CLAIMS_MAX:
                self._by_claims.popitem(last=False)
        else:
            self._by_claims.move_to_end(key)
        return found
