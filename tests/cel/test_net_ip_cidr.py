"""Networks in expressions."""

import pytest

from kubesched.cel.values import CelError
from tests.cel.evaluation import evaluate


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('cidr("10.0.0.0/8").containsIP("10.1.1.1")', True),
        ('cidr("10.0.0.0/8").containsIP(ip("11.1.1.1"))', False),
        ('cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")', True),
        ('cidr("10.0.0.0/8").containsCIDR(cidr("0.0.0.0/0"))', False),
        ('cidr("10.0.0.1/8").ip() == ip("10.0.0.1")', True),
        ('cidr("10.0.0.1/8").masked() == cidr("10.0.0.0/8")', True),
        ('cidr("10.0.0.1/8").prefixLength() == 8', True),
        ('isCIDR("10.0.0.0/8")', True),
        ('isCIDR("10.0.0.0")', False),
        ('string(cidr("10.0.0.0/8")) == "10.0.0.0/8"', True),
        ('cidr("10.0.0.0/8").containsIP("1::")', False),
        ('cidr("::/0").containsCIDR("10.0.0.0/8")', False),
        ('isCIDR("fe80::1/129")', False),
        ('string(cidr("fe80::1/64"))', "fe80::1/64"),
        ('string(cidr("fe80::1/64").masked())', "fe80::/64"),
        ('string(cidr("10.1.2.3/0").masked())', "0.0.0.0/0"),
        ('cidr("10.0.0.0/8").containsCIDR("10.0.0.0/7")', False),
        ('cidr("10.0.0.1/32").containsIP("10.0.0.1")', True),
        ('cidr("::/0").containsIP("10.0.0.1")', False),
        ('cidr("10.0.0.1/8") == cidr("10.0.0.0/8")', False),
        ('isCIDR("1.2.3.4/032")', False),
    ],
)
def test_values(expression: str, expected: object) -> None:
    """A network is read and compared as Go does."""
    assert expected == evaluate(expression)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "10.0.0.0",
        "10.0.0.0/33",
        "10.0.0.0/08",
        "10.0.0.0/+8",
        "10.0.0.0/",
        "10.0.0.0/255.0.0.0",
        "10.0.0.0/99999999999999999999",
        "fe80::%eth0/64",
        "::ffff:1.2.3.4/99",
        "1.2.3.4/\xe9",
    ],
)
def test_malformed_networks(text: str) -> None:
    """They raise CelError."""
    with pytest.raises(CelError):
        evaluate("cidr(text)", text=text)
    assert not evaluate("isCIDR(text)", text=text)


@pytest.mark.parametrize("text", ["x", "::ffff:10.0.0.1"])
def test_no_network_contains_what_is_no_address(text: str) -> None:
    """Such a call has no overload."""
    with pytest.raises(CelError, match="no such overload"):
        evaluate('cidr("10.0.0.0/8").containsIP(text)', text=text)
