"""PodAddresses gives each pod an IP address of its own.

Upstream: none; there the network's plugin does.
Invariants: no address is given to two pods at a time.
"""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Final

_FIRST: Final = int(IPv4Address("10.128.0.1"))
_LAST: Final = int(IPv4Address("10.255.255.254"))


class PodAddresses:
    """The addresses from 10.128.0.1 on."""

    def __init__(self) -> None:
        self._used: dict[str, None] = {}
        self._next = _FIRST

    def use(self, address: str) -> None:
        """Take an address that a pod has already; "" for none."""
        if address:
            self._used[address] = None

    def draw(self) -> str:
        """Return an address that nobody has; the one given back last comes round last."""
        while True:
            address = str(IPv4Address(self._next))
            self._next = _FIRST if self._next == _LAST else self._next + 1
            if address not in self._used:
                self._used[address] = None
                return address

    def give_back(self, address: str) -> None:
        """Let others have an address."""
        self._used.pop(address, None)
