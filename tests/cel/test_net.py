"""IP addresses, networks and URLs in expressions."""

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
        ('ip.isCanonical("2001:db8::abcd")', True),
        ('ip.isCanonical("2001:DB8::ABCD")', False),
        ('string(ip("10.0.0.1")) == "10.0.0.1"', True),
        ('ip("10.0.0.1") == ip("10.0.0.1")', True),
        ('ip("1.1.1.1") in [ip("1.1.1.1")]', True),
        ('[ip("1.1.1.1")] == [ip("1.1.1.1")]', True),
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
        ('cidr("10.0.0.0/8").containsIP("10.1.1.1")', True),
        ('cidr("10.0.0.0/8").containsIP(ip("11.1.1.1"))', False),
        ('cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")', True),
        ('cidr("10.0.0.0/8").containsCIDR(cidr("0.0.0.0/0"))', False),
        ('cidr("10.0.0.1/8").ip() == ip("10.0.0.1")', True),
        ('cidr("10.0.0.1/8").masked() == cidr("10.0.0.0/8")', True),
        ('cidr("10.0.0.1/8").prefixLength() == 8', True),
        ('isCIDR("10.0.0.0/8")', True),
        ('string(cidr("10.0.0.0/8")) == "10.0.0.0/8"', True),
        ('cidr("10.0.0.0/8").containsIP("1::")', False),
        ('cidr("::/0").containsCIDR("10.0.0.0/8")', False),
        ('string(cidr("fe80::1/64"))', "fe80::1/64"),
        ('string(cidr("fe80::1/64").masked())', "fe80::/64"),
        ('string(cidr("10.1.2.3/0").masked())', "0.0.0.0/0"),
        ('cidr("10.0.0.0/8").containsCIDR("10.0.0.0/7")', False),
        ('cidr("10.0.0.1/32").containsIP("10.0.0.1")', True),
        ('cidr("::/0").containsIP("10.0.0.1")', False),
        ('cidr("10.0.0.1/8") == cidr("10.0.0.0/8")', False),
        ('url("https://a.b:80/p?x=1&x=2").getHost() == "a.b:80"', True),
        ('url("https://a.b:80/p?x=1&x=2").getHostname() == "a.b"', True),
        ('url("https://a.b:80/p?x=1&x=2").getPort() == "80"', True),
        ('url("https://a.b:80/p%20q?x=1&x=2").getEscapedPath() == "/p%20q"', True),
        ('url("https://a.b:80/p?x=1&x=2").getScheme() == "https"', True),
        ('url("https://a.b:80/p?x=1&x=2").getQuery() == {"x": ["1", "2"]}', True),
        ('isURL("https://a.b")', True),
        ('type(url("http://a")) == type(url("http://b"))', True),
        ('url("http://a") == null', False),
        ('isURL("/p")', True),
        ('isURL("http://[::1]:80/")', True),
        ('isURL("x:opaque")', True),
        ('url("x:opaque?a=b").getQuery()', {"a": ("b",)}),
        ('url("HTTP://H/").getScheme() + url("HTTP://H/").getHost()', "httpH"),
        ('url("http://[::1]:/").getPort()', ""),
        ('url("http://u:p@h:1/").getHost()', "h:1"),
        ('url("http://h/a%2Fb").getEscapedPath()', "/a%2Fb"),
        ('url("http://h/%7E%c3%a9").getEscapedPath()', "/%7E%c3%a9"),
        (
            'url("http://h/p?a=1&a=2&b=%20x+y&c&=d").getQuery()',
            {"a": ("1", "2"), "b": (" x y",), "c": ("",), "": ("d",)},
        ),
        ('url("http://h/p#") == url("http://h/p")', True),
        ('url("HTTP://h/p#f") == url("http://h/p#f")', True),
        ('url("http://h") == url("http://h/")', False),
        ('url("http://a@b@h/").getHost()', "h"),
    ],
)
def test_values(expression: str, expected: object) -> None:
    """A value is read, classed, compared and written as Go does."""
    assert expected == evaluate(expression)


_MALFORMED = {
    "IP": [
        *("", "x", "\x07", "::ffff:1.2.3.4", "fe80::1%eth0", "fe80::1%", "1.2.3", "1.2.3.04"),
        *("1.2.3.256", "1.2..3", "1.2.3.4.5", "1.2.3.4 ", "1:2", "1:2:3:4:5:6:7:8:9", "12345::"),
        *(":::", "1::2::3", "g::", "1:2:3:4:5:6:7:8::", "1:1.2.3.4"),
    ],
    "CIDR": [
        *("x", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/"),
        *("10.0.0.0/255.0.0.0", "10.0.0.0/99999999999999999999", "fe80::%eth0/64", "fe80::1/129"),
        *("::ffff:1.2.3.4/99", "1.2.3.4/032", "1.2.3.4/\xe9"),
    ],
    "URL": [
        *("", "::bad", "a b", "a/b", "/p?q#%zz", "http://h/%zz", "http://h:80:80/", "http://h:x/"),
        *("http://a b/", "http://[::1", "http://[::g]/", "\x01"),
    ],
}


@pytest.mark.parametrize("kind", _MALFORMED)
def test_malformed_texts(kind: str) -> None:
    """They raise CelError."""
    for text in _MALFORMED[kind]:
        with pytest.raises(CelError):
            evaluate(f"{kind.lower()}(text)", text=text)
        assert not evaluate(f"is{kind}(text)", text=text)


@pytest.mark.parametrize("text", ["x", "::ffff:10.0.0.1"])
def test_no_network_contains_what_is_no_address(text: str) -> None:
    """Such a call has no overload."""
    with pytest.raises(CelError, match="no such overload"):
        evaluate('cidr("10.0.0.0/8").containsIP(text)', text=text)
