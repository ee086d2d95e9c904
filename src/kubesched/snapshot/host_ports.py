"""Host ports: those a pod requests, those in use on a node, and when they conflict.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go, HostPortInfo (v1.36)
Differs:  nothing. As upstream, users of a port are not counted: when one of two pods that use the
          same port leaves, the port is free. Filtering prevents two such pods on a node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, KeysView, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from kubesched.api.core import PodSpec
from kubesched.snapshot.coded import CodedColumn

ANY_ADDRESS: Final = "0.0.0.0"


class HostPort(msgspec.Struct, frozen=True, gc=False):
    """A port of the node: address, protocol and number."""

    address: str
    protocol: str
    port: int


def host_ports_of(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the host ports of containers and restartable init containers."""
    containers = spec.containers
    if spec.init_containers:
        containers += tuple([c for c in spec.init_containers if c.restart_policy == "Always"])
    # A list, because generators take longer for the few ports of a pod.
    return tuple(
        [
            HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
            for container in containers
            for port in container.ports
            if port.host_port > 0
        ]
    )


_Number = tuple[str, int]
_FREE: Final[frozenset[str]] = frozenset()
_NONE: Final[Mapping[_Number, frozenset[str]]] = MappingProxyType({})


class UsedPorts:
    """The host ports in use on one node: a frozen, hashable value."""

    __slots__ = ("_addresses",)

    def __init__(self, addresses: Mapping[_Number, frozenset[str]] = _NONE) -> None:
        """Take addresses in use by (protocol, number); callers use `NO_PORTS.plus` instead."""
        self._addresses = addresses

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UsedPorts) and self._addresses == other._addresses

    def __hash__(self) -> int:
        return hash(frozenset(self._addresses.items()))

    def __bool__(self) -> bool:
        return bool(self._addresses)

    def __iter__(self) -> Iterator[HostPort]:
        for (protocol, number), addresses in self._addresses.items():
            for address in sorted(addresses):
                yield HostPort(address, protocol, number)

    def conflicts(self, port: HostPort) -> bool:
        """Whether `port` is in use: same protocol and number, and overlapping addresses."""
        addresses = self._addresses.get((port.protocol, port.port))
        if not addresses:
            return False
        return port.address == ANY_ADDRESS or ANY_ADDRESS in addresses or port.address in addresses

    @property
    def numbers(self) -> KeysView[_Number]:
        """The protocols and numbers in use."""
        return self._addresses.keys()

    def plus(self, ports: Iterable[HostPort]) -> UsedPorts:
        """Return a value with `ports` in use as well."""
        addresses = dict(self._addresses)
        for port in ports:
            number = (port.protocol, port.port)
            addresses[number] = addresses.get(number, _FREE) | {port.address}
        return _used(addresses)

    def minus(self, ports: Iterable[HostPort]) -> UsedPorts:
        """Return a value with none of `ports` in use, even if several pods use one."""
        addresses = dict(self._addresses)
        for port in ports:
            number = (port.protocol, port.port)
            addresses[number] = addresses.get(number, _FREE) - {port.address}
        return _used(addresses)


def _used(addresses: Mapping[_Number, frozenset[str]]) -> UsedPorts:
    held = {number: holders for number, holders in addresses.items() if holders}
    return UsedPorts(held) if held else NO_PORTS


NO_PORTS: Final = UsedPorts()
"""The value of a node without host ports in use."""


class UsedPortsColumn(CodedColumn[UsedPorts]):
    """The host ports in use per row, with the rows of each port.

    Where pods choose their ports at random, all rows differ, and only few use one port.
    """

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        super().__init__()
        self._rows: defaultdict[_Number, set[int]] = defaultdict(set)

    def rows_with(self, ports: Iterable[HostPort]) -> set[int]:
        """Return the rows that use the protocol and number of one of `ports`."""
        numbers = ((port.protocol, port.port) for port in ports)
        return set().union(*(self._rows.get(number, ()) for number in numbers))

    def set(self, row: int, value: UsedPorts) -> bool:
        """Set a row's value; return whether it changed."""
        self._index(row, self[row], value)
        return super().set(row, value)

    def swap_remove(self, row: int) -> None:
        """Remove a row; the last row takes its place."""
        last = len(self) - 1
        removed, moved = self[row], self[last]
        self._index(row, removed, NO_PORTS)
        super().swap_remove(row)
        if row != last:
            self._index(last, moved, NO_PORTS)
            self._index(row, NO_PORTS, moved)

    def _index(self, row: int, before: UsedPorts, after: UsedPorts) -> None:
        for number in before.numbers - after.numbers:
            rows = self._rows[number]
            rows.discard(row)
            if not rows:
                del self._rows[number]
        for number in after.numbers - before.numbers:
            self._rows[number].add(row)
