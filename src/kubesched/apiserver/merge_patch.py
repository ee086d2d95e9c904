"""Apply a JSON merge patch (RFC 7386) to a plain object.

Upstream: vendor/gopkg.in/evanphx/json-patch.v4/merge.go,
          staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go (v1.36)
Rejects:  400 for a patch that is no object.
Invariants: the object handed in is not changed.
Differs:  nothing.
"""

from __future__ import annotations

from typing import Any, Final

from kubesched.apiserver.patch_error import bad_patch
from kubesched.apiserver.plain import deep_copy

__all__ = ["apply"]

_JSON_WORDS: Final = {list: "array", str: "string", bool: "bool"}


def apply(current: Any, patch: Any) -> Any:
    """Return what a patch makes of an object.

    Args:
        current: The object, any JSON value.
        patch: The decoded patch.

    Raises:
        PatchError: It is no patch.
    """
    if patch is None:
        raise bad_patch("Invalid JSON Patch")
    if not isinstance(patch, dict):
        word = _JSON_WORDS.get(type(patch), "number")
        raise bad_patch(
            f"error decoding patch: json: cannot unmarshal {word} into Go value of type "
            "map[string]interface {}"
        )
    return _merged(current, patch)


def _merged(current: Any, patch: Any) -> Any:
    if not isinstance(current, dict):
        return _without_nulls(patch)
    if not isinstance(patch, dict):
        # A list that takes an object's place keeps its nulls, other lists lose them: upstream's
        # way, where the RFC keeps them all.
        return deep_copy(patch)
    merged = dict(current)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged


def _without_nulls(value: Any) -> Any:
    """Return a copy without the null fields of objects; nulls in lists stay."""
    if isinstance(value, dict):
        return {name: _without_nulls(child) for name, child in value.items() if child is not None}
    if isinstance(value, list):
        return [_without_nulls(child) for child in value]
    return value
