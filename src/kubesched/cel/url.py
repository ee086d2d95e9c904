"""Parse URLs as Go does.

Upstream: staging/src/k8s.io/apiserver/pkg/cel/library/urls.go, Go's package net/url
Rejects:  relative references, control characters, bad escapes, non-numeric ports
Differs:  nothing.
"""

import re
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import ClassVar

from kubesched.api.go_text import go_quote
from kubesched.cel.declarations import Library
from kubesched.cel.ip import AddressError, parse_address
from kubesched.cel.values import CelError

# URLs are parsed byte by byte: each byte is the character with the same number.

_ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_UNRESERVED = _ALNUM + "-_.~"
_PATH = frozenset(_UNRESERVED + "$&+,/:;=@")
_USER = frozenset(_UNRESERVED + "$&+,;=")
_HOST = frozenset(_UNRESERVED + "!$&'()*+,;=:[]<>\"")
_FRAGMENT = frozenset(_UNRESERVED + "$&+,/:;=?@!()*")
_VALID_USER = frozenset(_ALNUM + "-._:~!$&'()*+,;=%@")
_SUBDELIMS = "!$&'()*+,;=:@[]%"

_ESCAPE = re.compile("%([0-9A-Fa-f]{2})?")
_SCHEME = re.compile("([A-Za-z][A-Za-z0-9+.-]*):")
_PORT = re.compile("(?::[0-9]*)?")
_QUERY_PARAMETERS_MAX = 10_000
_FAILED = "URL parse error during conversion from string"


class _UrlError(ValueError):
    """The text is not a URL; the message is upstream's, without the text."""


