r"""Sets of characters in regular expressions, as ranges of code points.

Upstream: Go's package regexp/syntax, unicode
Differs:  `\p{…}` knows the short names of Unicode's general categories, not scripts.
"""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

Range = tuple[int, int]
Ranges = tuple[Range, ...]

CODE_MAX = 0x10FFFF
_FOLD_MIN, _FOLD_MAX = 0x41, 0x1E943


def chars(text: str) -> Ranges:
    """Ranges from `a-z_`: single characters and pairs with a dash between."""
    ranges: list[Range] = []
    at = 0
    while at < len(text):
        is_pair = text[at + 1 : at + 2] == "-"
        last = at + 2 if is_pair else at
        ranges.append((ord(text[at]), ord(text[last])))
        at = last + 1
    return merge(ranges)


def merge(ranges: Iterable[Range]) -> Ranges:
    """The same characters in order, with no two ranges that touch."""
    merged: list[Range] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def negate(ranges: Iterable[Range]) -> Ranges:
    """All other characters."""
    edges = ((-1, -1), *merge(ranges), (CODE_MAX + 1, CODE_MAX + 1))
    gaps = ((before[1] + 1, after[0] - 1) for before, after in pairwise(edges))
    return tuple((low, high) for low, high in gaps if low <= high)


def fold(ranges: Iterable[Range]) -> Ranges:
    """The characters and all that differ from them in case alone."""
    folded = list(ranges)
    orbits = _orbits()
    for low, high in tuple(folded):
        for code in range(max(low, _FOLD_MIN), min(high, _FOLD_MAX) + 1):
            folded += ((other, other) for other in orbits.get(code, ()))
    return merge(folded)


@lru_cache(1)
def _orbits() -> dict[int, tuple[int, ...]]:
    """By character: all that differ in case alone, if there are any."""
    groups: dict[str, list[int]] = {}
    for code in range(_FOLD_MIN, _FOLD_MAX + 1):
        char = chr(code)
        folded = char.casefold()
        if len(folded) > 1:
            folded = char.lower()
        groups.setdefault(folded, []).append(code)
    return {code: tuple(group) for group in groups.values() if len(group) > 1 for code in group}


PERL: dict[str, Ranges] = {
    "d": chars("0-9"),
    "s": chars("\t\n\f\r "),
    "w": chars("0-9A-Z_a-z"),
}
POSIX: dict[str, Ranges] = {
    "alnum": chars("0-9A-Za-z"),
    "alpha": chars("A-Za-z"),
    "ascii": chars("\0-\x7f"),
    "blank": chars("\t "),
    "cntrl": chars("\0-\x1f\x7f"),
    "digit": chars("0-9"),
    "graph": chars("!-~"),
    "lower": chars("a-z"),
    "print": chars(" -~"),
    "punct": chars("!-/:-@[-`{-~"),
    "space": chars("\t-\r "),
    "upper": chars("A-Z"),
    "word": chars("0-9A-Z_a-z"),
    "xdigit": chars("0-9A-Fa-f"),
}


@lru_cache(1)
def _categories() -> dict[str, Ranges]:
    found: dict[str, list[Range]] = {}
    start, current = 0, unicodedata.category("\0")
    for code in range(1, CODE_MAX + 2):
        category = unicodedata.category(chr(code)) if code <= CODE_MAX else ""
        if category != current:
            found.setdefault(current, []).append((start, code - 1))
            start, current = code, category
    return {category: tuple(ranges) for category, ranges in found.items()}


def unicode_class(name: str) -> Ranges | None:
    """The characters of a general category (`L`, `Lu`, `Any`); None if there is none such."""
    canonical = name.translate({ord(char): None for char in "_- "}).capitalize()
    if canonical == "Any":
        return ((0, CODE_MAX),)
    if canonical == "Ascii":
        return POSIX["ascii"]
    wanted = ("Lu", "Ll", "Lt") if canonical == "Lc" else (canonical,)
    if not 1 <= len(canonical) <= 2:
        return None
    ranges = [
        piece
        for category, pieces in _categories().items()
        if category.startswith(wanted)
        for piece in pieces
    ]
    return merge(ranges) or None
