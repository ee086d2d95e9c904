"""Apply a JSON patch (RFC 6902) to a plain object.

Upstream: vendor/gopkg.in/evanphx/json-patch.v4/patch.go,
          staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go (v1.36)
Rejects:  400 if the patch is not a list of operations; 413 if it has too many; 422 without a
          reason if an operation does not apply.
Invariants: `apply` does not change its arguments.
Differs:  `test` compares numbers by type and value; upstream compares their text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kubesched.apiserver.plain import deep_copy, json_word
from kubesched.apiserver.status import StatusError, bad_request, rejected_patch

__all__ = ["apply"]

Container: TypeAlias = dict[str, Any] | list[Any]
Operation: TypeAlias = Mapping[str, Any]

_OPERATIONS_MAX: Final = 10_000
_INDEX: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def apply(current: Any, operations: Any) -> Any:
    """Return a patched copy of an object.

    Args:
        current: The object, any JSON value.
        operations: The decoded patch.

    Raises:
        StatusError: The patch is malformed or does not apply.
    """
    checked = _checked(operations)
    document = deep_copy(current)
    for operation in checked:
        document = _OPERATIONS.get(operation.get("op"), _unknown)(document, operation)
    return document


def _checked(operations: Any) -> list[Operation]:
    if operations is None:
        return []
    if not isinstance(operations, list):
        raise _wrong_type(operations, "value of type []handlers.jsonPatchOp")
    for operation in operations:
        if not isinstance(operation, dict | None):
            raise _wrong_type(operation, "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            value = (operation or {}).get(name)
            if not isinstance(value, str | None):
                raise _wrong_type(value, f"struct field jsonPatchOp.{name} of type string")
    if len(operations) > _OPERATIONS_MAX:
        raise StatusError(
            413,
            "RequestEntityTooLarge",
            "Request entity is too large: The allowed maximum operations in a JSON patch is "
            f"{_OPERATIONS_MAX}, got {len(operations)}",
        )
    return [operation or {} for operation in operations]


def _wrong_type(value: Any, expected: str) -> StatusError:
    word = json_word(value)
    return bad_request(f"error decoding patch: json: cannot unmarshal {word} into Go {expected}")


def _unknown(document: Any, operation: Operation) -> Any:
    raise rejected_patch()


def _add(document: Any, operation: Operation) -> Any:
    _insert(*_find(document, operation.get("path")), deep_copy(operation.get("value")))
    return document


def _remove(document: Any, operation: Operation) -> Any:
    _delete(*_find(document, operation.get("path")))
    return document


def _replace(document: Any, operation: Operation) -> Any:
    value = deep_copy(operation.get("value"))
    if operation.get("path") == "":
        if not isinstance(value, dict | list):
            raise rejected_patch()
        return value
    container, key = _find(document, operation.get("path"))
    if isinstance(container, dict):
        # Upstream also replaces a field that does not exist.
        container[key] = value
    else:
        container[_index(container, key)] = value
    return document


def _move(document: Any, operation: Operation) -> Any:
    container, key = _find(document, operation.get("from"))
    value = _get(container, key)
    _delete(container, key)
    _insert(*_find(document, operation.get("path")), value)
    return document


def _copy(document: Any, operation: Operation) -> Any:
    value = _get(*_find(document, operation.get("from")))
    _insert(*_find(document, operation.get("path")), deep_copy(value))
    return document


def _test(document: Any, operation: Operation) -> Any:
    path = operation.get("path")
    found = document if path == "" else _get(*_find(document, path))
    if not _same(found, operation.get("value")):
        raise rejected_patch()
    return document


_OPERATIONS: Final[Mapping[Any, Callable[[Any, Operation], Any]]] = {
    "add": _add,
    "copy": _copy,
    "move": _move,
    "remove": _remove,
    "replace": _replace,
    "test": _test,
}


def _find(document: Any, path: str | None) -> tuple[Container, str]:
    """Return the container that a path leads into, and the last key of the path."""
    # Like upstream, ignore anything before the first slash.
    parts = path.split("/")[1:] if path is not None else []
    if not parts:
        raise rejected_patch()
    keys = [part.replace("~1", "/").replace("~0", "~") for part in parts]
    for key in keys[:-1]:
        document = _get(document, key)
    if not isinstance(document, dict | list):
        raise rejected_patch()
    return document, keys[-1]


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    if isinstance(container, list):
        return container[_index(container, key)]
    raise rejected_patch()


def _insert(container: Container, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index([*container, None], key), value)


def _delete(container: Container, key: str) -> None:
    if isinstance(container, list):
        del container[_index(container, key)]
    elif key in container:
        del container[key]
    else:
        raise rejected_patch()


def _index(container: list[Any], key: str) -> int:
    """Return the index that a key stands for; negative indices count from the end."""
    if not _INDEX.fullmatch(key):
        raise rejected_patch()
    index = int(key)
    if not -len(container) <= index < len(container):
        raise rejected_patch()
    return index % len(container)


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
