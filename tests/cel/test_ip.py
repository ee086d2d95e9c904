"""IP addresses in expressions: facts about Go's net/netip."""

import pytest

from kubesched.cel.values import CelError
from tests.cel.evaluation import evaluate


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('ip("10.0.0.1").family() == 4', True),
        ('ip("::1").family() == 6', True),
        ('ip("::1").isLoopback()', True),
        ('ip("127.0.0.1").isLoopback()', True),
        ('ip("0.0.0.0").isUnspecified()', True),
        ('ip("224.0.0.1").isLinkLocalMulticast()', True),
        ('ip("169.254.1.1").isLinkLocalUnicast()', True),
        ('ip("8.8.8.8").isGlobalUnicast()', True),
        ('isIP("10.0.0.1")', True),
        ('isIP("10.0.0")', False),
        ('ip.isCanonical("2001:db8::abcd")', True),
        ('ip.isCanonical("2001:DB8::ABCD")', False),
        ('string(ip("10.0.0.1")) == "10.0.0.1"', True),
        ('ip("10.0.0.1") == ip("10.0.0.1")', True),
        ('ip("1.1.1.1") in [ip("1.1.1.1")]', True),
        ('[ip("1.1.1.1")] == [ip("1.1.1.1")]', True),
        ('isIP("fe80::1%eth0")', False),
        ('ip("255.255.255.255").isGlobalUnicast()', False),
        ('ip("239.0.0.1").isGlobalUnicast()', False),
        ('ip("10.0.0.1").isGlobalUnicast()', True),
        ('ip("ff12::1").isLinkLocalMulticast()', True),
        ('ip("ff02::1").isLinkLocalMulticast()', True),
        ('ip("ff32::1").isLinkLocalMulticast()', True),
        ('ip("febf::1").isLinkLocalUnicast()', True),
        ('ip("fec0::1").isLinkLocalUnicast()', False),
        ('ip("::").isUnspecified()', True),
        ('ip("::").isGlobalUnicast()', False),
        ('ip("::2").isGlobalUnicast()', True),
        ('string(ip("1:2:3:4:5:6:7::"))', "1:2:3:4:5:6:7:0"),
        ('string(ip("::1.2.3.4"))', "::102:304"),
        ('string(ip("1:2:3:4:5:6:1.2.3.4"))', "1:2:3:4:5:6:102:304"),
        ('string(ip("2001:DB8:0:0:1:0:0:1"))', "2001:db8::1:0:0:1"),
        ('string(ip("0:0:1::"))', "0:0:1::"),
        ('dyn(ip("::1")).family()', 6),
    ],
)
def test_values(expression: str, expected: object) -> None:
    """An address is read, classed and written as Go does."""
    assert expected == evaluate(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            'ip("x").family() == 4',
            (
                'IP Address "x" parse error during conversion from string: '
                'ParseAddr("x"): unable to parse IP'
            ),
        ),
        (
            'ip.isCanonical("x")',
            (
                'IP Address "x" parse error during conversion from string: '
                'ParseAddr("x"): unable to parse IP'
            ),
        ),
        (
            'ip.isCanonical("::FFFF:1.1.1.1")',
            'IPv4-mapped IPv6 address "::FFFF:1.1.1.1" is not allowed',
        ),
        (
            'string(ip("::ffff:1.2.3.4"))',
            'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed',
        ),
        ('string(ip("fe80::1%eth0"))', 'IP address "fe80::1%eth0" with zone value is not allowed'),
        (
            'string(ip("fe80::1%"))',
            (
                'IP Address "fe80::1%" parse error during conversion from string: '
                'ParseAddr("fe80::1%"): zone must be a non-empty string'
            ),
        ),
        (
            'string(ip("%"))',
            (
                'IP Address "%" parse error during conversion from string: '
                'ParseAddr("%"): missing IPv6 address'
            ),
        ),
        (
            'string(ip("1.2.3"))',
            (
                'IP Address "1.2.3" parse error during conversion from string: '
                'ParseAddr("1.2.3"): IPv4 address too short'
            ),
        ),
        (
            'string(ip("1.2.3.04"))',
            (
                'IP Address "1.2.3.04" parse error during conversion from string: '
                'ParseAddr("1.2.3.04"): IPv4 field has octet with leading zero'
            ),
        ),
        (
            'string(ip("1.2.3.256"))',
            (
                'IP Address "1.2.3.256" parse error during conversion from string: '
                'ParseAddr("1.2.3.256"): IPv4 field has value >255'
            ),
        ),
        (
            'string(ip("1.2..3"))',
            (
                'IP Address "1.2..3" parse error during conversion from string: '
                'ParseAddr("1.2..3"): IPv4 field must have at least one digit (at ".3")'
            ),
        ),
        (
            'string(ip("1.2.3.4.5"))',
            (
                'IP Address "1.2.3.4.5" parse error during conversion from string: '
                'ParseAddr("1.2.3.4.5"): IPv4 address too long'
            ),
        ),
        (
            'string(ip("1.2.3.a"))',
            (
                'IP Address "1.2.3.a" parse error during conversion from string: '
                'ParseAddr("1.2.3.a"): unexpected character (at "a")'
            ),
        ),
        (
            'string(ip("1.2.3.4 "))',
            (
                'IP Address "1.2.3.4 " parse error during conversion from string: '
                'ParseAddr("1.2.3.4 "): unexpected character (at " ")'
            ),
        ),
        (
            'string(ip(".1.2.3"))',
            (
                'IP Address ".1.2.3" parse error during conversion from string: '
                'ParseAddr(".1.2.3"): IPv4 field must have at least one digit (at '
                '".1.2.3")'
            ),
        ),
        (
            'string(ip("1:2"))',
            (
                'IP Address "1:2" parse error during conversion from string: '
                'ParseAddr("1:2"): address string too short'
            ),
        ),
        (
            'string(ip("1:2:3:4:5:6:7:8:9"))',
            (
                'IP Address "1:2:3:4:5:6:7:8:9" parse error during conversion from '
                'string: ParseAddr("1:2:3:4:5:6:7:8:9"): trailing garbage after '
                'address (at "9")'
            ),
        ),
        (
            'string(ip("12345::"))',
            (
                'IP Address "12345::" parse error during conversion from string: '
                'ParseAddr("12345::"): each group must have 4 or less digits (at '
                '"12345::")'
            ),
        ),
        (
            'string(ip(":::"))',
            (
                'IP Address ":::" parse error during conversion from string: '
                'ParseAddr(":::"): each colon-separated field must have at least one '
                'digit (at ":")'
            ),
        ),
        (
            'string(ip("::1::"))',
            (
                'IP Address "::1::" parse error during conversion from string: '
                'ParseAddr("::1::"): multiple :: in address (at ":")'
            ),
        ),
        (
            'string(ip("1::2::3"))',
            (
                'IP Address "1::2::3" parse error during conversion from string: '
                'ParseAddr("1::2::3"): multiple :: in address (at ":3")'
            ),
        ),
        (
            'string(ip("1:"))',
            (
                'IP Address "1:" parse error during conversion from string: '
                'ParseAddr("1:"): colon must be followed by more characters (at ":")'
            ),
        ),
        (
            'string(ip(":1"))',
            (
                'IP Address ":1" parse error during conversion from string: '
                'ParseAddr(":1"): each colon-separated field must have at least one '
                'digit (at ":1")'
            ),
        ),
        (
            'string(ip("g::"))',
            (
                'IP Address "g::" parse error during conversion from string: '
                'ParseAddr("g::"): each colon-separated field must have at least one '
                'digit (at "g::")'
            ),
        ),
        (
            'string(ip("1::g"))',
            (
                'IP Address "1::g" parse error during conversion from string: '
                'ParseAddr("1::g"): each colon-separated field must have at least one '
                'digit (at "g")'
            ),
        ),
        (
            'string(ip("1:2:3:4:5:6:7:8::"))',
            (
                'IP Address "1:2:3:4:5:6:7:8::" parse error during conversion from '
                'string: ParseAddr("1:2:3:4:5:6:7:8::"): the :: must expand to at '
                "least one field of zeros"
            ),
        ),
        (
            'string(ip("::1:2:3:4:5:6:7:8"))',
            (
                'IP Address "::1:2:3:4:5:6:7:8" parse error during conversion from '
                'string: ParseAddr("::1:2:3:4:5:6:7:8"): the :: must expand to at '
                "least one field of zeros"
            ),
        ),
        (
            'string(ip("1:1.2.3.4"))',
            (
                'IP Address "1:1.2.3.4" parse error during conversion from string: '
                'ParseAddr("1:1.2.3.4"): embedded IPv4 address must replace the final '
                '2 fields of the address (at "1.2.3.4")'
            ),
        ),
        (
            'string(ip("1:2:3:4:5:6:7:1.2.3.4"))',
            (
                'IP Address "1:2:3:4:5:6:7:1.2.3.4" parse error during conversion from '
                'string: ParseAddr("1:2:3:4:5:6:7:1.2.3.4"): embedded IPv4 address '
                'must replace the final 2 fields of the address (at "1.2.3.4")'
            ),
        ),
        (
            'string(ip("::1:2:3:4:5:6:7:1.2.3.4"))',
            (
                'IP Address "::1:2:3:4:5:6:7:1.2.3.4" parse error during conversion '
                'from string: ParseAddr("::1:2:3:4:5:6:7:1.2.3.4"): too many hex '
                "fields to fit an embedded IPv4 at the end of the address (at "
                '"1.2.3.4")'
            ),
        ),
        (
            'string(ip("::1.2.3"))',
            (
                'IP Address "::1.2.3" parse error during conversion from string: '
                'ParseAddr("::1.2.3"): IPv4 address too short'
            ),
        ),
        (
            'string(ip("::1.2.3.4:5"))',
            (
                'IP Address "::1.2.3.4:5" parse error during conversion from string: '
                'ParseAddr("::1.2.3.4:5"): unexpected character (at ":5")'
            ),
        ),
        ('string(ip("::1.2.3.4%x"))', 'IP address "::1.2.3.4%x" with zone value is not allowed'),
        (
            'string(ip(""))',
            (
                'IP Address "" parse error during conversion from string: '
                'ParseAddr(""): unable to parse IP'
            ),
        ),
        (
            'string(ip("\xe9:1"))',
            (
                'IP Address "\xe9:1" parse error during conversion from string: '
                'ParseAddr("\xe9:1"): each colon-separated field must have at least '
                'one digit (at "\xe9:1")'
            ),
        ),
        (
            'string(ip("1:\xe9"))',
            (
                'IP Address "1:\xe9" parse error during conversion from string: '
                'ParseAddr("1:\xe9"): each colon-separated field must have at least '
                'one digit (at "\xe9")'
            ),
        ),
        (
            r'string(ip("\u0007"))',
            (
                'IP Address "\\a" parse error during conversion from string: '
                'ParseAddr("\\a"): unable to parse IP'
            ),
        ),
        ('dyn(ip("1.1.1.1")) == dyn(1)', "no such overload"),
        ("dyn(1).family()", "no such overload: family(int)"),
    ],
)
def test_errors(expression: str, message: str) -> None:
    """What is no address is refused in upstream's words."""
    with pytest.raises(CelError) as raised:
        evaluate(expression)
    assert message == str(raised.value)
