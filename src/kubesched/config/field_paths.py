"""Fields of a document by their paths, such as `workloads[batch].pods.perHour`.

Rejects:  paths that lead to nothing: an element that is not there, a field of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubesched.config.field_errors import ConfigError, FieldError

_STEP: Final = re.compile(r"(?:^|\.)([^.\[\]]+)|\[([^\[\]]+)\]")


class _NoFieldError(Exception):
    """A path leads to nothing."""


def with_fields(document: Any, values: Mapping[str, object]) -> Any:
    """Return a copy of a document in which fields have other values.

    Args:
        document: Plain values.
        values: By paths. A step in brackets is the index of an element, or its `name`. A field that
            is missing is added, since it may have a default.

    Raises:
        ConfigError: With an error for each path that leads to nothing.
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
        raise _NoFieldError(f"[{step}] would be an element of something that is no list")
    names = [each.get("name") if isinstance(each, Mapping) else None for each in value]
    if step in names:
        return names.index(step)
    if step.isdecimal() and int(step) < len(value):
        return int(step)
    named = [name for name in names if name]
    there = f"there is {', '.join(named)}" if named else f"the list has {len(value)}"
    raise _NoFieldError(f"there is no element {step}; {there}")
