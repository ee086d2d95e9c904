"""Documents that people write, as plain values, and their fields by paths such as `pods[0].name`.

Upstream: sigs.k8s.io/yaml (YAML 1.1 as go-yaml v2 reads it), sigs.k8s.io/json (strict) (v1.36)
Rejects:  text that is not UTF-8, bad syntax, several documents, duplicate keys, alias bombs; paths
          that lead to nothing: an element that is not there, a field of a text.
Differs:  a second document is an error (upstream ignores it).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from kubesched.api.field_errors import (
    ConfigError,
    FieldError,
    child,
    invalid,
    not_supported,
    required,
)
from kubesched.api.go_text import go_quote
from kubesched.api.yaml_syntax import Repeating, YamlError, load_documents, members

_DEPTH_MAX = 100


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

    Raises ConfigError if it is another: errors in the fields of another version would be noise.
    """
    if not isinstance(raw, Mapping):
        words = f"must be a {kind}: a mapping with `version: {version}`"
        raise ConfigError([*errors, FieldError("", words)])
    found = raw.get("version")
    if found is None:
        raise ConfigError([required("version", f"must be {version}")])
    if found != version or isinstance(found, bool):
        if found == str(version):
            raise ConfigError([invalid("version", found, f"must be {version}, without quotes")])
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
    document = _parse(text)
    _report_repeats(document, "", 0, errors)
    return document


def _parse(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=members, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            pass  # may be a YAML flow mapping; if not, YAML's error message is better
    try:
        documents = [document for _, document in load_documents(text)]
    except YamlError as error:
        place = f"line {error.line}, column {error.column}: " if error.line else ""
        raise ConfigError([FieldError("", f"cannot read YAML: {place}{error}")]) from error
    if len(documents) > 1:
        message = f"expected one document, found {len(documents)}"
        raise ConfigError([FieldError("", message)])
    return documents[0] if documents else None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _report_repeats(value: Any, path: str, depth: int, errors: list[FieldError]) -> None:
    """Append the duplicate keys of a value to `errors`."""
    if depth > _DEPTH_MAX:
        raise ConfigError([FieldError("", "nested too deeply")])
    if isinstance(value, list):
        for index, item in enumerate(value):
            _report_repeats(item, child(path, index), depth + 1, errors)
    elif isinstance(value, dict):
        for key, item in value.items():
            place = child(path, key)
            if isinstance(value, Repeating) and key in value.repeated:
                errors.append(FieldError(place, f"duplicate field {go_quote(place)}"))
            _report_repeats(item, place, depth + 1, errors)


# Fields by their paths.

_STEP: Final = re.compile(r"(?:^|\.)([^.\[\]]+)|\[([^\[\]]+)\]")


class _NoFieldError(Exception):
    """A path leads to nothing."""


def with_fields(document: Any, values: Mapping[str, object]) -> Any:
    """Return a copy of a document of plain values with other values at some paths.

    A step in brackets is the index of an element, or its `name`. A field that is missing is added,
    since it may have a default. Raises ConfigError with an error for each path that leads to
    nothing.
    """
    errors: list[FieldError] = []
    for path, value in values.items():
        try:
            document = _replaced(document, list(_steps(path)), value)
        except _NoFieldError as error:
            errors.append(FieldError(path, str(error)))
    if errors:
        raise ConfigError(errors)
    return document


def _steps(path: str) -> Iterator[tuple[str, bool]]:
    """Yield the steps of a path, and whether each is in brackets."""
    at = 0
    for found in _STEP.finditer(path):
        if found.start() != at:
            break
        at = found.end()
        yield found[1] or found[2], found[2] is not None
    if at < len(path) or not path:
        raise _NoFieldError("write a path such as workloads[0].pods.perHour")


def _replaced(value: Any, steps: Sequence[tuple[str, bool]], new: object) -> Any:
    if not steps:
        return new
    (step, is_element), *others = steps
    if is_element:
        at = _index(value, step)
        return [*value[:at], _replaced(value[at], others, new), *value[at + 1 :]]
    below = {} if value is None else value
    if not isinstance(below, Mapping):
        raise _NoFieldError(f"{step} would be a field of {value!r}, which has none")
    return {**below, step: _replaced(below.get(step), others, new)}


def _index(value: Any, step: str) -> int:
    """Return the index of an element that is named by its index or name."""
    if not isinstance(value, list | tuple):
        raise _NoFieldError(f"[{step}] would be an element of something that is not a list")
    names = [each.get("name") if isinstance(each, Mapping) else None for each in value]
    if step in names:
        return names.index(step)
    if step in map(str, range(len(value))):
        return int(step)
    named = [str(name) for name in names if name]
    there = f"there is {', '.join(named)}" if named else f"the list has {len(value)}"
    raise _NoFieldError(f"there is no element {step}; {there}")
