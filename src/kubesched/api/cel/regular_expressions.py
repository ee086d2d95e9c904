r"""Regular expressions in the syntax of RE2, matched with Python's engine.

Upstream: Go's package regexp
Differs:  patterns may take exponential time; the text of syntax errors is Python's;
          Unicode classes (`\p{…}`) are refused.
"""

import re
from functools import lru_cache

_POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_POSIX = re.compile(r"\[:(\w+):\]")
_REFUSED = re.compile(r"\(\?(?:[=!#]|<[=!]|P[=>]|\()|[*+?}][+]")


@lru_cache(256)
def compile_regex(pattern: str) -> re.Pattern[str]:
    """Compile a pattern. Raises re.error for what RE2 does not know either."""
    return re.compile(_translate(pattern), re.ASCII)


def _translate(pattern: str) -> str:
    parts: list[str] = []
    offset, in_class = 0, False
    end = "$" if re.search(r"\(\?[ims]*m", pattern) else "\\Z"
    while offset < len(pattern):
        char = pattern[offset]
        if char == "\\":
            parts.append(_translate_escape(pattern, offset))
            offset += 2
            continue
        if in_class and (posix := _POSIX.match(pattern, offset)):
            parts.append(_posix_class(posix[1]))
            offset = posix.end()
            continue
        if not in_class and _REFUSED.match(pattern, offset):
            raise re.error(f"invalid or unsupported Perl syntax: `{pattern[offset : offset + 3]}`")
        if char == "[" and not in_class:
            in_class = True
            offset = _open_class(pattern, offset, parts)
            continue
        if char == "]":
            in_class = False
        parts.append(end if char == "$" and not in_class else char)
        offset += 1
    return "".join(parts)


def _open_class(pattern: str, offset: int, parts: list[str]) -> int:
    """Copy the beginning of a class, where a bracket stands for itself."""
    opening = re.compile(r"\[\^?\]?").match(pattern, offset)
    assert opening is not None
    parts.append(opening.group().replace("]", "\\]"))
    return opening.end()


def _translate_escape(pattern: str, offset: int) -> str:
    following = pattern[offset + 1 : offset + 2]
    if following == "z":
        return "\\Z"
    if following.isdigit() and following != "0":
        raise re.error(f"invalid escape sequence: `\\{following}`")
    if following in {"Z", "p", "P", "Q", "C"}:
        raise re.error(f"invalid escape sequence: `\\{following}`")
    return "\\" + following


def _posix_class(name: str) -> str:
    if name not in _POSIX_CLASSES:
        raise re.error(f"invalid character class range: `[:{name}:]`")
    return _POSIX_CLASSES[name]
