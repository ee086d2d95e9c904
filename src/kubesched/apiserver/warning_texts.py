"""Warnings as they are sent: each once, and not too much of them.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/warning.go,
          staging/src/k8s.io/apimachinery/pkg/util/net/http.go (NewWarningHeader, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

_TOTAL_MAX: Final = 4 * 1024
_TEXT_MAX: Final = 256


def sendable(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the warnings that can be sent, in order.

    Together they have at most 4,096 characters; where that is too little, each is cut to 256, and
    what comes after these have filled the room is left out.
    """
    distinct = [text for text in dict.fromkeys(texts) if text]
    fit = [text for text in distinct if _is_sendable(text)]
    if sum(map(len, fit)) <= _TOTAL_MAX:
        return tuple(fit)
    return tuple(_shortened(distinct))


def _shortened(texts: list[str]) -> Iterable[str]:
    # All that came before the first that was too much is sent, whatever it adds up to.
    whole = written = 0
    for text in texts:
        if whole > _TOTAL_MAX and written >= _TOTAL_MAX:
            return
        short = text[:_TEXT_MAX]
        if _is_sendable(text):
            whole += len(text)
        if _is_sendable(short):
            written += len(short)
            yield short


def _is_sendable(text: str) -> bool:
    # Category Cs is what no UTF-8 can say.
    return not any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in text)
