"""The names of container images, as far as the tag is concerned.

Upstream: pkg/util/parsers/parsers.go; github.com/distribution/reference (v1.36's)
Differs:  nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LATEST: Final = "latest"
_NAME_LENGTH_MAX: Final = 255
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DIGEST: Final = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE: Final = re.compile(
    rf"(?:{_DOMAIN}/)?(?P<path>{_PART}(?:/{_PART})*)"
    rf"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
)
_KNOWN_DIGEST: Final = re.compile(
    "sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}",
)
_IDENTIFIER: Final = re.compile("[a-f0-9]{64}")


@lru_cache(maxsize=4096)
def tag_of(image: str) -> str:
    """Return the tag: `latest` if neither tag nor digest is given, "" if the name is malformed."""
    match = _REFERENCE.fullmatch(image)
    if match is None or _IDENTIFIER.fullmatch(image) or len(match["path"]) > _NAME_LENGTH_MAX:
        return ""
    if match["digest"] and _KNOWN_DIGEST.fullmatch(match["digest"]) is None:
        return ""
    if match["tag"]:
        return match["tag"]
    return "" if match["digest"] else _LATEST


def is_latest(image: str) -> bool:
    """Whether the name stands for whatever is newest."""
    return tag_of(image) == _LATEST
