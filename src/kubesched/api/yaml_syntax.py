"""YAML as Kubernetes parses it: scalars of YAML 1.1 except times, and only values of JSON.

`yes`, `on` and `y` are booleans, `0o14` and `014` are octal, `1e3` is 1000, `22:30` and dates are
text, keys are text.

Upstream: sigs.k8s.io/yaml v1 with go-yaml v2, as kubectl uses them (v1.36)
Differs:  documents that are nested deeper than 200 levels, or that aliases expand to more than ten
          times their size, are rejected.
"""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

import yaml

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_DEPTH_MAX: Final = 200
_GROWTH_MAX: Final = 10
_NODES_MIN: Final = 1_000_000
_FLOAT_INTEGER_MAX: Final = 1e21

_TAG: Final = "tag:yaml.org,2002:"
_NUMBER_TAG: Final = f"{_TAG}int"
_MERGE_TAG: Final = f"{_TAG}merge"
TRUE_WORDS: Final = frozenset(
    ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
)
FALSE_WORDS: Final = frozenset(
    ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
)
_BOOLEAN: Final = re.compile(rf"(?:{'|'.join(sorted(TRUE_WORDS | FALSE_WORDS))})$")
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


def _error(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)


class _Loader(_SafeLoader):  # type: ignore[misc]  # the C loader has no types
    """Builds plain values with Kubernetes' resolution of scalars."""

    yaml_implicit_resolvers: ClassVar[dict[str | None, list[tuple[str, re.Pattern[str]]]]] = {}
    merged = 0
    rejects_repeats = False

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Insert merged mappings (`<<`) before the mapping's own keys."""
        merged: list[tuple[yaml.Node, yaml.Node]] = []
        own: list[tuple[yaml.Node, yaml.Node]] = []
        for key, value in node.value:
            if key.tag != _MERGE_TAG:
                own.append((key, value))
                continue
            sources = value.value[::-1] if isinstance(value, yaml.SequenceNode) else [value]
            for source in sources:
                if not isinstance(source, yaml.MappingNode):
                    raise _error(value, "map merge requires map or sequence of maps as the value")
                self.flatten_mapping(source)
                merged += source.value
                self.merged += len(source.value)
                if self.merged > _NODES_MIN:
                    raise _error(value, "merges (<<) make the document too large")
        node.value = merged + own

    def construct_map(self, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
        """Build a mapping, which is `Repeating` if a key is there twice."""
        # A mapping that others merge has later what it merged itself.
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        names = [key.value for key in keys if key.tag != _MERGE_TAG]
        built: dict[str, Any] = {}
        if len(set(names)) < len(names):
            built = _repeating({}, names)
            if self.rejects_repeats:
                name = next(name for at, name in enumerate(names) if name in names[:at])
                second = [key for key in keys if key.value == name][1]
                problem = f"the key {name!r} is there twice; write --- between objects"
                raise _error(second, problem)
        yield built
        built.update(self.construct_mapping(node))

    def construct_number(self, node: yaml.ScalarNode) -> int | float | str:
        """Build a number, or text that only looks like one."""
        number = _number(node.value)
        if isinstance(number, str) and _NOT_FINITE.match(node.value):
            return math.nan
        return number

    def construct_boolean(self, node: yaml.ScalarNode) -> bool:
        """Build a boolean."""
        if node.value not in TRUE_WORDS | FALSE_WORDS:
            raise _error(node, f"{node.value!r} is no boolean")
        return node.value in TRUE_WORDS


_RESOLVERS: Final = (
    (f"{_TAG}bool", _BOOLEAN, list("yYnNtTfFoO")),
    (f"{_TAG}null", _NULL, ["~", "n", "N", ""]),
    (_NUMBER_TAG, _NUMBER_LIKE, list("-+0123456789.")),
    (f"{_TAG}float", _NOT_FINITE, list("-+.")),
    (_MERGE_TAG, re.compile("<<$"), ["<"]),
)
for _tag, _pattern, _first in _RESOLVERS:
    _Loader.add_implicit_resolver(_tag, _pattern, _first)
_Loader.add_constructor(f"{_TAG}map", _Loader.construct_map)
_Loader.add_constructor(f"{_TAG}bool", _Loader.construct_boolean)
_Loader.add_constructor(_NUMBER_TAG, _Loader.construct_number)
_Loader.add_constructor(f"{_TAG}float", _Loader.construct_number)
_Loader.add_constructor(f"{_TAG}timestamp", _SafeLoader.construct_yaml_str)
for _tag in ("binary", "omap", "pairs", "set"):
    _Loader.add_constructor(f"{_TAG}{_tag}", _SafeLoader.construct_undefined)


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
    is `Repeating`.

    Raises:
        YamlError: The text is not YAML, or has a value that JSON cannot represent.
    """
    number = 1
    try:
        _check_depth(text)
        loader = _Loader(text)
        loader.rejects_repeats = rejects_repeats
        while loader.check_data():
            loader.merged = 0
            document = _plain(loader.get_data(), [_NODES_MIN + _GROWTH_MAX * len(text)], number)
            if document is not None:
                yield number, document
            number += 1
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = error.problem or error.context or "it is no YAML"
        if mark is None:
            raise YamlError(message, number) from None
        raise YamlError(message, number, mark.line + 1, mark.column + 1) from None
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split()), number) from None
    except (RecursionError, OverflowError):
        raise YamlError("it is nested too deeply", number) from None
    except (ValueError, TypeError) as error:
        if isinstance(error, YamlError):
            raise
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
        plain = {
            _key(key, document): _plain(item, budget, document, depth + 1)
            for key, item in value.items()
        }
        return _repeating(plain, [*value.repeated] * 2) if isinstance(value, Repeating) else plain
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


def _key(key: Any, document: int) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(key)
    if isinstance(key, float):
        return f"{key:g}"
    raise YamlError("a key is null or a collection", document)


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
