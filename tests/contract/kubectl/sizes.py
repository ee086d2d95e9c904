"""The size that an answer would have, had the recorded server sent it."""

from __future__ import annotations

import re
from typing import Any, Final

from kubesched.apiserver.request import Response

_VERSION: Final = re.compile(r'"resourceVersion":"(\d+)"')
# The recorded server had written that much before: its versions have so many digits.
_VERSION_DIGITS: Final = 6
# Go writes < as \u003c, and a line's end after each answer.
_ESCAPED: Final = "<>&"
_ESCAPE_BYTES: Final = 5
_LINE_END_BYTES: Final = 1


def has_recorded_size(recorded: dict[str, Any], answer: Response) -> bool:
    """Whether an answer has the recorded size, as far as that was JSON."""
    media_type = recorded["response_content_type"] or ""
    is_whole = "response_bytes" in recorded and answer.stream is None
    if not (is_whole and media_type.startswith("application/json") and answer.status < 300):
        return True
    text = answer.body.decode()
    escaped = sum(map(text.count, _ESCAPED))
    digits = sum(_VERSION_DIGITS - len(version) for version in _VERSION.findall(text))
    size = len(answer.body) + escaped * _ESCAPE_BYTES + digits + _LINE_END_BYTES
    return bool(size == recorded["response_bytes"])
