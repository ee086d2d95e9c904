"""Parsing of a configuration file into plain values; reports every duplicate key.

Upstream: sigs.k8s.io/yaml (YAML 1.1 as go-yaml v2 reads it), sigs.k8s.io/json (strict) (v1.36)
Rejects:  text that is not UTF-8, bad syntax, several documents, duplicate keys, alias bombs.
Differs:  a second document is an error (upstream ignores it).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml

from kubesched.api.go_text import go_quote
from kubesched.api.yaml_syntax import FALSE_WORDS, TRUE_WORDS
from kubesched.config.field_errors import ConfigError, FieldError, child, not_supported, required

_NODES_MAX = 100_000  # limits expanded documents, because aliases multiply nodes
_DEPTH_MAX = 100

_NULL = {"", "~", "null", "Null", "NULL"}
_INTEGER = re.compile(r"([-+]?)(0x[0-9a-fA-F]+|0b[01]+|0o[0-7]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

_PLAIN = "!plain"  # the tag of unquoted text without a tag
_RESOLVED_TAGS = {
    _PLAIN,
    *(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float")),
}


def read_source(source: Path | str | bytes | Mapping[str, Any], errors: list[FieldError]) -> Any:
    """Return the plain values of a file, a text, or plain values; as `read_document`."""
    if isinstance(source, Path):
        try:
            source = source.read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigError([FieldError(str(source), f"cannot read file: {reason}")]) from error
    return read_document(source, errors) if isinstance(source, str | bytes) else source


def check_version(
    raw: object, kind: str, version: int, errors: Sequence[FieldError]
) -> Mapping[str, Any]:
    """Return a document that is a mapping with this `version`.

    Raises:
        ConfigError: It is none. Errors in the fields of another version would be noise.
    """
    if not isinstance(raw, Mapping):
        words = f"must be a {kind}: a mapping with `version: {version}`"
        raise ConfigError([*errors, FieldError("", words)])
    found = raw.get("version")
    if found is None:
        raise ConfigError([required("version", f"must be {version}")])
    if found != version or isinstance(found, bool):
        raise ConfigError([not_supported("version", found, [str(version)])])
    return raw


def read_document(text: str | bytes, errors: list[FieldError]) -> Any:
    """Return the only document of a YAML or JSON text as plain values.

    Appends duplicate keys to `errors`; the last value counts. Raises ConfigError if the text cannot
    be parsed.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            field_error = FieldError(
                "", f"not UTF-8 text: byte {error.start} is {error.object[error.start]:#x}"
            )
            raise ConfigError([field_error]) from error
    return _plain(_parse(text), "", 0, errors)


class _Loader(yaml.SafeLoader):
    """PyYAML's composer without its resolution of plain text (dates, base 60)."""


_Loader.yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}


class _Pairs(list[tuple[str, Any]]):
    """A mapping before duplicate keys are resolved."""


def _parse(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=_Pairs, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            pass  # may be a YAML flow mapping; if not, YAML's error message is better
    try:
        nodes = list(yaml.compose_all(text, Loader=_Loader))
        documents = [value for node in nodes if (value := _Composer().value(node)) is not None]
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_syntax_error(error)]) from error
    except yaml.YAMLError as error:
        raise ConfigError(
            [FieldError("", f"cannot read YAML: {str(error).splitlines()[0]}")]
        ) from error
    except RecursionError as error:
        raise ConfigError([FieldError("", "cannot read YAML: nested too deeply")]) from error
    if len(documents) > 1:
        message = f"expected one document, found {len(documents)}"
        raise ConfigError([FieldError("", message)])
    return documents[0] if documents else None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _syntax_error(error: yaml.MarkedYAMLError) -> FieldError:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    words = ", ".join(part for part in (error.context, error.problem) if part)
    return FieldError("", f"cannot read YAML: {place}{words}")


class _Composer:
    """Turns composed YAML nodes into values; limits their number and depth."""

    def __init__(self) -> None:
        self._budget = _NODES_MAX
        self._depth = 0

    def value(self, node: yaml.Node | None) -> Any:
        if node is None:
            return None
        self._budget -= 1
        self._depth += 1
        if self._budget < 0 or self._depth > _DEPTH_MAX:
            raise yaml.MarkedYAMLError(
                problem="document contains excessive aliasing or nesting",
                problem_mark=node.start_mark,
            )
        value = self._value(node)
        self._depth -= 1
        return value

    def _value(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode):
            return _Pairs(self._pairs(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item) for item in node.value]
        assert isinstance(node, yaml.ScalarNode)
        return _scalar(node)

    def _pairs(self, node: yaml.MappingNode) -> Iterator[tuple[str, Any]]:
        """Yield the pairs of a mapping, then those of `<<` whose keys the mapping lacks."""
        merged: list[tuple[str, Any]] = []
        own: set[str] = set()
        for key_node, value_node in node.value:
            if key_node.value == "<<" and key_node.tag == _PLAIN:
                merged += self._merged(value_node)
                continue
            key = _key_text(self.value(key_node), key_node)
            own.add(key)
            yield key, self.value(value_node)
        # The set is only for lookups; the order is that of the list.
        for key, value in merged:
            if key not in own:
                own.add(key)
                yield key, value

    def _merged(self, node: yaml.Node) -> list[tuple[str, Any]]:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        pairs: list[tuple[str, Any]] = []
        for source in sources:
            value = self.value(source)
            if not isinstance(value, _Pairs):
                raise yaml.MarkedYAMLError(
                    problem="map merge requires map or sequence of maps as the value",
                    problem_mark=source.start_mark,
                )
            pairs += value
        return pairs


def _key_text(key: object, node: yaml.Node) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str | int | float):
        return str(key)
    raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=node.start_mark)


def _scalar(node: yaml.ScalarNode) -> Any:
    """Return a scalar's value: plain text is resolved, quoted text stays text."""
    text: str = node.value
    return _plain_scalar(text) if node.tag in _RESOLVED_TAGS else text


def _plain_scalar(text: str) -> Any:
    if text in _NULL:
        return None
    if text in TRUE_WORDS:
        return True
    if text in FALSE_WORDS:
        return False
    integer = _INTEGER.fullmatch(text.replace("_", ""))
    if integer:
        return _integer(integer)
    if _FLOAT.fullmatch(text):
        number = float(text)
        # Upstream converts to JSON, where 16.0 and 16 are the same number.
        return int(number) if number.is_integer() and abs(number) < 1e21 else number
    return text


def _integer(match: re.Match[str]) -> int | str:
    digits = match[2]
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        digits = "0o" + digits[1:]
    try:
        value = int(digits, 0)
    except ValueError:
        return match[0]  # Python limits the number of digits; no field accepts such a number
    return -value if match[1] == "-" else value


def _plain(value: Any, path: str, depth: int, errors: list[FieldError]) -> Any:
    """Return the value with pairs turned into dicts; append duplicate keys to `errors`."""
    if depth > _DEPTH_MAX:
        raise ConfigError([FieldError("", "nested too deeply")])
    if isinstance(value, _Pairs):
        return _mapping(value, path, depth, errors)
    if isinstance(value, list):
        return [_plain(item, child(path, i), depth + 1, errors) for i, item in enumerate(value)]
    return value


def _mapping(pairs: _Pairs, path: str, depth: int, errors: list[FieldError]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    reported: set[str] = set()
    for key, value in pairs:
        place = child(path, key)
        if key in result and key not in reported:
            reported.add(key)
            errors.append(FieldError(place, f"duplicate field {go_quote(place)}"))
        result[key] = _plain(value, place, depth + 1, errors)
    return result
