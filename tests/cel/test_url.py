"""URLs in expressions: facts about Go's net/url."""

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
        ('isURL("*")', True),
        ('isURL("")', False),
        ('isURL("http://h:x/")', False),
        ('isURL("http://[::1]:80/")', True),
        ('isURL("http://[::1")', False),
        ('isURL("x:opaque")', True),
        ('url("x:opaque?a=b").getQuery()', {"a": ("b",)}),
        ('url("HTTP://H/").getScheme() + url("HTTP://H/").getHost()', "httpH"),
        ('url("http://[fe80::1%25eth0]:80/").getHostname()', "fe80::1%eth0"),
        ('url("http://[::1]:/").getPort()', ""),
        ('url("http://u:p@h:1/").getHost()', "h:1"),
        ('url("http://h/a%2Fb c").getEscapedPath()', "/a/b%20c"),
        ('url("http://h/%7E%c3%a9").getEscapedPath()', "/%7E%c3%a9"),
        (
            'url("http://h/p?a=1&a=2&b=%20x+y&;=1&c&=d&%zz=1").getQuery()',
            {"a": ("1", "2"), "b": (" x y",), "c": ("",), "": ("d",)},
        ),
        ('url("http://h/p?") == url("http://h/p")', False),
        ('url("http://h/p#") == url("http://h/p")', True),
        ('url("HTTP://h/p#f") == url("http://h/p#f")', True),
        ('url("http://h") == url("http://h/")', False),
        ('url("http://h<>/").getHost()', "h<>"),
        ('url("http://a@b@h/").getHost()', "h"),
    ],
)
def test_values(expression: str, expected: object) -> None:
    """A URL is taken apart as Go takes it."""
    assert expected == evaluate(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            'url("::bad").getHost() == ""',
            (
                'URL parse error during conversion from string: parse "::bad": missing '
                "protocol scheme"
            ),
        ),
        ('dyn(url("http://a")) == dyn(1)', "no such overload"),
        ('string(dyn(url("http://a")))', "no such overload: string(kubernetes.URL)"),
        ('dyn(url("http://a")) + dyn(1)', "no such overload: _+_"),
        (
            'url("http://%41/")',
            (
                'URL parse error during conversion from string: parse "http://%41/": '
                'invalid URL escape "%41"'
            ),
        ),
        (
            'url("http://h^/")',
            (
                'URL parse error during conversion from string: parse "http://h^/": '
                'invalid character "^" in host name'
            ),
        ),
        (
            'url("http://h/%zz")',
            (
                'URL parse error during conversion from string: parse "http://h/%zz": '
                'invalid URL escape "%zz"'
            ),
        ),
        (
            'url("/p?q#%zz")',
            (
                'URL parse error during conversion from string: parse "/p?q#%zz": '
                'invalid URL escape "%zz"'
            ),
        ),
        (
            'url("http://a[::1]/")',
            (
                "URL parse error during conversion from string: parse "
                '"http://a[::1]/": invalid IP-literal'
            ),
        ),
        (
            'url("http://[::1")',
            (
                'URL parse error during conversion from string: parse "http://[::1": '
                "missing ']' in host"
            ),
        ),
        (
            'url("http://[1.2.3.4]/")',
            (
                "URL parse error during conversion from string: parse "
                '"http://[1.2.3.4]/": invalid IP-literal'
            ),
        ),
        (
            'url("http://[::g]/")',
            (
                'URL parse error during conversion from string: parse "http://[::g]/": '
                'invalid host: ParseAddr("::g"): each colon-separated field must have '
                'at least one digit (at "g")'
            ),
        ),
        (
            'url("http://h:80:80/")',
            (
                "URL parse error during conversion from string: parse "
                '"http://h:80:80/": invalid port ":80:80" after host'
            ),
        ),
        (
            r'url("http://a\"@h/")',
            (
                "URL parse error during conversion from string: parse "
                '"http://a\\"@h/": net/url: invalid userinfo'
            ),
        ),
        (
            'url("a b")',
            ('URL parse error during conversion from string: parse "a b": invalid URI for request'),
        ),
        (
            r'url("\u0001")',
            (
                'URL parse error during conversion from string: parse "\\x01": '
                "net/url: invalid control character in URL"
            ),
        ),
    ],
)
def test_errors(expression: str, message: str) -> None:
    """What is no URL is refused in upstream's words."""
    with pytest.raises(CelError) as raised:
        evaluate(expression)
    assert message == str(raised.value)
