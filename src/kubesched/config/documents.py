"""Parsing of a configuration file into plain values; reports every duplicate key.

Upstream: sigs.k8s.io/yaml (YAML 1.1 as go-yaml v2 reads it), sigs.k8s.io/json (strict) (v1.36)
Rejects:  text that is not UTF-8, bad syntax, several documents, duplicate keys, alias bombs.
Differs:  a second document is an error (upstream ignores it).
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from kubesched.api.go_text import go_quote
from kubesched.api.yaml_syntax import Repeating, YamlError, load_documents, members
from kubesched.config.field_errors import ConfigError, FieldError, child, not_supported, required

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