@dataclass(frozen=True, slots=True, eq=False)
class URL:
    """A URL with the fields of Go's url.URL, one character per byte."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    raw_query: str = ""
    fragment: str = ""
    raw_fragment: str = ""
    force_query: bool = False
    omit_host: bool = False

    type_name: ClassVar[str] = "kubernetes.URL"
    is_opaque: ClassVar[bool] = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, URL) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        query = f"?{self.raw_query}" if self.force_query or self.raw_query else ""
        fragment = f"#{self.escaped_fragment}" if self.fragment else ""
        scheme = f"{self.scheme}:" if self.scheme else ""
        rest = self.opaque or self._authority() + self._absolute_path()
        return f"{scheme}{rest}{query}{fragment}"

    def _authority(self) -> str:
        if self.omit_host and not self.host and self.user is None:
            return ""
        if not (self.host or self.user is not None or (self.scheme and self.path)):
            return ""
        user = "" if self.user is None else f"{self.user}@"
        return f"//{user}{_escape(self.host, _HOST)}"

    def _absolute_path(self) -> str:
        path = self.escaped_path
        if self.omit_host and not self.host and self.user is None and path.startswith("//"):
            path = "%2F" + path[1:]
        return path

    @property
    def escaped_path(self) -> str:
        """The path as it was written, or escaped if that is not valid."""
        return _escaped_part(self.path, self.raw_path, _PATH)

    @property
    def escaped_fragment(self) -> str:
        """The fragment as it was written, or escaped if that is not valid."""
        return _escaped_part(self.fragment, self.raw_fragment, _FRAGMENT)

    @property
    def hostname(self) -> str:
        """The host without its port and brackets."""
        host = self._host_and_port()[0]
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host

    @property
    def port(self) -> str:
        """The port, "" if there is none."""
        return self._host_and_port()[1]

    def _host_and_port(self) -> tuple[str, str]:
        host, colon, port = self.host.rpartition(":")
        if colon and _PORT.fullmatch(colon + port):
            return host, port
        return self.host, ""


# Escapes.


def _escape(text: str, safe: frozenset[str]) -> str:
    return "".join(char if char in safe else f"%{ord(char):02X}" for char in text)


def _unescape(text: str) -> str:
    """Decode %-escapes. Raises _UrlError."""
    for match in _ESCAPE.finditer(text):
        if match[1] is None:
            raise _bad_escape(text[match.start() : match.start() + 3])
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _bad_escape(escape: str) -> _UrlError:
    return _UrlError(f"invalid URL escape {go_quote(_from_bytes(escape))}")


def _unescape_host(text: str, *, is_zone: bool = False) -> str:
    """Decode %-escapes of a host or of its zone. Raises _UrlError."""
    at = 0
    while at < len(text):
        char = text[at]
        if char != "%":
            if ord(char) < 0x80 and char not in _HOST:
                raise _UrlError(f"invalid character {go_quote(char)} in host name")
            at += 1
            continue
        escape = text[at : at + 3]
        code = _ESCAPE.match(escape)
        if code is None or code[1] is None or not _is_allowed_in_host(code[1], is_zone):
            raise _bad_escape(escape)
        at += 3
    return _unescape(text)


def _is_allowed_in_host(digits: str, is_zone: bool) -> bool:
    """Whether a byte may be escaped: in a host if not ASCII, in a zone if valid unescaped."""
    byte = chr(int(digits, 16))
    if digits == "25":
        return True
    return byte == " " or byte in _HOST if is_zone else ord(byte) >= 0x80


def _escaped_part(part: str, raw: str, safe: frozenset[str]) -> str:
    if raw and all(char in safe or char in _SUBDELIMS for char in raw):
        # The raw text has been decoded without an error before.
        return raw
    return "*" if part == "*" and safe is _PATH else _escape(part, safe)


def _to_bytes(text: str) -> str:
    return text.encode(errors="surrogateescape").decode("latin-1")


def _from_bytes(text: str) -> str:
    return text.encode("latin-1").decode(errors="surrogateescape")


# Parsing.


def _parse(text: str, *, via_request: bool) -> URL:
    """Parse a URL without a fragment. Raises _UrlError."""
    if any(char < " " or char == "\x7f" for char in text):
        raise _UrlError("net/url: invalid control character in URL")
    if not text and via_request:
        raise _UrlError("empty url")
    if text == "*":
        return URL(path="*")
    scheme, rest = _split_scheme(text)
    force_query = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return URL(scheme=scheme, opaque=rest, raw_query=query, force_query=force_query)
        if via_request:
            raise _UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _UrlError("first path segment in URL cannot contain colon")
    user, host, omit_host = None, "", False
    if rest.startswith("//") and (scheme or not (via_request or rest.startswith("///"))):
        authority, slash, after = rest[2:].partition("/")
        rest = slash + after
        user, host = _parse_authority(scheme, authority)
    elif scheme and rest.startswith("/"):
        omit_host = True
    path = _unescape(rest)
    return URL(
        scheme=scheme,
        user=user,
        host=host,
        path=path,
        raw_path="" if _escape(path, _PATH) == rest else rest,
        raw_query=query,
        force_query=force_query,
        omit_host=omit_host,
    )


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise _UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    return ("", text) if match is None else (match[1].lower(), text[match.end() :])


def _parse_authority(scheme: str, authority: str) -> tuple[str | None, str]:
    """Return the user info, normalised, and the host. Raises _UrlError."""
    user, at, host_text = authority.rpartition("@")
    host = _parse_host(scheme, host_text)
    if not at:
        return None, host
    if not set(user) <= _VALID_USER:
        raise _UrlError("net/url: invalid userinfo")
    name, colon, password = user.partition(":")
    return _escape(_unescape(name), _USER) + colon + _escape(_unescape(password), _USER), host


def _parse_host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise _UrlError("invalid IP-literal")
    if bracket == 0:
        return _parse_ip_literal(host)
    colon = host.find(":")
    if colon >= 0:
        if scheme not in {"http", "https"}:
            colon = host.rfind(":")
        _check_port(host[colon:])
    return _unescape_host(host)


def _parse_ip_literal(host: str) -> str:
    close = host.rfind("]")
    if close < 0:
        raise _UrlError("missing ']' in host")
    _check_port(host[close + 1 :])
    name, zone_mark, zone = host[1:close].partition("%25")
    unescaped = _unescape_host(name) + _unescape_host(zone_mark + zone, is_zone=True)
    try:
        address, _ = parse_address(_from_bytes(unescaped))
    except AddressError as error:
        raise _UrlError(f"invalid host: {error}") from error
    if isinstance(address, IPv4Address):
        raise _UrlError("invalid IP-literal")
    return f"[{unescaped}]{host[close + 1 :]}"


def _check_port(colon_port: str) -> None:
    if _PORT.fullmatch(colon_port) is None:
        raise _UrlError(f"invalid port {go_quote(_from_bytes(colon_port))} after host")


def request_uri_error(text: str) -> tuple[str, ...]:
    """Return the error of an absolute URL or path, empty if it is valid."""
    try:
        _parse(_to_bytes(text), via_request=True)
    except _UrlError as error:
        return (f"parse {go_quote(text)}: {error}",)
    return ()


def parse_url(text: str) -> URL:
    """Parse a URL. Raises CelError."""
    for error in request_uri_error(text):
        raise CelError(f"{_FAILED}: {error}")
    before, _, after = text.partition("#")
    shown, raw_fragment = before, _to_bytes(after)
    try:
        url = _parse(_to_bytes(before), via_request=False)
        shown = text
        fragment = _unescape(raw_fragment)
    except _UrlError as failed:
        raise CelError(f"{_FAILED}: parse {go_quote(shown)}: {failed}") from failed
    return replace(url, fragment=fragment, raw_fragment=raw_fragment)


# Queries.


def _query(url: URL) -> dict[object, object]:
    """Return the parameters of the query, without malformed ones."""
    found: dict[object, tuple[str, ...]] = {}
    pairs = url.raw_query.split("&")
    for pair in pairs if len(pairs) <= _QUERY_PARAMETERS_MAX else ():
        name_text, _, value_text = pair.replace("+", " ").partition("=")
        if not pair or ";" in pair:
            continue
        try:
            name, value = _from_bytes(_unescape(name_text)), _from_bytes(_unescape(value_text))
        except _UrlError:
            continue
        found[name] = (*found.get(name, ()), value)
    return dict(found)


LIBRARY: Library = {
    "url(string): url": parse_url,
    "isURL(string): bool": lambda text: not request_uri_error(text),
    "@getScheme(url): string": lambda url: url.scheme,
    "@getHost(url): string": lambda url: _from_bytes(url.host),
    "@getHostname(url): string": lambda url: _from_bytes(url.hostname),
    "@getPort(url): string": lambda url: url.port,
    "@getEscapedPath(url): string": lambda url: _from_bytes(url.escaped_path),
    "@getQuery(url): map(string, list(string))": _query,
}
