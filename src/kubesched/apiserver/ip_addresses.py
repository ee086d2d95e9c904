"""Addresses and networks, as old fields of the API take them: leading zeros are forgiven.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/validation/ip.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from kubesched.apiserver.field_fault import FieldFault, invalid

_ADDRESS_RULE: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NETWORK_RULE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9])")


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a text stands for, None if it stands for none."""
    if "%" in text:
        return None
    try:
        return ip_address(text if ":" in text else _LEADING_ZEROS.sub("", text))
    except ValueError:
        return None


def address_faults(text: str, path: str) -> list[FieldFault]:
    """Return what is wrong with an address."""
    return [] if parsed_address(text) is not None else [invalid(path, text, _ADDRESS_RULE)]


def network_faults(text: str, path: str) -> list[FieldFault]:
    """Return what is wrong with a network."""
    return [] if _family_of_network(text) else [invalid(path, text, _NETWORK_RULE)]


def _family_of_network(text: str) -> int:
    if "/" not in text or "%" in text or not text.rpartition("/")[2].isdecimal():
        return 0
    try:
        return ip_network(
            text if ":" in text else _LEADING_ZEROS.sub("", text), strict=False
        ).version
    except ValueError:
        return 0


def is_dual_stack(addresses: Sequence[str]) -> bool:
    """Whether there are addresses of both families."""
    families = {found.version for text in addresses if (found := parsed_address(text)) is not None}
    return len(families) == 2


def is_dual_stack_of_networks(networks: Sequence[str]) -> bool:
    """Whether there are networks of both families."""
    return {4, 6} <= {_family_of_network(text) for text in networks}
