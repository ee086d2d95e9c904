"""Remembers what searches for devices found on nodes, for the next pod with equal claims.

Pods come from templates, and so do their claims; allocating devices for one pod changes what one
node has left. So a search is repeated only where something that it looked at has changed.

Reads:      claim.spec.devices
Invariants: a remembered result equals that of a new search (a property test compares them).
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
"""One result per claim; None if there is no solution on the node."""

_CLAIMS_MAX: Final = 8

_encode = msgspec.msgpack.Encoder().encode


class Found(NamedTuple):
    """What a search found.

    Attributes:
        node: The node as it was.
        taken: Per device that the node can reach whether it was taken.
        results: What was found.
    """

    node: Node
    taken: tuple[bool, ...]
    results: Results


class RememberedSearches:
    """By what is asked for, and by node; the requests asked for longest ago are forgotten.

    Attributes:
        index, classes: The slices and classes that the searches looked at.
    """

    def __init__(self, index: PoolIndex, classes: DeviceClasses) -> None:
        self.index = index
        self.classes = classes
        self._by_claims: OrderedDict[bytes, dict[str, Found]] = OrderedDict()

    def of(self, claims: Sequence[ResourceClaim]) -> dict[str, Found]:
        """Return what was found for claims that ask for the same, by node; to be added to."""
        # A search sees nothing else of claims: what they are called matters to failures only.
        key = _encode([claim.spec.devices for claim in claims])
        found = self._by_claims.get(key)
        if found is None:
            found = self._by_claims[key] = {}
            if len(self._by_claims) > _CLAIMS_MAX:
                self._by_claims.popitem(last=False)
        else:
            self._by_claims.move_to_end(key)
        return found
