"""IP addresses, networks in CIDR notation, and URLs.

Upstream: staging/src/k8s.io/apiserver/pkg/cel/library/{ip,cidr,urls}.go, Go's packages net/netip
          and net/url
Rejects:  zones, IPv4-mapped addresses, numbers and lengths with leading zeros; relative references,
          blanks, control characters, bad escapes, non-numeric ports
Differs:  messages about malformed addresses are those of Python, those about URLs are ours; blanks
          in paths are refused, where Go escapes them; two URLs are equal if their texts are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import ClassVar
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from kubesched.cel.declarations import Library
from kubesched.cel.values import CelError, Opaque, no_such_overload, succeeds

# Addresses.


@dataclass(frozen=True, slots=True)
class IP(Opaque):
    """An address."""

    address: IPv4Address | IPv6Address

    type_name: ClassVar[str] = "net.IP"


def parse_ip(text: str) -> IP:
    """Parse an address that has no zone and is not IPv4-mapped. Raises CelError."""
    if "%" in text:
        raise CelError(f"IP address {text!r} with zone value is not allowed")
    try:
        address = ip_address(text)
    except ValueError as error:
        raise CelError(f"IP address is malformed: {error}") from error
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return IP(address)


_BROADCAST = IPv4Address("255.255.255.255")


def _is_link_local_multicast(ip: IP) -> bool:
    packed = ip.address.packed
    if isinstance(ip.address, IPv4Address):
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 2


def _is_global_unicast(ip: IP) -> bool:
    address = ip.address
    is_special = address == _BROADCAST or address.is_unspecified or address.is_loopback
    return not (is_special or address.is_multicast or address.is_link_local)


# Networks.

_BITS = re.compile("0|[1-9][0-9]{0,2}")


@dataclass(frozen=True, slots=True)
class CIDR(Opaque):
    """An address and the length of its network prefix, in bits."""

    address: IPv4Address | IPv6Address
    bits: int

    type_name: ClassVar[str] = "net.CIDR"

    @property
    def network(self) -> IPv4Network | IPv6Network:
        """The network, with the host bits cleared."""
        return ip_network((self.address, self.bits), strict=False)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def parse_cidr(text: str) -> CIDR:
    """Parse an address with a prefix length. Raises CelError."""
    address, _, bits = text.rpartition("/")
    ip = parse_ip(address)
    if _BITS.fullmatch(bits) is None or int(bits) > ip.address.max_prefixlen:
        raise CelError(f"network address {text!r} has no valid prefix length")
    return CIDR(ip.address, int(bits))


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


# URLs.

_REFUSED = re.compile(r"[\x00-\x20\x7f]|%(?![0-9A-Fa-f]{2})")
_SAFE = "/%:@!$&'()*+,;=~"


@dataclass(frozen=True, slots=True)
class URL(Opaque):
    """An absolute URL, or one that begins with a path."""

    parts: SplitResult

    type_name: ClassVar[str] = "kubernetes.URL"

    @property
    def host(self) -> str:
        """The host with its port."""
        return self.parts.netloc.rpartition("@")[2]

    @property
    def port(self) -> str:
        """The port, "" if there is none."""
        return self.host.rpartition("]")[2].partition(":")[2]

    @property
    def hostname(self) -> str:
        """The host without its port and brackets."""
        name = self.host[: -len(self.port)] if self.port else self.host
        return name.removesuffix(":").removeprefix("[").removesuffix("]")

    @property
    def escaped_path(self) -> str:
        """The path; "" for a URL such as `mailto:a@b`."""
        path = self.parts.path
        return quote(path, safe=_SAFE) if path.startswith("/") else ""


def parse_url(text: str) -> URL:
    """Parse a URL. Raises CelError."""
    if _REFUSED.search(text):
        raise CelError(f"URL has a blank, a control character or a bad escape: {text!r}")
    try:
        parts = urlsplit(text)
        # An invalid port raises only when it is read.
        is_absolute = parts.port != 0 and bool(parts.scheme or text.startswith("/"))
    except ValueError as error:
        raise CelError(f"URL is invalid: {text!r}: {error}") from error
    if not is_absolute:
        raise CelError(f"URL is not absolute: {text!r}")
    return URL(parts)


def _query(url: URL) -> dict[object, object]:
    found = parse_qs(url.parts.query, keep_blank_values=True)
    return {name: tuple(values) for name, values in found.items()}


LIBRARY: Library = {
    "ip(string): ip": parse_ip,
    "isIP(string): bool": succeeds(parse_ip),
    "ip.isCanonical(string): bool": lambda text: str(parse_ip(text).address) == text,
    "@family(ip): int": lambda ip: ip.address.version,
    "@isUnspecified(ip): bool": lambda ip: ip.address.is_unspecified,
    "@isLoopback(ip): bool": lambda ip: ip.address.is_loopback,
    "@isLinkLocalMulticast(ip): bool": _is_link_local_multicast,
    "@isLinkLocalUnicast(ip): bool": lambda ip: ip.address.is_link_local,
    "@isGlobalUnicast(ip): bool": _is_global_unicast,
    "string(ip): string": lambda ip: str(ip.address),
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
    "url(string): url": parse_url,
    "isURL(string): bool": succeeds(parse_url),
    "@getScheme(url): string": lambda url: url.parts.scheme,
    "@getHost(url): string": lambda url: url.host,
    "@getHostname(url): string": lambda url: url.hostname,
    "@getPort(url): string": lambda url: url.port,
    "@getEscapedPath(url): string": lambda url: url.escaped_path,
    "@getQuery(url): map(string, list(string))": _query,
}
