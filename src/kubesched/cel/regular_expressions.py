r"""Match regular expressions with RE2, as Go's package regexp does.

Upstream: Go's package regexp; k8s.io/apiserver/pkg/cel/library/regex.go
Rejects:  syntax that RE2 does not have: backreferences, lookaround, possessive repetitions
Differs:  a lookbehind is reported as unknown syntax, not as a bad name; a compiled pattern is
          limited to 8 MiB (upstream: 128 MiB).
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import re2  # type: ignore[import-untyped]  # the package has no types

from kubesched.cel.declarations import Library
from kubesched.cel.values import CelError

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
# Only whole matches are of interest, and Go allows two groups of one name.
_OPTIONS.never_capture = True

# Error messages of RE2 in C++ that are worded differently in Go.
_GO_PROBLEMS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "pattern too large - compile failed": "expression too large",
    "trailing \\": "trailing backslash at end of expression",
}
_ESCAPES = re.compile(r"\\(?:Q.*?(?:\\E|\Z)|.)", re.DOTALL)
_SURROGATES = re.compile("[\ud800-\udfff]")


def _well_formed(text: str) -> str:
    """Replace each invalid UTF-8 byte by U+FFFD, as Go does when it matches."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


@lru_cache(1024)
def _compile(pattern: str) -> Any:
    """Compile a pattern. Raises CelError with Go's message."""
    pattern = _well_formed(pattern)
    # In C++, \C matches any byte; Go does not have it.
    if r"\C" in _ESCAPES.findall(pattern):
        raise _error("invalid escape sequence", r"\C")
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        problem, _, part = error.args[0].decode().partition(": ")
        raise _error(_GO_PROBLEMS.get(problem, problem), part) from error


def _error(problem: str, part: str) -> CelError:
    return CelError(f"error parsing regexp: {problem}: `{part}`")


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern matches somewhere in the text. Raises CelError."""
    # Bytes spare RE2's wrapper a translation of offsets.
    return _compile(pattern).search(_well_formed(text).encode()) is not None


def find_all(text: str, pattern: str, count: int = -1) -> tuple[str, ...]:
    """Return the matches that do not overlap, at most `count` unless that is negative.

    Raises CelError.
    """
    try:
        compiled = _compile(pattern)
    except CelError as error:
        raise CelError(f"Illegal regex: {error}") from error
    found = _spans(compiled, _well_formed(text))
    return tuple(text[start:end] for start, end in islice(found, count if count >= 0 else None))


def _spans(compiled: Any, text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of matches; like Go, skip an empty match right after another."""
    previous_end = -1
    for match in compiled.finditer(text):
        start, end = match.span()
        if start != end or start != previous_end:
            yield start, end
        previous_end = end


def _find(text: str, pattern: str) -> str:
    """Return the first match, "" if there is none. Raises CelError."""
    return next(iter(find_all(text, pattern, 1)), "")


LIBRARY: Library = {
    "matches(string, string): bool": matches,
    "@matches(string, string): bool": matches,
    "@find(string, string): string": _find,
    "@findAll(string, string): list(string)": find_all,
    "@findAll(string, string, int): list(string)": find_all,
}
