"""YAML as Kubernetes parses it: scalars of YAML 1.1 except times, and only values of JSON.

`yes`, `on` and `y` are booleans, `0o14` and `014` are octal, `1e3` is 1000, `22:30` and dates are
text, keys are text.

Upstream: sigs.k8s.io/yaml v1 with go-yaml v2, as kubectl uses them (v1.36)
Differs:  documents that are nested deeper than 200 levels, or that aliases expand to more than ten
          times their size, are rejected.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import yaml

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_DEPTH_MAX: Final = 200
_GROWTH_MAX: Final = 10
_NODES_MIN: Final = 1_000_000
_FLOAT_INTEGER_MAX: Final = 1e21

_TAG: Final = "tag:yaml.org,2002:"
_MERGE_TAG: Final = f"{_TAG}merge"
_TRUE_WORDS: Final = frozenset(
    ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
)
_FALSE_WORDS: Final = frozenset(
    ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
)
_BOOLEAN: Final = re.compile(rf"(?:{'|'.join(sorted(_TRUE_WORDS | _FALSE_WORDS))})$")
_NULL: Final = re.compile(r"(?:~|null|Null|NULL|)$")
_NUMBER_LIKE: Final = re.compile(r"[-+]?\.?[0-9][0-9a-zA-Z_.+-]*$")
_NOT_FINITE: Final = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$")
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)"
    r"|0[xX](?P<hex>[0-9a-fA-F]+)|(?P<decimal>0|[1-9][0-9]*))"
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES: Final = {"binary": 2, "octal": 8, "hex": 16, "decimal": 10}
_NUMBER_LENGTH_MAX: Final = 400


class YamlError(ValueError):
    """A text is not YAML, or has a value that JSON cannot represent.

    Attributes:
        line, column: The position, from 1; 0 if unknown.
        document: The number of the document, from 1.
    """

    def __init__(self, message: str, document: int, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.document = document
        self.line = line
        self.column = column


class Repeating(dict[str, Any]):
    """An object of a text with repeated names; it has the last value of each."""

    repeated: tuple[str, ...] = ()


def members(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, `Repeating` if a name is there twice; for `json.loads`."""
    pairs = list(pairs)
    found = dict(pairs)
    return found if len(found) == len(pairs) else _repeating(found, [name for name, _ in pairs])


def _repeating(found: dict[str, Any], names: list[str]) -> Repeating:
    repeating = Repeating(found)
    repeating.repeated = tuple(name for name in dict.fromkeys(names) if names.count(name) > 1)
    return repeating


def _number(text: str) -> int | float | str:
    """Return the number of a plain scalar, or the text itself if it is not a number."""
    if len(text) > _NUMBER_LENGTH_MAX:
        return text
    digits = text.replace("_", "")
    if (match := _INTEGER.fullmatch(digits)) and not text.startswith("."):
        base = next(name for name in _BASES if match[name] is not None)
        number = int(match["sign"] + match[base], _BASES[base])
        # An integer that does not fit an unsigned 64-bit integer becomes a float.
        if -(2**63) <= number < 2**64 and (number < 2**63 or not match["sign"]):
            return number
    if _FLOAT.fullmatch(text if text.startswith(".") else digits):
        decimal = float(digits)
        return decimal if math.isfinite(decimal) else text
    return text


def _error(event: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=event.start_mark)


_RESOLVERS: Final = (
    (f"{_TAG}bool", _BOOLEAN, list("yYnNtTfFoO")),
    (f"{_TAG}null", _NULL, ["~", "n", "N", ""]),
    (f"{_TAG}int", _NUMBER_LIKE, list("-+0123456789.")),
    (f"{_TAG}float", _NOT_FINITE, list("-+.")),
    (_MERGE_TAG, re.compile("<<$"), ["<"]),
)
_BY_START: Final = {
    start: [(tag, pattern) for tag, pattern, starts in _RESOLVERS if start in starts]
    for _, _, every in _RESOLVERS
    for start in every
}


