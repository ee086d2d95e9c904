"""Functions on strings, lists, sets and optionals, and regular expressions; all in `LIBRARIES`.

Upstream: google/cel-go common/stdlib/standard.go, ext/{strings,lists,sets}.go, cel/library.go;
          staging/src/k8s.io/apiserver/pkg/cel/library/lists.go, Go's package regexp;
          k8s.io/apiserver/pkg/cel/library/regex.go
Rejects:  regular expressions that RE2 does not have: backreferences, lookaround, possessive
          repetitions.
Differs:  no functions on authorization, no timestamps, durations, formats, bytes and
          `string.format`: attributes of devices are numbers, texts, versions and quantities, and
          are compared. A lookbehind is reported as unknown syntax, not as a bad name; a compiled
          pattern is limited to 8 MiB (upstream: 128 MiB).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cmp_to_key, lru_cache, reduce
from itertools import islice, pairwise
from typing import Any

import re2  # type: ignore[import-untyped]  # the package has no types

from kubesched.api.go_text import GO_ESCAPES
from kubesched.cel import device_values, net, operators
from kubesched.cel.declarations import Library
from kubesched.cel.values import (
    NONE,
    CelError,
    Optional,
    UInt,
    compare,
    is_primitive,
    is_zero,
    quietly_equal,
    text,
    type_name,
)

Values = tuple[object, ...]


# Strings.


def _char_at(string: str, index: int) -> str:
    if not 0 <= index <= len(string):
        raise CelError(f"index out of range: {index}")
    return string[index : index + 1]


def _index_of(string: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise CelError(f"index out of range: {offset}")
    return string.find(part, offset)


def _last_index_of(string: str, part: str, offset: int | None = None) -> int:
    if not part:
        return len(string) if offset is None else offset
    if offset is None:
        return string.rfind(part)
    if offset < 0:
        raise CelError(f"index out of range: {offset}")
    if offset >= len(string):
        return -1
    return string.rfind(part, 0, offset + len(part))


def _replace(string: str, old: str, new: str, count: int = -1) -> str:
    operators.check_cost(len(string) + len(new) * (string.count(old) if new else 0))
    return string.replace(old, new, count)


def _split(string: str, separator: str, count: int = -1) -> Values:
    if count == 0:
        return ()
    if separator:
        return tuple(string.split(separator, count - 1 if count > 0 else -1))
    if 0 < count < len(string):
        return (*string[: count - 1], string[count - 1 :])
    return tuple(string)


def _substring(string: str, start: int, end: int | None = None) -> str:
    stop = len(string) if end is None else end
    if end is not None and start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, stop):
        if not 0 <= index <= len(string):
            raise CelError(f"index out of range: {index}")
    return string[start:stop]


def _ascii(convert: Callable[[str], str]) -> Callable[[str], str]:
    return lambda string: "".join(convert(char) if char.isascii() else char for char in string)


def _quote(string: str) -> str:
    return '"' + "".join(GO_ESCAPES.get(char, char) for char in string) + '"'


def _join(strings: Values, separator: str = "") -> str:
    for string in strings:
        if not isinstance(string, str):
            raise CelError(f"join: invalid input: {text(string)}")
    found = [string for string in strings if isinstance(string, str)]
    operators.check_cost(sum(map(len, found)) + len(separator) * len(found))
    return separator.join(found)


_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
)
_SPACE += "\u2028\u2029\u202f\u205f\u3000"

_STRINGS: Library = {
    "@contains(string, string): bool": lambda string, part: part in string,
    "@startsWith(string, string): bool": str.startswith,
    "@endsWith(string, string): bool": str.endswith,
    "@charAt(string, int): string": _char_at,
    "@indexOf(string, string): int": _index_of,
    "@indexOf(string, string, int): int": _index_of,
    "@lastIndexOf(string, string): int": _last_index_of,
    "@lastIndexOf(string, string, int): int": _last_index_of,
    "@lowerAscii(string): string": _ascii(str.lower),
    "@upperAscii(string): string": _ascii(str.upper),
    "@replace(string, string, string): string": _replace,
    "@replace(string, string, string, int): string": _replace,
    "@split(string, string): list(string)": _split,
    "@split(string, string, int): list(string)": _split,
    "@substring(string, int): string": _substring,
    "@substring(string, int, int): string": _substring,
    "@trim(string): string": lambda string: string.strip(_SPACE),
    "strings.quote(string): string": _quote,
    "@join(list(string)): string": _join,
    "@join(list(string), string): string": _join,
}


# Lists and sets.


_INCLUDES_MAX = 48


def _includes(target: object, value: object) -> bool:
    """Whether the target equals the value or is a list that contains it."""
    if not isinstance(target, tuple):
        return quietly_equal(target, value)
    if any(quietly_equal(element, value) for element in target[:_INCLUDES_MAX]):
        return True
    if len(target) > _INCLUDES_MAX:
        raise CelError(
            f"'includes' function cannot be applied to lists longer than {_INCLUDES_MAX} values"
        )
    return False


def _is_sorted(values: Values) -> bool:
    return all(compare(left, right) <= 0 for left, right in pairwise(values))


def _sum(zero: object) -> Callable[[Values], object]:
    return lambda values: reduce(operators.add, values, zero)


def _extreme(choose: Callable[..., object]) -> Callable[[Values], object]:
    """Return a function of lists that chooses as Python's `max` or `min`."""

    def extreme(values: Values) -> object:
        if not values:
            raise CelError(f"{choose.__name__} called on empty list")
        return choose(values, key=cmp_to_key(compare))

    return extreme


def _list_index_of(values: Values, item: object) -> int:
    return next((at for at, value in enumerate(values) if quietly_equal(value, item)), -1)


