"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

NEAR_MAX: Final = 5
# Comparing is slow: with a million pods, a typing error must not take minutes.
_COMPARED_MAX: Final = 10_000


def near_names(text: str, existing: Iterable[str]) -> list[str]:
    """Return similar names, best first; of many names only those with the same first letters."""
    names = list(dict.fromkeys(existing))
    if len(names) > _COMPARED_MAX:
        names = [name for name in names if name[:2] == text[:2]][:_COMPARED_MAX]
    return get_close_matches(text, names, n=NEAR_MAX)
