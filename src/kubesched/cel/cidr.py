"""Networks in CIDR notation.

Upstream: staging/src/k8s.io/apiserver/pkg/cel/library/cidr.go, Go's package net/netip
Rejects:  zones, IPv4-mapped addresses, lengths with leading zeros
Differs:  nothing.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from typing import ClassVar

from kubesched.api.go_text import go_quote
from kubesched.cel.declarations import Library
from kubesched.cel.ip import IP, Address, AddressError, is_mapped, parse_address, parse_ip
from kubesched.cel.values import CelError, no_such_overload, succeeds

_FAILED = "network address parse error during conversion from string"
_BITS = re.compile("0|[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class CIDR:
    """An address and the length of its network prefix, in bits."""

    address: Address
    bits: int

    type_name: ClassVar[str] = "net.CIDR"
    is_opaque: ClassVar[bool] = True

    @property
    def network(self) -> IPv4Network | IPv6Network:
        """The network, with the host bits cleared."""
        if isinstance(self.address, IPv4Address):
            return IPv4Network((self.address, self.bits), strict=False)
        return IPv6Network((self.address, self.bits), strict=False)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def parse_cidr(text: str) -> CIDR:
    """Parse an address with a prefix length. Raises CelError."""
    try:
        cidr = _parse_prefix(text)
    except AddressError as error:
        raise _bad_prefix(text, str(error)) from error
    if is_mapped(cidr.address):
        raise CelError(f"{_FAILED}: IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return cidr


def _bad_prefix(text: str, problem: str) -> CelError:
    return CelError(f"{_FAILED}: {_FAILED}: netip.ParsePrefix({go_quote(text)}): {problem}")


def _parse_prefix(text: str) -> CIDR:
    address_text, slash, bits = text.rpartition("/")
    if not slash:
        raise _bad_prefix(text, "no '/'")
    address, zone = parse_address(address_text)
    if zone:
        raise _bad_prefix(text, "IPv6 zones cannot be present in a prefix")
    if _BITS.fullmatch(bits) is None:
        raise _bad_prefix(text, f"bad bits after slash: {go_quote(bits)}")
    if int(bits) > address.max_prefixlen:
        raise _bad_prefix(text, "prefix length out of range")
    return CIDR(address, int(bits))


def _contains_ip(cidr: CIDR, ip: IP) -> bool:
    return ip.address in cidr.network


def _contains_ip_text(cidr: CIDR, text: str) -> bool:
    try:
        ip = parse_ip(text)
    except CelError as error:
        # Upstream drops the reason why the address is invalid.
        raise no_such_overload() from error
    return _contains_ip(cidr, ip)


def _contains_cidr(cidr: CIDR, other: CIDR) -> bool:
    return cidr.bits <= other.bits and other.address in cidr.network


LIBRARY: Library = {
    "cidr(string): cidr": parse_cidr,
    "isCIDR(string): bool": succeeds(parse_cidr),
    "@containsIP(cidr, string): bool": _contains_ip_text,
    "@containsIP(cidr, ip): bool": _contains_ip,
    "@containsCIDR(cidr, string): bool": lambda cidr, text: _contains_cidr(cidr, parse_cidr(text)),
    "@containsCIDR(cidr, cidr): bool": _contains_cidr,
    "@ip(cidr): ip": lambda cidr: IP(cidr.address),
    "@prefixLength(cidr): int": lambda cidr: cidr.bits,
    "@masked(cidr): cidr": lambda cidr: CIDR(cidr.network.network_address, cidr.bits),
    "string(cidr): string": str,
}
