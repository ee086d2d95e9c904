"""Networks in expressions: facts about Go's net/netip."""

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
    ("expression", "message"),
    [
        ('cidr("10.0.0.0/8").containsIP("x")', "no such overload"),
        ('cidr("10.0.0.0/8").containsIP("::ffff:10.0.0.1")', "no such overload"),
        (
            'cidr("10.0.0.0/8").containsCIDR("x")',
            (
                "network address parse error during conversion from string: network "
                "address parse error during conversion from string: "
                "netip.ParsePrefix(\"x\"): no '/'"
            ),
        ),
        (
            'cidr("x").ip()',
            (
                "network address parse error during conversion from string: network "
                "address parse error during conversion from string: "
                "netip.ParsePrefix(\"x\"): no '/'"
            ),
        ),
        (
            'cidr("10.0.0.0/33").ip()',
            (
                "network address parse error during conversion from string: network "
                "address parse error during conversion from string: "
                'netip.ParsePrefix("10.0.0.0/33"): prefix length out of range'
            ),
        ),
        (
            'cidr("10.0.0.0/08").ip()',
            (
                "network address parse error during conversion from string: network "
                "address parse error during conversion from string: "
                'netip.ParsePrefix("10.0.0.0/08"): bad bits after slash: "08"'
            ),
        ),
        (
            'cidr("10.0.0.0/+8").ip()',
            (
                "network address parse error during conversion from string: network "
                "address parse error during conversion from string: "
                'netip.ParsePrefix("10.0.0.0/+8"): bad bits after slash: "+8"'
            ),
        ),
        (
            'cidr("10.0.0.0/").ip()',
            (
                "network address parse error during conversion from string: network "
                "address parse error during conversion from string: "
                'netip.ParsePrefix("10.0.0.0/"): bad bits after slash: ""'
            ),
        ),
        (
            'cidr("10.0.0.0/99999999999999999999").ip()',
            (
                "network address parse error during conversion from string: network "
                "address parse error during conversion from string: "
                'netip.ParsePrefix("10.0.0.0/99999999999999999999"): bad bits after '
                'slash: "99999999999999999999"'
            ),
        ),
        (
            'cidr("fe80::%eth0/64").ip()',
            (
                "network address parse error during conversion from string: network "
                "address parse error during conversion from string: "
                'netip.ParsePrefix("fe80::%eth0/64"): IPv6 zones cannot be present in '
                "a prefix"
            ),
        ),
        (
            'cidr("::ffff:1.2.3.4/99").ip()',
            (
                "network address parse error during conversion from string: "
                'IPv4-mapped IPv6 address "::ffff:1.2.3.4/99" is not allowed'
            ),
        ),
        (
            'cidr("1.2.3.4/\xe9").ip()',
            (
                "network address parse error during conversion from string: network "
                "address parse error during conversion from string: "
                'netip.ParsePrefix("1.2.3.4/\xe9"): bad bits after slash: "\xe9"'
            ),
        ),
    ],
)
def test_errors(expression: str, message: str) -> None:
    """What is no network is refused in upstream's words."""
    with pytest.raises(CelError) as raised:
        evaluate(expression)
    assert message == str(raised.value)
