"""Regular expressions as Go has them, run by Python's engine where that cannot be slow.

Upstream: Go's package regexp
Differs:  see `regex_syntax`.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from kubesched.api.cel.regex_classes import Ranges
from kubesched.api.cel.regex_machine import Machine, Span
from kubesched.api.cel.regex_syntax import (
    Alternate,
    Chars,
    Concat,
    Look,
    Regex,
    Repeat,
    parse_regex,
)

Search = Callable[[str, int], Span | None]

# Python's engine may try every way in which loops can share a text; more ways take too long.
_WAYS_MAX = 20_000_000
_LOOPS_MAX = 3
_REMEMBERED_LENGTH_MAX = 256

_LOOKS = {
    "begin_text": r"\A",
    "end_text": r"\Z",
    "begin_line": "(?m:^)",
    "end_line": "(?m:$)",
    "boundary": r"(?a:\b)",
    # Python's \B does not match an empty text.
    "no_boundary": r"(?!(?a:\b))",
}


@lru_cache(1024)
def compile_regex(pattern: str) -> Search:
    """The search for a pattern: text and start to the first match. Raises RegexError."""
    regex = parse_regex(pattern)
    loops = _loops(regex, within=False)
    run = _lazy_machine(regex)
    if loops > _LOOPS_MAX:
        return run
    compiled = re.compile(_translate(regex))

    def search(text: str, start: int) -> Span | None:
        if len(text) ** (loops + 1) > _WAYS_MAX:
            return run(text, start)
        match = compiled.search(text, start)
        return None if match is None else match.span()

    return search


def _lazy_machine(regex: Regex) -> Search:
    """A search that builds its machine when it is first needed, and remembers short texts."""
    build = lru_cache(1)(lambda: Machine(regex))
    remember = lru_cache(4096)(lambda text, start: build().search(text, start))

    def search(text: str, start: int) -> Span | None:
        if len(text) > _REMEMBERED_LENGTH_MAX:
            return build().search(text, start)
        return remember(text, start)

    return search


def find_all(search: Search, text: str, count: int) -> Iterator[str]:
    """All matches that do not overlap, at most `count` unless that is negative."""
    at, previous_end = 0, -1
    while count != 0 and at <= len(text):
        span = search(text, at)
        if span is None:
            return
        start, end = span
        # An empty match right after another one does not count.
        is_new = end != at or start != previous_end
        at = end if end != at else at + 1
        previous_end = end
        if is_new:
            count -= 1
            yield text[start:end]


def _loops(regex: Regex, *, within: bool) -> int:
    """How many choices of a length there are; one within another repetition is too many."""
    match regex:
        case Concat(parts):
            return sum(_loops(part, within=within) for part in parts)
        case Alternate(choices):
            own = _LOOPS_MAX + 1 if within else 0
            return own + sum(_loops(choice, within=within) for choice in choices)
        case Repeat():
            is_choice = regex.least != regex.most
            own = (_LOOPS_MAX + 1 if within else 1) if is_choice else 0
            is_loop = regex.most is None or regex.most > 1
            return own + _loops(regex.part, within=within or is_loop)
        case _:
            return 0


def _translate(regex: Regex) -> str:
    """The same expression for Python's engine."""
    match regex:
        case Chars(ranges):
            return _translate_chars(ranges)
        case Look(kind):
            return _LOOKS[kind]
        case Concat(parts):
            return "".join(map(_translate, parts))
        case Alternate(choices):
            return f"(?:{'|'.join(map(_translate, choices))})"
        case Repeat(part, least, most, greedy):
            bounds = f"{{{least},{'' if most is None else most}}}"
            return f"(?:{_translate(part)}){bounds}{'' if greedy else '?'}"


def _translate_chars(ranges: Ranges) -> str:
    if not ranges:
        # No character at all.
        return "(?!)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    return f"[{''.join(f'{_escape(low)}-{_escape(high)}' for low, high in ranges)}]"


def _escape(code: int) -> str:
    return f"\\U{code:08x}"
