"""Patches of every kind, from the request to the changed object.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go,
          vendor/gopkg.in/evanphx/json-patch.v4/merge.go (v1.36)
Rejects:  patches that do not apply, whose outcome is no object of its kind, or that change the
          name.
Differs:  messages do not show the outcome of a patch.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubesched.api.json_syntax import json_text_error
from kubesched.apiserver import defaults, json_patch, server_side_apply, strategic_merge
from kubesched.apiserver.decoding import BodyError, is_longer, parsed, patch_problems
from kubesched.apiserver.operation import APPLY_TYPE, Operation
from kubesched.apiserver.plain import Plain, deep_copy, json_word
from kubesched.apiserver.registry import check_namespace
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.schema import decoded
from kubesched.apiserver.status import bad_request, unfit_patch, unsupported_patch_type
from kubesched.apiserver.times import Clock
from kubesched.apiserver.values import SchemaError

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_OPERATION: Final = frozenset(("op", "path", "from", "value"))
_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_TYPE)


class Patch:
    """One patch, read once and applied to an object.

    Attributes:
        is_apply: Whether it creates what does not exist and says who manages its fields.
        value: What it says.
    """

    def __init__(self, operation: Operation, resource: Resource, clock: Clock) -> None:
        """Read a patch.

        Args:
            operation: The request.
            resource: What is patched; for a subresource of a kind of its own, that kind.
            clock: For the times of managed fields.

        Raises:
            StatusError: It cannot be read.
        """
        self._operation = operation
        self._resource = resource
        self._clock = clock
        self._type = operation.request.content_type
        check_type(self._type, resource)
        self.is_apply = self._type == APPLY_TYPE
        self.value = self._read(operation.request.body)

    def _read(self, body: bytes) -> Any:
        if self.is_apply:
            try:
                return parsed(body, "application/yaml")
            except BodyError as error:
                raise bad_request(f"error decoding YAML: {error}") from None
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            why = json_text_error(body) or "unexpected end of JSON input"
            raise bad_request(f"error decoding patch: {why}") from None

    def apply(self, current: Plain | None) -> Plain:
        """Return the changed object.

        Args:
            current: The object; None if there is none, which only an apply survives.

        Raises:
            StatusError: The patch does not apply.
        """
        if self.is_apply:
            return defaults.with_defaults(self._resource, self._applied(current))
        assert current is not None, "only an apply creates"
        changed = self._changed(current)
        if not isinstance(changed, dict):
            raise bad_request("the patch leaves no object")
        object_type = self._resource.type
        try:
            read, unknown = decoded(object_type, changed)
        except SchemaError as error:
            raise unfit_patch(str(error)) from None
        if unknown or self._may_repeat_fields():
            self._check_fields(changed)
        defaults.fill_in(object_type, read)
        return read

    def _changed(self, current: Plain) -> Any:
        if self._type == STRATEGIC_PATCH:
            return strategic_merge.apply(self._resource.type, current, self.value)
        if self._type == MERGE_PATCH:
            return merge(current, self.value)
        return json_patch.apply(current, self.value)

    def _may_repeat_fields(self) -> bool:
        """Whether the patch may say something twice, or something that no patch says."""
        is_odd = self._type == JSON_PATCH and any(
            not _OPERATION.issuperset(one) for one in self.value or () if isinstance(one, dict)
        )
        return is_odd or is_longer(self._operation, self.value)

    def _check_fields(self, changed: Plain) -> None:
        operation = self._operation
        if operation.validation == "Ignore":
            return
        problems = patch_problems(
            self._resource.type,
            changed,
            operation.request.body,
            is_merged=self._type == STRATEGIC_PATCH,
        )
        if problems and operation.validation == "Strict":
            raise unfit_patch(f"strict decoding error: {', '.join(problems)}")
        operation.warnings.extend(problems)

    def _applied(self, current: Plain | None) -> Plain:
        operation = self._operation
        return server_side_apply.apply(
            self._resource,
            current,
            self.value,
            operation.request.parameter("fieldManager"),
            operation.request.flag("force"),
            self._clock.timestamp(),
            operation.subresource,
        )


def check_type(media_type: str, resource: Resource) -> None:
    """Check that a body is a patch, and of a form that a kind takes.

    Raises:
        StatusError: It is something else.
    """
    is_strategic = media_type == STRATEGIC_PATCH
    # How lists of custom resources merge is not known.
    if media_type not in _TYPES or (is_strategic and resource.definition is not None):
        raise unsupported_patch_type()


def merge(current: Plain, patch: Any) -> Any:
    """Return what a JSON merge patch (RFC 7386) makes of an object.

    Raises:
        StatusError: It is no patch.
    """
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_word(patch)} into Go value of "
            "type map[string]interface {}"
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


def check_name(operation: Operation, obj: Plain) -> None:
    """Check that an object is the one that the path names.

    Raises:
        StatusError: It is another one.
    """
    metadata = obj.get("metadata", {})
    name = metadata.get("name", "")
    if not name:
        raise bad_request(
            f"the name of the object ({operation.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != operation.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({operation.name})"
        )
    namespace = metadata.get("namespace", "")
    if operation.namespace and namespace and namespace != operation.namespace:
        raise bad_request(
            f"the namespace of the object ({namespace}) does not match the namespace on the "
            f"request ({operation.namespace})"
        )


def same_object(operation: Operation, obj: Plain) -> Plain:
    """Return a patched object, which is still the one that the path names.

    Raises:
        StatusError: It is another one.
    """
    check_namespace(operation, obj)
    check_name(operation, obj)
    return obj
