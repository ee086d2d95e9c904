"""IP addresses in expressions."""

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
    "text",
    [
        "x",
        "::ffff:1.2.3.4",
        "fe80::1%eth0",
        "fe80::1%",
        "1.2.3",
        "1.2.3.04",
        "1.2.3.256",
        "1.2..3",
        "1.2.3.4.5",
        "1.2.3.4 ",
        "1:2",
        "1:2:3:4:5:6:7:8:9",
        "12345::",
        ":::",
        "1::2::3",
        "g::",
        "1:2:3:4:5:6:7:8::",
        "1:1.2.3.4",
        "\x07",
        "",
    ],
)
def test_malformed_addresses(text: str) -> None:
    """They raise CelError."""
    with pytest.raises(CelError):
        evaluate("ip(text)", text=text)
    assert not evaluate("isIP(text)", text=text)
