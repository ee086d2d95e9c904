"""Durations as Go writes them ("1m30s"), kept as seconds.

Upstream: Go's time.ParseDuration, through metav1.Duration (v1.36)
Differs:  nothing.
"""

import re
from fractions import Fraction
from typing import Annotated

from msgspec import Meta

from kubesched.config.faults import quote

DurationSeconds = Annotated[float, Meta(extra={"go": "duration"})]
"""A number of seconds, written as a Go duration in configuration ("15s", "1m30s")."""

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"([0-9]*)(\.[0-9]*)?([^0-9.]*)")
_LIMIT = 2**63


def parse_duration(text: str) -> float:
    """Seconds of a Go duration; raises ValueError with Go's words when it is none."""
    body = text[1:] if text[:1] in {"+", "-"} else text
    sign = -1 if text.startswith("-") else 1
    if body == "0":
        return 0.0
    if not body:
        raise ValueError(f"time: invalid duration {quote(text)}")
    nanoseconds = sign * _parse_parts(text, body)
    if not -_LIMIT <= nanoseconds < _LIMIT:
        raise ValueError(f"time: invalid duration {quote(text)}")
    return nanoseconds / 10**9


def _parse_parts(text: str, body: str) -> int:
    """Nanoseconds of an unsigned sequence of parts; the fraction of each part is cut off."""
    total = 0
    while body:
        match = _PART.match(body)
        assert match is not None  # every group may be empty
        whole, fraction, unit = match[1], match[2] or "", match[3]
        if not whole and fraction in {"", "."}:
            raise ValueError(f"time: invalid duration {quote(text)}")
        if not unit:
            raise ValueError(f"time: missing unit in duration {quote(text)}")
        if unit not in _NANOSECONDS:
            raise ValueError(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
        if len(whole) > 19:
            raise ValueError(f"time: invalid duration {quote(text)}")
        # Go keeps as many digits of a fraction as an int64 holds, and ignores the others.
        total += int(Fraction((whole or "0") + fraction[:19].rstrip(".")) * _NANOSECONDS[unit])
        body = body[match.end() :]
    return total
