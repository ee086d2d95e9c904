"""Addresses and networks are read as old fields of the API read them."""

from __future__ import annotations

import pytest

from kubesched.apiserver.ip_addresses import (
    address_faults,
    is_dual_stack,
    is_dual_stack_of_networks,
    network_faults,
)


@pytest.mark.parametrize(
    ("text", "is_address"),
    [
        pytest.param("10.0.0.1", True, id="IPv4"),
        pytest.param("010.000.0.01", True, id="leading zeros"),
        pytest.param("fd00::1", True, id="IPv6"),
        pytest.param("::ffff:10.0.0.1", True, id="IPv4 in IPv6"),
        pytest.param("10.0.0", False, id="three parts"),
        pytest.param("10.0.0.256", False, id="a part that is too large"),
        pytest.param("fe80::1%eth0", False, id="zone"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_addresses(text: str, is_address: bool) -> None:
    """What is no address is a fault."""
    assert is_address is not bool(address_faults(text, "a"))


@pytest.mark.parametrize(
    ("text", "is_network"),
    [
        pytest.param("10.0.0.0/8", True, id="IPv4"),
        pytest.param("10.0.0.1/8", True, id="bits outside of the network"),
        pytest.param("fd00::/64", True, id="IPv6"),
        pytest.param("10.0.0.0", False, id="no length"),
        pytest.param("10.0.0.0/33", False, id="length"),
        pytest.param("10.0.0.0/255.0.0.0", False, id="mask"),
    ],
)
def test_networks(text: str, is_network: bool) -> None:
    """What is no network is a fault."""
    assert is_network is not bool(network_faults(text, "a"))


def test_both_families() -> None:
    """There have to be an address and a network of each."""
    assert is_dual_stack(["10.0.0.1", "fd00::1"])
    assert not is_dual_stack(["10.0.0.1", "10.0.0.2"])
    assert is_dual_stack_of_networks(["fd00::/64", "10.0.0.0/8"])
    assert not is_dual_stack_of_networks(["fd00::/64", "x"])
