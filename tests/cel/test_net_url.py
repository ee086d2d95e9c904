"""URLs in expressions."""

import pytest

from kubesched.cel.values import CelError
from tests.cel.evaluation import evaluate


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('url("https://a.b:80/p?x=1&x=2").getHost() == "a.b:80"', True),
        ('url("https://a.b:80/p?x=1&x=2").getHostname() == "a.b"', True),
        ('url("https://a.b:80/p?x=1&x=2").getPort() == "80"', True),
        ('url("https://a.b:80/p%20q?x=1&x=2").getEscapedPath() == "/p%20q"', True),
        ('url("https://a.b:80/p?x=1&x=2").getScheme() == "https"', True),
        ('url("https://a.b:80/p?x=1&x=2").getQuery() == {"x": ["1", "2"]}', True),
        ('isURL("https://a.b")', True),
        ('isURL("a/b")', False),
        ('type(url("http://a")) == type(url("http://b"))', True),
        ('url("http://a") == null', False),
        ('isURL("http://a b/")', False),
        ('isURL("/p")', True),
        ('isURL("")', False),
        ('isURL("http://h:x/")', False),
        ('isURL("http://[::1]:80/")', True),
        ('isURL("http://[::1")', False),
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
    """A URL is taken apart as Go takes it."""
    assert expected == evaluate(expression)


@pytest.mark.parametrize(
    "text",
    [
        "::bad",
        "a b",
        "a/b",
        "",
        "/p?q#%zz",
        "http://h/%zz",
        "http://h:80:80/",
        "http://h:x/",
        "http://a b/",
        "http://[::1",
        "http://[::g]/",
        "\x01",
    ],
)
def test_malformed_urls(text: str) -> None:
    """They raise CelError."""
    with pytest.raises(CelError):
        evaluate("url(text)", text=text)
    assert not evaluate("isURL(text)", text=text)
