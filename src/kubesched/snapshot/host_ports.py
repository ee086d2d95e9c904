"""Host ports: what a pod wants, what a node has given away, and when the two conflict.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go, HostPortInfo (v1.36)
Differs:  upstream counts no holders: when one of two holders of a port leaves, it takes the port for
          free. Here that holds in what-if questions (`freed_of`), so that they have upstream's
          answer; the table itself counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


class UsedPorts:
    """The host ports in use on one node: a frozen value that counts the holders of each port."""

    __slots__ = ("_addresses",)

    def __init__(self, ports: Iterable[HostPort] = ()) -> None:
        self._addresses: dict[tuple[str, int], tuple[str, ...]] = {}
        for port in ports:
            self._add(port)

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
        copy = self._copy()
        for port in ports:
            copy._add(port)
        return copy

    def minus(self, ports: Iterable[HostPort]) -> UsedPorts:
        """Return these with one holder less of each of `ports`, all of which are held."""
        copy = self._copy()
        for port in ports:
            addresses = list(copy._addresses[port.protocol, port.port])
            addresses.remove(port.address)
            copy._set(port, addresses)
        return copy or NO_PORTS

    def freed_of(self, ports: Iterable[HostPort]) -> UsedPorts:
        """Return these with no holder of any of `ports`, however many there were."""
        copy = self._copy()
        for port in ports:
            addresses = copy._addresses.get((port.protocol, port.port), ())
            copy._set(port, [address for address in addresses if address != port.address])
        return copy or NO_PORTS

    def _copy(self) -> UsedPorts:
        copy = UsedPorts()
        copy._addresses = self._addresses.copy()
        return copy

    def _add(self, port: HostPort) -> None:
        key = (port.protocol, port.port)
        self._addresses[key] = (*self._addresses.get(key, ()), port.address)

    def _set(self, port: HostPort, addresses: list[str]) -> None:
        key = (port.protocol, port.port)
        if addresses:
            self._addresses[key] = tuple(addresses)
        else:
            self._addresses.pop(key, None)


NO_PORTS: Final = UsedPorts()
"""What a node without host ports in use has: always this very object."""
