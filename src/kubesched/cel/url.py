"""URLs in expressions.

Upstream: staging/src/k8s.io/apiserver/pkg/cel/library/urls.go, Go's package net/url
Rejects:  relative references, blanks, control characters, bad escapes, non-numeric ports
Differs:  blanks in paths are refused, where Go escapes them; two URLs are equal if their texts are;
          messages are ours.
"""

import re
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from kubesched.cel.declarations import Library
from kubesched.cel.values import CelError, succeeds

_REFUSED = re.compile(r"[\x00-\x20\x7f]|%(?![0-9A-Fa-f]{2})")
_SAFE = "/%:@!$&'()*+,;=~"


@dataclass(frozen=True, slots=True)
class URL:
    """An absolute URL, or one that begins with a path."""

    parts: SplitResult

    type_name: ClassVar[str] = "kubernetes.URL"
    is_opaque: ClassVar[bool] = True

    @property
    def host(self) -> str:
        """The host with its port."""
        return self.parts.netloc.rpartition("@")[2]

    @property
    def port(self) -> str:
        """The port, "" if there is none."""
        return self.host.rpartition("]")[2].partition(":")[2]

    @property
    def hostname(self) -> str:
        """The host without its port and brackets."""
        name = self.host[: -len(self.port)] if self.port else self.host
        return name.removesuffix(":").removeprefix("[").removesuffix("]")

    @property
    def escaped_path(self) -> str:
        """The path; "" for a URL such as `mailto:a@b`."""
        path = self.parts.path
        return quote(path, safe=_SAFE) if path.startswith("/") else ""


def parse_url(text: str) -> URL:
    """Parse a URL. Raises CelError."""
    if _REFUSED.search(text):
        raise CelError(f"URL has a blank, a control character or a bad escape: {text!r}")
    try:
        parts = urlsplit(text)
        # An invalid port raises only when it is read.
        is_absolute = parts.port != 0 and bool(parts.scheme or text.startswith("/"))
    except ValueError as error:
        raise CelError(f"URL is invalid: {text!r}: {error}") from error
    if not is_absolute:
        raise CelError(f"URL is not absolute: {text!r}")
    return URL(parts)


def _query(url: URL) -> dict[object, object]:
    found = parse_qs(url.parts.query, keep_blank_values=True)
    return {name: tuple(values) for name, values in found.items()}


LIBRARY: Library = {
    "url(string): url": parse_url,
    "isURL(string): bool": succeeds(parse_url),
    "@getScheme(url): string": lambda url: url.parts.scheme,
    "@getHost(url): string": lambda url: url.host,
    "@getHostname(url): string": lambda url: url.hostname,
    "@getPort(url): string": lambda url: url.port,
    "@getEscapedPath(url): string": lambda url: url.escaped_path,
    "@getQuery(url): map(string, list(string))": _query,
}
