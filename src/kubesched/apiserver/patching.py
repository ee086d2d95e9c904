"""Patches of every kind, from the request to the changed object; JSON patches are applied here.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go,
          vendor/gopkg.in/evanphx/json-patch.v4/{merge,patch}.go (v1.36)
Rejects:  400 if a JSON patch is not a list of operations; 413 if it has too many; 422 without a
          reason if an operation does not apply; patches whose outcome is not an object of its
          kind, or that change the name.
Invariants: the object and the patch handed in are not changed.
Differs:  the `test` of a JSON patch compares numbers by type and value; upstream compares their
          text. Messages do not show the outcome of a patch. Where a patch removes the version of
          an object, the fields that upstream then does not know are not listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from kubesched.api.codec import without_nulls
from kubesched.api.json_syntax import JsonSyntaxError
from kubesched.api.media_types import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from kubesched.api.requirements import parse_int64
from kubesched.apiserver import managed_fields, strategic_merge
from kubesched.apiserver.decoding import BodyError, is_longer, parsed, patch_problems
from kubesched.apiserver.defaults import completed
from kubesched.apiserver.plain import Plain, decode, deep_copy, json_word
from kubesched.apiserver.request import APPLY_TYPE, Operation
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import (
    StatusError,
    bad_request,
    rejected_patch,
    unfit_patch,
    unsupported_media_type,
)
from kubesched.apiserver.times import Clock
from kubesched.apiserver.values import SchemaError

# JSON patches (RFC 6902).

_Container: TypeAlias = dict[str, Any] | list[Any]
_Operation: TypeAlias = Mapping[str, Any]

_OPERATIONS_MAX: Final = 10_000
_COPIED_BYTES_MAX: Final = 3 << 20


def apply_json_patch(current: Any, operations: Any) -> Any:
    """Return a patched copy of a JSON value; raises StatusError if the patch does not apply."""
    document, copied_bytes = deep_copy(current), 0
    for operation in _checked(operations):
        if operation.get("op") == "copy":
            # Each may double the document.
            copied_bytes += len(msgspec.json.encode(_get(*_find(document, operation.get("from")))))
            if copied_bytes > _COPIED_BYTES_MAX:
                raise rejected_patch()
        document = _applied(document, operation)
    return document


def _checked(operations: Any) -> list[_Operation]:
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


def _applied(document: Any, operation: _Operation) -> Any:
    """Return a document after one operation, which may change it."""
    path, origin = operation.get("path"), operation.get("from")
    value = deep_copy(operation.get("value"))
    match operation.get("op"):
        case "add":
            _insert(*_find(document, path), value)
        case "remove":
            _delete(*_find(document, path))
        case "replace" if path == "" and isinstance(value, dict | list):
            return value
        case "replace" if path != "":
            container, key = _find(document, path)
            if isinstance(container, dict):
                # Upstream also replaces a field that does not exist.
                container[key] = value
            else:
                container[_index(container, key)] = value
        case "move":
            container, key = _find(document, origin)
            value = _get(container, key)
            _delete(container, key)
            _insert(*_find(document, path), value)
        case "copy":
            value = deep_copy(_get(*_find(document, origin)))
            _insert(*_find(document, path), value)
        case "test":
            found = document if path == "" else _get(*_find(document, path))
            # As text, in which 1 is neither 1.0 nor true.
            texts = {msgspec.json.encode(one, order="deterministic") for one in (found, value)}
            if len(texts) > 1:
                raise rejected_patch()
        case _:
            raise rejected_patch()
    return document


def _find(document: Any, path: str | None) -> tuple[_Container, str]:
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


def _insert(container: _Container, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index([*container, None], key), value)


def _delete(container: _Container, key: str) -> None:
    if isinstance(container, list):
        del container[_index(container, key)]
    elif key in container:
        del container[key]
    else:
        raise rejected_patch()


def _index(container: list[Any], key: str) -> int:
    """Return the index in a key; negative indices count from the end."""
    index = parse_int64(key)
    if index is None or not -len(container) <= index < len(container):
        raise rejected_patch()
    return index % len(container)


# Patches of all kinds.

_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_TYPE)
# How lists of custom resources merge is not known.
_CUSTOM_TYPES: Final = (JSON_PATCH, MERGE_PATCH, APPLY_TYPE)


class Patch:
    """One patch, decoded once as `value`; `is_apply` if it is a server-side apply."""

    def __init__(self, operation: Operation, resource: Resource, clock: Clock) -> None:
        """Read a patch of a resource or of a subresource; raises StatusError if that fails."""
        self._operation = operation
        self._resource = resource
        self._clock = clock
        self._type = operation.request.content_type
        self.is_apply = self._type == APPLY_TYPE
        self.value = self._read(operation.request.body)

    def _read(self, body: bytes) -> Any:
        if self.is_apply:
            try:
                return parsed(body, "application/yaml")
            except BodyError as error:
                raise bad_request(f"error decoding YAML: {error}") from None
        try:
            return decode(body)
        except JsonSyntaxError as error:
            raise bad_request(f"error decoding patch: {error}") from None

    def apply(self, current: Plain | None) -> Plain:
        """Return the changed object; raises StatusError if the patch does not apply."""
        resource, operation = self._resource, self._operation
        if self.is_apply:
            now = self._clock.timestamp()
            changed = managed_fields.apply(operation, current, self.value, now)
        else:
            assert current is not None, "only an apply creates"
            changed = self._of_kind(self._changed(current))
        try:
            read, problems = completed(resource.type, changed)
        except SchemaError as error:
            if self.is_apply:
                raise managed_fields.unfit(self.value, str(error)) from None
            raise unfit_patch(str(error)) from None
        if not self.is_apply and operation.validation != "Ignore":
            self._check_fields(sorted(problems))
        return read

    def _changed(self, current: Plain) -> Any:
        if self._type == STRATEGIC_MERGE_PATCH:
            return strategic_merge.apply(self._resource.type, current, self.value)
        if self._type == MERGE_PATCH:
            return merge(current, self.value)
        return apply_json_patch(current, self.value)

    def _of_kind(self, changed: Any) -> Plain:
        """Return the object with its own kind; raises StatusError if the patch changed it."""
        if not isinstance(changed, dict):
            raise bad_request("the patch leaves no object")
        own = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}
        if self._type != STRATEGIC_MERGE_PATCH:
            if not changed.get("apiVersion"):
                # Upstream reads nothing of an object without a version, not even its name.
                _check_name(self._operation, {})
            for name, value in own.items():
                if changed.get(name) not in (None, "", value):
                    raise unfit_patch(f"{name} is not {value}")
        return {**changed, **own}

    def _check_fields(self, unknown: list[str]) -> None:
        """Warn about repeated and unknown fields, or refuse them, as the client wants."""
        operation = self._operation
        is_reread = self._type == JSON_PATCH or is_longer(operation, self.value)
        of_patch = patch_problems(operation.request.body) if is_reread else []
        problems = list(dict.fromkeys([*of_patch, *unknown]))
        if problems and operation.validation == "Strict":
            raise unfit_patch(f"strict decoding error: {', '.join(problems)}")
        operation.request.warnings.extend(problems)


def check_type(media_type: str, resource: Resource) -> None:
    """Raise StatusError if a media type is not that of a patch that the kind supports."""
    if resource.definition is None:
        if media_type not in _TYPES:
            message = "415: Unsupported Media Type"
            raise StatusError(415, "UnsupportedMediaType", message, {})
    elif media_type not in _CUSTOM_TYPES:
        raise unsupported_media_type(*_CUSTOM_TYPES)


def merge(current: Plain, patch: Any) -> Any:
    """Return an object with a JSON merge patch (RFC 7386); raises StatusError if it is invalid."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise _wrong_type(patch, "value of type map[string]interface {}")
    return _merged(current, patch)


def _merged(current: Any, patch: Any) -> Any:
    if not isinstance(current, dict):
        return without_nulls(patch)
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


def _check_name(operation: Operation, obj: Plain) -> None:
    """Raise StatusError if the path names another object."""
    name = obj.get("metadata", {}).get("name", "")
    if not name:
        raise bad_request(
            f"the name of the object ({operation.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != operation.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({operation.name})"
        )


def put_into_namespace(operation: Operation, obj: Plain) -> None:
    """Put an object into the namespace of its path, or into none where its kind has none.

    Raises StatusError if it names another namespace.
    """
    metadata = obj["metadata"]
    if not operation.resource.is_namespaced:
        metadata.pop("namespace", None)
        return
    given = metadata.get("namespace")
    if given and given != operation.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = operation.namespace


def same_object(operation: Operation, obj: Plain) -> Plain:
    """Return an object, in its namespace; raises StatusError if the path names another one."""
    put_into_namespace(operation, obj)
    _check_name(operation, obj)
    return obj
