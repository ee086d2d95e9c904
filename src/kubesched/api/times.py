"""Times as objects carry them: RFC 3339 in UTC, in seconds or microseconds.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time.go, micro_time.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

_TIME: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))",
    re.ASCII,
)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS: Final = 1_000_000_000


@lru_cache(maxsize=65_536)
def parse_time(text: str) -> int:
    """Return an RFC 3339 time in nanoseconds since the epoch, truncated.

    Raises ValueError if the text is no such time.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an RFC 3339 time")
    date, clock, fraction, sign, hours, minutes = match.groups()
    try:
        whole = datetime.fromisoformat(f"{date}T{clock}+00:00") - EPOCH
    except ValueError as error:
        raise ValueError(f"{text!r} is not an RFC 3339 time: {error}") from None
    offset_seconds = 0
    if sign:
        # The limits of Go's parser.
        if int(hours) > 24 or int(minutes) > 60:
            raise ValueError(f"{text!r} is not an RFC 3339 time: time zone offset out of range")
        offset_seconds = (int(hours) * 60 + int(minutes)) * (-60 if sign == "-" else 60)
    seconds = whole.days * 86_400 + whole.seconds - offset_seconds
    return seconds * _NANOSECONDS + int(f"{fraction or '0':0<9}"[:9])


def moment_at(nanoseconds: int) -> datetime:
    """Return the moment so many nanoseconds after the epoch, in microseconds."""
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)


def second_time(moment: datetime) -> str:
    """Return a moment, which has a time zone, as metav1.Time: in whole seconds, truncated."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def micro_time(moment: datetime) -> str:
    """Return a moment, which has a time zone, as metav1.MicroTime."""
    return f"{moment.astimezone(UTC).isoformat(timespec='microseconds').removesuffix('+00:00')}Z"