def _scalar(event: Any) -> Any:
    """Return the value of a scalar, with Kubernetes' resolution of plain ones."""
    tag, text = event.tag, event.value
    if tag is None or tag == "!":
        found = _BY_START.get(text[:1], ()) if event.implicit[0] else ()
        tag = next((tag for tag, pattern in found if pattern.match(text)), f"{_TAG}str")
    match tag.removeprefix(_TAG):
        case "str" | "timestamp":
            return text
        case "null":
            return None
        case "bool":
            if text not in _TRUE_WORDS | _FALSE_WORDS:
                raise _error(event, f"{text!r} is not a boolean")
            return text in _TRUE_WORDS
        case "int" | "float":
            number = _number(text)
            return math.nan if isinstance(number, str) and _NOT_FINITE.match(text) else number
        case _:
            raise _unknown_tag(event, tag)


def _unknown_tag(event: Any, tag: str) -> yaml.MarkedYAMLError:
    return _error(event, f"could not determine a constructor for the tag {tag!r}")


class _Anchored(Repeating):
    """A mapping that others may merge.

    `pairs` counts its own pairs and those that it merged; None until it is complete.
    """

    pairs: int | None = None


class _Builder:
    """Builds the values of documents from events; the parser's nodes take ten times the memory.

    An alias is the value of the latest anchor of its name, not a copy.
    """

    def __init__(self, text: str, *, rejects_repeats: bool) -> None:
        self._next: Callable[[], Any] = _SafeLoader(text).get_event
        self._rejects_repeats = rejects_repeats
        self._anchors: dict[str, Any] = {}
        self._merged = 0

    def documents(self) -> Iterator[Any]:
        """Yield the value of each document."""
        while (event := self._next()) is not None:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors, self._merged = {}, 0
                yield self._value(self._next())

    def _value(self, event: Any) -> Any:
        """Return the value that begins with an event."""
        kind, anchor = type(event), event.anchor
        if kind is yaml.AliasEvent:
            if anchor not in self._anchors:
                raise _error(event, "found undefined alias")
            return self._anchors[anchor]
        if kind is yaml.ScalarEvent:
            found = _scalar(event)
            if anchor:
                self._anchors[anchor] = found
            return found
        return self._list(event) if kind is yaml.SequenceStartEvent else self._map(event)

    def _list(self, event: Any) -> list[Any]:
        if event.tag not in (None, "!", f"{_TAG}seq"):
            raise _unknown_tag(event, event.tag)
        built: list[Any] = []
        if event.anchor:
            self._anchors[event.anchor] = built
        while type(item := self._next()) is not yaml.SequenceEndEvent:
            built.append(self._value(item))
        return built

    def _map(self, event: Any) -> dict[str, Any]:
        """Return a mapping, which is `Repeating` if a key is there twice."""
        if event.tag not in (None, "!", f"{_TAG}map"):
            raise _unknown_tag(event, event.tag)
        built: dict[str, Any] = {}
        if event.anchor:
            built = self._anchors[event.anchor] = _Anchored()
        repeated: list[str] = []
        merged: set[str] = set()
        pairs = 0
        while type(at := self._next()) is not yaml.MappingEndEvent:
            is_merge = type(at) is yaml.ScalarEvent and at.value == "<<"
            # yq writes the tag.
            if is_merge and (at.implicit[0] or at.tag == _MERGE_TAG):
                for source in self._sources(self._next()):
                    # As for go-yaml v2, what comes later takes precedence.
                    built.update(source)
                    merged.update(source)
                    pairs += _pairs(source)
                continue
            key = _key(self._value(at), at)
            if key in built and key not in merged:
                if self._rejects_repeats:
                    raise _error(at, f"the key {key!r} is there twice; write --- between objects")
                repeated.append(key)
            merged.discard(key)
            built[key] = self._value(self._next())
        if isinstance(built, _Anchored):
            built.pairs = len(built) + pairs
        if repeated:
            built = built if isinstance(built, Repeating) else Repeating(built)
            built.repeated = tuple(dict.fromkeys(repeated))
        return built

    def _sources(self, event: Any) -> list[dict[str, Any]]:
        """Return the mappings that one merges (`<<`), the last one first."""
        value = self._value(event)
        sources = value[::-1] if isinstance(value, list) else [value]
        for source in sources:
            if not isinstance(source, dict):
                raise _error(event, "map merge requires map or sequence of maps as the value")
            self._merged += _pairs(source)
            if self._merged > _NODES_MIN:
                raise _error(event, "merges (<<) make the document too large")
        return sources


