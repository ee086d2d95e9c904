"""Formats of names, and the messages about violated rules."""

from __future__ import annotations

import pytest

from kubesched.apiserver.formats import (
    NameRule,
    address,
    config_map_key,
    dns_label,
    dns_subdomain,
    network,
    path_segment,
    port_name,
    prefix_of,
    valid_port,
)

_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize(
    ("rule", "name", "count"),
    [
        pytest.param(dns_label, "a-1", 0, id="label"),
        pytest.param(dns_label, "a.b", 1, id="label with a dot"),
        pytest.param(dns_label, "A", 1, id="label with a capital"),
        pytest.param(dns_label, "a" * 64, 1, id="long label"),
        pytest.param(dns_label, "-" * 64, 2, id="label that is wrong and long"),
        pytest.param(dns_label, "a\n", 1, id="label with a line"),
        pytest.param(dns_subdomain, "a.b-c", 0, id="subdomain"),
        pytest.param(dns_subdomain, "a..b", 1, id="subdomain with two dots"),
        pytest.param(dns_subdomain, "a" * 254, 1, id="long subdomain"),
        pytest.param(config_map_key, "a/b", 1, id="key with a slash"),
        pytest.param(config_map_key, "a_.B-", 0, id="key"),
        pytest.param(config_map_key, "..", 1, id="key of two dots"),
        pytest.param(port_name, "http", 0, id="port"),
        pytest.param(port_name, "80", 1, id="port without a letter"),
        pytest.param(port_name, "a--b", 1, id="port with two hyphens"),
        pytest.param(path_segment, "a b", 0, id="segment"),
        pytest.param(path_segment, "a/b%c", 2, id="segment with a slash and a percent sign"),
        pytest.param(path_segment, "..", 1, id="segment of two dots"),
        pytest.param(prefix_of(dns_label), "a-", 0, id="prefix with a hyphen"),
        pytest.param(prefix_of(dns_label), "AA-", 1, id="wrong prefix"),
        pytest.param(prefix_of(dns_label), "A-", 0, id="what is before the hyphen is not seen"),
    ],
)
def test_rules(rule: NameRule, name: str, count: int) -> None:
    """Each value breaks this number of rules."""
    assert count == len(rule(name))


def test_messages() -> None:
    """The message has the rule, examples and the regular expression."""
    assert (_LABEL,) == tuple(dns_label("A"))


@pytest.mark.parametrize(
    ("number", "is_valid"),
    [
        pytest.param(0, False, id="0"),
        pytest.param(1, True, id="1"),
        pytest.param(65535, True, id="65535"),
        pytest.param(65536, False, id="65536"),
    ],
)
def test_ports(number: int, is_valid: bool) -> None:
    """Ports have 16 bits, and 0 is none."""
    assert is_valid is not bool(valid_port(number))


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
def test_address(text: str, is_address: bool) -> None:
    """Valid addresses are those that upstream accepts."""
    assert is_address is not bool(address(text))


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
def test_network(text: str, is_network: bool) -> None:
    """Valid networks are those that upstream accepts."""
    assert is_network is not bool(network(text))
