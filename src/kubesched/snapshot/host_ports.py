"""Host ports: what a pod wants, what a node has given away, and when the two conflict.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go, HostPortInfo (v1.36)
Differs:  upstream counts no holders: when one of two holders of a port leaves, the port is
          free. Here what-if questions answer so (`freed_of`), but the table itself counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from kubesched.api.core import Container, PodSpec

ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - a Kubernetes value, nothing is bound here


class HostPort(msgspec.Struct, frozen=True):
    """A port of the node: address, protocol and number."""

    address: str
    protocol: str
    port: int


def host_ports_of(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the host ports of containers and restartable init containers."""
    sidecars = (c for c in spec.init_containers if c.restart_policy == "Always")
    return tuple(_ports((*spec.containers, *sidecars)))


def _ports(containers: Iterable[Container]) -> Iterable[HostPort]:
    for container in containers:
        for port in container.ports:
            if port.host_port > 0:
                yield HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)


_Number = tuple[str, int]
_NONE: Final[Mapping[_Number, tuple[str, ...]]] = MappingProxyType({})


class UsedPorts:
    """The host ports in use on one node: a frozen, hashable value that counts each port's holders."""

    __slots__ = ("_addresses",)

    def __init__(self, addresses: Mapping[_Number, tuple[str, ...]] = _NONE) -> None:
        """Take the holders' addresses by protocol and number; `NO_PORTS.plus` is the way in."""
        self._addresses = addresses

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UsedPorts) and self._addresses == other._addresses

    def __hash__(self) -> int:
        return hash(frozenset(self._addresses.items()))

    def __bool__(self) -> bool:
        return bool(self._addresses)

    def __iter__(self) -> Iterator[HostPort]:
        for (protocol, number), addresses in self._addresses.items():
            for address in addresses:
                yield HostPort(address, protocol, number)

    def conflicts(self, port: HostPort) -> bool:
        """Whether `port` is taken: same protocol and number, and one address covers the other."""
        addresses = self._addresses.get((port.protocol, port.port))
        if not addresses:
            return False
        return port.address == ANY_ADDRESS or ANY_ADDRESS in addresses or port.address in addresses

    def plus(self, ports: Iterable[HostPort]) -> UsedPorts:
        """Return these with one more holder of each of `ports`."""
        addresses = dict(self._addresses)
        for port in ports:
            number = (port.protocol, port.port)
            addresses[number] = tuple(sorted((*addresses.get(number, ()), port.address)))
        return _used(addresses)

    def minus(self, ports: Iterable[HostPort]) -> UsedPorts:
        """Return these with one holder less of each of `ports`, all of which are held."""
        addresses = dict(self._addresses)
        for port in ports:
            left = list(addresses[port.protocol, port.port])
            left.remove(port.address)
            addresses[port.protocol, port.port] = tuple(left)
        return _used(addresses)

    def freed_of(self, ports: Iterable[HostPort]) -> UsedPorts:
        """Return these with no holder of any of `ports`, however many there were."""
        addresses = dict(self._addresses)
        for port in ports:
            number = (port.protocol, port.port)
            held = addresses.get(number, ())
            addresses[number] = tuple(address for address in held if address != port.address)
        return _used(addresses)


def _used(addresses: Mapping[_Number, tuple[str, ...]]) -> UsedPorts:
    held = {number: holders for number, holders in addresses.items() if holders}
    return UsedPorts(held) if held else NO_PORTS


NO_PORTS: Final = UsedPorts()
"""What a node without host ports in use has."""