def _pairs(merged: dict[str, Any]) -> int:
    if not isinstance(merged, _Anchored):
        return len(merged)
    if merged.pairs is None:
        raise RecursionError("it merges itself")
    return merged.pairs


def _key(key: Any, event: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(key)
    if isinstance(key, float):
        return f"{key:g}"
    raise _error(event, "a key is null" if key is None else "found unhashable key")


class _Dumper(_SafeDumper):  # type: ignore[misc]  # the C dumper has no types
    """Quotes every text that YAML 1.1 or 1.2 would not parse as text."""

    def ignore_aliases(self, data: object) -> bool:
        """Write equal values in full."""
        return True


for _tag, _pattern, _first in _RESOLVERS:
    _Dumper.add_implicit_resolver(_tag, _pattern, _first)


def load_documents(text: str, *, rejects_repeats: bool = False) -> Iterator[tuple[int, Any]]:
    """Yield (number, value) of the documents of a text, from 1, without empty documents.

    Values are dicts with str keys, lists, str, int, finite float, bool and None. A mapping that has
    a key twice is an error with `rejects_repeats`; otherwise the last value counts, and the mapping
    is `Repeating`. Raises YamlError if the text is not YAML, or has a value that JSON cannot
    represent.
    """
    number = 1
    try:
        _check_depth(text)
        for value in _Builder(text, rejects_repeats=rejects_repeats).documents():
            document = _plain(value, [_NODES_MIN + _GROWTH_MAX * len(text)], number)
            if document is not None:
                yield number, document
            number += 1
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = error.problem or error.context or "it is not YAML"
        if mark is None:
            raise YamlError(message, number) from None
        raise YamlError(message, number, mark.line + 1, mark.column + 1) from None
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split()), number) from None
    except (RecursionError, OverflowError):
        raise YamlError("it is nested too deeply", number) from None
    except YamlError:
        raise
    except (ValueError, TypeError) as error:
        raise YamlError(str(error), number) from None


_NESTING: Final = re.compile(r"[\[{\]}]|(?:[-?:][ \t]+){50,}|^ {200,}", re.MULTILINE)


def _check_depth(text: str) -> None:
    """Reject deep nesting before parsing, because the C code has no limit, or one of its own."""
    depth = 0
    for match in _NESTING.finditer(text):
        if match[0] in ("]", "}"):
            depth = max(0, depth - 1)
        else:
            depth += 1
            if depth > _DEPTH_MAX or len(match[0]) > 1:
                break
    else:
        return
    _check_depth_exactly(text)


def _check_depth_exactly(text: str) -> None:
    too_deep, depth = YamlError(f"it is nested deeper than {_DEPTH_MAX} levels", 1), 0
    try:
        for event in yaml.parse(text, Loader=_SafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > _DEPTH_MAX:
                raise too_deep
    except yaml.MarkedYAMLError as error:
        if "nesting depth" in str(error.problem):
            raise too_deep from None
        raise


def _plain(value: Any, budget: list[int], document: int, depth: int = 0) -> Any:
    """Return the value with JSON's types; `budget` holds the number of values still allowed."""
    budget[0] -= 1
    if budget[0] < 0:
        raise YamlError("its aliases make it too large", document)
    if depth > _DEPTH_MAX:
        raise YamlError(f"it is nested deeper than {_DEPTH_MAX} levels", document)
    if isinstance(value, dict):
        plain = {key: _plain(item, budget, document, depth + 1) for key, item in value.items()}
        repeated = isinstance(value, Repeating) and value.repeated
        return _repeating(plain, [*repeated] * 2) if repeated else plain
    if isinstance(value, list):
        return [_plain(item, budget, document, depth + 1) for item in value]
    if isinstance(value, float):
        return _json_number(value, document)
    return value


def _json_number(value: float, document: int) -> int | float:
    if not math.isfinite(value):
        raise YamlError("JSON has no infinity and no NaN", document)
    # Upstream converts to JSON, where 1000.0 is written without a fraction.
    return int(value) if value.is_integer() and abs(value) < _FLOAT_INTEGER_MAX else value


def dump(value: Any, *, sort_keys: bool = True) -> str:
    """Return a value of JSON's types as YAML."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        allow_unicode=True,
        default_flow_style=False,
        sort_keys=sort_keys,
        width=2**31 - 1,
    )
    return text