def _list_last_index_of(values: Values, item: object) -> int:
    at = _list_index_of(values[::-1], item)
    return -1 if at < 0 else len(values) - 1 - at


def _range(count: int) -> Values:
    operators.check_cost(count)
    return tuple(range(count))


def _slice(values: Values, start: int, end: int) -> Values:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if len(values) < end:
        raise CelError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _flatten(values: Values, depth: int = 1) -> Values:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[object] = []
    for value in values:
        if isinstance(value, tuple) and depth > 0:
            flat.extend(_flatten(value, depth - 1))
        else:
            flat.append(value)
        operators.check_cost(len(flat))
    return tuple(flat)


def _check_comparisons(values: Values) -> None:
    """Raise CostLimitExceededError if comparing all elements with each other costs too much."""
    operators.check_cost(2 * len(values) * len(values))


def _distinct(values: Values) -> Values:
    _check_comparisons(values)
    found: list[object] = []
    for value in values:
        if not any(quietly_equal(value, other) for other in found):
            found.append(value)
    return tuple(found)


def sort_by(values: Values, keys: Values) -> Values:
    """Sort the values by their keys. Raises CelError if the keys cannot be ordered."""
    if not keys:
        return values
    _check_comparisons(keys)
    if not is_primitive(keys[0]):
        raise CelError("list elements must be comparable")
    if len({type_name(key) for key in keys}) > 1:
        raise CelError("list elements must have the same type")
    order = cmp_to_key(compare)
    pairs = sorted(zip(keys, values, strict=True), key=lambda pair: order(pair[0]))
    return tuple(value for _, value in pairs)


def _sets_contains(values: Values, others: Values) -> bool:
    operators.check_cost(len(values) * len(others))
    return all(operators.contains(other, values) for other in others)


def _sets_intersects(values: Values, others: Values) -> bool:
    operators.check_cost(len(values) * len(others))
    return any(operators.contains(value, others) for value in values)


_SUMMABLE: dict[str, object] = {"int": 0, "uint": UInt(0), "double": 0.0}
_COMPARABLE = ("int", "uint", "double", "bool", "string")

_LISTS: Library = {
    **{
        f"{call}size({kind}): int": len
        for call in ("", "@")
        for kind in ("list(A)", "map(A, B)", "string")
    },
    **{f"@isSorted(list({kind})): bool": _is_sorted for kind in _COMPARABLE},
    **{f"@sum(list({kind})): {kind}": _sum(zero) for kind, zero in _SUMMABLE.items()},
    **{f"@max(list({kind})): {kind}": _extreme(max) for kind in _COMPARABLE},
    **{f"@min(list({kind})): {kind}": _extreme(min) for kind in _COMPARABLE},
    **{
        f"@sort(list({kind})): list({kind})": lambda values: sort_by(values, values)
        for kind in _COMPARABLE
    },
    "@indexOf(list(A), A): int": _list_index_of,
    "@lastIndexOf(list(A), A): int": _list_last_index_of,
    "@slice(list(A), int, int): list(A)": _slice,
    "@flatten(list(list(A))): list(A)": _flatten,
    "@flatten(list(dyn), int): list(dyn)": _flatten,
    "@reverse(list(A)): list(A)": lambda values: values[::-1],
    "@distinct(list(A)): list(A)": _distinct,
    "@includes(dyn, dyn): bool": _includes,
    "lists.range(int): list(int)": _range,
    "sets.contains(list(A), list(A)): bool": _sets_contains,
    "sets.intersects(list(A), list(A)): bool": _sets_intersects,
    "sets.equivalent(list(A), list(A)): bool": lambda values, others: (
        _sets_contains(values, others) and _sets_contains(others, values)
    ),
}


# Optionals.


def _optional_value(optional: Optional) -> object:
    if not optional.has_value:
        raise CelError("optional.none() dereference")
    return optional.value


def _of_non_zero(value: object) -> Optional:
    return NONE if is_zero(value) else Optional(value, has_value=True)


def _unwrap(values: Values) -> Values:
    for value in values:
        if not isinstance(value, Optional):
            raise CelError(f"value {text(value)} is not optional")
    return tuple(value.value for value in values if isinstance(value, Optional) and value.has_value)


def _first(values: Values) -> Optional:
    return Optional(values[0], has_value=True) if values else NONE


def _last(values: Values) -> Optional:
    return Optional(values[-1], has_value=True) if values else NONE


_OPTIONALS: Library = {
    "optional.of(A): optional(A)": lambda value: Optional(value, has_value=True),
    "optional.ofNonZeroValue(A): optional(A)": _of_non_zero,
    "optional.none(): optional(A)": lambda: NONE,
    "optional.unwrap(list(optional(A))): list(A)": _unwrap,
    "@unwrapOpt(list(optional(A))): list(A)": _unwrap,
    "@value(optional(A)): A": _optional_value,
    "@hasValue(optional(A)): bool": lambda optional: optional.has_value,
    "@first(list(A)): optional(A)": _first,
    "@last(list(A)): optional(A)": _last,
}


# Regular expressions.

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


_REGULAR_EXPRESSIONS: Library = {
    "matches(string, string): bool": matches,
    "@matches(string, string): bool": matches,
    "@find(string, string): string": _find,
    "@findAll(string, string): list(string)": find_all,
    "@findAll(string, string, int): list(string)": find_all,
}


LIBRARIES = (
    operators.LIBRARY,
    _STRINGS,
    _REGULAR_EXPRESSIONS,
    _LISTS,
    _OPTIONALS,
    device_values.LIBRARY,
    net.LIBRARY,
)
