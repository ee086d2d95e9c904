"""IP addresses, and networks in CIDR notation.

Upstream: staging/src/k8s.io/apiserver/pkg/cel/library/{ip,cidr}.go, Go's package net/netip
Rejects:  zones, IPv4-mapped addresses, numbers and lengths with leading zeros
Differs:  nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import ClassVar

from kubesched.api.go_text import go_quote
from kubesched.cel.declarations import Library
from kubesched.cel.values import CelError, no_such_overload, succeeds

Address = IPv4Address | IPv6Address

_V6_BYTES = 16
_GROUP = re.compile("[0-9A-Fa-f]*")


class AddressError(ValueError):
    """The text is not an address; the message is upstream's."""

    def __init__(self, text: str, problem: str, at: str = "") -> None:
        place = f" (at {go_quote(at)})" if at else ""
        super().__init__(f"ParseAddr({go_quote(text)}): {problem}{place}")


@dataclass(frozen=True, slots=True)
class IP:
    """An address."""

    address: Address

    type_name: ClassVar[str] = "net.IP"
    is_opaque: ClassVar[bool] = True


def parse_address(text: str) -> tuple[Address, str]:
    """Parse an address; return it and its zone. Raises AddressError."""
    for char in text:
        if char == ".":
            return IPv4Address(_v4_bytes(text, text)), ""
        if char == ":":
            return _parse_v6(text)
        if char == "%":
            raise AddressError(text, "missing IPv6 address")
    raise AddressError(text, "unable to parse IP")


def is_mapped(address: Address) -> bool:
    """Whether the address is an IPv4-mapped IPv6 address."""
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _v4_bytes(text: str, dotted: str) -> bytes:
    """Parse `dotted`, the IPv4 part of `text`, to four bytes. Raises AddressError."""
    fields: list[int] = []
    digits = ""
    for at, char in enumerate(dotted):
        if char in "0123456789":
            if digits == "0":
                raise AddressError(text, "IPv4 field has octet with leading zero")
            digits += char
            if int(digits) > 255:
                raise AddressError(text, "IPv4 field has value >255")
        elif char == ".":
            if not digits or at == len(dotted) - 1:
                raise AddressError(text, "IPv4 field must have at least one digit", dotted[at:])
            if len(fields) == 3:
                raise AddressError(text, "IPv4 address too long")
            fields.append(int(digits))
            digits = ""
        else:
            raise AddressError(text, "unexpected character", dotted[at:])
    if len(fields) < 3:
        raise AddressError(text, "IPv4 address too short")
    return bytes([*fields, int(digits)])


def _parse_v6(text: str) -> tuple[IPv6Address, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise AddressError(text, "zone must be a non-empty string")
    groups = _V6Groups(text)
    if rest.startswith("::"):
        groups.ellipsis = 0
        rest = rest[2:]
    while rest and len(groups.found) < _V6_BYTES:
        rest = groups.read(rest)
    if rest:
        raise AddressError(text, "trailing garbage after address", rest)
    return IPv6Address(groups.expanded()), zone


class _V6Groups:
    """Reads the groups of an IPv6 address."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.found = b""
        self.ellipsis: int | None = None

    def read(self, rest: str) -> str:
        """Read one group and the colons after it; return the rest of the text."""
        match = _GROUP.match(rest)
        digits = match.group() if match else ""
        if len(digits) > 4:
            raise AddressError(self._text, "each group must have 4 or less digits", rest)
        if not digits:
            problem = "each colon-separated field must have at least one digit"
            raise AddressError(self._text, problem, rest)
        after = rest[len(digits) :]
        if after.startswith("."):
            self._read_v4(rest)
            return ""
        self.found += int(digits, 16).to_bytes(2, "big")
        return self._read_colons(after) if after else ""

    def _read_v4(self, rest: str) -> None:
        if self.ellipsis is None and len(self.found) != _V6_BYTES - 4:
            problem = "embedded IPv4 address must replace the final 2 fields of the address"
            raise AddressError(self._text, problem, rest)
        if len(self.found) + 4 > _V6_BYTES:
            problem = "too many hex fields to fit an embedded IPv4 at the end of the address"
            raise AddressError(self._text, problem, rest)
        self.found += _v4_bytes(self._text, rest)

    def _read_colons(self, rest: str) -> str:
        if rest[0] != ":":
            raise AddressError(self._text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise AddressError(self._text, "colon must be followed by more characters", rest)
        if rest[1] != ":":
            return rest[1:]
        if self.ellipsis is not None:
            raise AddressError(self._text, "multiple :: in address", rest[1:])
        self.ellipsis = len(self.found)
        return rest[2:]

    def expanded(self) -> bytes:
        """Return all 16 bytes, with the ellipsis filled with zeros. Raises AddressError."""
        missing = _V6_BYTES - len(self.found)
        if self.ellipsis is None and missing:
            raise AddressError(self._text, "address string too short")
        if self.ellipsis is not None and not missing:
            problem = "the :: must expand to at least one field of zeros"
            raise AddressError(self._text, problem)
        at = self.ellipsis or 0
        return self.found[:at] + bytes(missing) + self.found[at:]


def parse_ip(text: str) -> IP:
    """Parse an address that has no zone and is not IPv4-mapped. Raises CelError."""
    try:
        address, zone = parse_address(text)
    except AddressError as error:
        raise CelError(
            f"IP Address {go_quote(text)} parse error during conversion from string: {error}"
        ) from error
    if zone:
        raise CelError(f"IP address {go_quote(text)} with zone value is not allowed")
    if is_mapped(address):
        raise CelError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return IP(address)


_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_LINK_LOCAL = (IPv4Network("169.254.0.0/16"), IPv6Network("fe80::/10"))
_MULTICAST = (IPv4Network("224.0.0.0/4"), IPv6Network("ff00::/8"))
_BROADCAST = IPv4Address("255.255.255.255")


def _within(*networks: IPv4Network | IPv6Network) -> Callable[[IP], bool]:
    return lambda ip: any(ip.address in network for network in networks)


_is_loopback, _is_link_local = _within(*_LOOPBACK), _within(*_LINK_LOCAL)
_is_multicast = _within(*_MULTICAST)


def _is_link_local_multicast(ip: IP) -> bool:
    packed = ip.address.packed
    if isinstance(ip.address, IPv4Address):
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 2


def _is_global_unicast(ip: IP) -> bool:
    special = ip.address == _BROADCAST or ip.address.is_unspecified
    return not (special or _is_loopback(ip) or _is_multicast(ip) or _is_link_local(ip))


LIBRARY: Library = {
    "ip(string): ip": parse_ip,
    "isIP(string): bool": succeeds(parse_ip),
    "ip.isCanonical(string): bool": lambda text: str(parse_ip(text).address) == text,
    "@family(ip): int": lambda ip: ip.address.version,
    "@isUnspecified(ip): bool": lambda ip: ip.address.is_unspecified,
    "@isLoopback(ip): bool": _is_loopback,
    "@isLinkLocalMulticast(ip): bool": _is_link_local_multicast,
    "@isLinkLocalUnicast(ip): bool": _is_link_local,
    "@isGlobalUnicast(ip): bool": _is_global_unicast,
    "string(ip): string": lambda ip: str(ip.address),
}


# Networks.

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


CIDR_LIBRARY: Library = {
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
